use muster_shared::flow::Membership;
use muster_shared::ids::AgentId;

use super::*;
use crate::model::chat::{ChatMessage, TokenUsage};
use crate::testing::{answered, leaf};

const TARGET: &str = "openai/gpt-4.1";
const DAY: Duration = Duration::from_secs(86_400);

fn bus() -> Bus {
    Bus::in_memory(&AgentId::new("worker", 1))
}

fn task(nonce: &str) -> TaskOffered {
    TaskOffered { nonce: nonce.to_owned(), ..leaf(Role::Worker) }
}

fn reuse(bus: &Bus, role: &Role, offer: &TaskOffered, oldest: Duration) -> Option<Reuse> {
    let rules = ReuseRules { oldest, pricing: &Pricing::default(), now: muster_bus::now() };
    Reuse::of(bus, role, offer, rules)
}

fn question(text: &str) -> ChatRequest {
    ChatRequest { messages: vec![ChatMessage::user(text).into()], ..ChatRequest::default() }
}

fn answer(text: &str) -> ChatAnswer {
    let (usage, model) = (TokenUsage { input: 1_000_000, output: 0, cached: 0 }, "gpt-4.1".to_owned());
    ChatAnswer { usage, model, millis: 900, ..answered(text) }
}

#[tokio::test]
async fn the_same_question_has_the_same_answer_whatever_marks_its_data() {
    let bus = bus();
    let first = reuse(&bus, &Role::Worker, &task("one7f"), DAY).unwrap();
    first.keep(TARGET, &question("What is in <<<one7f doc?"), &answer("See one7f>>>.")).await;
    let second = reuse(&bus, &Role::Worker, &task("two9c"), DAY).unwrap();
    let found = second.find(TARGET, &question("What is in <<<two9c doc?")).await.unwrap();
    assert_eq!(found.answer.text, "See two9c>>>.");
    let saved = Usage { reused_calls: 1, reused_micros: 2_000_000, ..Usage::default() };
    assert_eq!(found.usage, saved, "it costs nothing, and what it spares is told");
    for (target, asked) in
        [(TARGET, "What else is in <<<two9c doc?"), ("openai/gpt-5", "What is in <<<two9c doc?")]
    {
        assert!(second.find(target, &question(asked)).await.is_none(), "{target}: {asked}");
    }
    let warmer = ChatRequest { temperature: Some(1.0), ..question("What is in <<<two9c doc?") };
    assert!(second.find(TARGET, &warmer).await.is_none(), "it was asked otherwise");
    let other = reuse(&bus, &Role::Reflector, &task("two9c"), DAY).unwrap();
    assert!(other.find(TARGET, &question("What is in <<<two9c doc?")).await.is_none(), "another role");
}

#[tokio::test]
async fn what_is_too_old_or_was_cut_serves_nobody() {
    let bus = bus();
    let first = reuse(&bus, &Role::Worker, &task("one7f"), DAY).unwrap();
    for finish in [FinishReason::Length, FinishReason::ContentFilter, FinishReason::Other(String::new())] {
        first.keep(TARGET, &question("Whole?"), &ChatAnswer { finish, ..answer("ha") }).await;
    }
    assert!(first.find(TARGET, &question("Whole?")).await.is_none());
    first.keep(TARGET, &question("When?"), &answer("now")).await;
    let later = |days: u64| Reuse {
        now: Millis(muster_bus::now().0 + days * 86_400_000),
        ..reuse(&bus, &Role::Worker, &task("x"), 2 * DAY).unwrap()
    };
    assert!(later(1).find(TARGET, &question("When?")).await.is_some());
    assert!(later(3).find(TARGET, &question("When?")).await.is_none());
}

#[test]
fn whoever_wants_another_answer_is_given_none_of_others() {
    let bus = bus();
    let is_given = |offer: &TaskOffered, oldest| reuse(&bus, &Role::Worker, offer, oldest).is_some();
    assert!(is_given(&task("a"), DAY));
    assert!(!is_given(&task("a"), Duration::ZERO), "it is not set");
    assert!(!is_given(&TaskOffered { generation: Generation(2), ..task("a") }, DAY), "it is done again");
    let mut grouped = task("a");
    let Work::Execute { member, .. } = &mut grouped.work else { unreachable!() };
    let membership = Membership { members: 3, temperament: None, round: 0, views: Vec::new() };
    *member = Some(Box::new(membership));
    assert!(!is_given(&grouped, DAY), "a group wants several answers");
}
