//! Tasks that wait hold no slot, and go on with what came of it.

use muster_shared::flow::{Answered, Observation, Question, Wait};

use super::*;
use crate::tools::Uncertain;

/// Asks a person; counts how often it is called.
struct Asks {
    called: AtomicU32,
    pure: bool,
}

#[async_trait]
impl Tool for Asks {
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::new("test.ask", "asks a person", json!({"type": "object"}));
        if self.pure { spec } else { spec.with_side_effects().when_uncertain(Uncertain::Repeat) }
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        self.called.fetch_add(1, Ordering::SeqCst);
        Ok(ToolOutput::waiting(Wait::Answer(Question::new("Which year?"))))
    }
}

fn answered(step: u32) -> Answered {
    let seen = Observation::new(ObservationStatus::Success, "ada answers: 2025".to_owned());
    let observation = Observation { millis: 7, ..seen };
    Answered { step, observation, answer: None, verdict: None, form: None }
}

#[test]
fn a_task_that_waits_gives_its_slot_back_and_goes_on_with_the_answer() {
    for pure in [false, true] {
        on_ground(async |ground: Ground| {
            let tool = Arc::new(Asks { called: AtomicU32::new(0), pure });
            let model = Scripted::new(|question, _| match question {
                0 => compute(0),
                1 => calls("test.ask", json!({})),
                _ => submits("it was in 2025"),
            });
            let context = || {
                ground
                    .chat_kit(Role::Worker, &model)
                    .with_tools([Arc::clone(&tool) as Arc<dyn crate::tools::Tool>])
            };
            let one = leaf(Role::Worker);
            ground.offer(&one).await;
            let running = ground.start(context());
            let released = ground.released(&one).await;
            running.stop().await;
            let awaited = released.wait.expect("it says what it waits for");
            assert_eq!((released.parked, awaited.step), (true, 2));
            assert_eq!(awaited.wait, Wait::Answer(Question::new("Which year?")));
            assert_eq!(released.usage.model_calls, 1, "the step that waits counts when it ends");
            use EventKind::{Outcome, Released, Started, Step, Tool};
            assert_eq!(ground.kinds(&one).await, [Started, Step, Tool, Released]);

            // An answer to another step is none of this one's: the tool says again what it waits for.
            let two = TaskOffered { answered: Some(Box::new(answered(1))), ..next(&one) };
            ground.offer(&two).await;
            let running = ground.start(context());
            assert_eq!(ground.released(&two).await.wait.unwrap().step, 2);
            running.stop().await;

            let three = TaskOffered { answered: Some(Box::new(answered(2))), ..next(&two) };
            let outcome = ground.done(context(), &three).await;
            assert_eq!(ground.kinds(&three).await, [Started, Step, Outcome]);
            assert_eq!(conclusion(&outcome), "it was in 2025");
            let step = ground.steps(&three).await.swap_remove(0);
            assert_eq!((step.number, step.action.name.as_str()), (2, "test.ask"));
            assert_eq!(step.observation, Some(answered(2).observation));
            assert_eq!(tool.called.load(Ordering::SeqCst), 2, "what is answered is not asked again");
            assert_eq!(model.asked.load(Ordering::Relaxed), 3, "each question to the model was paid once");
        });
    }
}
