//! The local fleet: its processes, what watches over them, and the files that tell others of it.

pub(crate) mod background;
pub(crate) mod far;
pub(crate) mod joined;
pub(crate) mod keys;
pub(crate) mod lifeline;
pub(crate) mod lock;
pub(crate) mod log_file;
pub(crate) mod member;
pub(crate) mod own_keys;
pub(crate) mod pass;
pub(crate) mod policy;
pub(crate) mod private;
pub(crate) mod process;
pub(crate) mod readiness;
pub(crate) mod scale;
pub(crate) mod server_program;
pub(crate) mod specialists;
pub(crate) mod state;
pub(crate) mod store;
pub(crate) mod supervisor;
pub(crate) mod team;
pub(crate) mod users;
pub(crate) mod welcome;
pub(crate) mod wish;
