//! From a request to its answer: read, checked, given to whoever has its task, and answered.

use std::sync::Arc;
use std::time::Duration;

use muster_bus::GatewayRequest;
use muster_shared::ids::{Role, RunId, TaskId};
use muster_shared::wire::CodecError;
use muster_shared::wire::gateway::{GatewayRefusal, GatewayVerb, RefusalCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;

use crate::adopt;
use crate::desk::{Desk, PastTask, Whereabouts};
use crate::open::{AtWork, Course, OpenTask};
use crate::refusal::busy;
use crate::token::Token;
use crate::{beat, files, finish, model, step, take, wait};

/// How long another gateway may take for what it is asked.
const PASSED_ON: Duration = Duration::from_secs(4);
/// The same for a call of a model.
const PASSED_ON_MODEL: Duration = Duration::from_secs(600);

/// The task that a request is about.
pub(crate) enum Found {
    /// At hand here.
    Open(Arc<OpenTask>),
    /// At hand no more.
    Past(Box<PastTask>),
    /// Another gateway has answered.
    Answered,
}

/// A task in the hands of one request: nobody else changes it meanwhile.
pub(crate) struct InHand {
    pub(crate) task: AtWork,
    pub(crate) course: OwnedMutexGuard<Course>,
}

/// How far a request that changes its task is.
pub(crate) enum Begun {
    /// It is to be done.
    ToDo(InHand),
    /// It was done before: the answer; nothing where another gateway sent it.
    Answered(Option<Value>),
}

/// Answers a request.
pub(crate) async fn answer(desk: Arc<Desk>, asked: GatewayRequest) {
    let answered = match Box::pin(answered(&desk, &asked)).await {
        Ok(Some(answer)) => answer,
        Ok(None) => return,
        Err(refusal) => json!({ "error": refusal }),
    };
    say(&desk, &asked, &answered, None).await;
}

/// Sends an answer; one that is too large is replaced by one that says so.
pub(crate) async fn say(
    desk: &Desk,
    asked: &GatewayRequest,
    answer: &Value,
    about: Option<(RunId, &TaskId)>,
) {
    let door = desk.bus.gateway();
    if let Err(error) = door.answer(asked, answer, about).await {
        tracing::warn!(%error, "an answer cannot be sent");
        let refusal =
            GatewayRefusal::new(RefusalCode::TooLarge, format!("the answer cannot be sent: {error}"));
        let _second_try = door.answer(asked, &json!({ "error": refusal }), about).await;
    }
}

/// The answer; nothing where it was sent already.
async fn answered(desk: &Arc<Desk>, asked: &GatewayRequest) -> Result<Option<Value>, GatewayRefusal> {
    let unknown = |why: &String| GatewayRefusal::new(RefusalCode::Unknown, why.clone());
    let verb = *asked.verb.as_ref().map_err(unknown)?;
    let role = asked.role.as_ref().map_err(unknown)?;
    let content = content(desk, asked)?;
    if verb == GatewayVerb::Take {
        let request = desk.checker.read(verb, content)?;
        return Box::pin(take::take(desk, asked, role, request)).await;
    }
    let permit = Arc::clone(&desk.requests).try_acquire_owned();
    let _permit = permit.map_err(|_| busy("too many requests are worked on here"))?;
    match verb {
        GatewayVerb::Take => Ok(None),
        GatewayVerb::Step => step::step(desk, asked, role, read(desk, verb, content)?).await,
        GatewayVerb::Finish => finish::finish(desk, asked, role, read(desk, verb, content)?).await,
        GatewayVerb::Wait => wait::wait(desk, asked, role, read(desk, verb, content)?).await,
        GatewayVerb::Beat => beat::beat(desk, asked, role, read(desk, verb, content)?).await,
        GatewayVerb::Files => files::files(desk, asked, role, read(desk, verb, content)?).await,
        GatewayVerb::Model => model::model(desk, asked, role, read(desk, verb, content)?).await,
    }
}

fn read<T: DeserializeOwned>(desk: &Desk, verb: GatewayVerb, content: Value) -> Result<T, GatewayRefusal> {
    desk.checker.read(verb, content)
}

fn content(desk: &Desk, asked: &GatewayRequest) -> Result<Value, GatewayRefusal> {
    let (bytes, most) = (asked.bytes(), desk.settings.message_bytes);
    let too_large = |bytes: usize| {
        let message = format!(
            "the message has {bytes} bytes, and {most} is the most: write what is long to a file by `files`, \
             in parts, and name it"
        );
        GatewayRefusal::new(RefusalCode::TooLarge, message)
    };
    if bytes > most {
        return Err(too_large(bytes));
    }
    asked.content().map_err(|error| match error {
        CodecError::TooLarge { bytes } => too_large(bytes),
        _ => {
            let message = format!(
                "the message cannot be read: {error}. Send one JSON object, or MessagePack with the header `Content-Type: \
                 application/msgpack`"
            );
            GatewayRefusal::new(RefusalCode::Unreadable, message)
        }
    })
}

/// The task of a token. One that another gateway has is asked for there; one that nobody has any more goes on here.
pub(crate) async fn find(
    desk: &Arc<Desk>,
    asked: &GatewayRequest,
    role: &Role,
    text: &str,
) -> Result<Found, GatewayRefusal> {
    let token = desk.token(text, role).await?;
    match desk.find(&token, !asked.is_passed_on) {
        Whereabouts::Here(task) => Ok(Found::Open(task)),
        Whereabouts::Past(past) => Ok(Found::Past(past)),
        Whereabouts::Nowhere => adopt::adopt(desk, &token).await,
        Whereabouts::At(other) => {
            let is_long = matches!(asked.verb, Ok(GatewayVerb::Model));
            let patience = if is_long { PASSED_ON_MODEL } else { PASSED_ON };
            match desk.bus.gateway().pass_on(&other, asked, patience).await {
                Ok(Some(answer)) => {
                    if let Err(error) = desk.bus.gateway().give_back(asked, answer).await {
                        tracing::warn!(%error, "an answer of another gateway cannot be sent");
                    }
                    Ok(Found::Answered)
                }
                Ok(None) => adopt::adopt(desk, &token).await,
                Err(error) => {
                    tracing::warn!(%error, gateway = %other, "a gateway does not answer; its task goes on here");
                    adopt::adopt(desk, &token).await
                }
            }
        }
    }
}

/// Takes the task of a request in hand that changes it, unless its answer is known. `id` identifies a repeated request.
pub(crate) async fn in_hand(
    desk: &Arc<Desk>,
    asked: &GatewayRequest,
    role: &Role,
    token: &str,
    id: Option<&str>,
) -> Result<Begun, GatewayRefusal> {
    let task = match find(desk, asked, role, token).await? {
        Found::Open(task) => task.at_work(),
        Found::Past(past) => return past.answer(id).map(|answer| Begun::Answered(Some(answer))),
        Found::Answered => return Ok(Begun::Answered(None)),
    };
    let course = Arc::clone(&task.course).lock_owned().await;
    Ok(match course.known(id) {
        Some(answer) => Begun::Answered(Some(answer)),
        None => Begun::ToDo(InHand { task, course }),
    })
}

/// The token of a task, for the log.
pub(crate) fn shown(token: &Token) -> String {
    format!("{} of run {}", token.task, token.run)
}
