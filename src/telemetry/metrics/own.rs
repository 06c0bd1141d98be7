//! What the kernel says of this process.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use super::families::Own;
use crate::fleet::process::resident_bytes;

/// Since when figures are told: as good as the start of the process.
static BEGAN: OnceLock<f64> = OnceLock::new();

/// Notes when the process began.
pub(crate) fn begin() {
    BEGAN.get_or_init(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64());
}

/// Looks at this process.
pub(super) fn look(own: &Own) {
    own.build.set(&[env!("CARGO_PKG_VERSION")], 1.0);
    if let Some(began) = BEGAN.get() {
        own.started.set(&[], *began);
    }
    if let Ok(used) = getrusage(UsageWho::RUSAGE_SELF) {
        own.cpu.set(&[], time(used.user_time()) + time(used.system_time()));
    }
    if let Some(bytes) = resident_bytes(std::process::id()) {
        own.memory.set(&[], bytes as f64);
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        own.files.set(&[], files.count() as f64);
    }
}

fn time(value: TimeVal) -> f64 {
    value.tv_sec() as f64 + value.tv_usec() as f64 / 1e6
}
