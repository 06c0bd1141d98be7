//! Whether the fleet's own server still writes. A disk that was full for a moment has the server give its store up until
//! it is started again, with room or without: it is started again once there is room.

use std::path::Path;
use std::time::Duration;

use muster_shared::time::Millis;
use nix::sys::statvfs::statvfs;

/// How often a write is tried.
pub(crate) const PROBE_EVERY: Duration = Duration::from_secs(3);

/// Refusals in a row after which the server is started again, if there is room.
const MOST_REFUSED: u32 = 3;

/// Writes in a row without any answer after which it is: a server that is only slow, or frozen for a moment, is left alone.
const MOST_SILENT: u32 = 10;

/// Free space below which starting again would help nobody, in bytes.
const LEAST_ROOM: u64 = 8 * 1024 * 1024;

/// For how long a server that was started again is left alone.
const REST: Duration = Duration::from_secs(10);

/// What came of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Probe {
    /// It is on disk.
    Written,
    /// The server said no, or nobody answers for the store.
    Refused(String),
    /// Nothing was heard.
    Silent,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Care {
    /// Nothing.
    Nothing,
    /// To say that the disk is full: this much is free, in bytes.
    SayFull(u64),
    /// To start the server again, and why.
    Restart(String),
}

/// What was seen of the store lately.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreWatch {
    refused: u32,
    silent: u32,
    told_full: bool,
    rests_until: Millis,
}

impl StoreWatch {
    /// Takes note of a write and says what to do. `free` is the room on the store's disk, where it is known.
    pub(crate) fn judge(&mut self, probe: &Probe, free: Option<u64>, now: Millis) -> Care {
        let why = match probe {
            Probe::Written => {
                *self = Self { rests_until: self.rests_until, ..Self::default() };
                return Care::Nothing;
            }
            Probe::Refused(why) => {
                self.refused += 1;
                self.silent = 0;
                why.clone()
            }
            Probe::Silent => {
                self.silent += 1;
                "writes get no answer".to_owned()
            }
        };
        if now < self.rests_until || (self.refused < MOST_REFUSED && self.silent < MOST_SILENT) {
            return Care::Nothing;
        }
        match free.filter(|free| *free < LEAST_ROOM) {
            Some(_) if self.told_full => Care::Nothing,
            Some(free) => {
                self.told_full = true;
                Care::SayFull(free)
            }
            None => {
                *self = Self { rests_until: now.after(REST), ..Self::default() };
                Care::Restart(why)
            }
        }
    }
}

/// Free space on the disk of a folder, or of the nearest one above it that is there; nothing where it is not known.
pub(crate) fn free_space(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|path| path.exists())?;
    let disk = statvfs(existing).ok()?;
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the widths differ by system")]
    let free = (disk.blocks_available() as u64).saturating_mul(disk.fragment_size() as u64);
    Some(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Option<u64> = Some(1 << 30);

    fn refused() -> Probe {
        Probe::Refused("no response from stream".to_owned())
    }

    #[test]
    fn a_store_that_refuses_with_room_on_its_disk_is_started_again_once() {
        let mut watch = StoreWatch::default();
        assert_eq!(watch.judge(&refused(), ROOM, Millis(0)), Care::Nothing, "once is nothing");
        assert_eq!(watch.judge(&Probe::Written, ROOM, Millis(1)), Care::Nothing);
        assert_eq!(watch.judge(&refused(), ROOM, Millis(2)), Care::Nothing);
        assert_eq!(watch.judge(&refused(), ROOM, Millis(2)), Care::Nothing);
        assert!(matches!(watch.judge(&refused(), ROOM, Millis(3)), Care::Restart(_)));
        for at in 4..10 {
            assert_eq!(
                watch.judge(&refused(), ROOM, Millis(at)),
                Care::Nothing,
                "it comes up again meanwhile"
            );
        }
        assert!(
            matches!(watch.judge(&refused(), None, Millis(20_000)), Care::Restart(_)),
            "counted meanwhile"
        );
    }

    #[test]
    fn a_full_disk_is_told_once_and_waited_out() {
        let mut watch = StoreWatch::default();
        let full = Some(4096);
        assert_eq!(watch.judge(&refused(), full, Millis(0)), Care::Nothing);
        assert_eq!(watch.judge(&refused(), full, Millis(0)), Care::Nothing);
        assert_eq!(watch.judge(&refused(), full, Millis(1)), Care::SayFull(4096));
        assert_eq!(watch.judge(&refused(), full, Millis(2)), Care::Nothing);
        assert!(matches!(watch.judge(&refused(), ROOM, Millis(3)), Care::Restart(_)), "there is room again");
    }

    #[test]
    fn a_server_that_is_frozen_for_a_moment_is_left_alone() {
        let mut watch = StoreWatch::default();
        for at in 1..u64::from(MOST_SILENT) {
            assert_eq!(watch.judge(&Probe::Silent, ROOM, Millis(at)), Care::Nothing);
        }
        assert_eq!(watch.judge(&Probe::Written, ROOM, Millis(50)), Care::Nothing);
        for at in 51..50 + u64::from(MOST_SILENT) {
            assert_eq!(watch.judge(&Probe::Silent, ROOM, Millis(at)), Care::Nothing);
        }
        assert!(matches!(watch.judge(&Probe::Silent, ROOM, Millis(99)), Care::Restart(_)));
    }
}
