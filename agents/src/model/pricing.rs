//! What calls cost: a small table of list prices, which settings can override.
//!
//! List prices in US dollars per million tokens as providers published them in 2025. They change:
//! figures made with them are estimates, and an unknown model costs `None` rather than nothing.

use muster_shared::settings;
use serde::{Deserialize, Serialize};

use super::chat::TokenUsage;
use super::named::longest;

settings! {
    [deny_unknown_fields]
    /// The price of one model, in US dollars per million tokens.
    #[derive(Copy, PartialEq)]
    pub struct Price {
        /// Tokens read.
        pub input: f64 = 0.0 => real(0.0, 1e6).unit("US dollars per million tokens").example("1.0"); Fleet Higher,
        /// Tokens written.
        pub output: f64 = 0.0 => real(0.0, 1e6).unit("US dollars per million tokens").example("2.0"); Fleet Higher,
        /// Tokens read from the prompt cache; as much as others where nothing is said.
            pub cached: Option<f64> = None => real(0.0, 1e6).unit("US dollars per million tokens").example("0.5"); Fleet Higher,
    }
}

impl Price {
    /// What `usage` costs, in US dollars.
    #[must_use]
    pub fn cost(&self, usage: &TokenUsage) -> f64 {
        let cached = usage.cached.min(usage.input);
        let fresh = usage.input - cached;
        let dollars = tokens(fresh) * self.input
            + tokens(cached) * self.cached.unwrap_or(self.input)
            + tokens(usage.output) * self.output;
        dollars / 1_000_000.0
    }
}

#[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^53")]
fn tokens(count: u64) -> f64 {
    count as f64
}

/// Prices by model-name prefix; the longest matching prefix counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pricing {
    overrides: std::collections::BTreeMap<String, Price>,
}

impl Pricing {
    /// The built-in table with `overrides` (prefix to price) taking precedence.
    #[must_use]
    pub fn with_overrides(overrides: impl IntoIterator<Item = (String, Price)>) -> Self {
        Self { overrides: overrides.into_iter().collect() }
    }

    /// Prefixes of model names with a built-in price.
    pub fn known() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|(prefix, _)| *prefix)
    }

    /// The price of `model`, served by `provider`. Local and offline models are free.
    #[must_use]
    pub fn price(&self, provider: &str, model: &str) -> Option<Price> {
        let ours = self.overrides.iter().map(|(prefix, price)| (prefix.as_str(), *price));
        if let Some(price) = longest(ours, model) {
            return Some(price);
        }
        if matches!(provider, "offline" | "ollama") {
            return Some(Price { input: 0.0, output: 0.0, cached: None });
        }
        longest(TABLE.iter().map(|(prefix, price)| (*prefix, *price)), model)
    }

    /// What `usage` of `model` costs, in US dollars; `None` for an unknown model.
    #[must_use]
    pub fn cost(&self, provider: &str, model: &str, usage: &TokenUsage) -> Option<f64> {
        self.price(provider, model).map(|price| price.cost(usage))
    }

    /// [`Pricing::cost`] in millionths of a US dollar, rounded, as the record keeps it.
    #[must_use]
    pub fn cost_micros(&self, provider: &str, model: &str, usage: &TokenUsage) -> Option<u64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float cast saturates, and prices are not negative"
        )]
        self.cost(provider, model, usage).map(|dollars| (dollars * 1_000_000.0).round() as u64)
    }
}

const fn price(input: f64, output: f64, cached: f64) -> Price {
    Price { input, output, cached: Some(cached) }
}

/// Of providers that publish no other price for what is read from their cache.
const fn uncached(input: f64, output: f64) -> Price {
    Price { input, output, cached: None }
}

/// Mistral's prices hang on the version, which `-latest` does not tell: only what is the same for all of a name is there.
/// Qwen's are those of Alibaba's international service; of prices that grow with the request, those of short ones, and
/// without thinking.
const TABLE: &[(&str, Price)] = &[
    ("gpt-4o", price(2.5, 10.0, 1.25)),
    ("gpt-4o-mini", price(0.15, 0.6, 0.075)),
    ("gpt-4.1", price(2.0, 8.0, 0.5)),
    ("gpt-4.1-mini", price(0.4, 1.6, 0.1)),
    ("gpt-4.1-nano", price(0.1, 0.4, 0.025)),
    ("gpt-5", price(1.25, 10.0, 0.125)),
    ("gpt-5-mini", price(0.25, 2.0, 0.025)),
    ("gpt-5-nano", price(0.05, 0.4, 0.005)),
    ("o3", price(2.0, 8.0, 0.5)),
    ("o3-mini", price(1.1, 4.4, 0.55)),
    ("o4-mini", price(1.1, 4.4, 0.275)),
    ("claude-opus-4", price(15.0, 75.0, 1.5)),
    ("claude-opus-4-5", price(5.0, 25.0, 0.5)),
    ("claude-sonnet-4", price(3.0, 15.0, 0.3)),
    ("claude-haiku-4-5", price(1.0, 5.0, 0.1)),
    ("claude-3-7-sonnet", price(3.0, 15.0, 0.3)),
    ("claude-3-5-sonnet", price(3.0, 15.0, 0.3)),
    ("claude-3-5-haiku", price(0.8, 4.0, 0.08)),
    ("gemini-2.5-pro", price(1.25, 10.0, 0.125)),
    ("gemini-2.5-flash", price(0.3, 2.5, 0.03)),
    ("gemini-2.5-flash-lite", price(0.1, 0.4, 0.01)),
    ("gemini-2.0-flash", price(0.1, 0.4, 0.025)),
    ("mistral-large-2411", uncached(2.0, 6.0)),
    ("mistral-large-2512", uncached(0.5, 1.5)),
    ("mistral-medium", uncached(0.4, 2.0)),
    ("mistral-small-25", uncached(0.1, 0.3)),
    ("magistral-medium", uncached(2.0, 5.0)),
    ("magistral-small", uncached(0.5, 1.5)),
    ("devstral-medium", uncached(0.4, 2.0)),
    ("codestral-25", uncached(0.3, 0.9)),
    ("deepseek-chat", price(0.28, 0.42, 0.028)),
    ("deepseek-reasoner", price(0.28, 0.42, 0.028)),
    ("qwen-max", uncached(1.6, 6.4)),
    ("qwen-plus", uncached(0.4, 1.2)),
    ("qwen-flash", uncached(0.05, 0.4)),
    ("qwen-turbo", uncached(0.05, 0.2)),
    ("qwen3-max", uncached(1.2, 6.0)),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn million() -> TokenUsage {
        TokenUsage { input: 1_000_000, output: 1_000_000, cached: 500_000 }
    }

    #[test]
    fn the_longest_prefix_counts() {
        let pricing = Pricing::default();
        let cost = |provider, model| pricing.cost_micros(provider, model, &million());
        assert_eq!(cost("openai", "gpt-4o-mini-2024-07-18"), Some(712_500));
        assert_eq!(cost("openai", "gpt-4o-2024-08-06"), Some(11_875_000));
        assert_eq!(cost("openai", "openai/gpt-4o"), Some(11_875_000));
        assert_eq!(cost("openai", "deepseek/deepseek-chat"), Some(574_000));
        assert_eq!(cost("openai", "mistral-small-2506"), Some(400_000));
        assert_eq!(cost("openai", "mistral-large-latest"), None, "it hangs on the version");
        assert_eq!(cost("openai", "qwen3-max-preview"), Some(7_200_000));
        assert_eq!(cost("openai", "house-model"), None);
        assert_eq!(cost("ollama", "llama3.2"), Some(0));
        assert_eq!(cost("offline", "rules"), Some(0));
    }

    #[test]
    fn settings_override_the_table() {
        let own = Price { input: 1.0, output: 2.0, cached: None };
        let pricing = Pricing::with_overrides([("house-".to_owned(), own), ("gpt-4o".to_owned(), own)]);
        assert_eq!(pricing.cost("openai", "house-1", &million()), Some(3.0));
        assert_eq!(pricing.cost("openai", "gpt-4o-mini", &million()), Some(3.0));
    }
}
