//! Tasks that go from one agent to another.

use super::*;
use crate::react::close::CloseOutcome;
use crate::react::interrupt::Interrupt;

/// Starts an agent on one task: its id, the acknowledgement, and handles to interrupt and join it.
async fn at_work(
    ground: &Ground,
    model: &Arc<Scripted>,
    offer: &TaskOffered,
) -> (AgentId, String, watch::Sender<Option<Interrupt>>, tokio::task::JoinHandle<CloseOutcome>) {
    let context = Arc::new(ground.chat_kit(Role::Worker, model));
    let agent = context.bus().who().clone();
    let queue = context.bus().tasks().join(&offer.queue).await.unwrap();
    let task = queue.take(Duration::from_secs(5)).await.unwrap().unwrap();
    let ack = task.ack_subject.clone();
    let (interrupt, watched) = watch::channel(None);
    (agent, ack, interrupt, tokio::spawn(guard::guard(context, task, reach(watched))))
}

#[test]
fn another_agent_goes_on_after_the_last_step_and_repeats_no_finished_call() {
    on_ground(async |ground: Ground| {
        let model = Scripted::slow(Duration::from_millis(5), |question, _| match question {
            0..7 => compute(question),
            _ => submits("all eight"),
        });
        let offer = leaf(Role::Worker);
        ground.offer(&offer).await;
        let (dead, ack, _interrupt, working) = at_work(&ground, &model, &offer).await;
        ground
            .until(&offer, |event| matches!(event, AgentEvent::Step(step) if step.number == 5).then_some(()))
            .await;
        working.abort();
        assert!(working.await.unwrap_err().is_cancelled());

        ground.orphan(&offer, &dead).await;
        let running = ground.start(ground.chat_kit(Role::Worker, &model));
        ground.bus.tasks().hand_on(&ack).await.unwrap();
        let outcome = ground.outcome(&offer).await;
        assert_eq!((outcome.ending, conclusion(&outcome)), (Ending::Done, "all eight"));
        let entries = ground.entries(&offer).await;
        let starts: Vec<_> = entries
            .iter()
            .filter_map(|(agent, event)| match event {
                AgentEvent::Started(started) => Some((agent.clone(), started.attempt.0, started.after_step)),
                _ => None,
            })
            .collect();
        let after = starts[1].2;
        assert!(after >= 5, "{starts:?}");
        assert_eq!((starts.len(), starts[1].0.clone(), starts[1].1), (2, running.agent.clone(), 2));
        let numbers: Vec<_> = ground.steps(&offer).await.iter().map(|step| step.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
        // The answer on its way when the agent vanished may be asked for again; what was journaled may not.
        for (question, times) in &*model.finished.lock().unwrap() {
            let journaled_by_first = *question < usize::try_from(after).unwrap();
            assert!(
                *times == 1 || (!journaled_by_first && *question == usize::try_from(after).unwrap()),
                "{question}: {times}"
            );
        }
        let steps = ground.steps(&offer).await;
        assert!(steps.iter().skip(1).all(|step| step.calls[0].same_messages > 0), "the prompt goes on, too");
        running.stop().await;
    });
}

#[test]
fn an_offer_that_was_made_again_meanwhile_is_not_worked_on() {
    on_ground(async |ground: Ground| {
        let model = Scripted::new(|_, _| submits("once"));
        let old = leaf(Role::Worker);
        ground.offer(&old).await;
        let context = Arc::new(ground.chat_kit(Role::Worker, &model));
        let queue = context.bus().tasks().join(&old.queue).await.unwrap();
        let wait = Duration::from_secs(5);
        queue.take(wait).await.unwrap().unwrap().hand_back(Duration::ZERO).await.unwrap();
        let new = TaskOffered { generation: old.generation.next(), ..old.clone() };
        ground.offer(&new).await;
        for _ in 0..2 {
            let task = queue.take(wait).await.unwrap().unwrap();
            let (_interrupt, watched) = watch::channel(None);
            guard::guard(Arc::clone(&context), task, reach(watched)).await;
        }
        assert_eq!(ground.kinds(&old).await, []);
        use EventKind::{Outcome, Started};
        assert_eq!(ground.kinds(&new).await, [Started, Outcome]);
        assert_eq!(ground.bus.tasks().waiting().await.unwrap().values().sum::<u64>(), 0);
    });
}

#[test]
fn who_lost_a_task_says_nothing_more() {
    on_ground(async |ground: Ground| {
        let model = Scripted::slow(Duration::from_millis(300), |_, _| submits("slow"));
        let quick = Scripted::new(|_, _| submits("quick"));
        let offer = leaf(Role::Worker);
        ground.offer(&offer).await;
        let (slow_one, ack, _interrupt, working) = at_work(&ground, &model, &offer).await;
        ground.until(&offer, |event| matches!(event, AgentEvent::Started(_)).then_some(())).await;
        ground.orphan(&offer, &slow_one).await;
        ground.bus.tasks().hand_on(&ack).await.unwrap();
        let outcome = ground.done_by(ground.chat_kit(Role::Worker, &quick), &offer).await;
        working.await.unwrap();
        assert_eq!(conclusion(&outcome), "quick");
        use EventKind::{Outcome, Started};
        assert_eq!(ground.kinds(&offer).await, [Started, Started, Outcome]);
    });
}

#[test]
fn an_agent_that_stops_hands_its_task_over() {
    on_ground(async |ground: Ground| {
        let stuck = Scripted::slow(Duration::from_secs(60), |_, _| submits("never"));
        let running = ground.start(ground.chat_kit(Role::Worker, &stuck));
        let offer = leaf(Role::Worker);
        ground.offer(&offer).await;
        until(|| stuck.asked.load(Ordering::Relaxed) > 0).await;
        running.stop().await;
        let quick = Scripted::new(|_, _| submits("by another"));
        let outcome = ground.done_by(ground.chat_kit(Role::Worker, &quick), &offer).await;
        assert_eq!(conclusion(&outcome), "by another");
        use EventKind::{Outcome, Released, Started};
        assert_eq!(ground.kinds(&offer).await, [Started, Released, Started, Outcome]);
    });
}

#[test]
fn an_agent_that_stops_finishes_the_step_in_hand_and_begins_no_other() {
    on_ground(async |ground: Ground| {
        let slow = Scripted::slow(Duration::from_millis(400), |question, _| compute(question));
        let model: Arc<dyn ChatModel> = slow.clone();
        let model = ModelClient::Chat(ChatClient::new(model, CallStyle::Native));
        let running = ground.start(ground.kit_that_drains(Role::Worker, model, Duration::from_secs(10)));
        let offer = leaf(Role::Worker);
        ground.offer(&offer).await;
        until(|| slow.asked.load(Ordering::Relaxed) >= 2).await;
        let begun = Instant::now();
        running.stop().await;
        assert!(begun.elapsed() < Duration::from_secs(5), "it waits for the step and no longer");
        assert_eq!(slow.asked.load(Ordering::Relaxed), 2, "no further call is begun");
        let quick = Scripted::new(|_, _| submits("by another"));
        let outcome = ground.done_by(ground.chat_kit(Role::Worker, &quick), &offer).await;
        assert_eq!(conclusion(&outcome), "by another");
        assert_eq!(quick.asked.load(Ordering::Relaxed), 1, "no finished step is taken again");
        use EventKind::{Outcome, Released, Started, Step};
        assert_eq!(ground.kinds(&offer).await, [Started, Step, Step, Released, Started, Outcome]);
    });
}

#[test]
fn a_tool_with_lasting_effect_is_announced_before_it_runs() {
    on_ground(async |ground: Ground| {
        let model = Scripted::new(|question, _| match question {
            0 => calls("workspace_write", json!({"path": "a.md", "text": "x"})),
            _ => submits("written"),
        });
        let (offer, outcome) = ground.does(&model).await;
        use EventKind::{Outcome, Started, Step, Tool};
        assert_eq!(ground.kinds(&offer).await, [Started, Tool, Step, Outcome]);
        assert_eq!(outcome.ending, Ending::Done);
        let steps = ground.steps(&offer).await;
        assert_eq!(steps[0].observation.as_ref().unwrap().status, ObservationStatus::Success, "{steps:?}");
    });
}
