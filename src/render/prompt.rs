//! `muster prompt`.

use muster_agents::react::sent::{Check, SentRequest};
use muster_shared::flow::StoredMessage;
use muster_shared::ids::TaskId;
use serde_json::Value;

use super::figures;
use super::paint::Paint;

/// A request in full.
pub(crate) fn whole(task: &TaskId, sent: &SentRequest, paint: Paint) -> String {
    let mut parts = vec![head(task, sent, paint)];
    let mut messages = sent.messages.iter();
    parts.extend(messages.next().map(|system| message(system, paint)));
    parts.extend(tools(sent, paint));
    parts.extend(messages.map(|said| message(said, paint)));
    parts.join("\n\n")
}

/// What a request changed of the one before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PromptChange<'a> {
    /// Messages at the head that are the same.
    pub(crate) same: usize,
    /// Messages of the one before that are gone.
    pub(crate) removed: &'a [StoredMessage],
    /// Messages that are new.
    pub(crate) added: &'a [StoredMessage],
}

impl<'a> PromptChange<'a> {
    /// What changed from one request to the next.
    pub(crate) fn between(last: Option<&'a SentRequest>, this: &'a SentRequest) -> Self {
        let last: &[StoredMessage] = last.map_or(&[], |last| &last.messages);
        let same = last.iter().zip(&this.messages).take_while(|(one, other)| one == other).count();
        Self { same, removed: &last[same..], added: &this.messages[same..] }
    }
}

/// What a request changed of the one for the step before.
pub(crate) fn difference(
    task: &TaskId,
    this: &SentRequest,
    last: Option<&SentRequest>,
    paint: Paint,
) -> String {
    let change = PromptChange::between(last, this);
    let mut parts = vec![head(task, this, paint)];
    parts.push(match last {
        None => "There is no step before it: all of it is new.".to_owned(),
        Some(last) => {
            let same = figures::plural(change.same as u64, "message");
            let tools = if last.tools == this.tools { " and the tools" } else { "" };
            format!("Since step {}: {same} at its head{tools} stayed the same, byte for byte.", last.step)
        }
    });
    if last.is_none_or(|last| last.tools != this.tools) {
        parts.extend(tools(this, paint));
    }
    parts.extend(change.removed.iter().map(|gone| marked("-", gone, paint)));
    parts.extend(change.added.iter().map(|new| marked("+", new, paint)));
    parts.join("\n\n")
}

fn head(task: &TaskId, sent: &SentRequest, paint: Paint) -> String {
    let of_calls =
        if sent.calls > 1 { format!(", call {} of {}", sent.call, sent.calls) } else { String::new() };
    let aside = if sent.aside { ", asked apart from the conversation" } else { "" };
    let most = sent.parameters["max_steps"].as_u64().map(|most| format!(" of {most}")).unwrap_or_default();
    let template = &sent.template;
    [
        format!("{} {task}, step {}{most}{of_calls}{aside}", paint.bold("Task"), sent.step),
        format!("  entry     {}, generation {}, by {}", sent.seq, sent.generation, sent.agent),
        format!("  model     {}{}", figures::one_line(&sent.model, 100), parameters(&sent.parameters)),
        format!("  template  {} version {} ({})", template.name, template.version, template.hash),
        format!("  hash      {} {}", figures::cut(&sent.request_hash, 17), checked(sent.check, paint)),
    ]
    .join("\n")
}

fn parameters(parameters: &Value) -> String {
    let temperature = parameters["temperature"].as_f64().map(|value| format!(", temperature {value}"));
    let most = parameters["max_tokens"].as_u64().map(|most| format!(", at most {most} tokens"));
    format!("{}{}", temperature.unwrap_or_default(), most.unwrap_or_default())
}

fn checked(check: Check, paint: Paint) -> String {
    match check {
        Check::Matches => paint.good("is that of what is shown here"),
        Check::Differs => {
            paint.bad("is NOT that of what is shown here: the record was changed, or is incomplete")
        }
        Check::ToolsMissing => {
            paint.warn("cannot be checked: the tools that were declared are not there any more")
        }
    }
}

fn tools(sent: &SentRequest, paint: Paint) -> Option<String> {
    if sent.tools.is_empty() {
        let names: Vec<&str> =
            sent.parameters["tools"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let lost = sent.tools_object.as_ref().filter(|_| sent.check == Check::ToolsMissing);
        let unknown = lost.is_some() && !names.is_empty();
        let why = lost.map(|object| {
            let object = figures::one_line(object, 64);
            format!(
                "{}\n",
                paint.warn(&format!("object {object}, which holds them, is not in the store, or damaged"))
            )
        });
        let names = figures::one_line(&names.join(", "), 400);
        return unknown.then(|| format!("{}\n{}{names}", rule("tools", paint), why.unwrap_or_default()));
    }
    let lines = sent.tools.iter().map(|tool| {
        let text = |name: &str| figures::harmless(tool[name].as_str().unwrap_or_default());
        format!(
            "{}: {}\n  {}",
            text("name"),
            text("description"),
            figures::harmless(&tool["parameters"].to_string())
        )
    });
    Some(format!("{}\n{}", rule("tools", paint), figures::lines(lines)))
}

fn message(message: &StoredMessage, paint: Paint) -> String {
    format!("{}\n{}", rule(&message.role, paint), figures::harmless(message.content.trim_end()))
}

fn marked(mark: &str, message: &StoredMessage, paint: Paint) -> String {
    let text = figures::harmless(message.content.trim_end());
    let lines: Vec<String> =
        text.lines().map(|line| format!("{mark} {line}").trim_end().to_owned()).collect();
    let lines = lines.join("\n");
    let lines = if mark == "+" { paint.good(&lines) } else { paint.bad(&lines) };
    format!("{}\n{lines}", rule(&message.role, paint))
}

fn rule(title: &str, paint: Paint) -> String {
    paint.bold(&format!("--- {} ---", figures::one_line(title, 40)))
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::TemplateRef;
    use muster_shared::ids::{AgentId, Generation, Seq, TaskIndex};
    use serde_json::json;

    use super::*;

    fn said(role: &str, content: &str) -> StoredMessage {
        StoredMessage { role: role.to_owned(), content: content.to_owned() }
    }

    fn sent(step: u32, messages: Vec<StoredMessage>) -> SentRequest {
        let schema = json!({"type": "object", "properties": {"expression": {"type": "string"}}});
        SentRequest {
            seq: Seq(40),
            agent: AgentId::new("worker", 1),
            generation: Generation(1),
            step,
            call: 1,
            calls: 1,
            model: "openai/scripted".to_owned(),
            template: TemplateRef {
                name: "worker".to_owned(),
                version: 2,
                hash: "0123456789abcdef".to_owned(),
            },
            aside: false,
            parameters: json!({"temperature": 0.2, "max_tokens": 4096, "tools": ["calculator"], "max_steps": 10}),
            tools_object: None,
            tools: vec![json!({"name": "calculator", "description": "Adds up.", "parameters": schema})],
            same_messages: 0,
            messages,
            request_hash: "ab".repeat(32),
            check: Check::Matches,
            answer: String::new(),
        }
    }

    fn steps() -> [SentRequest; 2] {
        let begin = vec![said("system", "You are a worker."), said("user", "Add up.\n\nStep 1 of 10.")];
        let more = [
            said("assistant", "[call step-1] calculator {\"expression\":\"1+1\"}"),
            said("tool", "[result of step-1] 2\u{1b}[2J\n\nStep 2 of 10."),
        ];
        let second = begin.iter().cloned().chain(more).collect();
        [sent(1, begin), sent(2, second)]
    }

    #[test]
    fn a_request_is_shown_as_it_was_sent() {
        let task = TaskId::Leaf(TaskIndex::top(1));
        let [first, second] = steps();
        insta::assert_snapshot!("prompt", whole(&task, &second, Paint::PLAIN));
        insta::assert_snapshot!("prompt_diff", difference(&task, &second, Some(&first), Paint::PLAIN));
        assert!(difference(&task, &first, None, Paint::PLAIN).contains("no step before it"));
    }

    #[test]
    fn what_does_not_fit_its_hash_is_said() {
        let task = TaskId::Leaf(TaskIndex::top(1));
        let [first, second] = steps();
        let changed = SentRequest { check: Check::Differs, ..second };
        assert!(whole(&task, &changed, Paint::PLAIN).contains("is NOT that"));
        let (check, tools_object) = (Check::ToolsMissing, Some("ab12".to_owned()));
        let lost = SentRequest { check, tools_object, tools: Vec::new(), ..first };
        let shown = whole(&task, &lost, Paint::PLAIN);
        for words in [
            "cannot be checked: the tools",
            "object ab12, which holds them, is not in the store",
            "\ncalculator",
        ] {
            assert!(shown.contains(words), "{shown}");
        }
    }
}
