//! Which keys and addresses of models a process has from its environment: told apart, and never kept.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use muster_agents::model::target::ModelProvider;

const PROVIDERS: [ModelProvider; 4] =
    [ModelProvider::OpenAi, ModelProvider::Anthropic, ModelProvider::Gemini, ModelProvider::Ollama];

/// The variables that are set here, each with a mark that tells one value from another and nothing of it.
pub(crate) fn here() -> BTreeMap<String, String> {
    marks(|name| std::env::var(name).ok())
}

fn marks(variable: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let names = PROVIDERS.into_iter().flat_map(|provider| {
        let keys = provider.key_variables().iter().flat_map(|key| [(*key).to_owned(), format!("{key}_FILE")]);
        keys.chain(provider.endpoint_variables().iter().map(|name| (*name).to_owned()))
    });
    let set = names.filter_map(|name| {
        let value = variable(&name).filter(|value| !value.trim().is_empty())?;
        Some((name, mark(&value)))
    });
    set.collect()
}

/// A few digits of a hash: enough to tell two keys apart, and too few to find one by them.
fn mark(value: &str) -> String {
    let mut hasher = DefaultHasher::new();
    value.trim().hash(&mut hasher);
    format!("{:06x}", hasher.finish() & 0x00ff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_marked_and_not_kept() {
        let with = |key: &'static str| {
            marks(move |name| match name {
                "OPENAI_API_KEY" => Some(key.to_owned()),
                "OLLAMA_HOST" => Some(" ".to_owned()),
                _ => None,
            })
        };
        let (one, other) = (with("sk-one-1234567890"), with("sk-two-1234567890"));
        assert_eq!(one.keys().collect::<Vec<_>>(), ["OPENAI_API_KEY"]);
        assert_ne!(one, other);
        assert_eq!(one, with("sk-one-1234567890\n"));
        assert!(!format!("{one:?}").contains("1234"), "{one:?}");
    }
}
