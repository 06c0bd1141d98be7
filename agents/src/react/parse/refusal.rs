//! Recognising that a model declines, so that it is not asked the same again for ever (W12).

const OPENINGS: &[&str] = &[
    "i'm sorry, but i can",
    "i’m sorry, but i can",
    "i am sorry, but i can",
    "sorry, but i can",
    "sorry, i can",
    "i cannot help",
    "i can't help",
    "i can’t help",
    "i cannot assist",
    "i can't assist",
    "i can’t assist",
    "i'm unable to",
    "i’m unable to",
    "i am unable to",
    "i cannot comply",
    "i can't comply",
    "i cannot provide",
    "i can't provide",
    "i won't",
    "i will not",
    "i must decline",
    "i'm not able to",
    "i am not able to",
    "as an ai",
    "i cannot fulfill",
    "i can't fulfill",
    "i cannot do that",
    "i can't do that",
    "i apologize, but i can",
];

/// What the model said, when it is a refusal: it opens like one and is short.
pub(super) fn refusal(text: &str) -> Option<String> {
    let head: String = text.chars().take(160).collect::<String>().to_lowercase();
    let refuses = text.len() < 2_000 && OPENINGS.iter().any(|opening| head.contains(opening));
    refuses.then(|| text.chars().take(300).collect())
}
