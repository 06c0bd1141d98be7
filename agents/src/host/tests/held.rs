//! Tasks that are given to a process that has them, and such as were taken from it while it stood still.

use muster_shared::run::{AgentKey, Started};

use super::*;
use crate::react::close::CloseOutcome;
use crate::react::drive::{Connections, drive};
use crate::react::interrupt::Interrupts;
use crate::react::journal::Starter;
use crate::react::mailbox::Mailbox;
use crate::react::progress::ProgressStream;

/// Connected to nobody but the record.
fn alone(
    context: &AgentContext,
    interrupt: Interrupts,
    progress: ProgressStream,
) -> Connections<std::future::Pending<()>> {
    Connections {
        record: context.bus().record(),
        patience: LIMIT,
        interrupt,
        mailbox: Mailbox::default(),
        time_is_up: std::future::pending(),
        progress,
    }
}

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
    on_ground(async |ground: Ground| {
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

fn key(offer: &TaskOffered, agent: AgentId) -> AgentKey {
    AgentKey { role: Role::Worker, agent, task: offer.task.clone(), generation: offer.generation }
}

fn starter(offer: &TaskOffered, agent: AgentId, delivered: u64) -> Starter {
    let key = key(offer, agent);
    Starter { key, ack: String::new(), host: String::new(), delivered, waited: Duration::ZERO }
}

/// Another agent, which is on no bus, writes that it starts the task.
async fn begin_as_another(ground: &Ground, offer: &TaskOffered, attempt: Attempt) {
    let record = ground.bus.record();
    let entries = record.read(&filter(offer), Seq(0)).await.unwrap();
    let last = entries.last().map_or(Seq(0), |entry| entry.seq);
    let key = key(offer, AgentId::new("worker", 99));
    let started = Started { attempt, ack: String::new(), pid: 1, host: String::new(), after_step: 0 };
    record.append_agent(offer.run, &key, last, &AgentEvent::Started(started), offer.encoding).await.unwrap();
}

/// What comes of a task whose process stands still between its first word and its first question, and how often it asked.
async fn stood_still<F: Future + Send>(
    ground: &Ground,
    offer: &TaskOffered,
    meanwhile: impl FnOnce(AgentId) -> F,
) -> (CloseOutcome, u32) {
    let model = Scripted::new(|_, _| submits("by whoever began"));
    let context = ground.chat_kit(Role::Worker, &model);
    let starter = starter(offer, context.bus().who().clone(), 1);
    let (_never, watched) = tokio::sync::watch::channel(None);
    let progress =
        ProgressStream::new(context.bus().live(), Arc::clone(context.redactor()), Role::Worker, offer);
    let meanwhile = meanwhile(context.bus().who().clone());
    let equip = async || {
        meanwhile.await;
        tokio::time::sleep(muster_journal::SURE).await;
        context.equip(offer, None).await
    };
    let verdict = drive(offer, &starter, alone(&context, watched, progress), equip);
    (Box::pin(verdict).await, model.asked.load(Ordering::Relaxed))
}

#[test]
fn whoever_stood_still_while_its_task_was_taken_asks_no_model() {
    in_system(async {
        let (ground, offer) = (Ground::new(), leaf(Role::Worker));
        let (ground_of, offer_of) = (&ground, &offer);
        let meanwhile = |agent| async move {
            ground_of.orphan(offer_of, &agent).await;
            begin_as_another(ground_of, offer_of, Attempt(2)).await;
        };
        let (verdict, asked) = stood_still(&ground, &offer, meanwhile).await;
        assert_eq!(verdict, CloseOutcome::Lost);
        assert_eq!(asked, 0, "a question of somebody else's task");
        assert_eq!(ground.kinds(&offer).await, [EventKind::Started, EventKind::Started]);
    });
}

/// All agents of a role may write that they begin a task. Only a decision takes it from whoever has it.
#[test]
fn whoever_has_a_task_keeps_it_though_another_says_that_it_begins() {
    in_system(async {
        let (ground, offer) = (Ground::new(), leaf(Role::Worker));
        let meanwhile = |_| begin_as_another(&ground, &offer, Attempt(2));
        let (verdict, asked) = stood_still(&ground, &offer, meanwhile).await;
        assert_eq!((verdict, asked), (CloseOutcome::Closed, 1));
        use EventKind::{Outcome, Started};
        assert_eq!(ground.kinds(&offer).await, [Started, Started, Outcome]);
    });
}

/// Nobody started it for a while after it was lost, so that it was offered anew. The fence of its generation says nothing of
/// that.
#[test]
fn whoever_stood_still_while_its_task_was_offered_anew_asks_no_model() {
    in_system(async {
        let (ground, offer) = (Ground::new(), leaf(Role::Worker));
        let again = next(&offer);
        let (verdict, asked) = stood_still(&ground, &offer, |_| ground.offer(&again)).await;
        assert_eq!(verdict, CloseOutcome::Lost);
        assert_eq!(asked, 0, "a question of somebody else's task");
        assert_eq!(ground.kinds(&offer).await, [EventKind::Started]);
    });
}

/// A queue whose server was killed gives a task out that another has at work.
#[test]
fn a_task_that_somebody_has_at_work_is_left_to_it_however_often_it_is_given_out() {
    on_ground(async |ground: Ground| {
        let slow = Scripted::slow(Duration::from_millis(600), |_, _| submits("by whoever began"));
        let other = Scripted::new(|_, _| submits("by another"));
        let offer = leaf(Role::Worker);
        let first = ground.start(ground.chat_kit(Role::Worker, &slow));
        ground.offer(&offer).await;
        let ack = begun(&ground, &offer).await;
        until(|| slow.asked.load(Ordering::Relaxed) > 0).await;
        // The first has no slot to spare, so that it goes to the second.
        let context = Arc::new(ground.chat_kit(Role::Worker, &other));
        let queue = context.bus().tasks().join(&offer.queue).await.unwrap();
        let (mut verdicts, wait) = (Vec::new(), Duration::from_millis(100));
        while verdicts.is_empty() {
            ground.bus.tasks().hand_on(&ack).await.unwrap();
            if let Some(task) = queue.take(wait).await.unwrap() {
                let (_interrupt, watched) = watch::channel(None);
                verdicts.push(guard::guard(Arc::clone(&context), task, reach(watched)).await);
            }
            if ground.kinds(&offer).await.contains(&EventKind::Outcome) {
                break;
            }
        }
        let outcome = ground.outcome(&offer).await;
        first.stop().await;
        assert_eq!(conclusion(&outcome), "by whoever began");
        assert!(verdicts.iter().all(|verdict| *verdict == CloseOutcome::Lost), "{verdicts:?}");
        assert_eq!(other.asked.load(Ordering::Relaxed), 0, "nobody asks a second time");
        assert_eq!(ground.kinds(&offer).await, [EventKind::Started, EventKind::Outcome]);
    });
}

/// Redelivery by the server, and the hand-over of an orphan, at the same moment.
#[test]
fn of_two_who_are_told_at_once_to_take_an_orphan_over_one_asks() {
    on_ground(async |ground: Ground| {
        let offer = leaf(Role::Worker);
        ground.offer(&offer).await;
        let dead = AgentId::new("worker", 99);
        begin_as_another(&ground, &offer, Attempt(1)).await;
        ground.orphan(&offer, &dead).await;
        let model = Scripted::slow(Duration::from_millis(300), |_, _| submits("once"));
        let kits = [(); 2].map(|()| ground.chat_kit(Role::Worker, &model));
        let drives = kits.map(|context| {
            let offer = offer.clone();
            async move {
                // It says of itself that it lives, as every agent does.
                let profile = profile::profile(&context);
                let announced = context.bus().registry().announce(profile).await.unwrap();
                let starter = starter(&offer, context.bus().who().clone(), 2);
                let (_never, watched) = tokio::sync::watch::channel(None);
                let progress = ProgressStream::new(
                    context.bus().live(),
                    Arc::clone(context.redactor()),
                    Role::Worker,
                    &offer,
                );
                let equip = async || context.equip(&offer, None).await;
                let verdict =
                    Box::pin(drive(&offer, &starter, alone(&context, watched, progress), equip)).await;
                announced.leave().await.unwrap();
                verdict
            }
        });
        let [one, other] = drives;
        let verdicts = tokio::join!(one, other);
        assert!(
            matches!(
                verdicts,
                (CloseOutcome::Closed, CloseOutcome::Lost) | (CloseOutcome::Lost, CloseOutcome::Closed)
            ),
            "{verdicts:?}"
        );
        assert_eq!(model.asked.load(Ordering::Relaxed), 1, "asked once, by whoever was first");
        let outcome = ground.outcome(&offer).await;
        // The call of the one who died is counted, with the length of its question.
        assert_eq!((outcome.usage.model_calls, outcome.usage.wasted_calls), (1, 1), "{:?}", outcome.usage);
        assert!(outcome.usage.input_tokens > 100, "{:?}", outcome.usage);
    });
}

/// That it does not say that it lives proves nothing: whoever decides looks it up, and decides that it is lost.
#[test]
fn a_task_of_somebody_who_is_not_there_any_more_is_taken_over_once_that_is_decided() {
    on_ground(async |ground: Ground| {
        let offer = leaf(Role::Worker);
        ground.offer(&offer).await;
        begin_as_another(&ground, &offer, Attempt(1)).await;
        let model = Scripted::new(|_, _| submits("after all"));
        let context = Arc::new(ground.chat_kit(Role::Worker, &model));
        let queue = context.bus().tasks().join(&offer.queue).await.unwrap();
        let take = async || {
            let task = queue.take(Duration::from_secs(5)).await.unwrap().unwrap();
            let ack = task.ack_subject.clone();
            let (_interrupt, watched) = watch::channel(None);
            (guard::guard(Arc::clone(&context), task, reach(watched)).await, ack)
        };
        let (verdict, ack) = take().await;
        assert_eq!((verdict, model.asked.load(Ordering::Relaxed)), (CloseOutcome::Lost, 0));
        ground.orphan(&offer, &AgentId::new("worker", 99)).await;
        ground.bus.tasks().hand_on(&ack).await.unwrap();
        assert_eq!(take().await.0, CloseOutcome::Closed);
        assert_eq!(conclusion(&ground.outcome(&offer).await), "after all");
    });
}

/// Nobody was there to take it, and it was made again meanwhile.
#[test]
fn an_offer_that_lay_in_its_queue_until_it_was_made_again_is_dropped() {
    on_ground(async |ground: Ground| {
        let first = leaf(Role::Worker);
        let again = TaskOffered { generation: Generation(first.generation.0 + 1), ..first.clone() };
        ground.offer(&first).await;
        ground.offer(&again).await;
        tokio::time::sleep(muster_journal::LATE).await;
        let model = Scripted::new(|_, _| submits("once"));
        let outcome = ground.done_by(ground.chat_kit(Role::Worker, &model), &again).await;
        assert_eq!(conclusion(&outcome), "once");
        assert!(ground.kinds(&first).await.is_empty(), "the old offer is not begun");
        assert_eq!(model.asked.load(Ordering::Relaxed), 1, "one call");
    });
}
