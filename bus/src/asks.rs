//! Requests to the fleet that are answered (`ask.<request>`), by NATS request and reply: any orchestrator answers.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::flow::Goal;
use muster_shared::ids::{AgentId, RunId};
use muster_shared::run::{SignedOrder, SignerKind};
use muster_shared::sync::lock;
use muster_shared::wire::ask::{Ask, MAX_ASK_ID};
use muster_shared::wire::{Body, CodecError, Encoding, Envelope, decode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::backend::{INBOX, Incoming, Message};
use crate::bus::{Core, now};
use crate::dead::DeadLetter;
use crate::error::{AppendError, BusError};
use crate::kv::{Bucket, KvEntry};
use crate::orders::{OrderTimes, SeenRequests, check_age, proof, refusal, signer_kind};
use crate::seal::{About, encoding_of, open_inline};
use crate::signatures::Purpose;
use crate::subject::Subject;
use crate::topology::ASKED;

const BUCKET: Bucket = Bucket(ASKED);

/// The group of all who answer.
const ANSWERERS: &str = "orchestrators";

/// Requests to the fleet.
#[derive(Clone)]
pub struct Asks {
    pub(crate) core: Arc<Core>,
}

/// A run that a request is to become.
#[derive(Debug, Clone, Copy)]
pub struct NewRun<'a> {
    /// The run.
    pub run: RunId,
    /// What is asked, as bytes that are the same whenever it is.
    pub what: &'a [u8],
}

/// Which run a request became.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Became {
    run: RunId,
    /// What was asked, by its hash.
    what: String,
}

impl Asks {
    /// Requests from now on, each given to one of all who serve them.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn serve(&self) -> Result<BoxStream<'static, Asked>, BusError> {
        let requests = self.core.backend.serve("ask.*", ANSWERERS).await?;
        let (core, seen) = (Arc::clone(&self.core), Arc::<Mutex<SeenRequests>>::default());
        Ok(requests
            .filter_map(move |asked| {
                let (core, seen) = (Arc::clone(&core), Arc::clone(&seen));
                async move { Asked::read(&core, &seen, asked).await }
            })
            .boxed())
    }

    /// The run of a request that bears an id of its sender's: `new`, or the one it became when it was asked before.
    ///
    /// # Errors
    /// The inner one says that something else was asked under this id; the outer one that the bus failed.
    pub async fn run_of(
        &self,
        sender: &AgentId,
        id: &str,
        new: NewRun<'_>,
    ) -> Result<Result<RunId, String>, BusError> {
        let key = crate::store::hash(format!("{sender}/{id}").as_bytes());
        let wanted = Became { run: new.run, what: crate::store::hash(new.what) };
        let message = BUCKET.json(&key, &wanted)?;
        match BUCKET.create(&self.core, &key, message, None).await {
            Ok(_) => return Ok(Ok(new.run)),
            Err(AppendError::Conflict | AppendError::Ambiguous { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let kept = BUCKET.last(&self.core, &key).await?.and_then(KvEntry::read::<Became>);
        let kept = kept.ok_or_else(|| BusError::Conflict { what: format!("request {id:?}") })?;
        Ok(if kept.what == wanted.what {
            Ok(kept.run)
        } else {
            Err(format!(
                "something else was asked under the id {id:?} and became run {}: give this request another id",
                kept.run
            ))
        })
    }
}

/// A request that waits for its answer.
pub struct Asked {
    core: Arc<Core>,
    reply: String,
    encoding: Encoding,
    /// The request's own id, for the answer.
    id: Option<Uuid>,
    /// Who asks.
    pub sender: AgentId,
    /// What is asked, or what is wrong with it.
    pub what: Result<Ask, String>,
    /// Who signed it, where orders are signed.
    pub signed: Option<SignedOrder>,
}

impl Asked {
    /// Nothing where an answer would do harm.
    async fn read(core: &Arc<Core>, seen: &Mutex<SeenRequests>, asked: Incoming) -> Option<Self> {
        let Incoming { message, reply } = asked;
        let reply = reply?;
        if !reply.starts_with(INBOX) {
            tracing::warn!(reply, "a request is not answered: its reply subject does not begin with {INBOX}");
            return None;
        }
        let encoding = encoding_of(&message);
        let (core, mut signed) = (Arc::clone(core), None);
        let (id, sender, what) = match open_inline(&message) {
            Ok(envelope) => {
                let by = signed_by(&core, seen, &message, &envelope);
                if let Err(reason) = &by {
                    bury(&core, &message, reason).await;
                }
                let id = Some(envelope.id).filter(|id| !id.is_nil());
                let ask = ask_in(&message.subject, envelope.body).and_then(|ask| {
                    signed = by?;
                    Ok(ask)
                });
                (id, envelope.sender, ask)
            }
            Err(reason) => (None, AgentId::anonymous(), Err(in_the_goal(&message, reason))),
        };
        Some(Self { core, reply, encoding, id, sender, what, signed })
    }

    /// By which id the request is told from others of its sender that names neither an id nor a run: where requests are
    /// signed, one that is sent again by somebody else is to become no other run.
    #[must_use]
    pub fn message_id(&self) -> Option<String> {
        self.signed.as_ref().and(self.id).map(|id| id.to_string())
    }

    /// In whose name it is asked: a person's is the one in the credentials.
    #[must_use]
    pub fn asker(&self) -> AgentId {
        let person = self.signed.as_ref().filter(|signed| signed.kind == SignerKind::Person);
        person.and_then(|person| person.by.parse().ok()).unwrap_or_else(|| self.sender.clone())
    }

    /// Answers it.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn answer(&self, body: Body, run: Option<RunId>) -> Result<(), BusError> {
        let about = About { run, correlation: self.id, ..About::default() };
        let sealed = self.core.seal(self.reply.clone(), body, about, self.encoding).await?;
        self.core.backend.publish(sealed).await
    }
}

/// Keeps a request that counts for nothing, whoever hears the answer. One that cannot be kept is answered all the same.
async fn bury(core: &Core, message: &Message, reason: &str) {
    if let Err(error) = core.bury(DeadLetter::of(message, reason)).await {
        tracing::warn!(%error, reason, "a request that was refused could not be kept");
    }
}

/// Who signed a request, if he may ask for anything and asks it for the first time; nothing where nothing is signed.
fn signed_by(
    core: &Core,
    seen: &Mutex<SeenRequests>,
    message: &Message,
    envelope: &Envelope,
) -> Result<Option<SignedOrder>, String> {
    let now = now();
    let who = core.signatures.sender_of(Purpose::Order, message, now);
    let Some(who) = who.map_err(|error| refusal(&error))? else { return Ok(None) };
    let kind = match signer_kind(&who.kind)? {
        SignerKind::Orchestrator => return Err("orchestrators ask for nothing".to_owned()),
        kind @ (SignerKind::Operator | SignerKind::Person) => kind,
    };
    check_age(OrderTimes { sent: envelope.sent, stored: now }, crate::settings::SIGNATURE_MAX_AGE)?;
    let order = proof(core, &who, kind, message);
    // A note that was half made is none: nothing in it can fail.
    lock(seen).note(envelope.id, &order)?;
    Ok(Some(order))
}

/// Why a request cannot be read, with the field of its goal that is wrong, if it is one.
fn in_the_goal(message: &Message, reason: String) -> String {
    let read: Result<Value, _> = decode(&message.payload, encoding_of(message));
    let goal = read.ok().and_then(|read| serde_json::to_vec(read.pointer("/body/content/goal")?).ok());
    match goal.map(|goal| decode::<Goal>(&goal, Encoding::Json)) {
        Some(Err(CodecError::Field { field, reason })) => {
            let what = reason.split(" at line ").next().unwrap_or_default();
            format!("field body.content.goal.{field}: {what}")
        }
        Some(_) | None => reason,
    }
}

fn ask_in(subject: &str, body: Body) -> Result<Ask, String> {
    let Subject::Ask(name) = Subject::parse(subject)? else {
        return Err(format!("{subject} is not the subject of a request"));
    };
    let ask = match body {
        Body::Ask(ask) if ask.name() == name => ask,
        Body::Ask(ask) => {
            return Err(format!("the request {0} belongs on ask.{0}, not on {subject}", ask.name()));
        }
        other => {
            let kind = other.kind().name();
            return Err(format!(
                "field body.type: a body of type {kind} is no request: it has to be \"ask\""
            ));
        }
    };
    match &ask {
        Ask::Submit { id: Some(id), .. } if id.is_empty() || id.len() > MAX_ASK_ID => {
            let bytes = id.len();
            Err(format!("field body.content.id: it has {bytes} bytes; 1 to {MAX_ASK_ID} are allowed"))
        }
        Ask::Submit { id: Some(_), run: Some(_), .. } => Err(
            "fields body.content.id and body.content.run: give one of them; each tells the request from others"
                .to_owned(),
        ),
        Ask::Submit { .. } => Ok(ask),
    }
}

#[cfg(test)]
mod tests;
