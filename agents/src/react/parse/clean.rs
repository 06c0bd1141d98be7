//! Taking off what is not the answer: reasoning in tags, chat-template tokens, invisible characters.

use std::sync::LazyLock;

use regex::Regex;

pub(super) struct Cleaned {
    pub(super) text: String,
    pub(super) reasoning: Option<String>,
}

/// Tokens such as `<|im_end|>`, `<｜end▁of▁sentence｜>`, `[TOOL_CALLS]`, `<|python_tag|>`, `[/INST]`.
#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static TOKENS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"<[|｜][/\w▁ .-]{1,40}[|｜]>|\[/?(?:TOOL_CALLS|TOOL_RESULTS|INST|AVAILABLE_TOOLS)\]|</?s>")
        .unwrap()
});
#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static THINK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?is)<(think|thinking|scratchpad|reasoning)>(.*?)(?:</(?:think|thinking|scratchpad|reasoning)>|\z)",
    )
    .unwrap()
});

pub(super) fn clean(text: &str) -> Cleaned {
    let text: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let (text, reasoning) = take_thinking(&text);
    let text = TOKENS.replace_all(&text, "").trim().to_owned();
    Cleaned { text, reasoning }
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{feff}' | '\u{200b}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\0')
}

fn take_thinking(text: &str) -> (String, Option<String>) {
    // Some templates open the tag in the prompt, so that only its end is written.
    let lower = text.to_ascii_lowercase();
    if let Some(end) = lower.find("</think>")
        && !lower[..end].contains("<think>")
    {
        let thought = text[..end].trim().to_owned();
        let (rest, more) = take_thinking(&text[end + "</think>".len()..]);
        return (rest, Some(more.map_or(thought.clone(), |more| format!("{thought}\n{more}"))));
    }
    let thoughts: Vec<_> = THINK.captures_iter(text).map(|found| found[2].trim().to_owned()).collect();
    let rest = THINK.replace_all(text, "").into_owned();
    let joined = thoughts.join("\n").trim().to_owned();
    (rest, (!joined.is_empty()).then_some(joined))
}
