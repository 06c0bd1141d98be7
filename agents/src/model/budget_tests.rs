use proptest::prelude::*;

use super::*;
use crate::model::chat::{ChatMessage, ToolCall, ToolDecl};

const TARGET: &str = "openai/house";

fn pricing() -> Pricing {
    Pricing::with_overrides([("house".to_owned(), Price { input: 2.0, output: 10.0, cached: None })])
}

fn meter(budget: Budget) -> Meter {
    Meter::new(budget, pricing(), Usage::default())
}

fn request(bytes: usize) -> ChatRequest {
    ChatRequest { messages: vec![ChatMessage::user("x".repeat(bytes)).into()], ..ChatRequest::default() }
}

fn answer(input: u64, output: u64) -> ChatAnswer {
    let (usage, model) = (TokenUsage { input, output, cached: 0 }, "house-2".into());
    ChatAnswer { usage, model, ..crate::testing::answered("ok") }
}

fn tokens(most: u64) -> Budget {
    Budget { tokens: Some(most), ..Budget::UNLIMITED }
}

fn cost(most: u64) -> Budget {
    Budget { cost_micros: Some(most), ..Budget::UNLIMITED }
}

#[test]
fn without_a_budget_nothing_is_bounded() {
    let leave = meter(Budget::UNLIMITED).judge(TARGET, &request(3_000)).unwrap();
    assert_eq!(leave, Leave { input: 1_000, max_tokens: None, is_last: false });
}

#[test]
fn calls_are_counted_whether_answered_or_not() {
    let mut meter = meter(Budget { model_calls: Some(2), ..Budget::UNLIMITED });
    assert!(!meter.judge(TARGET, &request(3)).unwrap().is_last);
    let lost = ModelError::new(ModelErrorKind::Timeout, TARGET, "silence");
    assert_eq!(meter.failed(TARGET, 1, &lost).wasted_calls, 1);
    assert!(meter.judge(TARGET, &request(3)).unwrap().is_last);
    assert_eq!(meter.answered(TARGET, 3, 1, &answer(1, 1)).model_calls, 1);
    assert_eq!(meter.judge(TARGET, &request(3)), Err(Shortfall::Calls { most: 2 }));
}

#[test]
fn an_answer_is_made_shorter_before_the_call_is_refused() {
    for (budget, bytes, expected) in [
        (tokens(20_000), 3_000, Some(u64::from(USUAL_ANSWER))),
        (tokens(2_000), 3_000, Some(1_000)),
        (tokens(1_000 + LEAST_ANSWER), 3_000, Some(LEAST_ANSWER)),
        (tokens(1_000 + LEAST_ANSWER - 1), 3_000, None),
        // 1,000 tokens cost 2,000 millionths; 10 a token are left for the answer.
        (cost(12_000), 3_000, Some(1_000)),
        (cost(2_000 + 10 * LEAST_ANSWER - 1), 3_000, None),
        (cost(0), 3, None),
    ] {
        let judged = meter(budget).judge(TARGET, &request(bytes));
        let limit = judged.as_ref().ok().and_then(|leave| leave.max_tokens).map(u64::from);
        assert_eq!(limit, expected, "{budget} {judged:?}");
    }
    let own = ChatRequest { max_tokens: Some(100), ..request(3_000) };
    assert_eq!(meter(tokens(2_000)).judge(TARGET, &own).unwrap().max_tokens, Some(100));
}

#[test]
fn a_model_without_a_price_is_not_asked_where_the_cost_is_limited() {
    let short = meter(cost(1_000_000)).judge("openai/unheard-of", &request(3)).unwrap_err();
    assert!(short.to_string().contains("agent.prices.\"unheard-of\""), "{short}");
    assert!(meter(tokens(1_000)).judge("openai/unheard-of", &request(3)).is_ok());
}

#[test]
fn what_a_provider_counted_is_better_than_an_estimate() {
    let mut meter = meter(tokens(100_000));
    let first = request(3_000);
    meter.answered(TARGET, first.bytes(), 1_000, &answer(400, 20));
    assert_eq!(meter.estimate(&request(3_300)), 500);
}

#[test]
fn the_parts_of_a_request_add_up() {
    let parameters = serde_json::json!({"type": "object"});
    let tool = ToolDecl { name: "sum".into(), description: "adds".into(), parameters };
    let call = ToolCall::new("1", "sum", serde_json::json!({"a": 1}));
    let request = ChatRequest {
        system: "brief".into(),
        messages: vec![
            ChatMessage::calls("so", vec![call]).into(),
            ChatMessage::tool_result("1", "2").into(),
        ],
        tools: vec![tool].into(),
        ..ChatRequest::default()
    };
    let texts = ["brief", "sum", "adds", r#"{"type":"object"}"#, "so", "sum", r#"{"a":1}"#, "2"];
    let whole: usize = texts.iter().map(|text| text.len()).sum();
    assert_eq!(request.bytes(), u64::try_from(whole).unwrap());
}

#[test]
fn a_provider_that_counts_nothing_is_counted_for() {
    let mut meter = meter(tokens(10_000));
    let used = meter.answered(TARGET, 3_000, 1_000, &answer(0, 0));
    assert_eq!((used.input_tokens, used.output_tokens), (1_000, 1));
    assert_eq!(used.cost_micros, 2_010);
}

proptest! {
    /// Whatever is asked: as long as a provider counts no more than was estimated, the budget holds.
    #[test]
    fn usage_never_exceeds_the_budget(
        calls in 1_u64..20,
        most_tokens in proptest::option::of(0_u64..50_000),
        most_cost in proptest::option::of(0_u64..200_000),
        asked in proptest::collection::vec((0_usize..20_000, 0.0..=1.0_f64, 0.0..=1.0_f64, any::<bool>()), 1..40),
    ) {
        let budget = Budget {
            model_calls: Some(calls), tokens: most_tokens, cost_micros: most_cost, steps: None,
        };
        let mut meter = meter(budget);
        let mut used = Usage::default();
        for (bytes, sent, said, fails) in asked {
            let request = request(bytes);
            let Ok(leave) = meter.judge(TARGET, &request) else { continue };
            if fails {
                let lost = ModelError::new(ModelErrorKind::Timeout, TARGET, "silence");
                used += meter.failed(TARGET, leave.input, &lost);
                continue;
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "small")]
            let part = |of: u64, part: f64| (of as f64 * part) as u64;
            let output = part(leave.max_tokens.unwrap_or(1_000).into(), said);
            let answer = answer(part(leave.input, sent).max(1), output);
            used += meter.answered(TARGET, request.bytes(), leave.input, &answer);
        }
        prop_assert!(budget.allows(&used), "{budget}: {used:?}");
    }
}
