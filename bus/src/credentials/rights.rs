//! What each role may publish and subscribe to: the one table from which credentials, the documents and the tests of it are
//! made.
//!
//! The broker carries it out. What is not listed is refused; `docs/rights.md` shows it for people.

use muster_shared::ids::{AgentId, Queue, Role};

use crate::partition::Partitions;
use crate::topology::{
    AGENTS, ALLOWANCE, ALLOWANCE_SHOWN, CONTEXT, FILES, FILES_SHOWN, LESSONS, OBJECTS, OBJECTS_STREAM, TASKS,
    TRACK_RECORD,
};

/// Subjects that a process may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// What it may publish to; everything when empty.
    pub publish: Vec<String>,
    /// Of these, what it may not.
    pub never_publish: Vec<String>,
    /// What it may listen to; everything when empty.
    pub subscribe: Vec<String>,
    /// Of these, what it may not.
    pub never_subscribe: Vec<String>,
    /// Whether it may answer a request where its asker waits for the answer.
    pub answers: bool,
}

/// Whom credentials are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// Whoever runs the fleet: lays out the bus, asks, steers, reads and removes.
    Operator {
        /// What the person or program is called.
        name: AgentId,
    },
    /// Whoever watches and changes nothing.
    Observer {
        /// What the person or program is called.
        name: AgentId,
    },
    /// An orchestrator.
    Orchestrator {
        /// Its id.
        id: AgentId,
    },
    /// An agent that works by itself on queues and record.
    Agent {
        /// Its role.
        role: Role,
        /// Its id.
        id: AgentId,
    },
    /// Whoever is told by the server who comes and goes.
    Presence {
        /// The orchestrator that it is told.
        id: AgentId,
    },
}

impl Holder {
    /// What the holder is called on the bus.
    #[must_use]
    pub const fn name(&self) -> &AgentId {
        match self {
            Self::Operator { name } | Self::Observer { name } => name,
            Self::Orchestrator { id } | Self::Agent { id, .. } | Self::Presence { id } => id,
        }
    }

    /// What kind of holder it is, as it stands in credentials and lists.
    #[must_use]
    pub fn kind(&self) -> String {
        match self {
            Self::Operator { .. } => "operator".to_owned(),
            Self::Observer { .. } => "observer".to_owned(),
            Self::Orchestrator { .. } => "orchestrator".to_owned(),
            Self::Agent { role, .. } => format!("agent:{role}"),
            Self::Presence { .. } => "presence".to_owned(),
        }
    }

    /// What it may do on a bus whose record is in these parts.
    #[must_use]
    pub fn rights(&self, parts: Partitions) -> Rights {
        match self {
            Self::Operator { .. } => Rights::default(),
            Self::Observer { name } => observer(name, parts),
            Self::Orchestrator { id } => orchestrator(id),
            Self::Agent { role, id } => agent(role, id, parts),
            Self::Presence { id } => presence(id),
        }
    }
}

/// Where answers to this process go: to itself alone.
#[must_use]
pub fn inbox(name: &AgentId) -> String {
    format!("{}{name}", crate::backend::INBOX)
}

fn own_inbox(name: &AgentId) -> String {
    format!("{}.>", inbox(name))
}

/// Questions to the server that change nothing.
const LOOKS: [&str; 4] =
    ["$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.STREAM.INFO.*"];

/// Reading a stream: by readers that the server forgets, and message by message.
fn reading(stream: &str) -> impl Iterator<Item = String> + '_ {
    let verbs = [
        "STREAM.MSG.GET.STREAM",
        "DIRECT.GET.STREAM",
        "DIRECT.GET.STREAM.>",
        "CONSUMER.CREATE.STREAM.>",
        "CONSUMER.DELETE.STREAM.*",
        "CONSUMER.INFO.STREAM.*",
        "CONSUMER.MSG.NEXT.STREAM.*",
    ];
    verbs.into_iter().map(move |verb| format!("$JS.API.{}", verb.replace("STREAM.STREAM", "\0").replace("STREAM", stream).replace('\0', stream)))
}

/// Streams with what runs know; not the queues, commands, dead letters and leases.
fn of_runs(parts: Partitions) -> impl Iterator<Item = &'static str> {
    let shared = [AGENTS, CONTEXT, FILES, ALLOWANCE, LESSONS, TRACK_RECORD, OBJECTS_STREAM];
    parts.parts().map(crate::partition::Part::stream).chain(shared)
}

fn looks() -> impl Iterator<Item = String> {
    LOOKS.into_iter().map(str::to_owned)
}

fn agent(role: &Role, id: &AgentId, parts: Partitions) -> Rights {
    let queues = [Queue::Role(role.clone()), Queue::Agent(id.clone())];
    let taking = queues.iter().flat_map(|queue| {
        [format!("$JS.API.CONSUMER.MSG.NEXT.{TASKS}.{queue}"), format!("$JS.ACK.{TASKS}.{queue}.>")]
    });
    let own = [
        format!("live.*.{role}.{id}.*"),
        format!("hb.{role}.{id}"),
        format!("bid.{role}.{id}.>"),
        format!("queue.{role}.{id}"),
        "watch.who".to_owned(),
        "dlq.>".to_owned(),
        "err.*".to_owned(),
        format!("$KV.AGENTS.{id}"),
        "$KV.FILES.*".to_owned(),
        "$KV.ALLOWANCE.>".to_owned(),
        format!("$O.{OBJECTS}.C.*"),
        format!("$O.{OBJECTS}.M.*"),
        own_inbox(id),
    ];
    let record = parts.parts().map(|part| part.subject(format!("evt.*.{role}.{id}.>")));
    Rights {
        publish: own
            .into_iter()
            .chain(record)
            .chain(taking)
            .chain(looks())
            .chain(of_runs(parts).flat_map(reading))
            .collect(),
        subscribe: vec![
            own_inbox(id),
            "ctl.all".to_owned(),
            format!("ctl.role.{role}"),
            format!("ctl.agent.{id}"),
            format!("cfp.{role}.*.*"),
            format!("err.{id}"),
            "watch.>".to_owned(),
            format!("{FILES_SHOWN}>"),
            format!("{ALLOWANCE_SHOWN}>"),
            "bb.>".to_owned(),
        ],
        answers: true,
        ..Rights::default()
    }
}

/// An orchestrator decides for everybody; what it does not do is lay out the bus, or empty the record.
fn orchestrator(id: &AgentId) -> Rights {
    let never = [
        "$JS.API.STREAM.CREATE.>",
        "$JS.API.STREAM.UPDATE.>",
        "$JS.API.STREAM.DELETE.>",
        "$JS.API.STREAM.RESTORE.>",
        "$JS.API.STREAM.SNAPSHOT.>",
        "$JS.API.STREAM.MSG.DELETE.>",
        "$JS.API.ACCOUNT.>",
        // Of agents alone: it reports nothing in their name.
        "evt.>",
        "bid.>",
        "live.>",
    ];
    let purge = |stream: &str| format!("$JS.API.STREAM.PURGE.{stream}");
    let kept = [AGENTS, CONTEXT, FILES, ALLOWANCE, LESSONS, TRACK_RECORD, OBJECTS_STREAM]
        .into_iter()
        .map(purge)
        .chain(["RUNS", "COMMANDS", "DLQ", "KV_LEASE", "KV_ASKED", "ADVISORIES"].map(purge));
    Rights {
        never_publish: never.map(str::to_owned).into_iter().chain(kept).collect(),
        never_subscribe: Vec::new(),
        subscribe: vec![
            own_inbox(id),
            "run.>".to_owned(),
            "evt.>".to_owned(),
            "ask.>".to_owned(),
            "queue.>".to_owned(),
            "ctl.>".to_owned(),
            "bid.>".to_owned(),
            "watch.>".to_owned(),
            "hb.>".to_owned(),
            format!("err.{id}"),
            "bb.>".to_owned(),
            format!("{FILES_SHOWN}>"),
            format!("{ALLOWANCE_SHOWN}>"),
            "agent.>".to_owned(),
        ],
        answers: true,
        ..Rights::default()
    }
}

fn observer(name: &AgentId, parts: Partitions) -> Rights {
    let streams = of_runs(parts).chain(["COMMANDS", "DLQ"]);
    Rights {
        publish: looks()
            .chain(streams.flat_map(reading))
            // Whoever listens to what happens right now says so.
            .chain(["watch.*".to_owned(), own_inbox(name)])
            .collect(),
        subscribe: [own_inbox(name)]
            .into_iter()
            .chain(
                [
                    "run.>", "evt.>", "cmd.>", "hb.>", "live.>", "ctl.>", "bb.>", "ask.>", "err.>", "dlq.>",
                    "cfp.>", "bid.>", "watch.>", "task.>",
                ]
                .map(str::to_owned),
            )
            .collect(),
        ..Rights::default()
    }
}

/// The user of the system account may listen to who comes and goes, and ask who is there, and do nothing else.
fn presence(id: &AgentId) -> Rights {
    let own = own_inbox(id);
    Rights {
        publish: vec![own.clone(), crate::presence::ROLL_REQUEST.to_owned()],
        subscribe: crate::presence::SUBJECTS.into_iter().map(str::to_owned).chain([own]).collect(),
        ..Rights::default()
    }
}
