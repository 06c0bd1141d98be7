//! Subjects: the only place where they are built and parsed.
//!
//! The first tokens name the kind and the run or role, so that broker permissions can confine each role to its
//! own: an agent needs to publish `evt.*.<role>.<agent>.>`, `live.*.<role>.<agent>.>` and `hb.<role>.<agent>` only.

use muster_shared::ids::{AgentId, Generation, Queue, Role, RunId, TaskId};
use muster_shared::run::{AgentKey, EventKind};
use muster_shared::text::beginning;
use muster_shared::wire::gateway::GatewayVerb;

/// Every subject that Muster uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// `run.<run>.decided`: an orchestrator decided.
    Decided(RunId),
    /// `run.<run>.task.<queue>.<task>`: an offer in the record.
    Offer(RunId, Queue, TaskId),
    /// `task.<queue>.<run>.<task>`: the same offer in its queue.
    Task(Queue, RunId, TaskId),
    /// `evt.<run>.<role>.<agent>.<task>.<gen>.<kind>`: an agent reports.
    Event(RunId, AgentKey, EventKind),
    /// `cmd.<run>.<name>`: a durable command.
    Command(RunId, String),
    /// `hb.<role>.<agent>`: an agent lives. The role is text since orchestrators beat too.
    Heartbeat(String, AgentId),
    /// `live.<run>.<role>.<agent>.<task>`: what happens right now.
    Live(RunId, Role, AgentId, TaskId),
    /// `watch.all`, `watch.<run>`: somebody listens to what happens right now.
    Watch(Option<RunId>),
    /// `watch.who`: whoever listens is asked to say so.
    WhoWatches,
    /// `ctl.all`: to everybody.
    ControlAll,
    /// `ctl.role.<role>`: to all of a role.
    ControlRole(String),
    /// `ctl.agent.<agent>`: to one.
    ControlAgent(AgentId),
    /// `cfp.<role>.<run>.<task>`: agents are asked for bids.
    Call(Role, RunId, TaskId),
    /// `bid.<role>.<agent>.<run>.<task>`: an agent bids for a task.
    Bid(Role, AgentId, RunId, TaskId),
    /// `ask.<request>`: something is asked of the fleet, and answered.
    Ask(String),
    /// `agent.<role>.<verb>`: a program asks a task gateway.
    Gateway(Role, GatewayVerb),
    /// `queue.<role>.<agent>`: an agent asks an orchestrator for its queues.
    Queues(Role, AgentId),
    /// `dlq.<writer>.<subject>`: a process could not handle a message of this subject.
    Dead(AgentId, String),
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Decided(run) => write!(f, "run.{run}.decided"),
            Self::Offer(run, queue, task) => write!(f, "run.{run}.task.{queue}.{task}"),
            Self::Task(queue, run, task) => write!(f, "task.{queue}.{run}.{task}"),
            Self::Event(run, key, kind) => {
                let AgentKey { role, agent, task, generation } = key;
                write!(f, "evt.{run}.{role}.{agent}.{task}.{generation}.{kind}")
            }
            Self::Command(run, name) => write!(f, "cmd.{run}.{name}"),
            Self::Heartbeat(role, agent) => write!(f, "hb.{role}.{agent}"),
            Self::Live(run, role, agent, task) => write!(f, "live.{run}.{role}.{agent}.{task}"),
            Self::Watch(None) => f.write_str("watch.all"),
            Self::Watch(Some(run)) => write!(f, "watch.{run}"),
            Self::WhoWatches => f.write_str("watch.who"),
            Self::ControlAll => f.write_str("ctl.all"),
            Self::ControlRole(role) => write!(f, "ctl.role.{role}"),
            Self::ControlAgent(agent) => write!(f, "ctl.agent.{agent}"),
            Self::Call(role, run, task) => write!(f, "cfp.{role}.{run}.{task}"),
            Self::Bid(role, agent, run, task) => write!(f, "bid.{role}.{agent}.{run}.{task}"),
            Self::Ask(name) => write!(f, "ask.{name}"),
            Self::Gateway(role, verb) => write!(f, "agent.{role}.{verb}"),
            Self::Queues(role, agent) => write!(f, "queue.{role}.{agent}"),
            Self::Dead(writer, subject) => write!(f, "dlq.{writer}.{subject}"),
        }
    }
}

impl Subject {
    /// Reads a subject.
    ///
    /// # Errors
    /// Says which part is not what it should be.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix("dlq.") {
            let (writer, subject) = rest.split_once('.').ok_or("a dead letter has a writer and a subject")?;
            return Ok(Self::Dead(read(writer)?, subject.to_owned()));
        }
        let text = crate::partition::plain(text);
        let tokens: Vec<&str> = text.split('.').collect();
        match tokens.as_slice() {
            ["run", run, "decided"] => Ok(Self::Decided(read(run)?)),
            ["run", run, "task", queue, task] => Ok(Self::Offer(read(run)?, read(queue)?, read(task)?)),
            ["task", queue, run, task] => Ok(Self::Task(read(queue)?, read(run)?, read(task)?)),
            ["evt", run, role, agent, task, generation, kind] => {
                let (role, agent, task) = (read(role)?, read(agent)?, read(task)?);
                let key = AgentKey { role, agent, task, generation: read(generation)? };
                Ok(Self::Event(read(run)?, key, read(kind)?))
            }
            ["cmd", run, name] => Ok(Self::Command(read(run)?, (*name).to_owned())),
            ["hb", role, agent] => Ok(Self::Heartbeat((*role).to_owned(), read(agent)?)),
            ["live", run, role, agent, task] => {
                Ok(Self::Live(read(run)?, read(role)?, read(agent)?, read(task)?))
            }
            ["watch", "all"] => Ok(Self::Watch(None)),
            ["watch", "who"] => Ok(Self::WhoWatches),
            ["watch", run] => Ok(Self::Watch(Some(read(run)?))),
            ["ctl", "all"] => Ok(Self::ControlAll),
            ["ctl", "role", role] => Ok(Self::ControlRole((*role).to_owned())),
            ["ctl", "agent", agent] => Ok(Self::ControlAgent(read(agent)?)),
            ["cfp", role, run, task] => Ok(Self::Call(read(role)?, read(run)?, read(task)?)),
            ["bid", role, agent, run, task] => {
                Ok(Self::Bid(read(role)?, read(agent)?, read(run)?, read(task)?))
            }
            ["ask", name] => Ok(Self::Ask((*name).to_owned())),
            ["agent", role, verb] => Ok(Self::Gateway(read(role)?, read(verb)?)),
            ["queue", role, agent] => Ok(Self::Queues(read(role)?, read(agent)?)),
            _ => Err(format!("{:?} is not a subject of Muster", text.chars().take(120).collect::<String>())),
        }
    }

    /// The run that the subject belongs to.
    #[must_use]
    pub const fn run(&self) -> Option<RunId> {
        match self {
            Self::Decided(run)
            | Self::Offer(run, ..)
            | Self::Task(_, run, _)
            | Self::Event(run, ..)
            | Self::Command(run, _)
            | Self::Live(run, ..)
            | Self::Call(_, run, _)
            | Self::Bid(_, _, run, _) => Some(*run),
            Self::Watch(run) => *run,
            Self::Heartbeat(..)
            | Self::WhoWatches
            | Self::ControlAll
            | Self::ControlRole(_)
            | Self::ControlAgent(_)
            | Self::Ask(_)
            | Self::Gateway(..)
            | Self::Queues(..)
            | Self::Dead(..) => None,
        }
    }
}

/// What another gateway is asked that has a task at hand: `gateway.<gateway>.<role>.<verb>`.
const GATEWAY: &str = "gateway";
/// Where gateways tell each other which of them has a task at hand.
pub(crate) const GATEWAY_MOVED: &str = "gateway.moved";

/// The requests of programs, for any gateway.
pub(crate) const fn gateway_requests() -> &'static str {
    "agent.*.*"
}

/// How the subjects begin that are for one gateway.
pub(crate) fn gateway_own(gateway: &AgentId) -> String {
    format!("{GATEWAY}.{gateway}")
}

/// Where a guard is asked: `guard.<name>`.
pub(crate) fn guard_requests(name: &str) -> String {
    format!("guard.{name}")
}

/// Where agents that come ask which tool servers are there.
pub(crate) const TOOL_WHO: &str = "tool.who";

/// A subject of a tool server: `tool.<server>.<rest>`, see [`muster_shared::wire::tool_server`].
pub(crate) fn tool_subject(server: &str, rest: &str) -> String {
    format!("tool.{server}.{rest}")
}

/// Where whoever holds an invitation asks to join: `join.<invitation>`; `*` for all of them.
pub(crate) fn join_requests(invitation: &str) -> String {
    format!("join.{invitation}")
}

/// Where a machine that joined asks for credentials for its agents: `host.<name>.credentials`; `*` for all of them.
pub(crate) fn host_requests(host: &str) -> String {
    format!("host.{host}.credentials")
}

impl Subject {
    /// Role and verb of a request to a gateway, each of them or what is wrong with it; nothing when it is none.
    pub(crate) fn parse_gateway(text: &str) -> Option<(Result<Role, String>, Result<GatewayVerb, String>)> {
        let tokens: Vec<&str> = text.split('.').collect();
        match tokens.as_slice() {
            ["agent", role, verb] | [GATEWAY, _, role, verb] => Some((read(role), read(verb))),
            _ => None,
        }
    }
}

fn read<T: std::str::FromStr>(token: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    // It may quote a token as long as a message.
    token.parse().map_err(|error: T::Err| beginning(&error.to_string(), 400))
}

/// What an orchestrator's writes to a run are fenced by.
#[must_use]
pub fn run_fence(run: RunId) -> String {
    format!("run.{run}.>")
}

/// What every agent's writes about one generation of a task are fenced by: byte-identical for all of them,
/// since only identical filters exclude each other.
#[must_use]
pub fn task_fence(run: RunId, task: &TaskId, generation: Generation) -> String {
    format!("evt.{run}.*.*.{task}.{generation}.>")
}

/// The filter of a queue in the work stream.
#[must_use]
pub fn queue_filter(queue: &Queue) -> String {
    format!("task.{queue}.>")
}

/// The entries of one run in all queues.
pub(crate) fn offers_of(run: RunId) -> String {
    format!("task.*.{run}.*")
}

/// The subjects that concern one run, or any, for whoever watches.
#[must_use]
pub fn watched(run: Option<RunId>) -> Vec<String> {
    match run {
        Some(run) => ["run", "evt", "cmd", "live", "bb"].map(|kind| format!("{kind}.{run}.>")).to_vec(),
        None => ["run", "evt", "cmd", "hb", "live", "ctl", "bb", "ask", "err", "dlq"]
            .map(|kind| format!("{kind}.>"))
            .to_vec(),
    }
}

/// Whether a subject matches a filter with the wildcards `*` (one token) and `>` (one or more at the end).
#[must_use]
pub fn matches(filter: &str, subject: &str) -> bool {
    let (mut wanted, mut given) = (filter.split('.'), subject.split('.'));
    loop {
        match (wanted.next(), given.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(want), Some(have)) if want == have => {}
            (Some(_), Some(_) | None) | (None, Some(_)) => return false,
        }
    }
}

/// Whether a name can be one token of a subject and a key of a bucket.
#[must_use]
pub fn is_token(name: &str) -> bool {
    let good = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    good && !name.is_empty() && name.len() <= 128
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "0190a1b2c3d4700080000000000000aa";

    #[test]
    fn every_subject_reads_as_written() {
        let subjects = [
            "run.RUN.decided",
            "run.RUN.task.worker.1-2-3",
            "run.RUN.task.@worker-00000001.plan",
            "task.researcher.RUN.reflect-1-2",
            "evt.RUN.worker.worker-00000001.1-2~a.3.outcome",
            "cmd.RUN.submit",
            "hb.orchestrator.orchestrator-00000001",
            "live.RUN.writer.writer-00000001.write",
            "watch.all",
            "watch.RUN",
            "watch.who",
            "ctl.all",
            "ctl.role.worker",
            "ctl.agent.worker-00000001",
            "ask.submit",
            "agent.word_counter.take",
            "queue.worker.worker-00000001",
            "dlq.worker-00000001.evt.anything.at.all",
        ];
        for subject in subjects.map(|subject| subject.replace("RUN", RUN)) {
            assert_eq!(Subject::parse(&subject).unwrap().to_string(), subject);
        }
    }

    #[test]
    fn foreign_subjects_are_refused() {
        let subjects = [
            "",
            ".",
            "run",
            "run.x.decided",
            "run.RUN.decided.more",
            "run.RUN.task.worker.0",
            "evt.RUN.worker.worker-1.1.1.nonsense",
            "evt.RUN.Worker.worker-1.1.1.step",
            "orders.created",
            "dlq.orders",
        ];
        for subject in subjects.map(|subject| subject.replace("RUN", RUN)) {
            assert!(Subject::parse(&subject).is_err(), "{subject}");
        }
    }

    #[test]
    fn wildcards_match_as_the_broker_does() {
        let table = [
            ("a.b", "a.b", true),
            ("a.*", "a.b", true),
            ("a.*", "a.b.c", false),
            ("a.>", "a", false),
            ("a.>", "a.b.c", true),
            (">", "a", true),
            ("a.*.c", "a.b.d", false),
            ("a.b.c", "a.b", false),
        ];
        for (filter, subject, expected) in table {
            assert_eq!(matches(filter, subject), expected, "{filter} {subject}");
        }
    }

    #[test]
    fn the_fence_covers_what_it_guards() {
        let run: RunId = RUN.parse().unwrap();
        let key = AgentKey {
            role: Role::Worker,
            agent: "worker-1".parse().unwrap(),
            task: "1-2".parse().unwrap(),
            generation: Generation(2),
        };
        let fence = task_fence(run, &key.task, key.generation);
        for kind in EventKind::ALL {
            assert!(matches(&fence, &Subject::Event(run, key.clone(), kind).to_string()));
        }
        let other = AgentKey { generation: Generation(3), ..key };
        assert!(!matches(&fence, &Subject::Event(run, other, EventKind::Step).to_string()));
    }
}
