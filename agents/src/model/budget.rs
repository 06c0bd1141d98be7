//! Counting what a task uses, and whether its budget allows the next call. Pure.
//!
//! A call is judged before it is made: the tokens it sends are estimated, and what is left bounds the answer. The
//! estimate is a token for every three bytes, which is high for English and about right for scripts that need more;
//! once an answer has told how long its request was, only what was added since is estimated.

use muster_shared::flow::{Budget, Usage};

use super::chat::{ChatAnswer, ChatRequest, ModelError, ModelErrorKind, TokenUsage};
use super::pricing::{Price, Pricing};

/// An answer that cannot even have this many tokens is not worth asking for.
pub const LEAST_ANSWER: u64 = 64;

/// Most tokens of an answer where tokens or cost are limited and settings name no limit of their own.
pub const USUAL_ANSWER: u32 = 8192;

/// Bytes of text that are taken for one token.
const BYTES_PER_TOKEN: u64 = 3;

/// Leave for one call, as far as the budget goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leave {
    /// Tokens that the request is taken to have.
    pub input: u64,
    /// Most tokens of the answer, where something bounds it.
    pub max_tokens: Option<u32>,
    /// Whether nothing will be left for another call after this one.
    pub is_last: bool,
}

/// Why a call is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Shortfall {
    /// All calls were made.
    #[error("all {most} model calls that it may make were made, where no budget names fewer")]
    Calls {
        /// The limit.
        most: u64,
    },
    /// Too few tokens are left.
    #[error("{left} of its {most} tokens are left, and the next question alone has about {needed}")]
    Tokens {
        /// The limit.
        most: u64,
        /// What is left.
        left: u64,
        /// What the question needs.
        needed: u64,
    },
    /// Too little money is left.
    #[error("{} of its {} are left, and the next question costs more", dollars(*.left), dollars(*.most))]
    Cost {
        /// The limit, in millionths of a US dollar.
        most: u64,
        /// What is left, in millionths of a US dollar.
        left: u64,
    },
    /// The cost is limited and the price is not known.
    #[error(
        "the price of {model} is not known, so its cost cannot be limited: set agent.prices.\"{model}\" (input and \
         output, in US dollars per million tokens), or limit tokens instead"
    )]
    UnknownPrice {
        /// The model's name.
        model: String,
    },
}

fn dollars(micros: u64) -> String {
    format!("${}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100)
}

/// What one task may use, and what it has used.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    budget: Budget,
    pricing: Pricing,
    used: Usage,
    /// The request that was answered last: its bytes, and the tokens that the provider counted.
    last: Option<(u64, u64)>,
}

impl Meter {
    /// A meter that begins with what was used before.
    #[must_use]
    pub const fn new(budget: Budget, pricing: Pricing, used: Usage) -> Self {
        Self { budget, pricing, used, last: None }
    }

    /// Whether the next call is within the budget. `target` is `provider/model`.
    ///
    /// # Errors
    /// A [`Shortfall`] that says what is missing.
    pub fn judge(&self, target: &str, request: &ChatRequest) -> Result<Leave, Shortfall> {
        let left = self.budget.left(&self.used);
        if let (Some(0), Some(most)) = (left.model_calls, self.budget.model_calls) {
            return Err(Shortfall::Calls { most });
        }
        let input = self.estimate(request);
        let by_tokens = self.answer_by_tokens(&left, input)?;
        let by_cost = self.answer_by_cost(&left, target, input)?;
        let bound = by_tokens.into_iter().chain(by_cost).min();
        let max_tokens = bound.map(|bound| {
            let wanted = request.max_tokens.unwrap_or(USUAL_ANSWER);
            u32::try_from(bound).unwrap_or(u32::MAX).min(wanted)
        });
        // Another call sends what this one sends and its answer once more.
        let answer = u64::from(max_tokens.unwrap_or(0)).min(LEAST_ANSWER * 4);
        let next = input.saturating_add(answer.saturating_mul(2)).saturating_add(LEAST_ANSWER);
        let is_last = left.model_calls == Some(1) || bound.is_some_and(|bound| bound < next);
        Ok(Leave { input, max_tokens, is_last })
    }

    /// What a call uses at most; its cost is left out unless it is `priced`.
    ///
    /// # Errors
    /// When the cost is asked for and the price is not known.
    pub fn most(&self, target: &str, leave: &Leave, priced: bool) -> Result<Usage, Shortfall> {
        let output = leave.max_tokens.map_or(0, u64::from);
        let tokens = TokenUsage { input: leave.input, output, cached: 0 };
        let ModelName { provider, model } = ModelName::of(target);
        let cost = self.pricing.cost_micros(provider, model, &tokens);
        let cost_micros = match cost {
            Some(cost) => cost,
            None if priced => return Err(Shortfall::UnknownPrice { model: model.to_owned() }),
            None => 0,
        };
        let (input_tokens, output_tokens) = (leave.input, output);
        Ok(Usage { model_calls: 1, input_tokens, output_tokens, cost_micros, ..Usage::default() })
    }

    /// Counts an answer, and the calls before it within the same request that gave none.
    pub fn answered(&mut self, target: &str, request_bytes: u64, input: u64, answer: &ChatAnswer) -> Usage {
        let mut tokens = answer.usage;
        if tokens.total() == 0 && self.counts_tokens() {
            // The provider says nothing: better an estimate than nothing.
            let text = answer.text.len() + answer.tool_calls.iter().map(|call| call.raw.len()).sum::<usize>();
            let output = in_tokens(u64::try_from(text).unwrap_or(u64::MAX));
            tokens = TokenUsage { input, output, cached: 0 };
        } else if answer.usage.input > 0 {
            self.last = Some((request_bytes, answer.usage.input));
        }
        tokens += answer.wasted.usage;
        let usage = Usage {
            model_calls: 1,
            wasted_calls: answer.wasted.calls.into(),
            ..self.usage(target, ModelName { provider: &answer.provider, model: &answer.model }, &tokens)
        };
        self.used += usage;
        usage
    }

    /// Counts a call that gave no answer. One that may have been paid for and says nothing of it counts as its
    /// question, where tokens or cost are limited.
    pub fn failed(&mut self, target: &str, input: u64, error: &ModelError) -> Usage {
        let mut tokens = error.usage;
        if tokens.total() == 0 && self.counts_tokens() && may_be_paid(&error.kind) {
            tokens.input = input;
        }
        let usage =
            Usage { wasted_calls: error.calls.into(), ..self.usage(target, ModelName::of(target), &tokens) };
        self.used += usage;
        usage
    }

    /// Counts a call that somebody made with this question and died before it was answered.
    pub fn unanswered(&mut self, target: &str, request: &ChatRequest) -> Usage {
        let tokens = TokenUsage { input: self.estimate(request), output: 0, cached: 0 };
        let usage = Usage { wasted_calls: 1, ..self.usage(target, ModelName::of(target), &tokens) };
        self.used += usage;
        usage
    }

    /// Whether tokens matter to it, directly or by their cost.
    #[must_use]
    pub const fn counts_tokens(&self) -> bool {
        self.budget.tokens.is_some() || self.budget.cost_micros.is_some()
    }

    /// Tokens that a request is taken to have.
    #[must_use]
    pub fn estimate(&self, request: &ChatRequest) -> u64 {
        let now = request.bytes();
        match self.last {
            Some((before, tokens)) if now >= before => tokens.saturating_add(in_tokens(now - before)),
            _ => in_tokens(now),
        }
    }

    fn answer_by_tokens(&self, left: &Budget, input: u64) -> Result<Option<u64>, Shortfall> {
        let (Some(left), Some(most)) = (left.tokens, self.budget.tokens) else { return Ok(None) };
        match left.checked_sub(input).filter(|answer| *answer >= LEAST_ANSWER) {
            Some(answer) => Ok(Some(answer)),
            None => Err(Shortfall::Tokens { most, left, needed: input }),
        }
    }

    fn answer_by_cost(&self, left: &Budget, target: &str, input: u64) -> Result<Option<u64>, Shortfall> {
        let (Some(left), Some(most)) = (left.cost_micros, self.budget.cost_micros) else { return Ok(None) };
        let ModelName { provider, model } = ModelName::of(target);
        let Some(price) = self.pricing.price(provider, model) else {
            return Err(Shortfall::UnknownPrice { model: model.to_owned() });
        };
        match affordable(left, &price, input) {
            Some(answer) if answer >= LEAST_ANSWER => Ok(Some(answer)),
            _ => Err(Shortfall::Cost { most, left }),
        }
    }

    /// Tokens and cost; what the answer names as its model counts, else what was asked.
    fn usage(&self, target: &str, named: ModelName<'_>, tokens: &TokenUsage) -> Usage {
        let price_of = |tokens: &TokenUsage| {
            self.pricing.cost_micros(named.provider, named.model, tokens).or_else(|| {
                let ModelName { provider, model } = ModelName::of(target);
                self.pricing.cost_micros(provider, model, tokens)
            })
        };
        let cost = price_of(tokens);
        let uncached = (tokens.cached > 0).then(|| price_of(&TokenUsage { cached: 0, ..*tokens })).flatten();
        Usage {
            input_tokens: tokens.input,
            cached_tokens: tokens.cached.min(tokens.input),
            saved_micros: uncached.unwrap_or_default().saturating_sub(cost.unwrap_or_default()),
            output_tokens: tokens.output,
            cost_micros: cost.unwrap_or_default(),
            ..Usage::default()
        }
    }
}

/// Answer tokens that the money left pays for beside the question; nothing when the question costs too much.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a float cast saturates, and amounts stay far below 2^53"
)]
fn affordable(left_micros: u64, price: &Price, input: u64) -> Option<u64> {
    // A dollar per million tokens is a millionth of a dollar per token.
    let rest = left_micros as f64 - (input as f64 * price.input).ceil();
    if rest < 0.0 {
        return None;
    }
    if price.output <= 0.0 {
        return Some(u64::MAX);
    }
    Some((rest / price.output).floor() as u64)
}

const fn may_be_paid(kind: &ModelErrorKind) -> bool {
    matches!(
        kind,
        ModelErrorKind::Timeout
            | ModelErrorKind::BadAnswer
            | ModelErrorKind::Refused
            | ModelErrorKind::Cancelled
    )
}

/// A model and who serves it.
#[derive(Clone, Copy)]
struct ModelName<'a> {
    provider: &'a str,
    model: &'a str,
}

impl<'a> ModelName<'a> {
    /// Of a target such as `openai/gpt-4.1-mini`; the provider is empty where none is named.
    fn of(target: &'a str) -> Self {
        let (provider, model) = target.split_once('/').unwrap_or(("", target));
        Self { provider, model }
    }
}

const fn in_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
