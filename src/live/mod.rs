//! The fleet as it is now, for whoever looks on for long: `muster top` and the dashboard.
//!
//! [`model`] is pure: what comes in changes what is known, and says what changed. [`feed`] has the effects: it follows the
//! bus, reads what is asked for, and finds the fleet again where it moves.

pub(crate) mod feed;
pub(crate) mod model;
