//! The kind of answer that a question wants, and how well a text has the form of it.

use regex::Regex;

use super::text::{is_stop_word, stem, words};

/// The kind of answer that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// What something is.
    Definition,
    /// What keeps something within bounds.
    Limit,
    /// By what means.
    Manner,
    /// For what reason.
    Reason,
    /// At what time or on what condition.
    Time,
    /// In what place.
    Place,
    /// Who.
    Person,
    /// A number.
    Number(Measure),
    /// Whether something is so.
    Whether,
    /// Anything on the subject.
    Anything,
}

/// What a number counts or measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// A span of time.
    Span,
    /// How often.
    Rate,
    /// Money, or an amount.
    Amount,
    /// How many of something.
    Count,
    /// Whatever has a number.
    Any,
}

pattern!(
    SPAN_ASKED,
    r"(?i)\bhow (?:long|old|soon|fast|quickly)\b|\bhow many (?:milliseconds|seconds|minutes|hours|days|nights|weeks|months|years)\b"
);
pattern!(RATE_ASKED, r"(?i)\bhow (?:often|frequently)\b");
pattern!(AMOUNT_ASKED, r"(?i)\bhow much\b|\bwhat does .* cost\b|\bprice of\b");
pattern!(COUNT_ASKED, r"(?i)\bhow many\b|\bnumber of\b");
pattern!(
    NUMBER_ASKED,
    r"(?i)\bhow (?:large|big|far|high|deep|wide|heavy|tall|small|low|hot|cold|strong)\b|\b(?:percentage|size|value|length|height|weight|depth|width) of\b|\b(?:which|what) (?:port|number|version|percentage|temperature|size|value|latency)\b|\bdefault\b"
);
pattern!(
    LIMIT_ASKED,
    r"(?i)\b(?:what|which)\b.{0,30}\b(?:limits?|bounds?|caps?|restricts?|prevents?|stops?|maximum|limitations?)\b|\blimits? (?:on|of|to|for)\b"
);
pattern!(
    REASON_ASKED,
    r"(?i)\bwhy\b|\breasons?\b|\bwhat for\b|\bbecause of what\b|\bwhat causes?\b|\bwhat (?:was|is) the (?:root )?cause\b"
);
pattern!(
    TIME_ASKED,
    r"(?i)^(?:and\s+)?when\b|\bsince when\b|\bat what (?:time|point)\b|\bunder (?:what|which) conditions?\b|\b(?:what|which) (?:day|date|year|month|time)\b|\buntil when\b"
);
pattern!(PLACE_ASKED, r"(?i)^(?:and\s+)?where\b|\b(?:which|what) (?:folder|directory|path|place|room)\b");
pattern!(
    PERSON_ASKED,
    r"(?i)^(?:and\s+)?(?:by |to |from |for |with )?(?:who|whom|whose)\b|\b(?:which|what) (?:person|people|team)\b"
);
pattern!(MANNER_ASKED, r"(?i)\bhow\b");
pattern!(
    DEFINITION_ASKED,
    r"(?i)\bwhat(?:'s| is| are| does .* mean)\b|\bdefine\b|\bdefinition\b|\bmeaning of\b"
);
pattern!(
    WHETHER_ASKED,
    r"(?i)^(?:and\s+)?(?:is|are|was|were|does|do|did|can|could|may|must|should|will|would|has|have|am)\b"
);

/// The kind of answer that a question wants.
pub(super) fn wanted(text: &str) -> Wanted {
    let rules: [(&Regex, Wanted); 14] = [
        (&RATE_ASKED, Wanted::Number(Measure::Rate)),
        (&SPAN_ASKED, Wanted::Number(Measure::Span)),
        (&AMOUNT_ASKED, Wanted::Number(Measure::Amount)),
        (&COUNT_ASKED, Wanted::Number(Measure::Count)),
        (&NUMBER_ASKED, Wanted::Number(Measure::Any)),
        (&LIMIT_ASKED, Wanted::Limit),
        (&REASON_ASKED, Wanted::Reason),
        (&TIME_ASKED, Wanted::Time),
        (&PLACE_ASKED, Wanted::Place),
        (&PERSON_ASKED, Wanted::Person),
        (&MANNER_ASKED, Wanted::Manner),
        (&DEFINITION_ASKED, Wanted::Definition),
        (&WHETHER_ASKED, Wanted::Whether),
        (&ANYTHING, Wanted::Anything),
    ];
    let text = text.trim();
    rules.iter().find(|(rule, _)| rule.is_match(text)).map_or(Wanted::Anything, |(_, wanted)| *wanted)
}

pattern!(ANYTHING, "");
pattern!(
    MANY_ASKED,
    r"(?i)^(?:and\s+)?(?:(?:what|which)\s+(?:\w+\s+){0,2}?(?P<noun>[a-z]{3,}[^s\W]s|children|people|criteria)\b|(?:list|name|enumerate)\s+(?:all|the|every)?|for (?:what|which) \w+s\b|what (?:has|have) to be\b|what (?:should|must|can|do|does)\b.{0,40}\b(?:do|done|happen)\b|what (?:is|are|was|were) (?:not )?\w+(?:ed|en|own|ut)\b|what (?:are|were) the\b)|\b(?:steps|options|ways|kinds|types|fields|parts|differences?|compare)\b"
);
pattern!(
    STEPS_ASKED,
    r"(?i)^(?:and\s+)?how (?:do|can|should|must|could|would|to|does|is|are)\b|\bwhat (?:are the )?steps\b|\bwhat (?:has|have) to be done\b|\bwhat (?:should|must) (?:i|we|you|be)\b|\bin (?:what|which) order\b|\bwhat (?:happens|happened|follows)\b"
);
/// Verbs that end like a noun in the plural.
const NO_PLURALS: [&str; 22] = [
    "does", "has", "was", "happens", "causes", "means", "makes", "gives", "holds", "takes", "needs", "keeps",
    "limits", "shows", "says", "tells", "prevents", "stops", "status", "always", "decides", "owns",
];

/// Whether several things are asked for.
pub(super) fn asks_for_many(text: &str) -> bool {
    MANY_ASKED.captures(text.trim()).is_some_and(|found| {
        found.name("noun").is_none_or(|noun| !NO_PLURALS.contains(&noun.as_str().to_lowercase().as_str()))
    })
}

/// Whether the way to do something is asked for.
pub(super) fn asks_for_steps(text: &str) -> bool {
    STEPS_ASKED.is_match(text.trim())
}

pattern!(
    SAYS_LIMIT,
    r"(?i)\b(?:limit\w*|at most|no more than|maximum|max|refus\w+|cap(?:ped|s)?|bound(?:ed|s)?|must not|may not|never|only|up to|exceed\w*|restrict\w*|reject\w*|prevent\w*|depth)\b|≤|<="
);
pattern!(
    SAYS_MANNER,
    r"(?i)\b(?:by|through|via|using|then|so that|so no|when|once|if|after|another|instead|until|again|plus|times|takes? (?:\w+ ){0,3}over|goes on|from the last)\b|→"
);
pattern!(
    SAYS_REASON,
    r"(?i)\b(?:because|since|so that|otherwise|in order to|to avoid|to keep|to save|reasons?|therefore|hence|thus|due to|caused? by|causes?|as (?:it|they|the|most|people|many|a)|for (?:reasons|want|fear) of|would)\b"
);
pattern!(
    SAYS_TIME,
    r"(?i)\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b\d{1,2}(?:st|nd|rd|th)?\s+(?:january|february|march|april|may|june|july|august|september|october|november|december)\b|\b(?:january|february|march|april|june|july|august|september|october|november|december)\b|\b(?:1[5-9]|20)\d\d\b|\b\d{1,2}:\d\d\b|\b(?:week|month|quarter|night|midnight|noon)\b"
);
pattern!(
    SAYS_CONDITION,
    r"(?i)\b(?:when|after|before|once|as soon as|until|if|whenever|while|every|only|where|unless|more than|less than|below|above|exceeds?|day|days|hours|minutes|seconds)\b"
);
pattern!(TIME_PAST, r"(?i)^(?:and\s+)?when (?:was|were|did)\b");
pattern!(SAYS_PLACE, r"(?i)\b(?:in|at|under|inside|on|to|stored|folder|directory|located|path)\b|/");
pattern!(
    NUMBER,
    r"\d|(?i)\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|dozen|once|twice|half|none|no|unlimited|zero)\b"
);
pattern!(
    SAYS_SPAN,
    r"(?i)(?:\d|\b(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen|twenty|thirty|sixty|ninety))[\s-]*(?:to \w+ )?(?:ms|s|h|min|milliseconds?|seconds?|minutes?|hours?|days?|nights?|weeks?|months?|years?|quarters?|decades?|epochs?)\b|_(?:ms|seconds|minutes|hours|days|weeks)\b|(?:SECONDS|MINUTES|HOURS|DAYS)\b|\bforever\b|\buntil\b"
);
pattern!(
    SAYS_RATE,
    r"(?i)\b(?:every|each|once|twice|daily|hourly|weekly|monthly|yearly|never|times|per|at most|more than once|always)\b|\b(?:a|an) (?:second|minute|hour|day|week|month|quarter|year)\b"
);
pattern!(
    SAYS_AMOUNT,
    r"(?i)\d[\d,.]*\s*(?:%|percent|euros?|eur|pounds?|gbp|dollars?|usd|cents?|pence|francs?|chf|yen|g|kg|mg|ml|l|litres?|grams?)\b|[€£$]\s?\d|\d\s?[€£$%]"
);
pattern!(
    SAYS_DEFINITION,
    r"(?i)\b(?:is|are) (?:an?|the|one|any|what|how|called)\b|\bmeans?\b|\bstands? for\b|\brefers? to\b|\bconsists? of\b|\bdefined as\b|\bcalled\b"
);
pattern!(
    SAYS_PERSON,
    r"\b[A-Z][a-z]+ (?:[A-Z]\.? )?[A-Z][a-z]+\b|(?i)\b(?:officers?|managers?|leads?|leaders?|heads?|teams?|nurses?|deputy|chair\w*|treasurer|secretary|director|desk|department|board|committee|customers?|members?|users?|administrators?|maintainers?|person|landlord|tenant|buyer|seller|council|agency)\b"
);
pattern!(
    SAYS_WHETHER,
    r"(?i)\b(?:yes|no|not|never|only|may|can|cannot|must|allowed|permitted|prohibited|forbidden|possible|refused|accepted|supported|without|except|unless|always)\b"
);

/// How well a text has the form of the answer that is wanted: around 1, more where it has.
pub(super) fn fit(wanted: Wanted, question: &str, text: &str) -> f64 {
    let yes_or = |pattern: &Regex, yes: f64, no: f64| if pattern.is_match(text) { yes } else { no };
    match wanted {
        Wanted::Definition => yes_or(&SAYS_DEFINITION, 1.14, 1.0),
        Wanted::Limit => yes_or(&SAYS_LIMIT, 1.16, 0.95),
        Wanted::Manner => yes_or(&SAYS_MANNER, 1.12, 1.0),
        Wanted::Reason => yes_or(&SAYS_REASON, 1.28, 0.9),
        Wanted::Time if TIME_PAST.is_match(question.trim()) => yes_or(&SAYS_TIME, 1.25, 0.75),
        Wanted::Time if SAYS_TIME.is_match(text) => 1.22,
        Wanted::Time => yes_or(&SAYS_CONDITION, 1.14, 0.8),
        Wanted::Place => yes_or(&SAYS_PLACE, 1.14, 0.9),
        Wanted::Person => person(text),
        Wanted::Number(measure) => number(measure, question, text),
        Wanted::Whether => yes_or(&SAYS_WHETHER, 1.14, 0.95),
        Wanted::Anything => 1.0,
    }
}

fn person(text: &str) -> f64 {
    // A name within the text; the first word of a sentence is in capitals whoever it is about.
    let named = words(text).skip(1).any(|word| {
        word.text.chars().next().is_some_and(char::is_uppercase) && word.text.chars().any(char::is_lowercase)
    });
    match (SAYS_PERSON.is_match(text), named) {
        (true, _) => 1.2,
        (false, true) => 1.12,
        (false, false) => 0.82,
    }
}

fn number(measure: Measure, question: &str, text: &str) -> f64 {
    if measure != Measure::Rate && !NUMBER.is_match(text) {
        return 0.6;
    }
    let form: &Regex = match measure {
        Measure::Span => &SAYS_SPAN,
        Measure::Rate => &SAYS_RATE,
        Measure::Amount => &SAYS_AMOUNT,
        Measure::Count => return if counts(question, text) { 1.3 } else { 1.0 },
        Measure::Any => return 1.14,
    };
    if form.is_match(text) { 1.28 } else { 0.88 }
}

/// Whether a text has a number close before what is counted in the question ("how many men": "eleven men").
fn counts(question: &str, text: &str) -> bool {
    let mut asked = words(question).skip_while(|word| !word.text.eq_ignore_ascii_case("many"));
    let Some(counted) = asked.nth(1).map(|word| stem(word.text)) else { return false };
    let said: Vec<&str> = words(text).map(|word| word.text).collect();
    said.iter().enumerate().any(|(at, word)| {
        let before = &said[at.saturating_sub(3)..at];
        stem(word) == counted
            && !before.iter().any(|word| word.eq_ignore_ascii_case("the"))
            && before.iter().any(|before| NUMBER.is_match(before) && !is_no(before))
    })
}

fn is_no(word: &str) -> bool {
    is_stop_word(word) && !word.chars().any(|letter| letter.is_ascii_digit()) && word.len() < 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_things_and_steps_are_told_from_one() {
        for text in [
            "Which ingredients does the loaf need?",
            "Which locker sizes are there?",
            "What has to be done when the chain is broken?",
            "What was removed in version 5?",
            "What is not backed up?",
            "List the roles",
            "For what reasons is a tile rejected?",
        ] {
            assert!(asks_for_many(text), "{text}");
        }
        for text in [
            "What is a lease?",
            "Which port does it use?",
            "What does the code mean?",
            "What causes rot?",
            "How many slots are there?",
            "Who owns the station?",
        ] {
            assert!(!asks_for_many(text), "{text}");
        }
        assert!(asks_for_steps("How do I restore it?") && asks_for_steps("What should I do when it fails?"));
        assert!(!asks_for_steps("How long is it?") && !asks_for_steps("How many steps?"));
    }

    #[test]
    fn the_form_of_an_answer_is_seen() {
        for (question, right, wrong) in [
            ("How long are logs kept?", "They are kept for 21 days.", "There are 7 kinds of logs."),
            ("How many men drowned?", "Eleven men were drowned there.", "In 1793 the men dug on."),
            ("How much is the rent?", "The rent is 62 pounds.", "There are 30 seats."),
            (
                "How often is it rehearsed?",
                "On the first Tuesday of each quarter.",
                "The drill took 74 minutes.",
            ),
            ("When was it opened?", "It was opened on 1 June.", "It opens when asked."),
            ("Who owns it?", "It belongs to Marta Oliveira.", "It is old and blue."),
            ("Why is it so?", "Because it is cheaper.", "It is so."),
        ] {
            let kind = wanted(question);
            let (good, bad) = (fit(kind, question, right), fit(kind, question, wrong));
            assert!(good > bad, "{question}: {good} and {bad}");
        }
    }
}
