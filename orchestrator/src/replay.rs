//! Makes every decision of a record again and compares it with what the record holds. Pure.

use muster_shared::flow::TaskOffered;
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::{ApplyError, Decided, Entry, RecordEvent, RunEvent, RunState, apply};
use serde::Serialize;

use crate::decide::{Recorded, Situation, decide};

/// How much of a record was decided again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// Decisions.
    pub decisions: u32,
    /// Events in them.
    pub events: u32,
    /// Offers in them.
    pub offers: u32,
}

/// The first decision that came out differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// Where it stands in the record.
    pub seq: Seq,
    /// What part of it: `event`, `offer` or `decision`.
    pub part: &'static str,
    /// What the record holds, as JSON or in words.
    pub expected: String,
    /// What was decided now.
    pub came: String,
}

/// Decides everything in a run's record again, from the recorded inputs, time and capacity.
///
/// # Errors
/// The first difference, a record that cannot be folded among them.
pub fn replay(run: RunId, entries: &[Entry]) -> Result<Replayed, Box<Divergence>> {
    let mut state: Option<RunState> = None;
    let mut done = Replayed::default();
    for (at, entry) in entries.iter().enumerate() {
        if let RecordEvent::Decided(decided) = &entry.event {
            let offers = offers_of(decided, &entries[at + 1..]);
            check((run, state.as_ref()), entry.seq, decided, &offers)?;
            done.decisions += 1;
            done.events += u32::try_from(decided.events.len()).unwrap_or(u32::MAX);
            done.offers += u32::try_from(offers.len()).unwrap_or(u32::MAX);
        }
        apply(&mut state, entry).map_err(|error| cannot(entry.seq, &error))?;
    }
    Ok(done)
}

/// The offers that a decision made: inside it, or in the messages of its batch after it.
fn offers_of<'a>(decided: &'a Decided, after: &'a [Entry]) -> Vec<&'a TaskOffered> {
    let inside = decided.offer.as_deref().into_iter();
    let own = usize::try_from(decided.offers).unwrap_or(usize::MAX);
    let behind = after
        .iter()
        .filter_map(|entry| if let RecordEvent::Offered(offer) = &entry.event { Some(offer) } else { None });
    inside.chain(behind.take(own)).collect()
}

fn check(
    (run, state): (RunId, Option<&RunState>),
    seq: Seq,
    decided: &Decided,
    offers: &[&TaskOffered],
) -> Result<(), Box<Divergence>> {
    let placing = Recorded(&decided.placements);
    let situation = Situation {
        id: run,
        now: decided.now,
        capacity: &decided.capacity,
        specialists: &decided.specialists,
        placing: &placing,
    };
    let again = decide(state, &decided.inputs, situation).map_err(|error| cannot(seq, &error))?;
    let events: Vec<&RunEvent> = again.events.iter().collect();
    compare(seq, "event", &decided.events.iter().collect::<Vec<_>>(), &events)?;
    compare(seq, "offer", offers, &again.offers.iter().collect::<Vec<_>>())
}

fn compare<T: PartialEq + Serialize>(
    seq: Seq,
    part: &'static str,
    expected: &[&T],
    came: &[&T],
) -> Result<(), Box<Divergence>> {
    let longest = expected.len().max(came.len());
    let Some(at) = (0..longest).find(|at| expected.get(*at) != came.get(*at)) else { return Ok(()) };
    let shown = |item: Option<&&T>| item.map_or_else(|| format!("no {part}"), |item| in_json(*item));
    Err(Box::new(Divergence { seq, part, expected: shown(expected.get(at)), came: shown(came.get(at)) }))
}

fn in_json<T: Serialize>(item: &T) -> String {
    serde_json::to_string(item).unwrap_or_else(|error| error.to_string())
}

fn cannot(seq: Seq, error: &ApplyError) -> Box<Divergence> {
    let expected = "a decision that follows from the record before it".to_owned();
    Box::new(Divergence { seq, part: "decision", expected, came: error.to_string() })
}
