//! What waits for a person, by what the hub knows. Pure.

use serde_json::Value;

use crate::commands::questions;
use crate::live::model::{LiveRun, Model};

/// The questions that wait, as `muster questions --json` lists them: without runs of which the record cannot be followed.
pub(super) fn waiting(model: &Model) -> Value {
    let followed = model.runs().filter(|run| run.damaged().is_none()).filter_map(LiveRun::state);
    followed.flat_map(|state| questions::listed(state, false)).collect()
}

/// The same for whoever asks; nothing before the newest runs are all known.
pub(super) fn all_waiting(model: &Model) -> Option<Value> {
    model.is_caught_up().then(|| waiting(model))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use muster_shared::flow::{About, OnTimeout, Question};
    use muster_shared::ids::{QuestionId, Seq};
    use muster_shared::run::event::QuestionAsked;
    use muster_shared::run::{Entry, RecordEvent, RunEvent, apply};
    use muster_shared::time::Millis;
    use serde_json::json;

    use super::*;
    use crate::live::model::{Input, Link, Most};
    use crate::render::golden;

    /// A run at work that asks something.
    fn asking() -> Vec<Entry> {
        let mut entries = golden::entries();
        entries.truncate(13);
        let (mut asks, last) = (entries[0].clone(), entries[12].clone());
        (asks.seq, asks.at) = (Seq(last.seq.0 + 1), last.at);
        if let RecordEvent::Decided(decided) = &mut asks.event {
            let (id, about, on_timeout) = (QuestionId(1), About::Goal, OnTimeout::Proceed);
            let (question, expires) = (Question::new("Which one?"), Millis(last.at.0 + 600_000));
            let asked = QuestionAsked { id, about, question, expires, on_timeout };
            (decided.inputs, decided.now) = (Vec::new(), last.at);
            decided.events = vec![RunEvent::QuestionAsked(asked)];
        }
        entries.push(asks);
        entries
    }

    #[test]
    fn what_the_hub_knows_is_what_the_command_lists() {
        let entries = asking();
        let mut state = None;
        entries.iter().for_each(|entry| apply(&mut state, entry).unwrap());
        let state = state.unwrap();
        let listed = json!(questions::listed(&state, false));
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");

        let mut model = Model::new(Most::default());
        model.take(Input::Link(Link::Anew("nats://a".to_owned())));
        let entries = entries.into_iter().map(Arc::new).collect();
        model.take(Input::Record { run: state.id, entries });
        assert_eq!(all_waiting(&model), None, "there may be more");
        model.take(Input::CaughtUp);
        assert_eq!(all_waiting(&model), Some(listed));
        model.take(Input::Damaged { run: state.id, why: "it is cut".to_owned() });
        assert_eq!(all_waiting(&model), Some(json!([])));
    }
}
