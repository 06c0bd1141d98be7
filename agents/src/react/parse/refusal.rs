//! Recognising that a model declines, so that it is not asked the same again for ever (W12).
//!
//! Providers' own fields come first ([`WITHHELD`]); then words, which are looked for in prose without an action alone:
//! short, at its beginning, and only where a model speaks of itself.

/// What the text of a provider's own refusal begins with.
pub const WITHHELD: &str = "[declined]";

/// How long a refusal may be, in characters. Models that decline do not write pages.
const LONGEST: usize = 1_500;
/// How far into the text it has to be said, in characters.
const HEAD: usize = 240;

/// What is a refusal wherever it stands in the beginning.
const PLAIN: &[&str] = &[
    // English
    "i must decline",
    "i have to decline",
    "i respectfully decline",
    "i decline to",
    "i cannot comply",
    "i can't comply",
    "i won't be able to",
    "i will not be able to",
    "i'm not comfortable",
    "i am not comfortable",
    "as an ai",
    "against my guidelines",
    "against my policy",
    "violates my guidelines",
    "not something i can help",
    "not something i can do",
    "not something i'm able",
    "not able to help with that",
    "cannot be fulfilled",
    "can't be fulfilled",
    "this request goes against",
    "i'd rather not",
    "i would rather not",
    // German
    "ich muss ablehnen",
    "das muss ich ablehnen",
    "ich lehne das ab",
    "ich lehne es ab",
    "dabei kann ich nicht",
    "damit kann ich nicht",
    "das kann ich leider nicht",
    "das kann ich nicht",
    "kann ich dir nicht helfen",
    "kann ich ihnen nicht helfen",
    // French
    "je ne suis pas en mesure",
    "je dois refuser",
    "je dois décliner",
    // Spanish, Portuguese, Italian
    "no estoy en condiciones",
    "debo rechazar",
    "tengo que rechazar",
    "não estou em condições",
    "devo recusar",
    "non sono in grado",
    "devo rifiutare",
    // Dutch, Polish, Russian, Ukrainian
    "ik moet weigeren",
    "muszę odmówić",
    "вынужден отказать",
    "вынуждена отказать",
    "не имею возможности",
    "мушу відмов",
    // Chinese, Japanese, Korean
    "我不能",
    "我无法",
    "我無法",
    "抱歉，无法",
    "抱歉，無法",
    "お手伝いできません",
    "お答えできません",
    "対応できません",
    "応じることはできません",
    "申し訳ありませんが",
    "申し訳ございませんが",
    "도와드릴 수 없",
    "도울 수 없",
    "죄송하지만",
    // Turkish, Arabic, Hindi
    "yardımcı olamam",
    "yapamam",
    "لا أستطيع",
    "لا يمكنني",
    "मैं नहीं कर सकता",
    "मदद नहीं कर सकता",
];

/// How somebody says that they cannot or will not, ...
const UNABLE: &[&str] = &[
    // English
    "i cannot",
    "i can't",
    "i can not",
    "i won't",
    "i will not",
    "i'm unable to",
    "i am unable to",
    "i'm not able to",
    "i am not able to",
    "i'm not going to",
    "i am not going to",
    "i'm not allowed to",
    "i am not allowed to",
    "i'm not permitted to",
    "we cannot",
    // German
    "ich kann nicht",
    "ich kann das nicht",
    "ich darf nicht",
    "ich werde nicht",
    // French
    "je ne peux pas",
    "je ne peux malheureusement pas",
    "je ne puis",
    "je refuse",
    // Spanish, Portuguese, Italian
    "no puedo",
    "não posso",
    "nao posso",
    "non posso",
    // Dutch, Polish, Russian, Ukrainian
    "ik kan niet",
    "nie mogę",
    "я не могу",
    "я не можу",
];

/// How it is begun where "not" comes later, ...
const UNABLE_LATER: &[&str] = &["ich kann", "ik kan", "sorry, but i", "sorry, i"];
/// ... if it comes.
const NOT: &[&str] = &["nicht", "niet", "n't", "not "];

/// ... and what it is that they then mean to decline: the request, not a fact that they looked for.
const REQUEST: &[&str] = &[
    // English
    "help with",
    "help you",
    "assist",
    "comply",
    "provide",
    "fulfill",
    "fulfil",
    "do that",
    "do this",
    "carry out",
    "perform",
    "participate",
    "support this",
    "engage",
    "continue with",
    "proceed with",
    "create",
    "generate",
    "write",
    "discuss",
    "share",
    "this request",
    "that request",
    "your request",
    "this task",
    "answer that",
    "answer this",
    // German
    "helfen",
    "unterstützen",
    "anfrage",
    "anleitung",
    "aufgabe",
    "erfüllen",
    // French
    "aider",
    "demande",
    "fournir",
    "répondre",
    // Spanish, Portuguese, Italian
    "ayudar",
    "ayuda",
    "solicitud",
    "proporcionar",
    "ajudar",
    "fornecer",
    "aiutar",
    "richiesta",
    "fornire",
    // Dutch, Polish, Russian, Ukrainian
    "helpen",
    "verzoek",
    "pomóc",
    "prośb",
    "помочь",
    "запрос",
    "выполнить",
    "допомогти",
    "запит",
];

/// Whether a text reads like a refusal.
pub(in crate::react) fn is_refusal(text: &str) -> bool {
    refusal(text).is_some()
}

/// What the model said, when it is a refusal.
pub(super) fn refusal(text: &str) -> Option<String> {
    let shown = |text: &str| text.trim().chars().take(300).collect();
    if let Some(said) = text.strip_prefix(WITHHELD) {
        return Some(shown(said));
    }
    if text.chars().nth(LONGEST).is_some() {
        return None;
    }
    let head: String = text.chars().take(HEAD).collect::<String>().to_lowercase().replace('’', "'");
    let says = |words: &[&str]| words.iter().any(|words| head.contains(words));
    (says(PLAIN) || declines(&head)).then(|| shown(text))
}

/// Whether somebody says that they cannot, and right after it what was asked of them.
fn declines(head: &str) -> bool {
    let follows = |begun: &&str| -> Option<String> {
        let after = head.find(*begun)? + begun.len();
        Some(head[after..].chars().take(60).collect())
    };
    let asked = |rest: &String| REQUEST.iter().any(|request| rest.contains(request));
    let denied = |rest: &String| NOT.iter().any(|not| rest.contains(not));
    UNABLE.iter().filter_map(follows).any(|rest| asked(&rest))
        || UNABLE_LATER.iter().filter_map(follows).any(|rest| asked(&rest) && denied(&rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_known_in_other_words_and_languages() {
        for said in [
            "I'm sorry, but I can't assist with that request.",
            "I’m really sorry, but I can’t help you with this.",
            "Unfortunately I am not able to provide instructions for this.",
            "This is not something I can help with.",
            "I won't write that text. Ask me for something else.",
            "I'd rather not continue with this.",
            "I'm not going to generate this list.",
            "Es tut mir leid, aber dabei kann ich nicht helfen.",
            "Ich kann Ihnen bei dieser Anfrage leider nicht weiterhelfen.",
            "Je suis désolé, mais je ne peux pas vous aider avec cette demande.",
            "Lo siento, pero no puedo ayudarte con esa solicitud.",
            "Desculpe, mas não posso ajudar com isso.",
            "Mi dispiace, ma non posso aiutarti con questa richiesta.",
            "Извините, я не могу помочь с этим запросом.",
            "Przykro mi, ale nie mogę pomóc w tej sprawie.",
            "抱歉，我无法协助您完成此请求。",
            "申し訳ありませんが、そのご依頼にはお応えできません。",
            "죄송하지만 그 요청은 도와드릴 수 없습니다.",
            "[declined] the provider withheld the answer for policy reasons (SAFETY): ask differently",
        ] {
            assert!(refusal(said).is_some(), "{said}");
        }
    }

    #[test]
    fn results_that_speak_of_what_cannot_be_are_no_refusals() {
        for said in [
            "The swallow flies at 11 m/s.",
            "The contract says that the buyer cannot withdraw after 14 days.",
            "Penguins are unable to fly; they swim.",
            "I searched the documents and found nothing about the price.",
            "Der Pinguin kann nicht fliegen.",
            "The vendor must decline the offer in writing.",
            "Le pingouin ne peut pas voler.",
            "Ich kann Ihnen helfen: der Preis ist 5 Euro.",
            "The seller cannot provide a guarantee.",
        ] {
            assert_eq!(refusal(said), None, "{said}");
        }
        let long = format!("I can't help with that. {}", "All of this is a result. ".repeat(100));
        assert_eq!(refusal(&long), None, "models that decline do not write pages");
    }
}
