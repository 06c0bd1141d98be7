//! How tasks end: limits, failures of models and of ours, people, and time.

use super::*;

#[test]
fn at_the_limit_of_steps_the_best_there_is_counts() {
    on_ground(async |ground: Ground| {
        let model = Scripted::new(|question, _| compute(question));
        let mut offer = leaf(Role::Worker);
        offer.limits.max_steps = 3;
        let outcome = ground.done(ground.chat_kit(Role::Worker, &model), &offer).await;
        assert_eq!(outcome.ending, Ending::DonePartial);
        assert!(outcome.reason.contains("limit of 3 steps"), "{}", outcome.reason);
        assert_eq!(ground.steps(&offer).await.len(), 2);
        assert_eq!(
            outcome.usage.model_calls,
            2 + 3,
            "the last step is asked three times, and all is counted"
        );
    });
}

#[test]
fn a_model_that_fails_for_good_ends_the_task_with_its_reason() {
    on_ground(async |ground: Ground| {
        let model = Scripted::new(|question, _| match question {
            0 => compute(1),
            _ => Err(ModelError::new(
                ModelErrorKind::Unauthorized,
                "test/scripted",
                "the key is wrong: set TEST_KEY",
            )),
        });
        let (_, outcome) = ground.does(&model).await;
        assert_eq!(outcome.ending, Ending::ModelFailed);
        assert!(outcome.reason.contains("set TEST_KEY"), "{}", outcome.reason);
        assert_eq!(outcome.usage.model_calls, 1);
    });
}

#[test]
fn a_fault_of_ours_ends_one_task_and_nothing_else() {
    on_ground(async |ground: Ground| {
        let broken = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&broken);
        let model = Scripted::new(move |question, _| match question {
            0 => compute(1),
            _ if seen.fetch_add(1, Ordering::Relaxed) == 0 => panic!("a fault of ours"),
            _ => submits("fine"),
        });
        let running = ground.start(ground.chat_kit(Role::Worker, &model));
        let first = leaf(Role::Worker);
        ground.offer(&first).await;
        let outcome = ground.outcome(&first).await;
        assert_eq!(outcome.ending, Ending::AgentFailed);
        assert!(outcome.reason.contains("a fault of ours"), "{}", outcome.reason);
        assert_eq!(outcome.usage.model_calls, 1, "what the record holds is counted");
        let second = leaf(Role::Worker);
        ground.offer(&second).await;
        assert_eq!(ground.outcome(&second).await.ending, Ending::Done);
        running.stop().await;
    });
}

#[test]
fn a_cancelled_task_ends_at_once() {
    on_ground(async |ground: Ground| {
        let model = Scripted::slow(Duration::from_secs(60), |_, _| submits("too late"));
        let running = ground.start(ground.chat_kit(Role::Worker, &model));
        let offer = leaf(Role::Worker);
        ground.offer(&offer).await;
        until(|| model.asked.load(Ordering::Relaxed) > 0).await;
        let begun = Instant::now();
        let cancel = ControlMessage::CancelRun { run: offer.run, reason: "not needed".into() };
        ground.bus.control().send(&ControlTarget::All, &cancel).await.unwrap();
        let outcome = ground.outcome(&offer).await;
        // The call lasts a minute.
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert_eq!((outcome.ending, outcome.reason.as_str()), (Ending::Cancelled, "not needed"));
        running.stop().await;
    });
}

#[test]
fn a_task_ends_at_its_deadline() {
    on_ground(async |ground: Ground| {
        let model = Scripted::slow(Duration::from_secs(60), |_, _| submits("too late"));
        let mut offer = leaf(Role::Worker);
        offer.deadline = muster_bus::now().after(Duration::from_millis(300));
        let outcome = ground.done(ground.chat_kit(Role::Worker, &model), &offer).await;
        assert_eq!(outcome.ending, Ending::DeadlinePassed);
    });
}
