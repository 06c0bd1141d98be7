//! A conversation that outgrows its model's context: older steps are shown in short, the newest and the task stay whole.
//! What is shown follows from the steps and the room alone, so that whoever takes the task over words the same request.
//! Pure.

use muster_shared::flow::{Action, FurtherAction, Information, Observation, Step, Thought};
use muster_shared::text::first_line;
use serde_json::Value;

use crate::model::chat::ChatMessage;
use crate::model::kept::Kept;

/// How a step is shown in place of the whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Detail {
    /// Most bytes of what was seen, and of a text in arguments.
    text: usize,
    /// Most items of a list in arguments.
    items: usize,
    /// Most places that are named.
    places: usize,
}

impl Detail {
    /// The head of what was seen, and its places.
    const SHORT: Self = Self { text: 240, items: 3, places: 12 };
    /// No more than what was done and where it led.
    const BRIEF: Self = Self { text: 60, items: 1, places: 4 };
    /// Each, the longest first.
    pub(super) const ALL: [Self; 2] = [Self::SHORT, Self::BRIEF];
}

/// A step as a conversation shows it now, and the ways to show it in short that are left.
#[derive(Debug, Clone)]
pub(super) struct ShownStep {
    /// How many messages it takes.
    pub(super) messages: usize,
    /// Shorter forms of it, the shortest first.
    pub(super) shorter: Vec<Vec<Kept<ChatMessage>>>,
}

/// Shows older steps in short, the oldest first, once all messages take more than `room` bytes: so much
/// that the next steps fit without. Gives the place of the first message that changed.
pub(super) fn compact(
    messages: &mut Vec<Kept<ChatMessage>>,
    steps: &mut [ShownStep],
    room: u64,
) -> Option<usize> {
    let mut bytes: u64 = messages.iter().map(Kept::bytes).sum();
    if bytes <= room {
        return None;
    }
    let enough = room / 4 * 3;
    let mut first = None;
    let older = steps.len().saturating_sub(1);
    for left in (0..Detail::ALL.len()).rev() {
        let mut at = 1;
        for step in &mut steps[..older] {
            if bytes <= enough {
                return first;
            }
            // What is in this form already, or in a shorter one, stays as it is.
            if let Some(form) = (step.shorter.len() > left).then(|| step.shorter.pop()).flatten() {
                let (begin, end) = (at, at + step.messages);
                let shorter: u64 = form.iter().map(Kept::bytes).sum();
                bytes -= messages[begin..end].iter().map(Kept::bytes).sum::<u64>();
                bytes += shorter;
                step.messages = form.len();
                messages.splice(begin..end, form);
                first = Some(first.map_or(begin, |known: usize| known.min(begin)));
            }
            at += step.messages;
        }
    }
    first
}

/// How many of the last steps are shown whole.
pub(super) fn whole(steps: &[ShownStep]) -> usize {
    steps.iter().rev().take_while(|step| step.shorter.len() == Detail::ALL.len()).count()
}

/// The step without its thought, with the head of what was seen and the places in it.
pub(super) fn shortened(step: &Step, detail: Detail) -> Step {
    let signing = step.calls.iter().rfind(|call| !call.aside).filter(|call| !call.signatures.is_empty());
    // What a provider signed goes back as it came.
    let action = |action: &Action| match signing {
        Some(_) => action.clone(),
        None => Action { name: action.name.clone(), arguments: cut_value(&action.arguments, detail) },
    };
    let seen = |seen: &Observation| Observation { content: cut(&seen.content, detail), ..seen.clone() };
    let more = |one: &FurtherAction| FurtherAction {
        action: action(&one.action),
        observation: one.observation.as_ref().map(seen),
    };
    let heard = |one: &Information| Information { text: first_line(&one.text, detail.text), ..one.clone() };
    Step {
        number: step.number,
        thought: Thought::default(),
        action: action(&step.action),
        observation: step.observation.as_ref().map(seen),
        more: step.more.iter().map(more).collect(),
        notes: Vec::new(),
        heard: step.heard.iter().map(heard).collect(),
        calls: signing.cloned().into_iter().collect(),
        millis: 0,
        outside_millis: 0,
    }
}

/// The head of a text, and the places of documents that it shows.
fn cut(text: &str, detail: Detail) -> String {
    let most = detail.text;
    if text.len() <= most {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(most)];
    let head = head.rsplit_once('\n').map_or(head, |(lines, _)| lines);
    let mut places: Vec<&str> = Vec::new();
    for place in text.lines().filter_map(place) {
        if places.len() < detail.places && !places.contains(&place) {
            places.push(place);
        }
    }
    let places = if places.is_empty() { String::new() } else { format!("; it showed {}", places.join(", ")) };
    let short = format!("{head}\n[in short: {} bytes were seen{places}]", text.len());
    if short.len() < text.len() { short } else { text.to_owned() }
}

/// The place that a line begins with: `path:12` or `path:12-20`.
fn place(line: &str) -> Option<&str> {
    let first = line.split([' ', '\t']).next()?.trim_end_matches([',', ';']);
    let (path, lines) = first.rsplit_once(':')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_place = path.contains('.') && lines.splitn(2, '-').all(is_number);
    is_place.then_some(first)
}

fn cut_value(value: &Value, detail: Detail) -> Value {
    match value {
        Value::String(text) if text.len() > detail.text => {
            Value::from(format!("{}…", &text[..text.floor_char_boundary(detail.text)]))
        }
        Value::Array(items) => items.iter().take(detail.items).map(|item| cut_value(item, detail)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), cut_value(value, detail))).collect()
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
#[path = "compact_tests.rs"]
mod tests;
