//! What a program prints: read to its end, and kept up to a limit.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Notify;

/// How many times as much as is kept a program may print before it is ended.
const FLOOD: u64 = 256;

/// Counts both outputs of a program together.
pub(crate) struct Flood {
    seen: AtomicU64,
    most: u64,
    noticed: Notify,
}

impl Flood {
    /// For a program of which so many bytes are kept.
    pub(crate) fn over(kept: usize) -> Self {
        Self { seen: AtomicU64::new(0), most: (kept as u64).saturating_mul(FLOOD), noticed: Notify::new() }
    }

    /// Done when the program printed too much.
    pub(crate) async fn noticed(&self) {
        self.noticed.notified().await;
    }

    fn count(&self, bytes: usize) {
        let before = self.seen.fetch_add(bytes as u64, Ordering::Relaxed);
        if before.saturating_add(bytes as u64) > self.most {
            self.noticed.notify_one();
        }
    }
}

/// The first part of what was printed.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    pub(crate) kept: Bytes,
    pub(crate) is_cut: bool,
}

/// Reads until all that could print are gone: a program that is not read would stand still.
pub(crate) async fn read(mut from: impl AsyncRead + Unpin, most: usize, flood: &Flood) -> Printed {
    let mut kept = Vec::new();
    let mut is_cut = false;
    let mut part = vec![0; 32 * 1024];
    while let Ok(read) = from.read(&mut part).await {
        if read == 0 {
            break;
        }
        flood.count(read);
        let room = most.saturating_sub(kept.len());
        let taken = part.get(..read.min(room)).unwrap_or_default();
        kept.extend_from_slice(taken);
        is_cut |= read > room;
    }
    Printed { kept: kept.into(), is_cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_part_is_kept_and_a_flood_is_noticed() {
        let flood = Flood::over(10);
        let printed = read([b'x'; 2560].as_slice(), 10, &flood).await;
        assert_eq!(printed.kept.as_ref(), [b'x'; 10]);
        assert!(printed.is_cut);
        let waited = tokio::time::timeout(std::time::Duration::ZERO, flood.noticed()).await;
        assert!(waited.is_err(), "as much as is allowed is no flood");
        let printed = read(b"more".as_slice(), 10, &flood).await;
        assert_eq!((printed.kept.as_ref(), printed.is_cut), (b"more".as_slice(), false));
        flood.noticed().await;
    }
}
