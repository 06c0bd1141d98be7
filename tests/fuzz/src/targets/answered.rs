//! What is asked and answered over the bus by those whose word counts: machines that join, and guards.

use muster_bus::credentials::{Credentials, OwnKey};
use muster_bus::hosts::{Answer, HostQuestion, JoinAnswer, JoinQuestion, StartAnswer, read_answer};
use muster_shared::flow::{GuardFailure, GuardReply, GuardRule, GuardVerdict, Hook, OnFailure, Ruling};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ensure;
use crate::{Seen, Shape, Target};

/// What was read, once it was written and read again as the same.
fn same<T: Serialize + DeserializeOwned + PartialEq>(read: T) -> Result<T, String> {
    let written = serde_json::to_vec(&read).map_err(|error| error.to_string())?;
    let again: T = serde_json::from_slice(&written).map_err(|error| format!("not read again: {error}"))?;
    ensure(again == read, || "read again it is another".to_owned())?;
    Ok(read)
}

/// The most that is read of a question, in bytes.
const MOST_ASKED: usize = 4 * 1024;

fn question<T: Serialize + DeserializeOwned + PartialEq>(input: &[u8]) -> Result<Result<(), String>, String> {
    if input.len() > MOST_ASKED {
        return Ok(Err(format!("it has {} bytes", input.len())));
    }
    match serde_json::from_slice::<T>(input) {
        Ok(read) => same(read).map(|_| Ok(())),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// Reads an answer, and takes the credentials in it, which are not for the key that asked.
fn answer<T>(input: &[u8], jwt: impl Fn(&T) -> &str) -> Result<Result<(), String>, String>
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    let read = match read_answer::<Answer<T>>(input) {
        Ok(read) => same(read)?,
        Err(why) => return Ok(Err(why)),
    };
    if let Answer::Granted(granted) = &read {
        let taken = Credentials::of_own(&OwnKey::new(), jwt(granted).to_owned(), None);
        ensure(taken.is_err(), || "credentials for another key are taken".to_owned())?;
    }
    Ok(Ok(()))
}

/// What machines that join ask, and what they are answered: nobody takes credentials for a key that is not his.
pub(super) const HOSTS: Target = Target::new("host_questions", Shape::Json, |input| {
    let all = [
        question::<JoinQuestion>(input)?,
        question::<HostQuestion>(input)?,
        answer::<JoinAnswer>(input, |granted| &granted.jwt)?,
        answer::<StartAnswer>(input, |granted| &granted.jwt)?,
    ];
    let refused: Vec<String> = all.iter().filter_map(|one| one.clone().err()).collect();
    let is_read = refused.len() < all.len();
    Ok(if is_read { Seen::Read } else { Seen::by_several(false, &refused) })
})
.with_words(&["fleet"]);

/// What a guard answers: nothing is allowed that it did not allow, and what it says fits on a line.
pub(super) const VERDICTS: Target = Target::new("guard_verdicts", Shape::Json, |input| {
    let rule = GuardRule {
        name: "secrets".to_owned(),
        hooks: vec![Hook::BeforeTool],
        on_failure: OnFailure::Refuse,
        timeout_ms: 1_000,
        tools: Vec::new(),
        roles: Vec::new(),
    };
    let (said, why) = match serde_json::from_slice::<GuardReply>(input) {
        Ok(reply) => (Some(reply), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let asked = said.clone().ok_or_else(|| GuardFailure::Garbage(why.clone().unwrap_or_default()));
    let fits = |payload: &serde_json::Value| {
        if payload.is_object() { Ok(()) } else { Err("no object".to_owned()) }
    };
    let (verdict, payload) = GuardVerdict::of(&rule, asked, fits);
    let meant = said.as_ref().map_or(Ruling::Refuse, |said| said.verdict);
    let ruled = match (meant, &payload) {
        (Ruling::Change, None) => Ruling::Refuse,
        (ruling, _) => ruling,
    };
    ensure(verdict.verdict == ruled, || format!("{meant:?} became {:?}", verdict.verdict))?;
    ensure(payload.is_none() || meant == Ruling::Change, || "something is changed unasked".to_owned())?;
    ensure(verdict.failed == (said.is_none() || (meant == Ruling::Change && payload.is_none())), || {
        "a failure is told as a verdict".to_owned()
    })?;
    let line = &verdict.reason;
    ensure(line.chars().count() <= 401 && !line.contains(['\n', '\r']), || format!("{line:?} is no line"))?;
    match why {
        None => Ok(Seen::Read),
        Some(why) => Ok(Seen::at_door(why)),
    }
})
.with_words(&["tool", "text", "messages"]);
