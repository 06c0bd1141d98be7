//! What each role may publish and subscribe to: the one table from which credentials, the documents and the tests of it are
//! made.
//!
//! The broker carries it out. What is not listed is refused; `docs/rights.md` shows it for people.

use std::collections::BTreeSet;

use muster_shared::ids::{AgentId, Queue, Role};
use muster_shared::wire::Profile;

use super::holder::Holder;
use crate::partition::Partitions;
use crate::subject::{TOOL_WHO, host_requests, join_requests, tool_subject};
use crate::topology::{
    ADVISORIES, AGENTS, ALLOWANCE, ALLOWANCE_SHOWN, ANSWERS, ASKED, COMMANDS, DEAD, FILES, FILES_SHOWN, KEPT,
    LEASE, LESSONS, OBJECTS, OBJECTS_STREAM, TASKS, TRACK_RECORD, TRIALS,
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
    /// Most bytes of a message that it may send. Absent: the limit of the server.
    pub max_payload: Option<u32>,
}

impl Rights {
    /// These and others, each subject once. Neither may be those of somebody who may do all.
    pub(super) fn and(mut self, others: Self) -> Self {
        let Self { publish, never_publish, subscribe, never_subscribe, answers, max_payload } = others;
        let add = |to: &mut Vec<String>, more: Vec<String>| {
            for subject in more {
                if !to.contains(&subject) {
                    to.push(subject);
                }
            }
        };
        add(&mut self.publish, publish);
        add(&mut self.never_publish, never_publish);
        add(&mut self.subscribe, subscribe);
        add(&mut self.never_subscribe, never_subscribe);
        self.answers |= answers;
        self.max_payload = self.max_payload.or(max_payload);
        self
    }

    /// With each subject as `renamed` has it.
    pub(super) fn renamed(self, renamed: impl Fn(String) -> String) -> Self {
        let all = |subjects: Vec<String>| subjects.into_iter().map(&renamed).collect();
        Self {
            publish: all(self.publish),
            never_publish: all(self.never_publish),
            subscribe: all(self.subscribe),
            never_subscribe: all(self.never_subscribe),
            answers: self.answers,
            max_payload: self.max_payload,
        }
    }
}

impl Holder {
    /// What it may do on a bus whose record is in these parts.
    #[must_use]
    pub fn rights(&self, parts: Partitions) -> Rights {
        match self {
            Self::Operator { .. } => Rights::default(),
            Self::Person { name } => person(name, parts),
            Self::Observer { name } => observer(name, parts),
            Self::Orchestrator { id } => orchestrator(id, parts),
            Self::Agent { role, id } => agent(role, id, parts),
            Self::Program { role, id } => program(role, id),
            Self::Guard { guard, id } => self::guard(guard, id),
            Self::ToolServer { server, id } => tool_server(server, id),
            Self::Host { name } => asking(host_requests(name.as_str()), name),
            Self::Guest { name } => asking(join_requests(name.as_str()), name),
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

/// Most bytes of a request that only asks.
const SMALL: u32 = 64 * 1024;

/// Consumers that one holder may have of one stream.
pub(crate) const CONSUMERS: usize = 8;

/// Names of the consumers that a holder may have of each stream. The names are fixed: a server limits the consumers of a
/// stream, but not those of one user, so free names would let one reader use up the limit for all.
pub(crate) fn consumer_names(holder: &AgentId) -> impl Iterator<Item = String> {
    (1..=CONSUMERS).map(move |number| format!("{holder}-{number}"))
}

/// The holder of a consumer, by its name: the part before the last hyphen.
pub(crate) fn consumer_holder(consumer: &str) -> &str {
    consumer.rsplit_once('-').map_or(consumer, |(holder, _)| holder)
}

/// Whether no holder of credentials is left that a consumer may belong to. Names with a unique suffix belong to processes
/// that may create all consumers.
pub(crate) fn is_abandoned(consumer: &str, holders: &BTreeSet<String>) -> bool {
    let is_unique = consumer.rsplit_once('-').is_some_and(|(_, suffix)| suffix.len() == 32);
    !is_unique && !holders.contains(consumer_holder(consumer))
}

/// Reading a stream: by the holder's own consumers, and message by message.
fn reading(stream: &'static str, holder: &AgentId) -> impl Iterator<Item = String> {
    let messages = ["STREAM.MSG.GET", "DIRECT.GET"].map(|verb| format!("$JS.API.{verb}.{stream}"));
    let consumers = consumer_names(holder).flat_map(move |name| {
        let verbs = ["CREATE", "DELETE", "INFO", "MSG.NEXT"];
        let own = verbs.map(|verb| format!("$JS.API.CONSUMER.{verb}.{stream}.{name}"));
        // The filter follows the name; a push consumer acknowledges its flow control.
        own.into_iter().chain([
            format!("$JS.API.CONSUMER.CREATE.{stream}.{name}.>"),
            format!("$JS.FC.{stream}.{name}.>"),
        ])
    });
    messages.into_iter().chain([format!("$JS.API.DIRECT.GET.{stream}.>")]).chain(consumers)
}

/// Denies queue groups on subjects: a member of a group takes messages away from the other members. `subject group` is the
/// server's notation; templates are not replaced in it.
fn no_queue_groups(subjects: &[&str]) -> Vec<String> {
    subjects.iter().map(|subject| format!("{subject} >")).collect()
}

/// Streams with what runs know; not the queues, commands, dead letters and leases.
pub(crate) fn of_runs(parts: Partitions) -> impl Iterator<Item = &'static str> {
    let shared = [AGENTS, FILES, KEPT, ALLOWANCE, LESSONS, TRACK_RECORD, TRIALS, OBJECTS_STREAM];
    parts.parts().map(crate::partition::Part::stream).chain(shared)
}

fn looks() -> impl Iterator<Item = String> {
    LOOKS.into_iter().map(str::to_owned)
}

fn agent(role: &Role, id: &AgentId, parts: Partitions) -> Rights {
    let queues = [Queue::Role(role.clone()), Queue::Agent(id.clone())];
    let taking = queues.iter().flat_map(|queue| {
        [
            format!("$JS.API.CONSUMER.INFO.{TASKS}.{queue}"),
            format!("$JS.API.CONSUMER.MSG.NEXT.{TASKS}.{queue}"),
            format!("$JS.ACK.{TASKS}.{queue}.>"),
        ]
    });
    let own = [
        format!("live.*.{role}.{id}.*"),
        format!("hb.{role}.{id}"),
        format!("bid.{role}.{id}.>"),
        format!("queue.{role}.{id}"),
        "watch.who".to_owned(),
        "guard.*".to_owned(),
        TOOL_WHO.to_owned(),
        tool_subject("*", "specs.*"),
        // The caller stands in the subject: no agent calls, waits, answers or cancels in another's name.
        tool_subject("*", &format!("call.{role}.{id}")),
        tool_subject("*", &format!("wait.*.{role}.{id}")),
        tool_subject("*", &format!("answer.*.{role}.{id}")),
        tool_subject("*", &format!("cancel.{role}.{id}")),
        // So it borrows as well; it lends under the name of its role alone.
        tool_subject("*", &format!("lease.*.{role}.{id}")),
        tool_subject("*", &format!("use.*.{role}.{id}")),
        tool_subject("*", &format!("return.*.{role}.{id}")),
        tool_subject(&lends_as(role), "here"),
        // A dead letter is evidence of its writer: no process writes one in the name of another.
        format!("dlq.{id}.>"),
        format!("$KV.AGENTS.{id}"),
        "$KV.FILES.*".to_owned(),
        "$KV.ALLOWANCE.>".to_owned(),
        // What one role was answered serves no other: a captured agent must not think for all.
        format!("$KV.ANSWERS.{role}.*"),
        format!("$JS.API.STREAM.MSG.GET.{ANSWERS}"),
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
            .chain(of_runs(parts).flat_map(|stream| reading(stream, id)))
            .collect(),
        subscribe: [
            own_inbox(id),
            "ctl.all".to_owned(),
            format!("ctl.role.{role}"),
            format!("ctl.agent.{id}"),
            format!("cfp.{role}.*.*"),
            "watch.>".to_owned(),
            format!("{FILES_SHOWN}>"),
            format!("{ALLOWANCE_SHOWN}>"),
            tool_subject("*", "here"),
        ]
        .into_iter()
        .chain(lending(role, id))
        .collect(),
        never_subscribe: no_queue_groups(&[
            "_INBOX.>",
            "ctl.>",
            "cfp.>",
            "watch.>",
            "files.>",
            "allowance.>",
            "tool.*.here",
        ]),
        answers: true,
        ..Rights::default()
    }
}

/// Under which name agents of a role lend.
fn lends_as(role: &Role) -> String {
    muster_shared::wire::lending::lender_name(role)
}

/// What an agent hears that lends tools: what its own process is asked.
fn lending(role: &Role, id: &AgentId) -> impl Iterator<Item = String> {
    let server = lends_as(role);
    let asked = ["lease", "use", "wait", "return"].map(|what| format!("{what}.{id}.*.*"));
    let own = ["specs", "leases", "revoke"].map(|what| format!("{what}.{id}"));
    let all = asked.into_iter().chain(own).chain(["cancel.*.*".to_owned()]);
    all.map(move |rest| tool_subject(&server, &rest)).chain([TOOL_WHO.to_owned()])
}

/// A program asks a gateway, and knows of nothing else.
fn program(role: &Role, id: &AgentId) -> Rights {
    let own = own_inbox(id);
    Rights {
        publish: vec![format!("agent.{role}.*"), own.clone()],
        subscribe: vec![own],
        never_subscribe: no_queue_groups(&[">"]),
        ..Rights::default()
    }
}

/// Rights of a process that registers, receives control messages, and answers requests.
fn service(
    role: &str,
    id: &AgentId,
    publish: impl IntoIterator<Item = String>,
    subscribe: impl IntoIterator<Item = String>,
) -> Rights {
    let own = [format!("hb.{role}.{id}"), format!("$KV.AGENTS.{id}"), format!("dlq.{id}.>")];
    let orders = ["ctl.all".to_owned(), format!("ctl.role.{role}"), format!("ctl.agent.{id}")];
    Rights {
        publish: looks()
            .chain(reading(AGENTS, id))
            .chain(own)
            .chain(publish)
            .chain([own_inbox(id)])
            .collect(),
        subscribe: [own_inbox(id)].into_iter().chain(subscribe).chain(orders).collect(),
        never_subscribe: no_queue_groups(&["_INBOX.>", "ctl.>"]),
        answers: true,
        ..Rights::default()
    }
}

/// Rights of a guard.
fn guard(guard: &str, id: &AgentId) -> Rights {
    service(&format!("guard-{guard}"), id, None, [format!("guard.{guard}")])
}

/// Rights of a tool server: it announces its tools and answers each request once. It sends nothing else.
fn tool_server(server: &str, id: &AgentId) -> Rights {
    let asked = [
        TOOL_WHO.to_owned(),
        tool_subject(server, "call.*.*"),
        tool_subject(server, "cancel.*.*"),
        tool_subject(server, &format!("wait.{id}.*.*")),
        tool_subject(server, &format!("answer.{id}.*.*")),
        tool_subject(server, &format!("specs.{id}")),
    ];
    service(&Profile::role_of_tool_server(server), id, [tool_subject(server, "here")], asked)
}

/// An orchestrator decides for everybody, and reports for the programs whose gateway it is. It mends what is missing of the
/// bus; it takes nothing of it away, nothing out of the record, and of the object store what nobody refers to any more.
fn orchestrator(id: &AgentId, parts: Partitions) -> Rights {
    let never = [
        "$JS.API.STREAM.DELETE.>",
        "$JS.API.STREAM.RESTORE.>",
        "$JS.API.STREAM.SNAPSHOT.>",
        "$JS.API.STREAM.MSG.DELETE.>",
        "$JS.API.ACCOUNT.>",
        // Who is let in from elsewhere is not its affair.
        "join.>",
        "host.>",
        // Nor what is kept of runs, and for how long.
        "$KV.KEPT.>",
    ];
    let purge = |stream: &str| format!("$JS.API.STREAM.PURGE.{stream}");
    let kept = [AGENTS, FILES, KEPT, ALLOWANCE, LESSONS, TRACK_RECORD, TRIALS]
        .into_iter()
        .map(purge)
        .chain(parts.parts().map(|part| purge(part.stream())))
        .chain([COMMANDS, DEAD, LEASE, ASKED, ADVISORIES].map(purge));
    Rights {
        // With the right to answer, whoever may publish nothing by name may publish nothing.
        publish: vec![">".to_owned()],
        never_publish: never.map(str::to_owned).into_iter().chain(kept).collect(),
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
            format!("{FILES_SHOWN}>"),
            format!("{ALLOWANCE_SHOWN}>"),
            "agent.>".to_owned(),
            "gateway.>".to_owned(),
        ],
        never_subscribe: no_queue_groups(&[
            "_INBOX.>",
            "run.>",
            "evt.>",
            "ctl.>",
            "bid.>",
            "watch.>",
            "hb.>",
            "files.>",
            "allowance.>",
        ]),
        answers: true,
        ..Rights::default()
    }
}

fn observer(name: &AgentId, parts: Partitions) -> Rights {
    // Not the queue of commands: whoever reads it could take orders out of it. He hears them as they are given.
    let streams = of_runs(parts).chain([DEAD]);
    Rights {
        publish: looks()
            .chain(streams.flat_map(|stream| reading(stream, name)))
            // Whoever listens to what happens right now says so.
            .chain(["watch.*".to_owned(), own_inbox(name)])
            // Who has borrowed what.
            .chain([tool_subject("*", "leases.*")])
            .collect(),
        subscribe: [own_inbox(name)]
            .into_iter()
            .chain(
                [
                    "run.>", "evt.>", "cmd.>", "hb.>", "live.>", "ctl.>", "ask.>", "dlq.>", "cfp.>", "bid.>",
                    "watch.>", "task.>", "guard.>",
                ]
                .map(str::to_owned),
            )
            .collect(),
        max_payload: Some(SMALL),
        never_subscribe: no_queue_groups(&[">"]),
        ..Rights::default()
    }
}

/// Whoever comes from elsewhere asks the one thing that its kind asks, and hears the answer.
fn asking(subject: String, name: &AgentId) -> Rights {
    Rights {
        publish: vec![subject],
        subscribe: vec![own_inbox(name)],
        never_subscribe: no_queue_groups(&[">"]),
        max_payload: Some(SMALL),
        ..Rights::default()
    }
}

/// A person looks on as an observer does, gives orders, which are signed, and gives files along with goals.
fn person(name: &AgentId, parts: Partitions) -> Rights {
    let says = [
        "cmd.*.*".to_owned(),
        "ask.*".to_owned(),
        "$KV.FILES.*".to_owned(),
        format!("$O.{OBJECTS}.C.*"),
        format!("$O.{OBJECTS}.M.*"),
    ];
    let reader = observer(name, parts);
    let publish = reader.publish.into_iter().chain(says).collect();
    // The files that go with a goal, and how models of the fleet fare.
    let shown = [FILES_SHOWN, ALLOWANCE_SHOWN].map(|of| format!("{of}>"));
    let subscribe = reader.subscribe.into_iter().chain(shown).collect();
    // A goal and its files are larger than the requests of an observer.
    Rights { publish, subscribe, never_subscribe: reader.never_subscribe, ..Rights::default() }
}

/// The user of the system account may listen to who comes and goes, ask who is there and how servers are, and nothing else.
fn presence(id: &AgentId) -> Rights {
    let own = own_inbox(id);
    Rights {
        publish: [own.as_str(), crate::presence::ROLL_REQUEST, crate::presence::HEALTH_REQUEST]
            .map(str::to_owned)
            .to_vec(),
        subscribe: crate::presence::SUBJECTS.into_iter().map(str::to_owned).chain([own]).collect(),
        ..Rights::default()
    }
}
