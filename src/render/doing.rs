//! What agents do, in plain words.

use muster_agents::react::history;
use muster_shared::flow::Step;
use muster_shared::ids::TaskId;
use muster_shared::wire::{Live, LiveKind};

use super::figures;
use super::progress::Doing;

/// Longest text kept of what a task is doing.
const DOING: usize = 120;

/// Most tasks of which it is kept what they are doing.
const MOST_DOING: usize = 2_000;

/// Longest step that is told, in columns.
const STEP: usize = 160;

/// Most actions of a step that are told.
const MOST_ACTS: usize = 3;

/// What stands before a thought, and before an answer, that is being written.
const THINKS: &str = "thinks: ";
const WRITES: &str = "writes: ";

/// Keeps what a task says it is doing.
pub(crate) fn note(doing: &mut Doing, live: Live) {
    let text = match live.kind {
        LiveKind::Status { text, .. } => figures::one_line(&status(&text), DOING),
        // Streams of words: the newest of them, on the line of the task.
        LiveKind::Thought { text } => streamed(doing.get(&live.task), THINKS, &text),
        LiveKind::Answer { text } => streamed(doing.get(&live.task), WRITES, &text),
    };
    // Anybody can name tasks here: only so many are kept.
    if doing.len() < MOST_DOING || doing.contains_key(&live.task) {
        doing.insert(live.task, text);
    }
}

fn streamed(before: Option<&String>, lead: &str, more: &str) -> String {
    let before = before.and_then(|before| before.strip_prefix(lead)).unwrap_or_default();
    let whole = format!("{before}{more}");
    let text = figures::one_line(&whole, usize::MAX);
    let cut = text.chars().count().saturating_sub(DOING / 2);
    // The next part may start with a new word: the space between both parts stays.
    let space = if !text.is_empty() && whole.ends_with(char::is_whitespace) { " " } else { "" };
    format!("{lead}{}{space}", text.chars().skip(cut).collect::<String>())
}

/// What an agent says that it is doing, in plain words: `step 3 of 10: corpus.search moons` becomes
/// `searches for "moons" (step 3 of 10)`.
pub(crate) fn status(text: &str) -> String {
    match text.split_once(": ") {
        Some((place, action)) if place.starts_with("step ") => {
            format!("{} ({place})", action_in_words(action))
        }
        Some((_, _)) | None => text.to_owned(),
    }
}

/// A step that was taken, for a log: `1-2 searches for "moons"`.
pub(crate) fn step(task: &TaskId, step: &Step) -> String {
    let thought = figures::one_line(&step.thought.text, STEP / 2);
    let said = if thought.is_empty() { String::new() } else { format!(" ({thought})") };
    let acts: Vec<String> =
        step.acts().take(MOST_ACTS).map(|(action, _)| action_in_words(&history::in_brief(action))).collect();
    let more = match step.acts().count() - acts.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    figures::one_line(&format!("{} {}{more}{said}", who(task), acts.join(", ")), STEP)
}

/// The tools that a step calls of which it is not known yet what came.
pub(crate) fn called(step: &Step) -> String {
    figures::list(step.acts().filter(|(_, seen)| seen.is_none()).map(|(action, _)| &action.name))
}

/// Whose step it is.
fn who(task: &TaskId) -> String {
    match task {
        TaskId::Plan => "planning:".to_owned(),
        TaskId::Leaf(index) => format!("task {index}:"),
        TaskId::Reflect(index) => format!("reflection on {index}:"),
        TaskId::Refine(_) => "change of plan:".to_owned(),
        TaskId::Settle(_) => "settling what contradicts:".to_owned(),
        TaskId::Write => "report:".to_owned(),
        TaskId::DraftReview(_) => "review of the draft:".to_owned(),
    }
}

/// An action and its main argument as a person would say it.
fn action_in_words(action: &str) -> String {
    let (name, about) = action.split_once(' ').unwrap_or((action, ""));
    let name = name.replace('_', ".");
    let last = name.rsplit('.').next().unwrap_or(&name).to_owned();
    let of = |verb: &str, nothing: &str| {
        if about.is_empty() { nothing.to_owned() } else { format!("{verb} {about}") }
    };
    match last.as_str() {
        "search" if about.is_empty() => "searches the documents".to_owned(),
        "search" => format!("searches for \"{about}\""),
        "read" => of("reads", "reads"),
        "write" => of("writes", "writes a file"),
        "append" => of("adds to", "adds to a file"),
        "list" => "looks which files there are".to_owned(),
        "calculator" => of("computes", "computes"),
        "submit" => "gives the result".to_owned(),
        "delegate" => of("hands over:", "hands the task over"),
        "escalate" | "info" if name.contains("request") || last == "escalate" => {
            of("asks a person:", "asks a person")
        }
        "peer" => of("asks another agent:", "asks another agent"),
        _ => action.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::{Action, FurtherAction, Observation, ObservationStatus, Thought};
    use muster_shared::ids::TaskIndex;
    use serde_json::json;

    use super::*;

    #[test]
    fn streamed_text_keeps_its_spaces_wherever_it_is_cut() {
        let text = "I ponder  the sum,\nword by word.";
        for parts in 1..text.len() {
            let mut said = None;
            for part in text.as_bytes().chunks(parts) {
                said = Some(streamed(said.as_ref(), WRITES, std::str::from_utf8(part).unwrap()));
            }
            assert_eq!(said.as_deref(), Some("writes: I ponder the sum, word by word."), "{parts}");
        }
    }

    #[test]
    fn all_actions_of_a_step_are_told() {
        let read = |path: &str| Action { name: "corpus.read".into(), arguments: json!({ "path": path }) };
        let taken = |more: &[&str]| {
            let more = more.iter().map(|path| FurtherAction { action: read(path), observation: None });
            let thought = Thought { text: "Both are due.".into(), ..Thought::default() };
            let step = Step { thought, more: more.collect(), ..bare(&read("a.md")) };
            super::step(&TaskId::Leaf(TaskIndex::top(1)), &step)
        };
        assert_eq!(taken(&[]), "task 1: reads a.md (Both are due.)");
        assert_eq!(taken(&["b.md", "c.md"]), "task 1: reads a.md, reads b.md, reads c.md (Both are due.)");
        assert_eq!(
            taken(&["b.md", "c.md", "d.md", "e.md"]),
            "task 1: reads a.md, reads b.md, reads c.md and 2 more (Both are due.)"
        );
    }

    #[test]
    fn the_calls_that_are_not_known_to_have_ended_are_named() {
        let call = |name: &str| Action { name: name.into(), arguments: json!({}) };
        let refused = Observation::new(ObservationStatus::Refused, "no".into());
        let more = vec![
            FurtherAction { action: call("test.no"), observation: Some(refused) },
            FurtherAction { action: call("test.send"), observation: None },
        ];
        assert_eq!(called(&Step { more, ..bare(&call("calculator")) }), "calculator, test.send");
    }

    fn bare(action: &Action) -> Step {
        serde_json::from_value(json!({ "number": 1, "thought": {}, "action": action })).unwrap()
    }

    #[test]
    fn actions_are_told_in_plain_words() {
        for (said, wanted) in [
            ("step 3 of 10: corpus.search moons of Mars", "searches for \"moons of Mars\" (step 3 of 10)"),
            (
                "step 3 of 10, the first of 2 calls: corpus.read a.md",
                "reads a.md (step 3 of 10, the first of 2 calls)",
            ),
            ("step 1 of 4: corpus_read a.md", "reads a.md (step 1 of 4)"),
            ("step 2 of 4: calculator 2 * 3", "computes 2 * 3 (step 2 of 4)"),
            ("step 2 of 4: workspace.write a.csv", "writes a.csv (step 2 of 4)"),
            ("step 4 of 4: submit", "gives the result (step 4 of 4)"),
            ("step 4 of 4: ask_peer which moon?", "asks another agent: which moon? (step 4 of 4)"),
            ("step 4 of 4: house.tool x", "house.tool x (step 4 of 4)"),
            ("waits for its turn", "waits for its turn"),
        ] {
            assert_eq!(status(said), wanted);
        }
    }
}
