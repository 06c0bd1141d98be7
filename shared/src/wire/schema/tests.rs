//! Generates the published schemas from the types.

mod examples;
mod gateway;

use std::collections::BTreeMap;
use std::path::Path;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::flow::{Bid, CallForProposals, Outcome, Step, TaskOffered};
use crate::run::{Decided, Released, Started, ToolStarted};
use crate::wire::ask::{Accepted, Ask, Refused};
use crate::wire::codec::Encoding;
use crate::wire::envelope::{Envelope, MessageKind, StoredBody};
use crate::wire::gateway::GatewayVerb;
use crate::wire::lending::{
    LeaseName, LeaseReply, LeaseRequest, LentCall, LentReply, Revocation, ToolLeases,
};
use crate::wire::message::{Command, ControlMessage, Heartbeat, Live, Profile};
use crate::wire::tool_question::ToolAnswer;
use crate::wire::tool_server::{ToolCall, ToolReply, ToolServerNotice, ToolSpecs, ToolTicket};

/// Compares a schema with its published file; rewrites the file if `UPDATE_GOLDEN` is set.
fn publish(name: &str, made: &Value) {
    let made = written(&sorted(made), 0) + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/wire/schema").join(name);
    if std::fs::read_to_string(&path).is_ok_and(|kept| kept == made) {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_GOLDEN").is_some(),
        "{name} is out of date: run UPDATE_GOLDEN=1 cargo nextest run -p muster-shared --lib schema"
    );
    std::fs::write(path, made).unwrap();
}

/// JSON in few bytes that still has a line for each field of a type.
fn written(value: &Value, depth: usize) -> String {
    match value {
        Value::Object(fields) if depth < 4 && !fields.is_empty() => {
            let indent = "  ".repeat(depth);
            let line = |(name, field)| format!("{indent}  {}: {}", json!(name), written(field, depth + 1));
            let lines: Vec<String> = fields.iter().map(line).collect();
            format!("{{\n{}\n{indent}}}", lines.join(",\n"))
        }
        other => other.to_string(),
    }
}

/// The value with the fields of all objects in alphabetical order.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, Value> =
                fields.iter().map(|(name, field)| (name, sorted(field))).collect();
            json!(fields)
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[test]
fn json_schema_is_up_to_date() {
    publish("messages.json", &bundle());
}

#[test]
fn asyncapi_document_is_up_to_date() {
    publish("asyncapi.json", &asyncapi(env!("CARGO_PKG_VERSION")));
}

#[test]
fn gateway_schemas_are_up_to_date() {
    let requests: BTreeMap<GatewayVerb, Value> =
        GatewayVerb::ALL.into_iter().map(|verb| (verb, gateway::of_request(verb))).collect();
    publish("gateway.json", &json!(requests));
}

/// One JSON Schema (2020-12) of every message: that of the envelope, with all types among its definitions.
fn bundle() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let envelope = inline::<Envelope>(&mut generator);
    for &kind in MessageKind::ALL {
        reference_of(kind)(&mut generator);
    }
    gateway::define(&mut generator);
    of_tool_servers(&mut generator);
    with_definitions(envelope, &mut generator)
}

/// The AsyncAPI 3.0 document: which message travels on which subject, in MessagePack or JSON.
fn asyncapi(version: &str) -> Value {
    let mut generator = SchemaSettings::draft07()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let envelope = generator.subschema_for::<Envelope>();
    let mut messages = Map::new();
    for &kind in MessageKind::ALL {
        let content = reference_of(kind)(&mut generator);
        for encoding in [Encoding::MessagePack, Encoding::Json] {
            let mut message = json!({
                "name": name(kind),
                "contentType": encoding.content_type(),
                "headers": headers(kind, encoding),
                "payload": {
                    "allOf": [envelope.clone(), { "properties": { "body": {
                        "type": "object",
                        "properties": { "type": { "const": name(kind) }, "content": content.clone() },
                    } } }],
                },
            });
            let examples: Vec<Value> =
                examples::of(kind).into_iter().map(|payload| json!({ "payload": payload })).collect();
            if encoding == Encoding::Json && !examples.is_empty() {
                message["examples"] = Value::Array(examples);
            }
            messages.insert(message_id(kind, encoding), message);
        }
    }
    let mut channels: Map<String, Value> =
        CHANNELS.iter().map(|channel| (channel.id.to_owned(), channel.document())).collect();
    let mut operations: Map<String, Value> = CHANNELS.iter().flat_map(Channel::operations).collect();
    let document =
        gateway::Document { messages: &mut messages, channels: &mut channels, operations: &mut operations };
    gateway::document(&mut generator, document);
    let definitions = generator.take_definitions(true);
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Muster",
            "version": version,
            "description": "Every message is an envelope, in MessagePack or JSON by its Content-Type header. The record (`run.>` and `evt.>`) is written with compare-and-set on a subject filter: see each channel.",
        },
        "defaultContentType": Encoding::MessagePack.content_type(),
        "servers": { "bus": { "host": "localhost:4222", "protocol": "nats" } },
        "channels": channels,
        "operations": operations,
        "components": { "messages": messages, "schemas": definitions },
    })
}

/// The header of what is signed.
const SIGNED: (&str, &str) = (
    "Muster-Signature",
    "Who gives the order: <signature>.<JWT>, as docs/gateway.md says; in fleets with keys it has to be there",
);

/// The headers of a message. What the broker goes by is described with the kinds that need it.
fn headers(kind: MessageKind, encoding: Encoding) -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let mut properties = Map::from_iter([
        ("Content-Type".to_owned(), json!({ "const": encoding.content_type() })),
        ("traceparent".to_owned(), text("W3C trace context")),
        ("Muster-Type".to_owned(), text("The type of the body, for whoever does not open it")),
    ]);
    let mut required = Vec::new();
    let mut add = |name: &str, description: &str, is_required: bool| {
        properties.insert(name.to_owned(), text(description));
        if is_required {
            required.push(name.to_owned());
        }
    };
    match kind {
        MessageKind::Started
        | MessageKind::ToolStarted
        | MessageKind::Step
        | MessageKind::Released
        | MessageKind::Outcome => {
            let fence = "The filter evt.<run>.*.*.<task>.<gen>.>, byte for byte";
            add(
                "Nats-Expected-Last-Subject-Sequence",
                "The last sequence that its author saw there; 0 for none",
                true,
            );
            add("Nats-Expected-Last-Subject-Sequence-Subject", fence, true);
        }
        MessageKind::Profile => add("Nats-TTL", "How long the entry in AGENTS stays: 15s", true),
        MessageKind::Ask => add(SIGNED.0, SIGNED.1, false),
        MessageKind::Control => add(SIGNED.0, "The same by an orchestrator, for control", false),
        MessageKind::Command => {
            add(SIGNED.0, SIGNED.1, false);
            add("Nats-Msg-Id", "Names the command: sent twice within ten minutes, it counts once", false);
        }
        MessageKind::Decided
        | MessageKind::Offered
        | MessageKind::Heartbeat
        | MessageKind::Live
        | MessageKind::Call
        | MessageKind::Bid
        | MessageKind::Accepted
        | MessageKind::Error
        | MessageKind::Stored => {}
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

/// A subject and what travels on it.
struct Channel {
    id: &'static str,
    address: &'static str,
    description: &'static str,
    kinds: &'static [MessageKind],
    /// What the fleet does there, seen from outside: it sends, and some of it receives from others.
    fleet: &'static [ChannelAction],
}

#[derive(Clone, Copy)]
enum ChannelAction {
    Send,
    Receive,
}

const BOTH: &[ChannelAction] = &[ChannelAction::Send, ChannelAction::Receive];

const CHANNELS: [Channel; 18] = [
    Channel {
        id: "commands",
        address: "cmd.{run}.{command}",
        description: "Durable commands. Submit a goal on `cmd.<run>.submit`, with a run id that you made (UUID version 7); the answer is the run's record. Asking twice with the same id makes one run. What is asked of a run that goes on is a `request` with an `action`, and goes to `cmd.<run>.<type of the action>`: `cancel`, `pause`, `resume`, `skip`, `redo`, `edit`, `approve`, `reject`, `answer` or `set_context`. It may carry an `id`, which tells it from others like it (else the message's own does), and `by`, who asks (else the sender).",
        kinds: &[MessageKind::Command],
        fleet: &[ChannelAction::Receive],
    },
    Channel {
        id: "asks",
        address: "ask.{request}",
        description: "Requests that are answered (NATS request and reply; the reply subject begins with `_INBOX.`). `ask.submit` takes a goal: the answer is `accepted` with the run, or `error` with the reason, in the encoding of the request and with its `id` as `correlation`. Asked again with the same `id` of the asker, or the same `run`, it is the same run. Any orchestrator answers.",
        kinds: &[MessageKind::Ask],
        fleet: &[ChannelAction::Receive],
    },
    Channel {
        id: "answers",
        address: "_INBOX.{inbox}",
        description: "The answers to requests, on the subject that the asker chose for it. Between orchestrators, what became of an order (`control`).",
        kinds: &[MessageKind::Accepted, MessageKind::Error, MessageKind::Control],
        fleet: &[ChannelAction::Send],
    },
    Channel {
        id: "decisions",
        address: "run.{run}.decided",
        description: "The record: what orchestrators decided. Fenced by the filter `run.<run>.>`.",
        kinds: &[MessageKind::Decided, MessageKind::Stored],
        fleet: &[ChannelAction::Send],
    },
    Channel {
        id: "offers",
        address: "run.{run}.task.{queue}.{task}",
        description: "The record: offers of tasks. A decision with a single offer carries it inside and stands here; several are written in one batch with the decision before them.",
        kinds: &[MessageKind::Decided, MessageKind::Offered, MessageKind::Stored],
        fleet: &[ChannelAction::Send],
    },
    Channel {
        id: "queues",
        address: "task.{queue}.{run}.{task}",
        description: "The work queues: every offer of the record, by itself or inside its decision, taken by one agent and acknowledged when its outcome is recorded.",
        kinds: &[MessageKind::Decided, MessageKind::Offered, MessageKind::Stored],
        fleet: BOTH,
    },
    Channel {
        id: "events",
        address: "evt.{run}.{role}.{agent}.{task}.{gen}.{kind}",
        description: "The record: what agents report of the task they hold. Fenced by the filter `evt.<run>.*.*.<task>.<gen>.>`, byte for byte.",
        kinds: &[
            MessageKind::Started,
            MessageKind::ToolStarted,
            MessageKind::Step,
            MessageKind::Released,
            MessageKind::Outcome,
            MessageKind::Stored,
        ],
        fleet: BOTH,
    },
    Channel {
        id: "heartbeats",
        address: "hb.{role}.{agent}",
        description: "Each process says that it is alive and how busy it is.",
        kinds: &[MessageKind::Heartbeat, MessageKind::Profile],
        fleet: BOTH,
    },
    Channel {
        id: "live",
        address: "live.{run}.{role}.{agent}.{task}",
        description: "What happens right now, for whoever watches. May be lost. Where nobody says that he watches, nothing is said.",
        kinds: &[MessageKind::Live],
        fleet: &[ChannelAction::Send],
    },
    Channel {
        id: "watch",
        address: "watch.{run}",
        description: "Whoever listens to `live.<run>.>` says so when it begins, every 5 s, and when it is asked on `watch.who`; `watch.all` for all runs. The message is empty.",
        kinds: &[],
        fleet: BOTH,
    },
    Channel {
        id: "control_all",
        address: "ctl.all",
        description: "Interrupts every process.",
        kinds: &[MessageKind::Control],
        fleet: BOTH,
    },
    Channel {
        id: "control_role",
        address: "ctl.role.{role}",
        description: "Interrupts all processes of a role.",
        kinds: &[MessageKind::Control],
        fleet: BOTH,
    },
    Channel {
        id: "control_agent",
        address: "ctl.agent.{agent}",
        description: "Interrupts one process. An orchestrator hands a command on to the one that has the run, as a request (`owners`, `order`) that is answered on its reply subject.",
        kinds: &[MessageKind::Control],
        fleet: BOTH,
    },
    Channel {
        id: "calls",
        address: "cfp.{role}.{run}.{task}",
        description: "Agents of a role are asked what it takes them to do a task. A bid that comes within `window_ms` counts.",
        kinds: &[MessageKind::Call],
        fleet: BOTH,
    },
    Channel {
        id: "bids",
        address: "bid.{role}.{agent}.{run}.{task}",
        description: "An agent bids for a task: it promises to have it done in time, if it is awarded.",
        kinds: &[MessageKind::Bid],
        fleet: BOTH,
    },
    Channel {
        id: "registry",
        address: "$KV.AGENTS.{agent}",
        description: "The bucket AGENTS (stream KV_AGENTS): the profile of each agent, written anew every 5 s with `Nats-TTL: 15s`. Who is silent is forgotten.",
        kinds: &[MessageKind::Profile],
        fleet: BOTH,
    },
    Channel {
        id: "dead_letters",
        address: "dlq.{writer}.{origin}",
        description: "The stream DLQ: messages that a process could not handle, byte for byte, of any kind or none. Headers: `Muster-Dead-Reason`, `Muster-Dead-At` (UTC milliseconds), `Muster-Dead-Signature` (of the writer), `Muster-Dead-Object` (the object with the payload, if it is above 128 KiB).",
        kinds: &[],
        fleet: &[ChannelAction::Send],
    },
    Channel {
        id: "objects",
        address: "$O.MUSTER.M.{object}",
        description: "The object store MUSTER (stream OBJ_MUSTER), in the layout of NATS: documents, files of runs, snapshots, and bodies above 128 KiB, which messages name by `stored` with their SHA-256 (`hash`). The object is the body, `{\"type\": …, \"content\": …}`, in the encoding of the message that names it.",
        kinds: &[],
        fleet: BOTH,
    },
];

impl Channel {
    fn document(&self) -> Value {
        let encodings = [Encoding::MessagePack, Encoding::Json];
        let ids = self.kinds.iter().flat_map(|kind| encodings.map(|encoding| message_id(*kind, encoding)));
        let messages: Map<String, Value> =
            ids.map(|id| (id.clone(), json!({ "$ref": format!("#/components/messages/{id}") }))).collect();
        let parameters: Map<String, Value> = self
            .parameters()
            .map(|name| (name.to_owned(), json!({ "description": parameter(name) })))
            .collect();
        json!({
            "address": self.address,
            "description": self.description,
            "messages": messages,
            "parameters": parameters,
        })
    }

    fn operations(&self) -> Vec<(String, Value)> {
        let operation = |action: &ChannelAction| {
            let action = match action {
                ChannelAction::Send => "send",
                ChannelAction::Receive => "receive",
            };
            let channel = format!("#/channels/{}", self.id);
            (format!("{action}_{}", self.id), json!({ "action": action, "channel": { "$ref": channel } }))
        };
        self.fleet.iter().map(operation).collect()
    }

    fn parameters(&self) -> impl Iterator<Item = &'static str> {
        let tokens = self.address.split('.');
        tokens.filter_map(|token| token.strip_prefix('{').and_then(|token| token.strip_suffix('}')))
    }
}

fn parameter(name: &str) -> &'static str {
    match name {
        "run" => "The run: a UUID as 32 hexadecimal digits",
        "command" => "The command (submit), or the type of the action of a request (cancel)",
        "queue" => "A role, or @ and the id of one agent",
        "task" => "The index of a leaf (1-2-3), plan, reflect-<index>, refine-<n> or write",
        "role" => "A kind of agent, such as worker",
        "agent" => "One process, such as worker-5f3a9c21",
        "gen" => "Which offer of the task, from 1",
        "kind" => "started, tool, step, released or outcome",
        "writer" => "The process that could not handle the message",
        "origin" => "The subject of the message",
        "object" => "The name of the object in base64 for URLs",
        "request" => "The request: submit",
        "inbox" => "What the asker's client chose",
        _ => "",
    }
}

/// The name of a kind as it stands in `body.type`.
fn name(kind: MessageKind) -> String {
    kind.name().to_owned()
}

fn message_id(kind: MessageKind, encoding: Encoding) -> String {
    match encoding {
        Encoding::MessagePack => name(kind),
        Encoding::Json => format!("{}_json", name(kind)),
    }
}

fn inline<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

/// Adds what agents and tool servers tell each other to the definitions.
fn of_tool_servers(generator: &mut SchemaGenerator) {
    reference::<ToolServerNotice>(generator);
    reference::<ToolSpecs>(generator);
    reference::<ToolCall>(generator);
    reference::<ToolTicket>(generator);
    reference::<ToolReply>(generator);
    reference::<LeaseRequest>(generator);
    reference::<LeaseReply>(generator);
    reference::<LentCall>(generator);
    reference::<LentReply>(generator);
    reference::<LeaseName>(generator);
    reference::<ToolLeases>(generator);
    reference::<Revocation>(generator);
    reference::<ToolAnswer>(generator);
}

fn reference<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A reference to the schema of a body, which becomes a definition.
fn reference_of(kind: MessageKind) -> fn(&mut SchemaGenerator) -> Schema {
    match kind {
        MessageKind::Decided => reference::<Decided>,
        MessageKind::Offered => reference::<TaskOffered>,
        MessageKind::Started => reference::<Started>,
        MessageKind::ToolStarted => reference::<ToolStarted>,
        MessageKind::Step => reference::<Step>,
        MessageKind::Released => reference::<Released>,
        MessageKind::Outcome => reference::<Outcome>,
        MessageKind::Command => reference::<Command>,
        MessageKind::Heartbeat => reference::<Heartbeat>,
        MessageKind::Profile => reference::<Profile>,
        MessageKind::Live => reference::<Live>,
        MessageKind::Control => reference::<ControlMessage>,
        MessageKind::Call => reference::<CallForProposals>,
        MessageKind::Bid => reference::<Bid>,
        MessageKind::Ask => reference::<Ask>,
        MessageKind::Accepted => reference::<Accepted>,
        MessageKind::Error => reference::<Refused>,
        MessageKind::Stored => reference::<StoredBody>,
    }
}

fn with_definitions(mut schema: Schema, generator: &mut SchemaGenerator) -> Value {
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.to_value()
}
