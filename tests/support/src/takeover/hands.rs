//! Who has what in hand, by the record: pure.

use std::collections::BTreeMap;

use muster_shared::ids::{AgentId, RunId, TaskId};
use muster_shared::run::{AgentEvent, Entry, RecordEvent, RunEvent};

/// Which process has which task, and who decided last on each run that goes on.
#[derive(Debug, Default)]
pub(super) struct Hands {
    tasks: BTreeMap<(RunId, TaskId), Held>,
    authors: BTreeMap<RunId, AgentId>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    pid: u32,
    /// When it was started, in UTC milliseconds.
    since: u64,
}

/// What an entry changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// A process began a task.
    Started(RunId, TaskId, u32),
    /// A task was put down or is done.
    PutDown(RunId, TaskId),
    /// Somebody decided on a run.
    Decided(RunId, AgentId),
    /// A run has ended.
    Ended(RunId),
    /// Nothing of interest.
    Nothing,
}

impl Hands {
    pub(super) fn note(&mut self, entry: &Entry) -> Change {
        let run = entry.run;
        match &entry.event {
            RecordEvent::Agent(key, AgentEvent::Started(started)) => {
                let held = Held { pid: started.pid, since: entry.at.0 };
                self.tasks.insert((run, key.task.clone()), held);
                Change::Started(run, key.task.clone(), started.pid)
            }
            RecordEvent::Agent(key, AgentEvent::Outcome(_) | AgentEvent::Released(_)) => {
                self.tasks.remove(&(run, key.task.clone()));
                Change::PutDown(run, key.task.clone())
            }
            RecordEvent::Agent(
                _,
                AgentEvent::Step(_) | AgentEvent::ToolStarted(_) | AgentEvent::Unreadable(_),
            )
            | RecordEvent::Offered(_) => Change::Nothing,
            RecordEvent::Decided(decided) if decided.events.iter().any(RunEvent::ends_run) => {
                self.tasks.retain(|(of, _), _| *of != run);
                self.authors.remove(&run);
                Change::Ended(run)
            }
            RecordEvent::Decided(decided) => {
                self.authors.insert(run, decided.by.clone());
                Change::Decided(run, decided.by.clone())
            }
        }
    }

    /// The tasks that a process has had in hand since before `until`.
    pub(super) fn of(&self, pid: u32, until: u64) -> Vec<(RunId, TaskId)> {
        let held = self.tasks.iter().filter(|(_, held)| held.pid == pid && held.since < until);
        held.map(|(task, _)| task.clone()).collect()
    }

    /// The runs on which this orchestrator decided last.
    pub(super) fn decided_by(&self, who: &AgentId) -> Vec<RunId> {
        self.authors.iter().filter(|(_, by)| *by == who).map(|(run, _)| *run).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use muster_shared::ids::{Attempt, Generation, Role, Seq};
    use muster_shared::run::{AgentKey, Started};
    use muster_shared::time::Millis;
    use uuid::Uuid;

    use super::*;

    fn started(run: RunId, pid: u32, at: u64) -> Entry {
        let started =
            Started { attempt: Attempt(1), ack: String::new(), pid, host: String::new(), after_step: 0 };
        let key = AgentKey {
            role: Role::Worker,
            agent: "worker-a".parse().unwrap(),
            task: TaskId::Write,
            generation: Generation(1),
        };
        let event = RecordEvent::Agent(key, AgentEvent::Started(started));
        Entry { seq: Seq(at), at: Millis(at), run, event }
    }

    #[test]
    fn a_task_is_in_the_hands_of_whoever_started_it_last() {
        let run = RunId::from_uuid(Uuid::from_u128(1));
        let mut hands = Hands::default();
        assert_eq!(hands.note(&started(run, 7, 10)), Change::Started(run, TaskId::Write, 7));
        assert_eq!(hands.of(7, 10), [], "only just begun");
        assert_eq!(hands.of(7, 11), [(run, TaskId::Write)]);
        hands.note(&started(run, 8, 20));
        assert_eq!(hands.of(7, 100), []);
        assert_eq!(hands.of(8, 100), [(run, TaskId::Write)]);
    }
}
