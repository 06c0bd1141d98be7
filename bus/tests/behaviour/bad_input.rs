//! What strangers send harms nobody: it becomes a dead letter with its reason, and the queue goes on.

use muster_bus::{BusError, Signatures};
use muster_shared::flow::Goal;
use muster_shared::ids::Seq;
use muster_shared::wire::{Command, Encoding};
use serde_json::json;

use crate::fixture::{SOON, cancel, on_nats, run, until, worker};

fn nested(open: u8, depth: usize) -> Vec<u8> {
    vec![open; depth]
}

/// Publishes as a stranger would, and waits until it is stored.
async fn store(foreigner: &async_nats::Client, subject: String, payload: Vec<u8>) {
    let context = async_nats::jetstream::new(foreigner.clone());
    context.publish(subject, payload.into()).await.unwrap().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_commands_become_dead_letters() {
    let f = on_nats().await;
    let (run, foreigner) = (run(), f.foreigner().await.unwrap());
    let queue = f.bus.commands().join().await.unwrap();
    let deep_json = [&b"{\"v\":1,\"body\":"[..], &nested(b'[', 10_000)].concat();
    let deep_pack = [&b"\x81\xa1x"[..], &nested(0x91, 10_000)].concat();
    let foreign = json!({"v": 99}).to_string().into_bytes();
    let payloads = [b"nonsense".to_vec(), Vec::new(), deep_json, deep_pack, foreign, vec![0xff; 900_000]];
    for (n, payload) in payloads.iter().enumerate() {
        store(&foreigner, format!("cmd.{run}.odd{n}"), payload.clone()).await;
    }
    store(&foreigner, "cmd.not-a-run.submit".into(), b"{}".to_vec()).await;
    let good = cancel(run, "good");
    f.bus.commands().send(&good, Encoding::MessagePack).await.unwrap();
    let taken = queue.take(SOON).await.unwrap().unwrap();
    assert_eq!(taken.command, good);
    let dead = f.bus.dead().list(100).await.unwrap();
    assert_eq!(dead.len(), payloads.len() + 1);
    for (letter, payload) in dead.iter().zip(&payloads) {
        assert_eq!(&letter.payload, payload);
        assert!(!letter.reason.is_empty() && letter.at.0 > 0);
    }
    assert!(
        dead[2].reason.contains("deeper") && dead[3].reason.contains("deeper"),
        "{:?} {:?}",
        dead[2].reason,
        dead[3].reason
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_goal_in_json_is_accepted() {
    let f = on_nats().await;
    let (run, foreigner) = (run(), f.foreigner().await.unwrap());
    let goal = Goal::new("why is the sky blue?");
    let envelope = json!({
        "v": 1, "id": uuid::Uuid::nil(), "sender": "a_script", "sent": 0,
        "body": {"type": "command", "content": {"command": "submit", "run": run, "goal": {"text": goal.text}}},
    });
    foreigner.publish(format!("cmd.{run}.submit"), envelope.to_string().into()).await.unwrap();
    // Where nothing is signed.
    let queue = f.bus.signed_by(Signatures::default()).commands().join().await.unwrap();
    let taken = queue.take(SOON).await.unwrap().unwrap();
    assert_eq!(taken.sender.as_str(), "a_script");
    assert!(matches!(&taken.command, Command::Submit { goal, .. } if goal.text == "why is the sky blue?"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_offers_become_dead_letters() {
    let f = on_nats().await;
    let (run, foreigner) = (run(), f.foreigner().await.unwrap());
    let queue = f.bus.tasks().join(&worker()).await.unwrap();
    for task in ["not_a_task", "1"] {
        store(&foreigner, format!("run.{run}.task.worker.{task}"), b"{}".to_vec()).await;
    }
    let other = crate::fixture::run();
    f.offer(other, Seq(0), &["2"]).await;
    assert_eq!(queue.take(SOON).await.unwrap().unwrap().offer.run, other);
    until("two dead letters", || async { f.bus.dead().list(10).await.unwrap().len() == 2 }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_two_megabytes_is_refused() {
    let f = on_nats().await;
    let foreigner = f.foreigner().await.unwrap();
    assert!(foreigner.publish("cmd.x.y", vec![0; 2 * 1024 * 1024].into()).await.is_err());
    let huge = cancel(run(), &"x".repeat(5_000_000));
    let refused = f.bus.commands().send(&huge, Encoding::MessagePack).await;
    assert!(matches!(refused, Err(BusError::TooLarge { .. })), "{refused:?}");
    f.bus.server().await.expect("the bus goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_from_the_future_becomes_a_dead_letter() {
    let f = on_nats().await;
    let (run, foreigner) = (run(), f.foreigner().await.unwrap());
    // Where nothing is signed.
    let queue = f.bus.signed_by(Signatures::default()).commands().join().await.unwrap();
    let cancel = |reason: &str, sent: u64| {
        let content =
            json!({"command": "request", "run": run, "reason": reason, "action": {"type": "cancel"}});
        json!({"sender": "a_script", "sent": sent, "body": {"type": "command", "content": content}})
            .to_string()
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let now = u64::try_from(now).unwrap();
    let subject = format!("cmd.{run}.cancel");
    for (reason, sent) in [("early", now + 2 * 3_600_000), ("a little early", now + 60_000), ("unsaid", 0)] {
        store(&foreigner, subject.clone(), cancel(reason, sent).into_bytes()).await;
    }
    for expected in ["a little early", "unsaid"] {
        let taken = queue.take(SOON).await.unwrap().unwrap();
        assert_eq!(taken.command, crate::fixture::cancel(run, expected));
        taken.done().await.unwrap();
    }
    let dead = f.bus.dead().list(10).await.unwrap();
    assert!(dead.len() == 1 && dead[0].reason.contains("field sent"), "{dead:?}");
}
