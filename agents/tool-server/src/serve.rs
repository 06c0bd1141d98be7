//! A process that serves tools: says that it is there, answers what is asked, and carries calls out.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use muster_bus::tool_servers::{ToolAsker, ToolCaller, ToolRequest};
use muster_bus::{Bus, BusError};
use muster_shared::secret::Redactor;
use muster_shared::sync::lock;
use muster_shared::wire::tool_question::{OpenQuestion, QuestionAnswer};
use muster_shared::wire::tool_server::{
    MOST_KEY, ServedResult, ServedStatus, ToolCall, ToolReply, ToolServerNotice,
};
use muster_tools::{Asker, Permission, Tool, ToolContext, ToolServerSettings};
use tokio::sync::{Semaphore, watch};
use tokio::time::{interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::answers::{Answers, Begun, Known, Outcome};
use crate::lending::{Lending, revoked};
use crate::offering::{Offering, served};
use crate::questions::Questions;

/// How often a process says that it is there. Whoever has not heard it for three of these takes it for gone.
const BEAT: Duration = Duration::from_secs(30);
/// How long a call is waited for before its caller is told that it goes on: so long it takes to notice that a process died.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// How long it is waited for when it is asked about again.
const NEXT_WAIT: Duration = Duration::from_secs(4);
/// Most requests that wait for the end of a call. Of those beyond it nothing is heard, and they are made again.
const MOST_WAITERS: usize = 512;
/// How long calls in hand may take when the process is told to stop.
const DRAIN: Duration = Duration::from_secs(10);
/// Between two looks whether they have ended.
const LOOK: Duration = Duration::from_millis(20);

/// A process that serves tools under a name.
pub struct ToolServer {
    bus: Bus,
    name: String,
    redactor: Arc<Redactor>,
    answers: Mutex<Answers>,
    offering: Mutex<Arc<Offering>>,
    waiters: Arc<Semaphore>,
    /// What a lender has beside this; nothing where calls need no lease.
    lending: Option<Lending>,
}

impl ToolServer {
    /// A server of this name, with no tools yet.
    #[must_use]
    pub fn new(
        bus: Bus,
        name: impl Into<String>,
        settings: ToolServerSettings,
        redactor: Arc<Redactor>,
    ) -> Arc<Self> {
        Self::made(bus, name.into(), settings, redactor, None)
    }

    pub(crate) fn made(
        bus: Bus,
        name: String,
        settings: ToolServerSettings,
        redactor: Arc<Redactor>,
        lending: Option<Lending>,
    ) -> Arc<Self> {
        let offering = Mutex::new(Arc::new(Offering::of(&name, &[])));
        let (answers, waiters) = (Mutex::new(Answers::new(settings)), Arc::new(Semaphore::new(MOST_WAITERS)));
        Arc::new(Self { bus, name, redactor, answers, offering, waiters, lending })
    }

    /// Begins to serve these tools, whatever they are at any time: from now on what is asked is kept. What is given serves until
    /// told to stop.
    ///
    /// # Errors
    /// When the name is none, or the bus fails.
    pub async fn begin(
        self: Arc<Self>,
        mut tools: watch::Receiver<Vec<Arc<dyn Tool>>>,
        stop: CancellationToken,
    ) -> Result<BoxFuture<'static, ()>, BusError> {
        self.offer(&tools.borrow_and_update().clone());
        let door = self.bus.tool_servers();
        let requests = match &self.lending {
            Some(lending) => door.serve_lent(&lending.role).await?,
            None => door.serve(&self.name).await?,
        };
        Ok(self.serve(requests, tools, stop).boxed())
    }

    async fn serve(
        self: Arc<Self>,
        mut requests: BoxStream<'static, ToolRequest>,
        mut tools: watch::Receiver<Vec<Arc<dyn Tool>>>,
        stop: CancellationToken,
    ) {
        let (mut beat, mut is_open) = (interval(BEAT), true);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                request = requests.next() => match request {
                    Some(request) => self.take(request).await,
                    None => break,
                },
                changed = tools.changed(), if is_open => match changed {
                    Ok(()) => {
                        self.offer(&tools.borrow_and_update().clone());
                        self.say_here().await;
                    }
                    Err(_) => is_open = false,
                },
                _ = beat.tick() => self.say_here().await,
            }
        }
        drop(requests);
        self.say(None).await;
        let begun = Instant::now();
        while self.answers().running() > 0 && begun.elapsed() < DRAIN {
            sleep(LOOK).await;
        }
    }

    /// The full names of the tools that are served now.
    #[must_use]
    pub fn tools(&self) -> Vec<String> {
        self.offering().specs.tools.iter().map(|tool| tool.full_name(&self.name)).collect()
    }

    fn offer(&self, tools: &[Arc<dyn Tool>]) {
        let offering = Arc::new(Offering::of(&self.name, tools));
        *lock(&self.offering) = offering;
    }

    pub(crate) fn offering(&self) -> Arc<Offering> {
        Arc::clone(&lock(&self.offering))
    }

    pub(crate) fn answers(&self) -> MutexGuard<'_, Answers> {
        lock(&self.answers)
    }

    async fn say_here(&self) {
        self.say(Some(self.offering().digest.clone())).await;
    }

    async fn say(&self, digest: Option<String>) {
        let notice = ToolServerNotice { server: self.name.clone(), process: self.bus.who().clone(), digest };
        if let Err(error) = self.bus.tool_servers().announce(&notice).await {
            tracing::warn!(%error, "agents could not be told of the tools");
        }
    }

    async fn take(self: &Arc<Self>, request: ToolRequest) {
        match request {
            ToolRequest::Who => self.say_here().await,
            ToolRequest::Specs(asker) => told(asker.describe(&self.offering().specs).await),
            ToolRequest::Cancel { from, ticket } => self.answers().leave(&ticket, &from.agent),
            ToolRequest::Wait { from, ticket, reply } => self.go_on(from, ticket, None, reply).await,
            ToolRequest::Answer { from, ticket, answered, reply } => {
                self.go_on(from, ticket, Some(*answered), reply).await;
            }
            ToolRequest::Call { from, call, reply } => self.take_call(from, call, None, reply).await,
            ToolRequest::Lending(request) => {
                if let Some(lending) = &self.lending {
                    self.take_lending(lending, request).await;
                }
            }
        }
    }

    /// Says how a call is getting on, once it has what was answered to it.
    async fn go_on(
        &self,
        from: ToolCaller,
        ticket: String,
        answered: Option<QuestionAnswer>,
        reply: ToolAsker,
    ) {
        // Only whoever waits for a call answers what it asks.
        let answered = answered.filter(|_| self.answers().waits(&ticket, &from.agent));
        let known = self.answers().find(&ticket, &from.agent, Instant::now());
        let Some(known) = known else { return told(reply.answer(&ToolReply::Unknown).await) };
        if let (Known::Running(_, questions), Some(answered)) = (&known, answered) {
            questions.answer(answered);
        }
        self.reply_later(Asked { reply, key: String::new(), ticket, wait: NEXT_WAIT }, known);
    }

    /// Answers a call, which is made under a lease where somebody lends.
    pub(crate) async fn take_call(
        self: &Arc<Self>,
        from: ToolCaller,
        call: Result<Box<ToolCall>, String>,
        lease: Option<&str>,
        reply: ToolAsker,
    ) {
        let mut call = match call {
            Ok(call) if call.key.len() <= MOST_KEY => call,
            Ok(call) => return told(reply.answer(&refused(call.key, "its key is too long")).await),
            Err(why) => return told(reply.answer(&refused(String::new(), &why)).await),
        };
        if let Err(why) = self.bus.tool_servers().vouched(&call) {
            tracing::warn!(agent = %from.agent, run = call.run, task = call.task, why, "a call is refused");
            return told(reply.answer(&refused(call.key, &why)).await);
        }
        let (ticket, answered) = (call.ticket(), std::mem::take(&mut call.answered));
        let known = self.answers().find(&ticket, &from.agent, Instant::now());
        if let Some(known) = known {
            if let Known::Running(_, questions) = &known {
                answered.into_iter().for_each(|one| questions.answer(one));
                self.uses(lease, &ticket);
            }
            return self.reply_later(Asked { reply, key: call.key, ticket, wait: FIRST_WAIT }, known);
        }
        let offering = self.offering();
        let Some(tool) = offering.is_current(&call.tool, &call.spec).map(str::to_owned) else {
            return told(reply.answer(&ToolReply::Changed).await);
        };
        let questions = Questions::new(call.may_ask, answered);
        let begun = self.answers().begin(&ticket, &from.agent, &questions);
        let Some(Begun { done, cancel, outcome }) = begun else {
            return told(reply.answer(&ToolReply::Busy).await);
        };
        self.uses(lease, &ticket);
        let asked = Asked { reply, key: call.key.clone(), ticket: ticket.clone(), wait: FIRST_WAIT };
        let (server, asker, since) = (Arc::clone(self), Arc::clone(&questions), Instant::now());
        tokio::spawn(async move {
            let place = Place { tool: &tool, asker, cancel: &cancel };
            let mut result = server.carry_out(&offering, &call, place).await;
            let is_revoked = server.lending.as_ref().is_some_and(|lending| lending.ended(&ticket));
            if is_revoked {
                result = revoked(&tool);
            }
            server.note(&tool, result.status, since);
            let result = Arc::new(result);
            // What was given up is as if it had not been asked for; what could not be reached was not done. That a lease was
            // revoked is told to whoever asks.
            let kept = !cancel.is_cancelled() && result.status != ServedStatus::Unavailable || is_revoked;
            server.answers().end(&ticket, &result, kept, Instant::now());
            done.send_replace(Some(result));
        });
        self.reply_later(asked, Known::Running(outcome, questions));
    }

    /// Tells whoever looks on how a call ended.
    fn note(&self, tool: &str, status: ServedStatus, since: Instant) {
        if let Some(observer) = self.bus.observer() {
            observer.served(tool, status, since.elapsed());
        }
    }

    fn uses(&self, lease: Option<&str>, ticket: &str) {
        if let (Some(lending), Some(lease)) = (&self.lending, lease) {
            lending.uses(lease, ticket);
        }
    }

    async fn carry_out(
        &self,
        offering: &Offering,
        call: &ToolCall,
        Place { tool, asker, cancel }: Place<'_>,
    ) -> ServedResult {
        let mut context = ToolContext::new(call.run.clone(), call.task.clone())
            .under_key(call.key.clone())
            .within(Arc::new(call.rights.clone()))
            // Whether an agent may call it is looked at where it is called from; here it is the server that does it.
            .granting(Permission::ALL);
        context.cancel = cancel.clone();
        context.approved = call.approved;
        context.asker = Some(asker as Arc<dyn Asker>);
        let calling = offering.engine.call(tool, call.arguments.clone(), &context);
        let result = match timeout(Duration::from_millis(call.patience_ms), calling).await {
            Ok(result) => served(result),
            Err(_) => {
                cancel.cancel();
                let content = format!("`{tool}` was given up: nobody waits for it any more.");
                ServedResult { status: ServedStatus::Timeout, content, data: None }
            }
        };
        self.redacted(result)
    }

    fn redacted(&self, mut result: ServedResult) -> ServedResult {
        result.content = self.redactor.redact(&result.content).into_owned();
        if let Some(data) = &mut result.data {
            self.redactor.redact_value(data);
        }
        result
    }

    /// Answers when the call has ended, or after a while that it goes on.
    fn reply_later(&self, Asked { reply, key, ticket, wait }: Asked, known: Known) {
        let Ok(place) = Arc::clone(&self.waiters).try_acquire_owned() else { return };
        let process = self.bus.who().clone();
        tokio::spawn(async move {
            let _place = place;
            let heard = match known {
                Known::Ended(result) => Heard::End(result),
                Known::Running(outcome, questions) => hear(outcome, &questions, wait).await,
            };
            let said = match heard {
                Heard::End(result) => ToolReply::Done { key, result: (*result).clone() },
                Heard::Question(asked) => ToolReply::Asks { key, ticket, process, asked: Box::new(asked) },
                Heard::Nothing => ToolReply::Running { key, ticket, process },
            };
            told(reply.answer(&said).await);
        });
    }
}

/// Somebody who waits for the end of a call.
struct Asked {
    reply: ToolAsker,
    /// The key of the call; nothing where it is named by its ticket.
    key: String,
    ticket: String,
    /// How long it waits before it is told that the call goes on.
    wait: Duration,
}

/// What a call is carried out with.
struct Place<'a> {
    /// The full name of the tool.
    tool: &'a str,
    /// Whom it may ask.
    asker: Arc<Questions>,
    cancel: &'a CancellationToken,
}

/// What is heard of a call.
enum Heard {
    /// It has ended.
    End(Arc<ServedResult>),
    /// It asks something.
    Question(OpenQuestion),
    /// It goes on.
    Nothing,
}

/// What is heard of a call within this time.
async fn hear(mut outcome: Outcome, questions: &Questions, wait: Duration) -> Heard {
    tokio::select! {
        biased;
        ended = outcome.wait_for(Option::is_some) => match ended.ok().and_then(|result| result.clone()) {
            Some(result) => Heard::End(result),
            None => Heard::Nothing,
        },
        asked = questions.next() => Heard::Question(asked),
        () = sleep(wait) => Heard::Nothing,
    }
}

fn refused(key: String, why: &str) -> ToolReply {
    let content = format!("The tool server does not carry the call out: {why}.");
    ToolReply::Done { key, result: ServedResult { status: ServedStatus::Refused, content, data: None } }
}

pub(crate) fn told(done: Result<(), BusError>) {
    if let Err(error) = done {
        tracing::warn!(%error, "an answer of the tool server is lost");
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
