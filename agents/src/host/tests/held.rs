//! Tasks that are given to a process that has them, and such as were taken from it while it stood still.

use muster_shared::ids::Attempt;
use muster_shared::run::{AgentKey, Started};

use super::*;
use crate::react::close::Verdict;
use crate::react::drive::drive;
use crate::react::journal::Starter;
use crate::react::mailbox::Mailbox;
use crate::react::voice::Voice;

/// The acknowledgement of the first delivery of a task, once it is begun.
async fn begun(ground: &Ground, offer: &TaskOffered) -> String {
    let ack = ground.until(offer, |event| match event {
        AgentEvent::Started(started) => Some(started.ack),
        _ => None,
    });
    ack.await
}

#[test]
fn a_task_that_comes_again_while_it_is_in_hand_is_done_once() {
    in_system(async {
        let ground = Ground::new();
        let model = Scripted::slow(Duration::from_millis(100), |question, _| {
            if question < 2 { compute(question) } else { submits("2") }
        });
        let offer = leaf(Role::Worker);
        let running = ground.start(ground.chat_kit(Role::Worker, &model));
        ground.offer(&offer).await;
        let ack = begun(&ground, &offer).await;
        // As an orchestrator does that takes the agent for dead. Nobody else takes tasks of this queue.
        ground.bus.tasks().hand_on(&ack).await.unwrap();
        let outcome = ground.outcome(&offer).await;
        running.stop().await;
        assert_eq!(conclusion(&outcome), "2");
        use EventKind::{Outcome, Started, Step};
        assert_eq!(ground.kinds(&offer).await, [Started, Step, Step, Outcome]);
        assert_eq!(model.asked.load(Ordering::Relaxed), 3, "every question is asked once");
        assert!(ground.bus.tasks().waiting().await.unwrap().values().all(|count| *count == 0));
    });
}

/// What another agent writes when it begins.
async fn take_over(ground: &Ground, offer: &TaskOffered) {
    let record = ground.bus.record();
    let entries = record.read(&filter(offer), Seq(0)).await.unwrap();
    let last = entries.last().map_or(Seq(0), |entry| entry.seq);
    let key = AgentKey {
        role: Role::Worker,
        agent: AgentId::new("worker", 99),
        task: offer.task.clone(),
        generation: offer.generation,
    };
    let started =
        Started { attempt: Attempt(2), ack: String::new(), pid: 1, host: String::new(), after_step: 0 };
    record.append_agent(offer.run, &key, last, &AgentEvent::Started(started), offer.encoding).await.unwrap();
}

#[test]
fn whoever_stood_still_while_its_task_was_taken_asks_no_model() {
    in_system(async {
        let ground = Ground::new();
        let model = Scripted::new(|_, _| submits("never"));
        let kit = ground.chat_kit(Role::Worker, &model);
        let offer = leaf(Role::Worker);
        let key = AgentKey {
            role: Role::Worker,
            agent: kit.bus().who().clone(),
            task: offer.task.clone(),
            generation: offer.generation,
        };
        let starter = Starter { key, ack: String::new(), host: String::new(), delivered: 1 };
        let (_never, watched) = tokio::sync::watch::channel(None);
        let voice = Voice::new(kit.bus().live(), Arc::clone(kit.redactor()), Role::Worker, &offer);
        let equip = async || {
            // The process stands still between its first word and its first question.
            take_over(&ground, &offer).await;
            tokio::time::sleep(Duration::from_millis(250)).await;
            kit.equip(&offer).await
        };
        let verdict = drive(
            &offer,
            &starter,
            (kit.bus().record(), LIMIT),
            (watched, Mailbox::default(), std::future::pending()),
            voice,
            equip,
        );
        assert_eq!(Box::pin(verdict).await, Verdict::Lost);
        assert_eq!(model.asked.load(Ordering::Relaxed), 0, "a question of somebody else's task");
        assert_eq!(ground.kinds(&offer).await, [EventKind::Started, EventKind::Started]);
    });
}
