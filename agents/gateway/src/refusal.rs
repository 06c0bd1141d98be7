//! Why a request is refused, in words that say what to do. Pure.

use muster_shared::ids::{AgentId, Generation};
use muster_shared::wire::gateway::{GatewayRefusal, RefusalCode};

/// Why a task is not its program's any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Closed {
    /// Its outcome is in the record.
    Ended,
    /// It was cancelled.
    Cancelled(String),
    /// It was put down, and why.
    PutDown(String),
    /// It waits for somebody.
    Waits,
    /// Another agent has it.
    With(AgentId),
    /// It was offered anew.
    OfferedAnew(Generation),
    /// It was handed on: nothing was heard of its program.
    HandedOn(String),
}

impl Closed {
    /// In a word, for programs.
    pub(crate) const fn order(&self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Cancelled(_) => "cancel",
            Self::PutDown(_) | Self::Waits => "park",
            Self::With(_) | Self::OfferedAnew(_) | Self::HandedOn(_) => "given_away",
        }
    }

    pub(crate) fn refusal(&self) -> GatewayRefusal {
        const NEXT: &str = "Nothing was recorded: drop it, and take the next task";
        let (code, what) = match self {
            Self::Ended => (RefusalCode::Ended, "the task has ended".to_owned()),
            Self::Cancelled(why) => (RefusalCode::Cancelled, with("the task was cancelled", why)),
            Self::PutDown(why) => (
                RefusalCode::PutDown,
                format!("{}; it comes back by a later `take`", with("the task was put down", why)),
            ),
            Self::Waits => (
                RefusalCode::PutDown,
                "the task waits for its answer, and comes back with it by a later `take`".to_owned(),
            ),
            Self::With(agent) => (RefusalCode::GivenAway, format!("the task was given to {agent}")),
            Self::OfferedAnew(generation) => (
                RefusalCode::GivenAway,
                format!(
                    "the task was offered anew (generation {generation}), and this token is of an earlier offer"
                ),
            ),
            Self::HandedOn(why) => {
                (RefusalCode::GivenAway, with("the task was handed on to another agent", why))
            }
        };
        GatewayRefusal::new(code, format!("{what}. {NEXT}"))
    }
}

fn with(what: &str, why: &str) -> String {
    if why.is_empty() { what.to_owned() } else { format!("{what} ({why})") }
}

pub(crate) fn bad_token() -> GatewayRefusal {
    let message =
        "the token is none that a gateway made: send the one of the newest answer about the task, as it is";
    GatewayRefusal::new(RefusalCode::BadToken, message)
}

pub(crate) fn of_other_role(role: &str, asked: &str) -> GatewayRefusal {
    let message =
        format!("the token is of a task of role {role}, and was sent to agent.{asked}: ask at agent.{role}");
    GatewayRefusal { over: false, ..GatewayRefusal::new(RefusalCode::BadToken, message) }
}

pub(crate) fn busy(what: impl std::fmt::Display) -> GatewayRefusal {
    let message = format!("{what}. Nothing was recorded: send it again in a second or two");
    GatewayRefusal::new(RefusalCode::Busy, message)
}

pub(crate) fn failed(why: impl std::fmt::Display) -> GatewayRefusal {
    let message = format!("the gateway could not do it: {why}. Send it again with the same `id`");
    GatewayRefusal::new(RefusalCode::Failed, message)
}

pub(crate) fn not_allowed(why: impl Into<String>) -> GatewayRefusal {
    GatewayRefusal::new(RefusalCode::NotAllowed, why)
}

pub(crate) fn invalid(field: &str, why: &str) -> GatewayRefusal {
    let message = format!("`{field}`: {why}. Nothing was recorded: mend it and send it again");
    GatewayRefusal::new(RefusalCode::Invalid, message).of_fields(vec![format!("`{field}`: {why}")])
}
