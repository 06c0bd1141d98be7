//! Much that passes on a bus, for whoever is to look on.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_bus::Bus;
use muster_shared::flow::Step;
use muster_shared::ids::{AgentId, Generation, Role, RunId, Seq, TaskId, TaskIndex};
use muster_shared::run::{AgentEvent, AgentKey};
use muster_shared::secret::Redactor;
use muster_shared::wire::{Encoding, Live, LiveKind};
use serde_json::json;

/// How often a second something is sent.
const BEATS: u16 = 50;

/// What passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// Words of a task, as a model says them.
    Words,
    /// Entries of a run's record.
    Entries,
}

/// Sends so many messages a second about a run, for so long. Gives how many a second it came to.
///
/// # Errors
/// When the bus fails.
pub async fn send(url: &str, run: RunId, what: Traffic, a_second: u16, time: Duration) -> io::Result<f64> {
    let who = AgentId::new("worker", 77);
    let bus = Bus::connect(&crate::way::settings(url), &who, Arc::new(Redactor::default())).await;
    let bus = bus.map_err(io::Error::other)?;
    let mut clock = tokio::time::interval(Duration::from_secs(1) / u32::from(BEATS));
    let (began, a_beat) = (Instant::now(), a_second / BEATS);
    let mut last = vec![Seq(0); usize::from(a_beat)];
    let (mut number, mut sent) = (0, 0_u32);
    while began.elapsed() < time {
        clock.tick().await;
        number += 1;
        match what {
            Traffic::Words => {
                for _ in 0..a_beat {
                    bus.live().publish(a_word(run, number));
                }
            }
            Traffic::Entries => {
                let step = a_step(number)?;
                let appended =
                    (500..).zip(&last).map(|(task, after)| {
                        let (key, bus, step) = (key(&who, task), &bus, &step);
                        async move {
                            bus.record().append_agent(run, &key, *after, step, Encoding::default()).await
                        }
                    });
                last = futures::future::try_join_all(appended).await.map_err(io::Error::other)?;
            }
        }
        sent += u32::from(a_beat);
    }
    Ok(f64::from(sent) / began.elapsed().as_secs_f64())
}

fn key(who: &AgentId, task: u16) -> AgentKey {
    let task = TaskId::Leaf(TaskIndex::top(task));
    AgentKey { role: Role::Worker, agent: who.clone(), task, generation: Generation(1) }
}

fn a_word(run: RunId, number: u32) -> Live {
    let task = TaskId::Leaf(TaskIndex::top(2));
    let kind = LiveKind::Thought { text: format!("and one more word, the {number}th ") };
    Live { run, role: Role::Worker, task, generation: Generation(1), step: 3, kind }
}

fn a_step(number: u32) -> io::Result<AgentEvent> {
    let step = json!({
        "number": number,
        "thought": { "text": "What is said of the limits is to be found in the second document. ".repeat(4) },
        "action": { "name": "corpus.read", "arguments": { "path": "delegation.md", "line": 12 } },
        "observation": { "status": "success", "content": "A delegation loop is refused. ".repeat(30) },
    });
    Ok(AgentEvent::Step(serde_json::from_value::<Step>(step)?))
}
