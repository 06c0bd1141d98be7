//! What task gateways serve and tell each other: requests of programs on `agent.<role>.<verb>`, by NATS request and reply.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::{AgentId, Role, RunId, TaskId};
use muster_shared::wire::gateway::{GatewayVerb, Moved};
use muster_shared::wire::{CodecError, Encoding, decode, encode};
use serde_json::Value;

use crate::backend::{Headers, INBOX, Incoming, Message};
use crate::bus::{Core, now};
use crate::credentials::{HolderKind, Identity};
use crate::error::BusError;
use crate::seal::{CONTENT_TYPE, encoding_of};
use crate::signatures::{Purpose, Signatures};
use crate::subject::{GATEWAY_MOVED, Subject, gateway_own, gateway_requests};

/// The group of all gateways.
const GATEWAYS: &str = "gateways";
/// Requests that came by way of another gateway say so with this header.
const PASSED_ON: &str = "Muster-Passed-On";
/// Where the task token stands in an answer.
const TOKENS: [&str; 2] = ["/token", "/task/token"];
/// The run and the task that an answer is about, for whoever counts or traces messages.
const RUN: &str = "Muster-Run";
const TASK: &str = "Muster-Task";

/// The door of task gateways.
#[derive(Clone)]
pub struct GatewayDoor {
    pub(crate) core: Arc<Core>,
}

/// A program's request, as it came.
#[derive(Debug, Clone)]
pub struct GatewayRequest {
    message: Message,
    reply: String,
    /// The role in its subject, or what is wrong with it.
    pub role: Result<Role, String>,
    /// What is asked; what stands there when there is no such request.
    pub verb: Result<GatewayVerb, String>,
    /// Whether another gateway passed it on: it is not passed on again.
    pub is_passed_on: bool,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// Somebody listens where it was sent.
    Sent,
    /// Nobody does any more: whoever asked is gone.
    Gone,
}

impl GatewayDoor {
    /// Requests from now on: each that comes for any gateway is given to one of them, those for this one to it.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn serve(&self) -> Result<BoxStream<'static, GatewayRequest>, BusError> {
        let backend = &self.core.backend;
        let own = gateway_own(&self.core.who);
        let (any, mine) = (gateway_requests(), format!("{own}.*.*"));
        let any = backend.serve(any, GATEWAYS).await?;
        let mine = backend.serve(&mine, self.core.who.as_str()).await?;
        let all = futures::stream::select(any, mine);
        Ok(all.filter_map(|incoming| std::future::ready(GatewayRequest::read(incoming))).boxed())
    }

    /// Asks the gateway that has a task at hand what a program asked, and gives its answer; nothing when it is gone.
    ///
    /// # Errors
    /// When it does not answer in time.
    pub async fn pass_on(
        &self,
        to: &AgentId,
        asked: &GatewayRequest,
        patience: Duration,
    ) -> Result<Option<PassedBack>, BusError> {
        let rest = asked.message.subject.split('.').skip(1).collect::<Vec<_>>().join(".");
        let mut headers = asked.message.headers.clone();
        headers.add(PASSED_ON, self.core.who.as_str());
        let subject = format!("{}.{rest}", gateway_own(to));
        let message = Message { subject, headers, payload: asked.message.payload.clone() };
        match self.core.backend.request(message, patience).await {
            Ok(answer) => Ok(Some(PassedBack(answer))),
            Err(error @ BusError::TimedOut { .. }) => Err(error),
            Err(error) => {
                tracing::debug!(%error, %to, "a gateway is gone");
                Ok(None)
            }
        }
    }

    /// Asks as a program does that has a connection of its own: `subject` and `payload` are sent as they are. For tests.
    ///
    /// # Errors
    /// When nobody serves the subject, or no answer comes in time.
    pub async fn ask(
        &self,
        subject: &str,
        encoding: Option<Encoding>,
        payload: Vec<u8>,
        patience: Duration,
    ) -> Result<Vec<u8>, BusError> {
        let mut headers = Headers::default();
        if let Some(encoding) = encoding {
            headers.add(CONTENT_TYPE, encoding.content_type());
        }
        let message = Message { subject: subject.to_owned(), headers, payload: payload.into() };
        self.core.backend.request(message, patience).await.map(|answer| answer.payload.into())
    }

    /// Answers a request.
    ///
    /// # Errors
    /// When the answer is too large, or the bus fails.
    pub async fn answer(
        &self,
        asked: &GatewayRequest,
        answer: &Value,
        about: Option<(RunId, &TaskId)>,
    ) -> Result<(), BusError> {
        let message = self.sealed(asked, answer, about)?;
        self.core.backend.publish(message).await
    }

    /// The same, and looks whether anybody is there to hear it: the server says at once when nobody is, and before it answers
    /// what was asked after it.
    ///
    /// # Errors
    /// When the answer is too large.
    pub async fn deliver(
        &self,
        asked: &GatewayRequest,
        answer: &Value,
        about: (RunId, &TaskId),
    ) -> Result<Delivered, BusError> {
        let message = self.sealed(asked, answer, Some(about))?;
        let backend = &self.core.backend;
        let patience = self.core.settings.request_timeout;
        let delivered = tokio::select! {
            biased;
            answered = backend.request(message, patience) => answered.map(drop),
            _ = backend.ping() => return Ok(Delivered::Sent),
        };
        match delivered {
            // Nobody answers an answer.
            Ok(()) | Err(BusError::TimedOut { .. }) => Ok(Delivered::Sent),
            Err(error @ BusError::TooLarge { .. }) => Err(error),
            Err(_) => Ok(Delivered::Gone),
        }
    }

    /// Gives back what another gateway answered, as it is.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn give_back(&self, asked: &GatewayRequest, answer: PassedBack) -> Result<(), BusError> {
        let Message { headers, payload, .. } = answer.0;
        self.core.backend.publish(Message { subject: asked.reply.clone(), headers, payload }).await
    }

    /// How many bytes an answer may have.
    #[must_use]
    pub fn most_bytes(&self) -> usize {
        self.core.backend.max_payload().min(muster_shared::wire::codec::MAX_MESSAGE_BYTES)
    }

    /// Tells all gateways that a task goes on here.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn tell_moved(&self, moved: &Moved) -> Result<(), BusError> {
        let value = serde_json::to_value(moved)?;
        let payload = encode(&value, Encoding::Json)?.into();
        let subject = GATEWAY_MOVED.to_owned();
        let message = Message { subject, headers: Headers::default(), payload };
        self.core.backend.publish(self.core.signatures.sign_message(Purpose::Control, message)).await
    }

    /// What other gateways tell so.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn moved(&self) -> Result<BoxStream<'static, Moved>, BusError> {
        let messages = self.core.backend.subscribe(GATEWAY_MOVED).await?;
        let signatures = self.core.signatures.clone();
        let read = move |message: Message| std::future::ready(moved_in(&signatures, &message));
        Ok(messages.filter_map(read).boxed())
    }

    fn sealed(
        &self,
        asked: &GatewayRequest,
        answer: &Value,
        about: Option<(RunId, &TaskId)>,
    ) -> Result<Message, BusError> {
        let encoding = asked.encoding();
        let mut headers = Headers::default();
        headers.add(CONTENT_TYPE, encoding.content_type());
        if let Some((run, task)) = about {
            headers.add(RUN, &run.to_string());
            headers.add(TASK, &task.to_string());
        }
        let payload = encode(&self.redacted(answer), encoding)?;
        Ok(Message { subject: asked.reply.clone(), headers, payload: payload.into() })
    }
}

impl GatewayDoor {
    /// The answer without secrets. The task token in it is made for whoever asks.
    fn redacted(&self, answer: &Value) -> Value {
        let mut told = answer.clone();
        self.core.redactor.redact_value(&mut told);
        for place in TOKENS {
            if let (Some(told), Some(token)) = (told.pointer_mut(place), answer.pointer(place)) {
                *told = token.clone();
            }
        }
        told
    }
}

/// What another gateway tells, if it does so itself.
fn moved_in(signatures: &Signatures, message: &Message) -> Option<Moved> {
    let who = signatures.sender_of(Purpose::Control, message, now());
    let who = who
        .inspect_err(|error| tracing::warn!(%error, "what a gateway is to have said is not believed"))
        .ok()?;
    let moved: Moved = serde_json::from_slice(&message.payload).ok()?;
    match who {
        Some(Identity { name, kind: HolderKind::Orchestrator }) if name == moved.to => Some(moved),
        // Any of an operator's processes has a name of its own.
        Some(Identity { kind: HolderKind::Operator, .. }) => Some(moved),
        Some(who) => {
            tracing::warn!(%who.name, "it says that another gateway goes on with a task");
            None
        }
        None => Some(moved),
    }
}

/// An answer of another gateway.
#[derive(Debug)]
pub struct PassedBack(Message);

impl GatewayRequest {
    /// Nothing where an answer would do harm.
    fn read(incoming: Incoming) -> Option<Self> {
        let Incoming { message, reply } = incoming;
        let reply = reply?;
        if !reply.starts_with(INBOX) {
            tracing::warn!(reply, "a request is not answered: its reply subject does not begin with {INBOX}");
            return None;
        }
        let is_passed_on = message.headers.get(PASSED_ON).is_some();
        let (role, verb) = match Subject::parse_gateway(&message.subject) {
            Some((role, verb)) => (role, verb),
            None => return None,
        };
        Some(Self { message, reply, role, verb, is_passed_on })
    }

    /// How it is encoded, and its answer will be: in JSON, unless it says otherwise.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        match self.message.headers.get(CONTENT_TYPE) {
            Some(_) => encoding_of(&self.message),
            None => Encoding::Json,
        }
    }

    /// Its length in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.message.payload.len()
    }

    /// What it says.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn content(&self) -> Result<Value, CodecError> {
        if self.message.payload.is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        decode(&self.message.payload, self.encoding())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bus::Bus;

    const SOON: Duration = Duration::from_secs(5);

    fn message(encoding: Encoding) -> Message {
        let mut headers = Headers::default();
        headers.add(CONTENT_TYPE, encoding.content_type());
        let payload = encode(&json!({ "agent": "a-1" }), encoding).unwrap().into();
        Message { subject: "agent.word_counter.take".to_owned(), headers, payload }
    }

    #[tokio::test]
    async fn an_answer_is_encoded_as_its_request_and_keeps_its_token_alone() {
        let bus = Bus::in_memory(&"orchestrator-1".parse().unwrap());
        let door = bus.gateway();
        let mut requests = door.serve().await.unwrap();
        tokio::spawn(async move {
            while let Some(asked) = requests.next().await {
                let said = asked.content().unwrap();
                let answer = json!({ "token": "mt1-0123456789abcdef", "said": said, "inner": { "token": "abc123def456" } });
                door.answer(&asked, &answer, None).await.unwrap();
            }
        });
        for encoding in [Encoding::Json, Encoding::MessagePack] {
            let answer = bus.core.backend.request(message(encoding), SOON).await.unwrap();
            assert_eq!(encoding_of(&answer), encoding);
            let answer: Value = decode(&answer.payload, encoding).unwrap();
            assert_eq!(
                (&answer["token"], &answer["said"]),
                (&json!("mt1-0123456789abcdef"), &json!({ "agent": "a-1" }))
            );
            assert_ne!(
                answer["inner"]["token"], "abc123def456",
                "what else looks like a secret is none of theirs"
            );
        }
    }

    #[tokio::test]
    async fn whoever_is_gone_is_told_of() {
        let bus = Bus::in_memory(&"orchestrator-1".parse().unwrap());
        let reply = Some(format!("{INBOX}nobody"));
        let asked = GatewayRequest::read(Incoming { message: message(Encoding::Json), reply }).unwrap();
        let other = "orchestrator-2".parse().unwrap();
        assert!(bus.gateway().pass_on(&other, &asked, SOON).await.unwrap().is_none(), "no such gateway");
        let (run, task) = ("0190a1b2c3d4700080000000000000aa".parse().unwrap(), "1".parse().unwrap());
        let delivered = bus.gateway().deliver(&asked, &json!({}), (run, &task)).await.unwrap();
        assert_eq!(delivered, Delivered::Gone);
        let elsewhere =
            Incoming { message: message(Encoding::Json), reply: Some("run.x.decided".to_owned()) };
        assert!(GatewayRequest::read(elsewhere).is_none(), "an answer may not go there");
    }
}
