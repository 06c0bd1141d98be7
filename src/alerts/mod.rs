//! Alerts: rules over what the record and the bus tell, and who is told when one of them holds.
//!
//! [`evaluate`] is the rule: `(state, rules, readings, silences, now) -> (state, notices)`, with no clock and no bus in it.
//! What is measured is folded by [`sight`] out of the same entries as everything else; [`outbox`] keeps what is to be told
//! until somebody took it. Effects are in [`watch`] and [`send`]. What is known is kept on the bus by compare-and-set, so that
//! whoever goes on after a death tells nothing twice.

pub(crate) mod evaluate;
pub(crate) mod notice;
pub(crate) mod observe;
pub(crate) mod outbox;
pub(crate) mod rule;
pub(crate) mod send;
pub(crate) mod sight;
pub(crate) mod state;
pub(crate) mod watch;
pub(crate) mod window;

/// The role under which whoever looks after alerts is in the registry.
pub(crate) const ROLE: &str = "alerts";
