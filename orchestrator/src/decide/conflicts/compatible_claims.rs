//! Claims that differ and both hold, because they speak of different things: whoever is asked about a conflict may say so.

use muster_shared::flow::{About, Claim, ClaimValue, Plan, TaskResult};
use muster_shared::run::{ConflictEnd, ConflictState, QuestionEnd, RunState, SettlingFor};

use super::super::survey;
use super::{answers, is_same_subject};

/// The subject of a claim that says so, and what a person answers.
pub(super) const BOTH_HOLD: &str = "both hold";

/// Longest distinction that is kept, in characters.
const LONGEST: usize = 300;

/// What whoever is asked is told of it.
pub(super) const TOLD: &str = " If they speak of different things, so that none is wrong, submit instead one claim with the \
                               subject \"both hold\" and the value yes, and say in its `method` what tells them apart.";

/// What tells the sides apart, if somebody says that both hold.
pub(super) fn holds(run: &RunState, id: u32) -> Option<String> {
    let conflict = run.conflicts.found.get(&id)?;
    judged(run, id)
        .or_else(|| verified(run, conflict))
        .or_else(|| said(run, id))
        .or_else(|| before(run, id, conflict))
}

/// By the arbiter, or by all who were asked for their methods.
fn judged(run: &RunState, id: u32) -> Option<String> {
    let (mut asked, mut agree) = (0, Vec::new());
    for (task, settling) in answers::settling(run, id) {
        let said = answers::given(run, &task).and_then(distinction);
        match settling.purpose {
            SettlingFor::Arbiter if said.is_some() => return said,
            SettlingFor::Method(_) => {
                asked += 1;
                agree.extend(said);
            }
            SettlingFor::Arbiter => {}
        }
    }
    agree.into_iter().next_back().filter(|_| asked > 1 && all_methods_say_so(run, id))
}

fn all_methods_say_so(run: &RunState, id: u32) -> bool {
    answers::settling(run, id)
        .filter(|(_, settling)| matches!(settling.purpose, SettlingFor::Method(_)))
        .all(|(task, _)| answers::given(run, &task).and_then(distinction).is_some())
}

/// By the task of the plan that found out.
fn verified(run: &RunState, conflict: &ConflictState) -> Option<String> {
    let by = conflict.verified_by.as_ref()?;
    let leaves = run.plan.iter().flat_map(|plan: &Plan| plan.leaves_of(by));
    leaves.filter_map(|leaf| survey::result_of(run, leaf)).find_map(distinction)
}

/// By a person.
fn said(run: &RunState, id: u32) -> Option<String> {
    let asked = run.questions.values().rev().find(|asked| asked.about == About::Conflict(id))?;
    let reply = match &asked.end {
        Some(QuestionEnd::Answered(reply)) => reply,
        Some(QuestionEnd::Withdrawn(_)) | None => return None,
    };
    let (by, text) = reply.by.as_ref().zip(reply.text.as_deref())?;
    let rest = text.trim().to_lowercase().strip_prefix(BOTH_HOLD).map(str::len)?;
    let why = text.trim()[text.trim().len() - rest..].trim_start_matches([':', ',', '.', ' ']);
    Some(if why.is_empty() { format!("{by} says so") } else { cut(why) })
}

/// By what was found out before of the very same claims.
fn before(run: &RunState, id: u32, conflict: &ConflictState) -> Option<String> {
    let earlier = run.conflicts.found.range(..id).rev().map(|(_, earlier)| earlier);
    let claimed = |earlier: &ConflictState| {
        let has = |value: &ClaimValue| earlier.sides.iter().any(|side| side.claim.value == *value);
        conflict.sides.iter().all(|side| has(&side.claim.value))
    };
    let mut known = earlier.filter_map(|earlier| match &earlier.end {
        Some(ConflictEnd::Both(why)) => Some((earlier, why)),
        Some(ConflictEnd::Settled(_) | ConflictEnd::Unsettled(_) | ConflictEnd::Gone(_)) | None => None,
    });
    known
        .find(|(earlier, _)| claimed(earlier) && is_same_subject(&earlier.subject, &conflict.subject))
        .map(|(_, why)| why.clone())
}

/// What a result says tells the sides apart, if it says that both hold.
fn distinction(result: &TaskResult) -> Option<String> {
    let says_so = |claim: &&Claim| {
        claim.subject.to_lowercase().trim().trim_matches('"').starts_with(BOTH_HOLD)
            && claim.value == ClaimValue::Verdict(true)
    };
    let claim = result.claims.iter().find(says_so)?;
    let why = if claim.method.is_empty() { &result.conclusion } else { &claim.method };
    Some(cut(why))
}

fn cut(text: &str) -> String {
    muster_shared::text::normalise_space(text).chars().take(LONGEST).collect()
}
