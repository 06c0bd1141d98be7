//! What models can do: how long a conversation may be, whether they call tools, several at once, answer by a schema, see.
//!
//! From what providers publish (2025 and 2026) and from names; settings say otherwise where that is wrong, and a server
//! that refuses something is asked without it from then on.
//!
//! Strict schemas of tools are not among it. OpenAI did not promise them for several calls in one answer, and all calls
//! of an answer are done; they know no objects with free fields, which `use_tool`, results with data and the tools of
//! others have; and each field that may be left out would be written as null. Arguments are checked and mended here.

use std::collections::BTreeMap;

use muster_shared::settings;
use serde::Serialize;

use super::named::longest;
use super::sight;
use crate::react::prompt::CallStyle;
use crate::settings::ToolCalling;

settings! {
    /// What one model can do, where the built-in table is wrong or says nothing.
    #[derive(Copy, PartialEq, Eq)]
    pub const struct ModelSettings {
        /// Most tokens of a request with its answer.
        pub context: Option<u32> = None => whole(1_000, 100_000_000).unit("tokens").example("32000"); Fleet Harmless,
        /// How it is told of actions.
        pub tools: Option<ToolCalling> = None => words::<ToolCalling>().example("\"text\""); Fleet Harmless,
        /// Whether it may call several tools in one answer.
        pub parallel: Option<bool> = None => flag().example("false"); Fleet Harmless,
        /// Whether it is asked to answer by a JSON Schema.
        pub structured: Option<bool> = None => flag().example("false"); Fleet Harmless,
        /// Whether it sees pictures.
        pub sees: Option<bool> = None => flag().example("true"); Fleet Harmless,
    }
}

/// What a model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Most tokens of a request with its answer; nothing where it is not known.
    pub context: Option<u32>,
    /// How it is told of actions.
    pub tools: CallStyle,
    /// Whether it may call several tools in one answer.
    pub parallel: bool,
    /// Whether it is asked to answer by a JSON Schema.
    pub structured: bool,
    /// Whether it takes a sampling temperature.
    pub temperature: bool,
    /// Whether it reasons before it answers, whether it is told to or not.
    pub reasoning: bool,
    /// Whether it can be told how much to reason.
    pub effort: bool,
    /// Whether it sees pictures.
    pub sees: bool,
    /// Whether it is a weak one.
    pub weak: bool,
}

/// What is published of a family of models, by the beginning of their names.
struct Family {
    begins: &'static str,
    /// Thousands of tokens.
    context: u32,
    reasoning: bool,
    /// Whether it can be told how much to reason.
    effort: bool,
    /// Whether it takes a sampling temperature.
    temperature: bool,
}

const fn family(begins: &'static str, context: u32) -> Family {
    Family { begins, context, reasoning: false, effort: false, temperature: true }
}

/// The same for models that reason before they answer, as much as they see fit.
const fn reasoning(begins: &'static str, context: u32, temperature: bool) -> Family {
    Family { begins, context, reasoning: true, effort: false, temperature }
}

/// The same for those that can be told how much.
const fn told(begins: &'static str, context: u32, temperature: bool) -> Family {
    Family { begins, context, reasoning: true, effort: true, temperature }
}

/// Models that reason only if they are told to.
const fn on_demand(begins: &'static str, context: u32) -> Family {
    Family { begins, context, reasoning: false, effort: true, temperature: true }
}

const FAMILIES: [Family; 32] = [
    family("gpt-4o", 128),
    family("gpt-4.1", 1_047),
    told("gpt-5", 400, false),
    told("gpt-6", 400, false),
    told("gpt-oss", 131, true),
    told("o1", 200, false),
    told("o3", 200, false),
    told("o4", 200, false),
    family("claude-3", 200),
    on_demand("claude-3-7", 200),
    on_demand("claude-opus", 200),
    on_demand("claude-sonnet", 200),
    on_demand("claude-haiku", 200),
    told("gemini-2.5", 1_048, true),
    told("gemini-3", 1_048, true),
    family("gemini-2.0", 1_048),
    family("mistral-large", 128),
    family("mistral-medium", 128),
    family("mistral-small", 128),
    family("magistral", 128),
    family("ministral", 128),
    family("devstral", 128),
    family("codestral", 256),
    family("deepseek-chat", 128),
    reasoning("deepseek-reasoner", 128, false),
    family("deepseek-v3", 128),
    reasoning("deepseek-r1", 128, true),
    family("qwen3-max", 256),
    family("qwen-max", 32),
    family("qwen-plus", 131),
    family("qwen3", 32),
    family("llama3", 128),
];

/// Weights, in billions, up to which a model counts as weak.
const WEAK: f64 = 7.9;
/// Tokens that are left for an answer where settings do not limit it.
const USUAL_ANSWER: u32 = 4_096;
/// What local servers give a conversation unless they are told otherwise, in tokens.
const LOCAL_CONTEXT: u32 = 8_192;

impl Capabilities {
    /// What this model can do, by settings, else by its name.
    #[must_use]
    pub fn of(provider: &str, model: &str, settings: &BTreeMap<String, ModelSettings>) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        let own = settings.iter().map(|(begins, own)| (begins.as_str(), *own));
        let own = longest(own, &name).unwrap_or_default();
        let family = longest(FAMILIES.iter().map(|family| (family.begins, family)), &name);
        let weak = billions(&name).is_some_and(|size| size <= WEAK);
        let local = (provider == "ollama").then_some(LOCAL_CONTEXT);
        let published = family.map(|family| family.context * 1_000);
        Self {
            context: own.context.or(local).or(published),
            tools: own.tools.map_or(if weak { CallStyle::Text } else { CallStyle::Native }, CallStyle::from),
            parallel: own.parallel.unwrap_or(!weak),
            structured: own.structured.unwrap_or(true),
            temperature: family.is_none_or(|family| family.temperature),
            reasoning: family.is_some_and(|family| family.reasoning),
            effort: family.is_some_and(|family| family.effort),
            sees: own.sees.unwrap_or_else(|| sight::sees(&name)),
            weak,
        }
    }

    /// Most bytes of a request, so that an answer of so many tokens fits beside it; nothing where the context is not known.
    /// Three bytes are taken for a token: text in English has four, code and other languages fewer.
    #[must_use]
    pub fn room(&self, answer: Option<u32>) -> Option<u32> {
        let context = self.context?;
        let least = context / 4;
        let answer = answer.unwrap_or(USUAL_ANSWER.min(least));
        Some((context.saturating_sub(answer)).max(least).saturating_mul(3))
    }

    /// Most bytes of what one tool call shows the model: an eighth of a conversation, at four bytes a token.
    #[must_use]
    pub fn most_shown(&self) -> Option<usize> {
        self.context.and_then(|tokens| usize::try_from(tokens / 2).ok())
    }
}

/// The size that a name tells, in billions of weights: `qwen2.5:7b`, `Llama-3.2-3B-Instruct`.
fn billions(name: &str) -> Option<f64> {
    let parts = name.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
    parts.filter_map(|part| part.strip_suffix('b')?.parse().ok()).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(model: &str) -> Capabilities {
        Capabilities::of("openai", model, &BTreeMap::new())
    }

    #[test]
    fn models_are_known_by_the_longest_beginning_of_their_names() {
        let table = [
            ("gpt-4o-mini", Some(128_000), false),
            ("gpt-5-nano", Some(400_000), true),
            ("openai/gpt-4.1", Some(1_047_000), false),
            ("claude-sonnet-4-5", Some(200_000), false),
            ("gemini-2.5-flash", Some(1_048_000), true),
            ("mistral-large-latest", Some(128_000), false),
            ("deepseek-reasoner", Some(128_000), true),
            ("qwen3-max", Some(256_000), false),
            ("house-model", None, false),
        ];
        for (model, context, reasoning) in table {
            let known = of(model);
            assert_eq!((known.context, known.reasoning), (context, reasoning), "{model}");
            assert!(known.parallel && known.structured && !known.weak, "{model}: {known:?}");
            assert_eq!(known.tools, CallStyle::Native, "{model}");
        }
        assert!(!of("gpt-5").temperature && of("gpt-4o").temperature && of("house-model").temperature);
        for (model, effort) in [
            ("gpt-5-mini", true),
            ("claude-sonnet-4-5", true),
            ("claude-3-7-sonnet", true),
            ("claude-3-5-sonnet", false),
            ("gemini-3-pro", true),
            ("deepseek-reasoner", false),
            ("gpt-4o", false),
            ("house-model", false),
        ] {
            assert_eq!(of(model).effort, effort, "{model}");
        }
    }

    #[test]
    fn weak_models_are_known_by_their_size() {
        for (model, weak) in [
            ("qwen2.5:7b", true),
            ("llama3.2:3b", true),
            ("Llama-3.2-1B-Instruct", true),
            ("qwen3:0.6b", true),
            ("llama3.1:8b", false),
            ("qwen2.5-72b-instruct", false),
            ("gpt-oss-120b", false),
            ("mixtral-8x7b", false),
            ("llama3.2", false),
        ] {
            let known = Capabilities::of("ollama", model, &BTreeMap::new());
            assert_eq!(known.weak, weak, "{model}");
            assert_eq!(known.tools == CallStyle::Text, weak, "{model}");
            assert_eq!(known.context, Some(8_192), "{model}");
        }
    }

    #[test]
    fn settings_have_the_last_word() {
        let own = ModelSettings {
            context: Some(32_000),
            parallel: Some(true),
            sees: Some(true),
            ..ModelSettings::default()
        };
        let settings =
            BTreeMap::from([("house".to_owned(), own), ("house-large".to_owned(), ModelSettings::default())]);
        let small = Capabilities::of("openai", "house-3b", &settings);
        assert_eq!((small.context, small.weak, small.parallel), (Some(32_000), true, true));
        assert!(small.sees && !of("house-3b").sees && of("openai/gpt-4.1").sees);
        assert_eq!(small.most_shown(), Some(16_000));
        assert_eq!((small.room(None), small.room(Some(2_000))), (Some(83_712), Some(90_000)));
        let short = Capabilities { context: Some(8_192), ..small };
        assert_eq!((short.room(None), short.room(Some(8_000))), (Some(18_432), Some(6_144)));
        let large = Capabilities::of("openai", "house-large-2", &settings);
        assert_eq!((large.context, large.weak), (None, false));
    }
}
