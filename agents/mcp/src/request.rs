//! One request to a server: with a time limit, withdrawn when nobody waits for it any more, and with the questions that the
//! server asks in between.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CancelledNotificationParam, ClientRequest, ErrorData, InputRequiredResult, InputResponses, RequestId,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::callbacks::CallPlace;
use crate::connect::{Connection, with_causes};
use crate::plain::{cut, visible};

/// Most rounds of questions in one call.
const MAX_ROUNDS: u32 = 10;
/// The first wait of a server that asks for patience alone; it doubles.
const PATIENCE: Duration = Duration::from_millis(100);
/// Longest reason in an error, in bytes.
const MAX_REASON: usize = 2_000;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The server says no.
    Refused(ErrorData),
    /// The server died. Whether it did what was asked is not known.
    Died,
    /// The way to the server broke. Whether it did what was asked is not known.
    Lost(String),
    /// It never reached the server.
    NotSent(String),
    /// Whoever asked was stopped.
    Stopped,
    /// The time was up. Whether it did what was asked is not known.
    TimedOut,
    /// The server wants to know who asks.
    NeedsAuthorization,
    /// The server's answer is none to this request.
    Odd(String),
}

/// For whom and for how long a request is made.
pub(crate) struct Asking<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) deadline: Instant,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) place: Option<&'a CallPlace>,
}

/// What goes with a request that is made again after the server's questions were answered.
#[derive(Default)]
pub(crate) struct Answered {
    pub(crate) responses: Option<InputResponses>,
    pub(crate) state: Option<String>,
}

impl Asking<'_> {
    /// Makes a request, and makes it again with answers as long as the server has questions.
    pub(crate) async fn ask(
        &self,
        mut request: impl FnMut(Answered) -> ClientRequest,
    ) -> Result<ServerResult, NoAnswer> {
        let rounds = async {
            let mut answered = Answered::default();
            for round in 0..MAX_ROUNDS {
                match self.send(request(answered)).await? {
                    ServerResult::InputRequiredResult(required) => {
                        answered = self.answer(required, round).await?;
                    }
                    result => return Ok(result),
                }
            }
            Err(NoAnswer::Odd(format!("it asked something in more than {MAX_ROUNDS} rounds")))
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(NoAnswer::Stopped),
            answer = rounds => answer,
            () = self.connection.closed().cancelled() => Err(NoAnswer::Died),
            () = tokio::time::sleep_until(self.deadline) => Err(NoAnswer::TimedOut),
        }
    }

    async fn send(&self, request: ClientRequest) -> Result<ServerResult, NoAnswer> {
        let peer = &self.connection.peer;
        let sent = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let handle = sent.map_err(|error| no_answer(&error))?;
        let mut waiting = Waiting { peer: peer.clone(), request: Some(handle.id.clone()) };
        let answer = handle.await_response().await;
        waiting.request = None;
        answer.map_err(|error| no_answer(&error))
    }

    async fn answer(&self, required: InputRequiredResult, round: u32) -> Result<Answered, NoAnswer> {
        let requests = required.input_requests.unwrap_or_default();
        if requests.is_empty() && required.request_state.is_none() {
            return Err(NoAnswer::Odd("it wants input and does not say which".to_owned()));
        }
        let Some(place) = self.place else {
            return Err(NoAnswer::Odd("it wants input where nobody can be asked".to_owned()));
        };
        if requests.is_empty() {
            tokio::time::sleep(PATIENCE.saturating_mul(2_u32.saturating_pow(round))).await;
            return Ok(Answered { responses: None, state: required.request_state });
        }
        let responses = self.connection.desk.fulfil(requests, place).await.map_err(NoAnswer::Refused)?;
        Ok(Answered { responses: Some(responses), state: required.request_state })
    }
}

/// A request that is waited for. Dropped before its answer is there, it is withdrawn: the server need not go on.
struct Waiting {
    peer: Peer<RoleClient>,
    request: Option<RequestId>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else { return };
        let peer = self.peer.clone();
        let withdrawn = CancelledNotificationParam::new(Some(request), Some("given up".to_owned()));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // A server that is gone, or takes nothing, need not be told.
                let told = peer.notify_cancelled(withdrawn);
                let _told = tokio::time::timeout(Duration::from_secs(5), told).await;
            });
        }
    }
}

fn no_answer(error: &ServiceError) -> NoAnswer {
    if error.is_authorization_required() || error.auth_challenge().is_some() {
        return NoAnswer::NeedsAuthorization;
    }
    let told = || cut(&visible(&with_causes(error)), MAX_REASON);
    match error {
        ServiceError::McpError(refusal) => NoAnswer::Refused(refusal.clone()),
        ServiceError::TransportClosed => NoAnswer::Died,
        ServiceError::TransportSend(_) if never_connected(error) => NoAnswer::NotSent(told()),
        ServiceError::TransportSend(_) => NoAnswer::Lost(told()),
        ServiceError::Timeout { .. } => NoAnswer::TimedOut,
        ServiceError::Cancelled { .. } => NoAnswer::Odd("it took the request for withdrawn".to_owned()),
        _ => NoAnswer::Odd(told()),
    }
}

/// Whether a connection could not even be made, so that nothing can have been done.
fn never_connected(error: &ServiceError) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(this) = cause {
        if this.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_connect) {
            return true;
        }
        cause = this.source();
    }
    false
}

/// The number of the next call, for the list of those under way.
pub(crate) fn next_number() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// What asks for a server without a call: its supervisor.
pub(crate) fn for_itself<'a>(
    connection: &'a Arc<Connection>,
    limit: Duration,
    cancel: &'a CancellationToken,
) -> Asking<'a> {
    Asking { connection, deadline: Instant::now() + limit, cancel, place: None }
}
