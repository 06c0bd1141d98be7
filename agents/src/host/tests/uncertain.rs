//! Agents that end in the middle of a call with lasting effect: the tool says what is done about it.

use super::*;
use crate::tools::Uncertain;

/// Never answers its first call; keeps the keys it was called under.
struct Sends {
    policy: Uncertain,
    keys: Mutex<Vec<Option<String>>>,
}

#[async_trait]
impl Tool for Sends {
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::new("test.send", "sends something", json!({"type": "object"}));
        spec.with_side_effects().when_uncertain(self.policy)
    }

    async fn call(&self, context: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        let first = {
            let mut keys = self.keys.lock().unwrap();
            keys.push(context.idempotency_key.clone());
            keys.len() == 1
        };
        if first {
            std::future::pending::<()>().await;
        }
        Ok(ToolOutput::text("sent"))
    }
}

/// What came of a task whose agent ended in the middle of a call.
struct Interrupted {
    offer: TaskOffered,
    outcome: Outcome,
    /// The keys of all calls.
    keys: Vec<Option<String>>,
    /// How often a model was asked.
    asked: u32,
}

/// Lets an agent end in the middle of a call of this answer, and another go on.
async fn interrupted(
    ground: &Ground,
    policy: Uncertain,
    first: impl Fn() -> Result<ChatAnswer, ModelError> + Send + Sync + 'static,
) -> Interrupted {
    let tool = Arc::new(Sends { policy, keys: Mutex::default() });
    let model = Scripted::new(move |question, _| match question {
        0 => first(),
        _ => submits("it went out"),
    });
    let context = || ground.chat_kit(Role::Worker, &model).with_tools([Arc::clone(&tool) as Arc<dyn Tool>]);
    let offer = leaf(Role::Worker);
    ground.offer(&offer).await;
    let running = ground.start(context());
    until(|| !tool.keys.lock().unwrap().is_empty()).await;
    running.stop().await;
    let outcome = ground.done_by(context(), &offer).await;
    let keys = tool.keys.lock().unwrap().clone();
    Interrupted { offer, outcome, keys, asked: model.asked.load(Ordering::Relaxed) }
}

/// An answer of one call.
fn sends() -> Result<ChatAnswer, ModelError> {
    calls("test.send", json!({}))
}

#[test]
fn what_may_be_repeated_is_called_again_under_the_same_key() {
    on_ground(async |ground: Ground| {
        let Interrupted { offer, outcome, keys, asked } =
            interrupted(&ground, Uncertain::Repeat, sends).await;
        let key = Some(format!("{}/1/1/1", offer.run));
        assert_eq!(keys, [key.clone(), key]);
        assert_eq!((outcome.ending, asked), (Ending::Done, 2));
        assert_eq!(ground.steps(&offer).await[0].observation.as_ref().unwrap().content, "sent");
    });
}

#[test]
fn otherwise_the_model_is_told_and_decides() {
    on_ground(async |ground: Ground| {
        let Interrupted { offer, outcome, keys, asked } = interrupted(&ground, Uncertain::Ask, sends).await;
        assert_eq!((keys.len(), outcome.ending, asked), (1, Ending::Done, 2));
        let told = ground.steps(&offer).await[0].observation.clone().unwrap();
        assert!(told.content.contains("look before you do it again"), "{}", told.content);
    });
}

#[test]
fn what_must_never_happen_twice_ends_the_task() {
    on_ground(async |ground: Ground| {
        let Interrupted { offer, outcome, keys, asked } = interrupted(&ground, Uncertain::Fail, sends).await;
        assert_eq!((keys.len(), outcome.ending, asked), (1, Ending::Escalate, 1));
        assert!(
            outcome.reason.contains("test.send") && outcome.reason.contains("a person"),
            "{}",
            outcome.reason
        );
        assert_eq!(ground.steps(&offer).await.len(), 1, "the call stands in the record");
        assert_eq!(outcome.usage.model_calls, 1);
    });
}

#[test]
fn each_call_of_an_answer_has_a_key_of_its_own_and_is_ended_by_its_tools_word() {
    on_ground(async |ground: Ground| {
        let both = || {
            let sum = ToolCall::new("a", "calculator", json!({"expression": "1 + 1"}));
            answer("A sum, and it goes out.", vec![sum, ToolCall::new("b", "test.send", json!({}))])
        };
        let Interrupted { offer, outcome, keys, asked } = interrupted(&ground, Uncertain::Repeat, both).await;
        let key = Some(format!("{}/1/1/1/1", offer.run));
        assert_eq!(keys, [key.clone(), key]);
        assert_eq!((outcome.ending, asked), (Ending::Done, 2));
        let step = ground.steps(&offer).await[0].clone();
        let seen: Vec<&str> = step.observations().map(|seen| seen.content.as_str()).collect();
        assert_eq!(seen, ["1 + 1 = 2", "sent"]);
    });
}
