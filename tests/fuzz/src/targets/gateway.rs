//! What programs in other languages ask of a task gateway: whatever it is, each request has its answer, and the run folds.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use muster_agents::AgentSettings;
use muster_bus::{Bus, RecordFilter};
use muster_gateway::GatewaySettings;
use muster_shared::ids::{Generation, RunId, Seq, TaskId};
use muster_shared::run::invariants::check_all;
use muster_shared::run::{RecordEvent, RunState, apply};
use muster_shared::secret::Redactor;
use muster_shared::wire::codec::write;
use muster_shared::wire::gateway::GatewayVerb;
use muster_shared::wire::{Encoding, decode};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::ensure;
use super::record::Recorded;
use crate::{Seen, Shape, Target};

/// Requests, one after the other: an array of objects with one field each, `ROLE.VERB` or `VERB` and what is said. The
/// text `$token` stands for the newest token. What is no such array is sent as it is, as each verb, in both encodings.
pub(super) const REQUESTS: Target = Target::new("gateway_requests", Shape::Json, requests).with_words(&[
    "researcher.take",
    "planner.take",
    "reflector.take",
    "needs_help",
]);

/// How much of the recorded run there is: tasks are offered that nobody has begun.
const ENTRIES: usize = 25;
/// Most requests of one input.
const MOST: usize = 12;
/// The longest that an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Stands for the newest token.
const TOKEN: &str = "$token";

/// A request as it is sent.
struct Request {
    subject: String,
    encoding: Option<Encoding>,
    payload: Payload,
}

enum Payload {
    /// Tokens are put into it.
    Said(Value),
    Bytes(Vec<u8>),
}

fn requests(input: &[u8]) -> Result<Seen, String> {
    // Nothing of one input lives on for the next.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let seen = runtime.block_on(asked(&read(input), folder.path()));
    runtime.shutdown_background();
    seen
}

fn read(input: &[u8]) -> Vec<Request> {
    let said: Option<Vec<Map<String, Value>>> = serde_json::from_slice(input).ok();
    let Some(said) = said else {
        let each = GatewayVerb::ALL.iter().flat_map(|verb| {
            [None, Some(Encoding::MessagePack)].map(|encoding| Request {
                subject: format!("agent.worker.{verb}"),
                encoding,
                payload: Payload::Bytes(input.to_vec()),
            })
        });
        return each.collect();
    };
    let each = said.into_iter().filter_map(|said| said.into_iter().next()).take(MOST).enumerate();
    each.map(|(at, (verb, said))| {
        let subject =
            if verb.contains('.') { format!("agent.{verb}") } else { format!("agent.worker.{verb}") };
        // Every third comes as MessagePack.
        let encoding = Some(Encoding::MessagePack).filter(|_| at % 3 == 2);
        Request { subject, encoding, payload: Payload::Said(said) }
    })
    .collect()
}

async fn asked(requests: &[Request], folder: &Path) -> Result<Seen, String> {
    let gateway = "orchestrator-1".parse().map_err(|_| "no name")?;
    let bus = Bus::in_memory(&gateway);
    let (run, before) = recorded(&bus).await?;
    let stop = CancellationToken::new();
    let settings = GatewaySettings { patience: Duration::from_millis(20), ..GatewaySettings::default() };
    let agents = AgentSettings {
        model: Some("offline".to_owned()),
        cache_dir: folder.join("cache"),
        ..AgentSettings::default()
    };
    let served = muster_gateway::serve(bus.clone(), settings, agents, Arc::new(Redactor::default()), stop);
    let serving = tokio::spawn(served);
    tokio::task::yield_now().await;
    let (mut token, mut refused, mut was_done) = (String::new(), Vec::new(), false);
    for request in requests {
        let Some(answer) = answered(&bus, request, &token).await? else { continue };
        if let Some(newer) =
            ["/task/token", "/token"].iter().find_map(|place| answer.pointer(place)?.as_str())
        {
            newer.clone_into(&mut token);
        }
        match answer.get("error") {
            Some(error) => refused.push(refusal(error)?),
            None => was_done = true,
        }
    }
    ensure(!serving.is_finished(), || "the gateway has ended".to_owned())?;
    folds(&bus, run, before).await?;
    Ok(Seen::by_several(was_done, &refused))
}

/// Why, in words.
fn refusal(error: &Value) -> Result<String, String> {
    let message = error["message"].as_str().unwrap_or_default();
    ensure(error["code"].is_string() && !message.is_empty(), || format!("refused without a word: {error}"))?;
    Ok(format!("{} {message}", error["code"]))
}

/// The answer; nothing where nobody serves such a subject.
async fn answered(bus: &Bus, request: &Request, token: &str) -> Result<Option<Value>, String> {
    let Request { subject, encoding, payload } = request;
    let answers_in = encoding.unwrap_or(Encoding::Json);
    let bytes = match payload {
        Payload::Bytes(bytes) => bytes.clone(),
        Payload::Said(said) => match write(&with_token(said, token), answers_in) {
            Ok(bytes) => bytes,
            Err(_) => return Ok(None),
        },
    };
    let answer = match bus.gateway().ask(subject, *encoding, bytes, PATIENCE).await {
        Ok(answer) => answer,
        Err(muster_bus::BusError::TimedOut { .. }) => return Err(format!("{subject} is not answered")),
        Err(_) => return Ok(None),
    };
    let answer: Value = decode(&answer, answers_in)
        .map_err(|error| format!("the answer of {subject} is not read: {error}"))?;
    ensure(answer.is_object(), || format!("the answer of {subject} is {answer}"))?;
    Ok(Some(answer))
}

fn with_token(said: &Value, token: &str) -> Value {
    match said {
        Value::String(text) if text == TOKEN => token.into(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), with_token(value, token)));
            fields.collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(|item| with_token(item, token)).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

/// Writes the beginning of the recorded run, and gives the state that it has then.
async fn recorded(bus: &Bus) -> Result<(RunId, &'static RunState), String> {
    let recorded = Recorded::get()?;
    let (record, mut decided_at, mut said_at) =
        (bus.record(), Seq(0), BTreeMap::<(TaskId, Generation), Seq>::new());
    let failed = |error: &dyn std::fmt::Display| format!("the run is not written: {error}");
    for entry in recorded.entries.iter().take(ENTRIES) {
        match &entry.event {
            RecordEvent::Decided(decided) => {
                let written =
                    record.append_decision(entry.run, decided_at, decided, &[], Encoding::Json).await;
                decided_at = written.map_err(|error| failed(&error))?.last;
            }
            RecordEvent::Agent(key, event) => {
                let last = said_at.entry((key.task.clone(), key.generation)).or_insert(Seq(0));
                let written = record.append_agent(entry.run, key, *last, event, Encoding::Json).await;
                *last = written.map_err(|error| failed(&error))?;
            }
            RecordEvent::Offered(_) => return Err("an offer by itself".to_owned()),
        }
    }
    let state = recorded.states.get(ENTRIES - 1).ok_or("a run that is too short")?;
    Ok((state.id, state))
}

/// Whatever stands in the record now folds, and breaks no rule.
async fn folds(bus: &Bus, run: RunId, before: &RunState) -> Result<(), String> {
    let written = bus.record().read(&RecordFilter::Run(run), before.folded).await;
    let mut state = Some(before.clone());
    for entry in written.map_err(|error| format!("what was recorded is not read: {error}"))? {
        let old = state.clone();
        apply(&mut state, &entry).map_err(|error| format!("what was recorded does not fold: {error}"))?;
        if let (Some(old), Some(new)) = (&old, &state) {
            check_all(old, &entry, new).map_err(|broken| broken.join("; "))?;
        }
    }
    Ok(())
}
