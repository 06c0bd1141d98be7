//! Tasks that are put down and go on in another generation.

use super::*;

/// Takes its time on the first call only.
struct SlowAtFirst {
    called: AtomicU32,
}

#[async_trait]
impl Tool for SlowAtFirst {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("test.slow", "is slow at first", json!({"type": "object"}))
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        if self.called.fetch_add(1, Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        Ok(ToolOutput::text("looked"))
    }
}

impl Ground {
    /// Has a task put down; gives how it was said.
    async fn park(&self, offer: &TaskOffered) -> muster_shared::run::Released {
        let begun = Instant::now();
        let park = ControlMessage::ParkRun { run: offer.run, reason: "paused".into() };
        self.bus.control().send(&ControlTarget::All, &park).await.unwrap();
        let released = self.released(offer).await;
        // What it is put down from lasts a minute.
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        released
    }
}

#[test]
fn a_task_that_was_put_down_goes_on_from_its_last_step_and_repeats_no_finished_call() {
    on_ground(async |ground: Ground| {
        let tool = Arc::new(SlowAtFirst { called: AtomicU32::new(0) });
        let with_tool =
            |context: AgentContext| context.with_tools([Arc::clone(&tool) as Arc<dyn crate::tools::Tool>]);
        let model = Scripted::new(|question, _| match question {
            0 | 1 => compute(question),
            2 => calls("test.slow", json!({})),
            _ => submits("all of it"),
        });
        let one = leaf(Role::Worker);
        ground.offer(&one).await;
        let running = ground.start(with_tool(ground.chat_kit(Role::Worker, &model)));
        until(|| tool.called.load(Ordering::SeqCst) == 1).await;
        let released = ground.park(&one).await;
        assert_eq!(
            (released.parked, released.usage.model_calls),
            (true, 2),
            "the step whose tool did not end counts when it ends"
        );
        use EventKind::{Outcome, Released, Started, Step, Tool};
        assert_eq!(ground.kinds(&one).await, [Started, Step, Step, Tool, Released]);
        running.stop().await;

        // Put down again, in the middle of a model call this time. The pure tool ran again by itself.
        let stuck = Scripted::slow(Duration::from_secs(60), |_, _| submits("never"));
        let two = next(&one);
        ground.offer(&two).await;
        let running = ground.start(with_tool(ground.chat_kit(Role::Worker, &stuck)));
        until(|| stuck.asked.load(Ordering::Relaxed) == 1).await;
        ground.park(&two).await;
        assert_eq!(ground.kinds(&two).await, [Started, Step, Released]);
        assert_eq!(tool.called.load(Ordering::SeqCst), 2);
        running.stop().await;

        let three = next(&two);
        ground.offer(&three).await;
        let running = ground.start(with_tool(ground.chat_kit(Role::Worker, &model)));
        let outcome = ground.outcome(&three).await;
        running.stop().await;
        assert_eq!(ground.kinds(&three).await, [Started, Outcome]);
        assert_eq!(conclusion(&outcome), "all of it");
        assert_eq!(outcome.steps.iter().map(|step| step.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(outcome.usage.model_calls, 1, "what was used before was counted when it was put down");
        assert_eq!(model.finished.lock().unwrap().values().copied().collect::<Vec<_>>(), [1, 1, 1, 1]);
    });
}

#[test]
fn what_was_put_down_is_not_given_out_again_by_its_queue() {
    on_ground(async |ground: Ground| {
        let stuck = Scripted::slow(Duration::from_secs(60), |_, _| submits("never"));
        let running = ground.start(ground.chat_kit(Role::Worker, &stuck));
        let offer = leaf(Role::Worker);
        ground.offer(&offer).await;
        until(|| stuck.asked.load(Ordering::Relaxed) == 1).await;
        ground.park(&offer).await;
        let other = leaf(Role::Worker);
        ground.offer(&other).await;
        until(|| stuck.asked.load(Ordering::Relaxed) == 2).await;
        assert_eq!(ground.kinds(&offer).await, [EventKind::Started, EventKind::Released]);
        running.stop().await;
    });
}

#[test]
fn what_ended_after_it_had_been_closed_is_not_done_again() {
    on_ground(async |ground: Ground| {
        let model = Scripted::new(|_, _| submits("in time after all"));
        let one = leaf(Role::Worker);
        let first = ground.done(ground.chat_kit(Role::Worker, &model), &one).await;
        let two = next(&one);
        ground.offer(&two).await;
        let second = ground.done_by(ground.chat_kit(Role::Worker, &model), &two).await;
        assert_eq!(second.product, first.product);
        assert!(second.usage.is_nothing(), "it was counted: {:?}", second.usage);
        assert_eq!(model.asked.load(Ordering::Relaxed), 1);
    });
}
