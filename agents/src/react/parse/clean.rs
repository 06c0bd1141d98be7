//! Taking off what is not the answer: reasoning in tags, chat-template tokens, invisible characters.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

pub(super) struct Cleaned {
    pub(super) text: String,
    pub(super) reasoning: Option<String>,
}

/// The longest name of a token, in characters.
const LONGEST: usize = 40;

/// Tokens such as `<|im_end|>`, `<｜end▁of▁sentence｜>`, `[TOOL_CALLS]`, `<|python_tag|>`, `[/INST]`. How long a name may be
/// is counted apart: within the pattern it made three megabytes of it in each process.
#[expect(clippy::unwrap_used, reason = "a constant pattern, compiled in every test run")]
static TOKENS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"<[|｜](?<name>[/\w▁ .-]+)[|｜]>|\[/?(?:TOOL_CALLS|TOOL_RESULTS|INST|AVAILABLE_TOOLS)\]|</?s>",
    )
    .unwrap()
});
/// Without one of these there is no token. Most answers hold none, and the pattern is made when the first one does.
const SIGNS: [&str; 6] = ["<|", "<｜", "TOOL", "INST]", "<s>", "</s>"];

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
    let text = without_tokens(&text).trim().to_owned();
    Cleaned { text, reasoning }
}

fn without_tokens(text: &str) -> Cow<'_, str> {
    if !SIGNS.iter().any(|sign| text.contains(sign)) {
        return Cow::Borrowed(text);
    }
    TOKENS.replace_all(text, |found: &Captures<'_>| {
        let too_long = found.name("name").is_some_and(|name| name.as_str().chars().count() > LONGEST);
        if too_long { found[0].to_owned() } else { String::new() }
    })
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
    // Every tag of these begins so, whatever is written large.
    if !["<think", "<scratchpad>", "<reasoning>"].iter().any(|tag| lower.contains(tag)) {
        return (text.to_owned(), None);
    }
    let thoughts: Vec<_> = THINK.captures_iter(text).map(|found| found[2].trim().to_owned()).collect();
    let rest = THINK.replace_all(text, "").into_owned();
    let joined = thoughts.join("\n").trim().to_owned();
    (rest, (!joined.is_empty()).then_some(joined))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_templates_go_and_all_else_stays() {
        let longest = "x".repeat(LONGEST);
        let (kept, taken) = (format!("a <|{longest}y|> b"), format!("a <|{longest}|>b"));
        for (text, wanted) in [
            ("plain", "plain"),
            ("<|im_start|>x<|im_end|>", "x"),
            ("x<｜end▁of▁sentence｜>", "x"),
            ("[TOOL_CALLS] x [/INST]</s>", "x"),
            ("x <|größe 1.2/a-b|>", "x"),
            ("a <| b |", "a <| b |"),
            ("[TOOLS] <s", "[TOOLS] <s"),
            (kept.as_str(), kept.as_str()),
            (taken.as_str(), "a b"),
        ] {
            assert_eq!(clean(text).text, wanted, "{text}");
        }
    }

    #[test]
    fn thoughts_in_tags_are_taken_out_however_they_are_written() {
        for (text, wanted, thought) in [
            ("no < tags > here", "no < tags > here", None),
            ("<THINK>why</Think>so", "so", Some("why")),
            ("a<scratchpad>b</reasoning>c", "ac", Some("b")),
            ("why</think>so", "so", Some("why")),
            ("<thinking>never closed", "", Some("never closed")),
        ] {
            let cleaned = clean(text);
            assert_eq!((cleaned.text.as_str(), cleaned.reasoning.as_deref()), (wanted, thought), "{text}");
        }
    }
}
