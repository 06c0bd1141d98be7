//! What a person says to whom asks whether to go on, read by rule. People say yes in many ways, and none of them may be
//! taken for a wish to have something changed; what is not clear is asked again.

/// What was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Yes,
    /// Do not go on so; what is to be different was not said.
    No,
    /// End it.
    Stop,
    /// Something is to be different; what.
    Change(String),
    /// It cannot be told.
    Unclear,
}

/// Words that say nothing by themselves here.
const FILL: [&str; 44] = [
    "a",
    "all",
    "am",
    "and",
    "as",
    "at",
    "can",
    "could",
    "everything",
    "for",
    "from",
    "here",
    "i",
    "i'm",
    "im",
    "is",
    "it",
    "it's",
    "its",
    "just",
    "let",
    "let's",
    "lets",
    "may",
    "me",
    "much",
    "my",
    "now",
    "please",
    "s",
    "should",
    "side",
    "so",
    "thank",
    "thanks",
    "that",
    "that's",
    "the",
    "then",
    "think",
    "this",
    "to",
    "very",
    "with",
];

/// Words about what is asked about.
const SUBJECT: [&str; 12] =
    ["plan", "run", "step", "task", "us", "we", "you", "will", "would", "be", "are", "which"];

/// Words of somebody who is for it.
const YES: [&str; 78] = [
    "+1",
    "absolutely",
    "accept",
    "accepted",
    "affirmative",
    "agree",
    "agreed",
    "ahead",
    "alright",
    "approve",
    "approved",
    "aye",
    "begin",
    "bien",
    "bueno",
    "carry",
    "certainly",
    "confirm",
    "confirmed",
    "continue",
    "cool",
    "correct",
    "course",
    "d'accord",
    "da",
    "definitely",
    "do",
    "einverstanden",
    "excellent",
    "execute",
    "fine",
    "genehmigt",
    "go",
    "good",
    "great",
    "green",
    "gut",
    "happy",
    "ja",
    "k",
    "lgtm",
    "light",
    "look",
    "looks",
    "love",
    "nice",
    "of",
    "off",
    "ok",
    "okay",
    "okey",
    "on",
    "oui",
    "out",
    "perfect",
    "proceed",
    "right",
    "ship",
    "sí",
    "si",
    "signed",
    "sound",
    "sounds",
    "start",
    "super",
    "sure",
    "thumbs",
    "true",
    "up",
    "vale",
    "weiter",
    "wonderful",
    "works",
    "y",
    "yeah",
    "yep",
    "yes",
    "yup",
];

/// Marks of somebody who is for it, and of somebody who is not.
const YES_MARKS: [char; 5] = ['👍', '✅', '✔', '👌', '🆗'];
const NO_MARKS: [char; 3] = ['👎', '❌', '✖'];

/// Words that turn others round.
const NO: [&str; 17] = [
    "-1",
    "disagree",
    "disapprove",
    "don't",
    "dont",
    "n",
    "nah",
    "nay",
    "negative",
    "nein",
    "never",
    "no",
    "non",
    "nope",
    "not",
    "reject",
    "rejected",
];

/// Words of somebody who wants an end.
const STOP: [&str; 13] = [
    "abort",
    "aborted",
    "cancel",
    "cancelled",
    "end",
    "forget",
    "halt",
    "kill",
    "quit",
    "stop",
    "stopped",
    "terminate",
    "abbrechen",
];

/// Words of somebody who cannot say.
const UNSURE: [&str; 12] = [
    "dunno",
    "hm",
    "hmm",
    "hmmm",
    "idk",
    "later",
    "maybe",
    "perhaps",
    "possibly",
    "uncertain",
    "unsure",
    "wait",
];

/// A no that means a yes.
const NO_FOR_YES: [&str; 12] = [
    "no change",
    "no changes",
    "no complaints",
    "no concerns",
    "no issues",
    "no objection",
    "no objections",
    "no problem",
    "no worries",
    "not bad",
    "nothing to change",
    "why not",
];

/// A no that says nothing.
const NO_FOR_UNSURE: [&str; 6] =
    ["do not know", "don't know", "dont know", "no idea", "not certain", "not sure"];

/// Reads what somebody said who was asked whether to go on.
#[must_use]
pub fn read(text: &str) -> Verdict {
    let said = text.trim();
    let words = words(said);
    let content: Vec<&str> = words.iter().map(String::as_str).filter(|word| !is_fill(word)).collect();
    let whole = content.join(" ");
    let has = |list: &[&str]| content.iter().any(|word| list.contains(word));
    let only = |lists: &[&[&str]]| content.iter().all(|word| lists.iter().any(|list| list.contains(word)));
    if content.is_empty() {
        return marked(said);
    }
    if said.ends_with('?') || NO_FOR_UNSURE.contains(&whole.as_str()) {
        return Verdict::Unclear;
    }
    if NO_FOR_YES.contains(&whole.as_str()) {
        return Verdict::Yes;
    }
    if has(&UNSURE) && only(&[&UNSURE, &YES, &NO, &SUBJECT]) {
        return Verdict::Unclear;
    }
    if has(&NO) && only(&[&NO, &YES, &SUBJECT]) {
        return Verdict::No;
    }
    if has(&STOP) && only(&[&STOP, &SUBJECT, &["everything", "work", "no", "not"]]) {
        return Verdict::Stop;
    }
    if has(&YES) && only(&[&YES, &SUBJECT]) {
        return Verdict::Yes;
    }
    // One word by itself says too little, unless it is written without spaces between words.
    let says_enough = content.len() > 1 || (!whole.is_ascii() && whole.chars().count() > 3);
    if says_enough { Verdict::Change(said.to_owned()) } else { Verdict::Unclear }
}

/// The words of a text that say something, without marks and fillers: `Paris, please!` is `paris`.
#[must_use]
pub fn plain(text: &str) -> String {
    let words = words(text);
    let content: Vec<&str> = words.iter().map(String::as_str).filter(|word| !is_fill(word)).collect();
    if content.is_empty() { words.join(" ") } else { content.join(" ") }
}

fn is_fill(word: &str) -> bool {
    FILL.contains(&word)
}

/// The words of a text in lower case, without the marks around them.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase().replace(['’', '‘', '`'], "'");
    let is_outside = |c: char| !c.is_alphanumeric();
    let pieces =
        lower.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '.' | '!' | '?' | '…' | '—'));
    let kept = pieces.map(|piece| match piece {
        "+1" | "-1" => piece,
        other => other.trim_matches(is_outside),
    });
    kept.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// A text without words: a mark may say it all.
fn marked(text: &str) -> Verdict {
    let has = |marks: &[char]| text.chars().any(|c| marks.contains(&c));
    match (has(&YES_MARKS), has(&NO_MARKS)) {
        (true, false) => Verdict::Yes,
        (false, true) => Verdict::No,
        (true, true) | (false, false) => Verdict::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yes_is_read_in_many_wordings() {
        for text in [
            "yes",
            "Yes.",
            "YES!",
            "y",
            "ok",
            "OK, go ahead",
            "go ahead",
            "Go ahead.",
            "looks good to me",
            "Looks good to me!",
            "LGTM",
            "lgtm 👍",
            "👍",
            "sure",
            "Sure, please do it",
            "approved",
            "I approve.",
            "go on",
            "please continue",
            "yep",
            "that's fine",
            "That is fine with me, thanks",
            "sounds good",
            "Yes, please carry it out.",
            "all right",
            "alright then",
            "of course",
            "perfect",
            "do it",
            "let's go",
            "ship it",
            "no problem",
            "No objections.",
            "the plan looks good",
            "agreed",
            "+1",
            "yes, you may proceed",
            "okay, run it",
            "Ja",
            "oui",
            "Sí.",
            "“yes”",
        ] {
            assert_eq!(read(text), Verdict::Yes, "{text}");
        }
    }

    #[test]
    fn a_wish_stays_a_wish() {
        for text in [
            "Leave out the history",
            "yes, but leave out the history",
            "ok with fewer tasks",
            "Looks good to me, only the second task is too broad",
            "go ahead with the first task only",
            "stop after the second task",
            "do not search the web",
            "compare three vendors",
            "更短一些吧",
        ] {
            assert_eq!(read(text), Verdict::Change(text.to_owned()), "{text}");
        }
    }

    #[test]
    fn no_and_stop_are_told_apart() {
        for text in
            ["no", "No.", "nope", "don't", "do not go ahead", "no, thanks", "not good", "not approved", "👎"]
        {
            assert_eq!(read(text), Verdict::No, "{text}");
        }
        for text in ["stop", "Stop!", "abort", "cancel it", "please stop the run", "end it"] {
            assert_eq!(read(text), Verdict::Stop, "{text}");
        }
    }

    #[test]
    fn what_is_not_clear_is_not_guessed() {
        for text in [
            "",
            "  ",
            "1",
            "?",
            "hm",
            "maybe",
            "not sure",
            "I don't know",
            "What would it cost?",
            "asdf",
            "…",
        ] {
            assert_eq!(read(text), Verdict::Unclear, "{text}");
        }
    }
}
