//! Claims that may speak of the same in other words. When all that can be done with the plan has been done, a model is asked
//! about all of them at once; again only about what was claimed since.

use muster_shared::conflict::Near;
use muster_shared::flow::{Claim, PlanTask};
use muster_shared::ids::Role;
use muster_shared::run::event::ConflictFound;
use muster_shared::run::{ConflictState, RunState, SettlingFor};

use super::super::builder::DecisionBuilder;
use super::super::{budget, deadline};
use super::{ask, found, tolerance, until};

/// Most steps of whoever judges: it looks nothing up.
const MOST_STEPS: u32 = 2;

/// How often a model is asked in a run. What is claimed after that is not held against what is near it.
const MOST_LOOKS: usize = 3;

/// Longest words of a claim that are told, in characters.
const LONGEST: usize = 200;

/// Has a model say which of the claims that are near each other contradict each other. Tells whether one is asked.
pub(in crate::decide) fn look(decision: &mut DecisionBuilder<'_>) -> bool {
    let now = decision.now();
    let Some(run) = decision.open().filter(|run| may_ask(run) && !deadline::takes_nothing_up(run, now))
    else {
        return false;
    };
    let open = run
        .limits
        .conflicts
        .max_conflicts
        .saturating_sub(u32::try_from(run.conflicts.found.len()).unwrap_or(u32::MAX));
    let mut pairs =
        decision.reader().near(&found::track_record(run, decision.reader()), &asked(run), tolerance(run));
    pairs.truncate(usize::try_from(open).unwrap_or(usize::MAX));
    let last = run.conflicts.found.last_key_value().map_or(0, |(id, _)| *id);
    let Some(first) = pairs.first().map(|_| last.saturating_add(1)) else { return false };
    let until = until(run, now);
    let numbered: Vec<(u32, Near)> = (first..).zip(pairs).collect();
    for (id, Near { one, other }) in &numbered {
        let subject = format!("{} / {}", one.claim.subject, other.claim.subject);
        let subject = subject.chars().take(Claim::MAX_TEXT).collect();
        let sides = vec![one.clone(), other.clone()];
        decision.emit(ConflictFound { id: *id, subject, sides, certain: false, until });
    }
    let task = PlanTask {
        max_steps: Some(MOST_STEPS),
        ..ask::small("compare what is claimed", goal(&numbered), Role::Worker)
    };
    let ids = numbered.iter().map(|(id, _)| *id).collect();
    ask::begin(decision, first, None, vec![(SettlingFor::Near(ids), task)]);
    true
}

/// Whether a model can be asked: one was used in this run, there is budget, and none was asked too often.
fn may_ask(run: &RunState) -> bool {
    let looks = looks(run).count();
    looks < MOST_LOOKS
        && run.spending.used.model_calls > 0
        && budget::affords(run, &muster_shared::ids::TaskId::Settle(u32::MAX))
}

/// The pairs of each time that a model was asked.
fn looks(run: &RunState) -> impl Iterator<Item = &[u32]> {
    run.conflicts.settling.values().filter_map(|settling| match &settling.purpose {
        SettlingFor::Near(pairs) => Some(pairs.as_slice()),
        SettlingFor::Method(_) | SettlingFor::Arbiter => None,
    })
}

/// The pairs that a model was asked about, whatever it said.
fn asked(run: &RunState) -> Vec<Near> {
    let before = looks(run).flatten().filter_map(|id| run.conflicts.found.get(id));
    let pair = |asked: &ConflictState| match asked.sides.as_slice() {
        [one, other] => Some(Near { one: one.clone(), other: other.clone() }),
        [] | [_] | [_, _, _, ..] => None,
    };
    before.filter_map(pair).collect()
}

fn goal(pairs: &[(u32, Near)]) -> String {
    let said = |claim: &Claim| {
        format!(
            "{:?} is {:?}",
            ask::cut(&claim.subject, LONGEST),
            ask::cut(&claim.value.to_string(), LONGEST)
        )
    };
    let lines: Vec<String> = pairs
        .iter()
        .map(|(id, Near { one, other })| format!("pair {id}: {}; {}", said(&one.claim), said(&other.claim)))
        .collect();
    format!(
        "Each of these pairs holds two claims of one run. Do the two of a pair speak of the same thing, so that they cannot \
         both be true?\n{}\nLook nothing up. Submit one claim for each pair, with the subject \"pair N\" and the value yes \
         where they contradict each other, else no.",
        lines.join("\n")
    )
}

/// Whether the subject of an answer names this pair.
pub(super) fn names(subject: &str, id: u32) -> bool {
    let mut numbers = subject.split(|letter: char| !letter.is_ascii_digit()).filter(|part| !part.is_empty());
    numbers.next().and_then(|number| number.parse().ok()) == Some(id)
}
