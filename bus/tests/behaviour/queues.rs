use std::time::{Duration, Instant};

use muster_bus::Origin;
use muster_shared::flow::Goal;
use muster_shared::ids::{Queue, Role, Seq};
use muster_shared::wire::{Command, Encoding};

use crate::fixture::{Fixture, SOON, agent, cancel, decided, offer, run, worker};

const MOMENT: Duration = Duration::from_millis(200);

crate::on_both!(
    an_offer_is_a_queue_entry,
    every_task_goes_to_one_agent,
    a_task_done_does_not_come_again,
    a_task_handed_back_comes_again,
    a_task_nobody_speaks_of_comes_again,
    progress_keeps_a_task,
    a_dead_agents_task_can_be_handed_on,
    a_task_that_nobody_started_can_be_handed_on,
    addressed_offers_reach_their_agent_only,
    waiting_tasks_are_counted,
    a_command_is_stored_once,
    a_command_is_taken_once,
    a_dead_command_is_sent_again_or_removed,
    a_withdrawn_task_goes_to_nobody,
    a_rejected_command_leaves_a_dead_letter,
    an_empty_queue_ends_the_wait,
);

async fn an_offer_is_a_queue_entry(f: Fixture) {
    let (queue, run) = (f.bus.tasks().join(&worker()).await.unwrap(), run());
    f.offer(run, Seq(0), &["1-2"]).await;
    let task = queue.take(SOON).await.unwrap().unwrap();
    assert_eq!(task.offer, offer(run, "1-2", worker()));
    assert_eq!(task.delivered, 1);
    assert!(task.ack_subject.starts_with("$JS.ACK.TASKS.worker."), "{}", task.ack_subject);
    assert!(task.trace.as_ref().unwrap().0.contains(&run.to_string()));
    task.done().await.unwrap();
}

async fn every_task_goes_to_one_agent(f: Fixture) {
    let run = run();
    f.offer(run, Seq(0), &["1", "2", "3", "4", "5", "6"]).await;
    let takers = (0..3).map(|n| {
        let bus = f.bus.as_agent(&agent(&format!("worker-{n}")));
        async move {
            let queue = bus.tasks().join(&worker()).await.unwrap();
            let mut taken = Vec::new();
            while let Some(task) = queue.take(MOMENT).await.unwrap() {
                taken.push(task.offer.task.to_string());
                task.done().await.unwrap();
            }
            taken
        }
    });
    let mut taken: Vec<_> = futures::future::join_all(takers).await.into_iter().flatten().collect();
    taken.sort();
    assert_eq!(taken, ["1", "2", "3", "4", "5", "6"]);
}

async fn a_task_done_does_not_come_again(f: Fixture) {
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    f.offer(run(), Seq(0), &["1"]).await;
    queue.take(SOON).await.unwrap().unwrap().done().await.unwrap();
    // Longer than the time after which an unfinished one would come again.
    assert!(queue.take(Duration::from_secs(3)).await.unwrap().is_none());
}

async fn a_task_handed_back_comes_again(f: Fixture) {
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    f.offer(run(), Seq(0), &["1"]).await;
    queue.take(SOON).await.unwrap().unwrap().hand_back(Duration::ZERO).await.unwrap();
    let again = queue.take(Duration::from_secs(1)).await.unwrap().unwrap();
    assert_eq!(again.delivered, 2);
    again.hand_back(Duration::from_millis(600)).await.unwrap();
    let begun = Instant::now();
    assert_eq!(queue.take(SOON).await.unwrap().unwrap().delivered, 3);
    assert!(begun.elapsed() > Duration::from_millis(400));
}

async fn a_task_nobody_speaks_of_comes_again(f: Fixture) {
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    f.offer(run(), Seq(0), &["1"]).await;
    drop(queue.take(SOON).await.unwrap().unwrap());
    assert_eq!(queue.take(SOON).await.unwrap().unwrap().delivered, 2);
}

async fn progress_keeps_a_task(f: Fixture) {
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    f.offer(run(), Seq(0), &["1"]).await;
    let task = queue.take(SOON).await.unwrap().unwrap();
    for _ in 0..4 {
        assert!(queue.take(Duration::from_secs(1)).await.unwrap().is_none());
        task.progress().await.unwrap();
    }
    task.done().await.unwrap();
}

async fn a_dead_agents_task_can_be_handed_on(f: Fixture) {
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    f.offer(run(), Seq(0), &["1"]).await;
    let task = queue.take(SOON).await.unwrap().unwrap();
    f.bus.tasks().hand_on(&task.ack_subject).await.unwrap();
    f.bus.tasks().hand_on(&task.ack_subject).await.unwrap();
    let again = queue.take(Duration::from_secs(1)).await.unwrap().unwrap();
    assert_eq!(again.delivered, 2);
    again.done().await.unwrap();
    assert!(queue.take(MOMENT).await.unwrap().is_none());
    assert!(f.bus.tasks().hand_on("$JS.API.STREAM.DELETE.RUNS").await.is_err());
}

async fn a_task_that_nobody_started_can_be_handed_on(f: Fixture) {
    let (queue, run) = (f.bus.tasks().join(&worker()).await.unwrap(), run());
    f.offer(run, Seq(0), &["1", "2", "3"]).await;
    let hand_on = async |task: &str| {
        f.bus.tasks().hand_on_unstarted(&worker(), run, &task.parse().unwrap()).await.unwrap()
    };
    let first = queue.take(SOON).await.unwrap().unwrap();
    queue.take(SOON).await.unwrap().unwrap().done().await.unwrap();
    assert!(hand_on("1").await);
    assert!(!hand_on("3").await, "it waits in the queue");
    assert!(!hand_on("2").await, "it is done");
    assert!(!hand_on("9").await, "there is no such task");
    let mut taken = [queue.take(SOON).await.unwrap().unwrap(), queue.take(SOON).await.unwrap().unwrap()];
    taken.sort_by_key(|task| task.offer.task.clone());
    assert_eq!(taken.each_ref().map(|task| task.delivered), [2, 1]);
    assert_eq!(taken[0].offer, first.offer);
    assert!(queue.take(MOMENT).await.unwrap().is_none());
}

async fn addressed_offers_reach_their_agent_only(f: Fixture) {
    let (run, me) = (run(), Queue::Agent(agent("worker-7")));
    let role = f.bus.tasks().join(&Queue::Role(Role::Worker)).await.unwrap();
    let own = f.bus.tasks().join(&me).await.unwrap();
    let offers = [offer(run, "1", me)];
    f.bus.record().append_decision(run, Seq(0), &decided(1), &offers, Encoding::MessagePack).await.unwrap();
    assert_eq!(own.take(SOON).await.unwrap().unwrap().offer, offers[0]);
    assert!(role.take(MOMENT).await.unwrap().is_none());
}

async fn waiting_tasks_are_counted(f: Fixture) {
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    f.offer(run(), Seq(0), &["1", "2", "3"]).await;
    let task = queue.take(SOON).await.unwrap().unwrap();
    assert_eq!(f.bus.tasks().waiting().await.unwrap()[&worker()], 2);
    task.done().await.unwrap();
    // Nobody waits until the broker has taken the word, and what it holds is counted in two looks.
    let is_gone = async || f.bus.tasks().in_hand(&worker()).await.unwrap() == 0;
    let gone = async {
        while !is_gone().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, gone).await.unwrap();
    assert_eq!(f.bus.tasks().waiting().await.unwrap()[&worker()], 2);
}

async fn a_command_is_stored_once(f: Fixture) {
    let commands = f.bus.commands();
    let submit = Command::Submit { run: run(), goal: Box::new(Goal::new("why?")) };
    let first = commands.send(&submit, Encoding::MessagePack).await.unwrap();
    assert_eq!(commands.send(&submit, Encoding::Json).await.unwrap(), first);
    let queue = commands.join().await.unwrap();
    queue.take(SOON).await.unwrap().unwrap().done().await.unwrap();
    assert!(queue.take(MOMENT).await.unwrap().is_none());
}

async fn a_command_is_taken_once(f: Fixture) {
    let run = run();
    let cancel = cancel(run, "enough");
    f.bus.commands().send(&cancel, Encoding::MessagePack).await.unwrap();
    let queue = f.bus.as_agent(&agent("orchestrator-1")).commands().join().await.unwrap();
    let taken = queue.take(SOON).await.unwrap().unwrap();
    assert_eq!((taken.command.clone(), taken.sender.clone(), taken.delivered), (cancel, agent("tester"), 1));
    taken.hand_back(Duration::ZERO).await.unwrap();
    let again = queue.take(SOON).await.unwrap().unwrap();
    assert_eq!(again.delivered, 2);
    again.done().await.unwrap();
}

async fn a_rejected_command_leaves_a_dead_letter(f: Fixture) {
    let (commands, run) = (f.bus.commands(), run());
    commands.send(&cancel(run, ""), Encoding::Json).await.unwrap();
    let queue = commands.join().await.unwrap();
    queue.take(SOON).await.unwrap().unwrap().reject("no such run").await.unwrap();
    let dead = f.bus.dead().list(10).await.unwrap();
    assert_eq!((dead.len(), dead[0].reason.as_str()), (1, "no such run"));
    assert_eq!(dead[0].subject, format!("cmd.{run}.cancel"));
    assert!(serde_json::from_slice::<serde_json::Value>(&dead[0].payload).is_ok());
}

async fn an_empty_queue_ends_the_wait(f: Fixture) {
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    for wait in [Duration::ZERO, Duration::from_millis(50), MOMENT] {
        let begun = Instant::now();
        assert!(queue.take(wait).await.unwrap().is_none());
        assert!(begun.elapsed() < wait + Duration::from_secs(1), "{wait:?}");
    }
}

async fn a_dead_command_is_sent_again_or_removed(f: Fixture) {
    let queue = f.bus.commands().join().await.unwrap();
    let command = cancel(run(), "enough");
    f.bus.commands().send(&command, Encoding::Json).await.unwrap();
    queue.take(SOON).await.unwrap().unwrap().reject("not now").await.unwrap();
    let letter = f.bus.dead().list(10).await.unwrap().remove(0);
    assert_eq!(letter.origin(), Origin::Command);
    assert_eq!(f.bus.dead().get(letter.seq).await.unwrap().as_ref(), Some(&letter));

    f.bus.dead().resend(&letter).await.unwrap();
    let again = queue.take(SOON).await.unwrap().unwrap();
    assert_eq!(again.command, command);
    assert_eq!(f.bus.dead().get(letter.seq).await.unwrap(), None);
    again.reject("not now either").await.unwrap();
    let letter = f.bus.dead().list(10).await.unwrap().remove(0);
    for _ in 0..2 {
        f.bus.dead().remove(letter.seq).await.unwrap();
    }
    assert!(f.bus.dead().list(10).await.unwrap().is_empty());
}

async fn a_withdrawn_task_goes_to_nobody(f: Fixture) {
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    f.offer(run(), Seq(0), &["1"]).await;
    let taken = queue.take(SOON).await.unwrap().unwrap();
    f.bus.tasks().withdraw(&taken.ack_subject).await.unwrap();
    drop(taken);
    // Longer than the time after which it would be given out again.
    assert!(queue.take(f.bus.settings().ack_wait + Duration::from_millis(500)).await.unwrap().is_none());
    assert!(
        f.bus.tasks().withdraw("evt.x").await.is_err(),
        "not everything in a record is a subject to publish to"
    );
}
