//! Writing to the record: decisions with their offers, and what agents say. Every write is fenced.

use std::sync::Arc;

use muster_shared::flow::rights::statement;
use muster_shared::flow::{Goal, TaskOffered};
use muster_shared::ids::{Attempt, Queue, RunId, Seq};
use muster_shared::run::Unreadable as Garbled;
use muster_shared::run::chain::digest;
use muster_shared::run::{AgentEvent, AgentKey, Decided, Digest, Link, LinkDraft};
use muster_shared::wire::{Body, Encoding};
use uuid::Uuid;

use super::{BATCH_LIMIT, Record};
use crate::backend::{Appended, Fence, Message, OUTER_RUN};
use crate::error::{AppendError, BusError};
use crate::observer::DecisionSeen;
use crate::seal::About;
use crate::subject::{self, Subject};

/// A decision to be written with a link of the run's hash chain.
#[derive(Debug)]
pub struct LinkedDecision {
    /// What it is fenced by, as in [`Record::append_decision`].
    pub after: Seq,
    /// The decision.
    pub decided: Decided,
    /// The offers that are messages of their own.
    pub offers: Vec<TaskOffered>,
    /// Its link, up to the decision's own messages.
    pub link: LinkDraft,
    /// How it is written.
    pub encoding: Encoding,
}

/// Where a decision stands that carries a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendedDecision {
    /// The place of its first message.
    pub first: Seq,
    /// The hash of its link.
    pub link: Digest,
}

impl Record {
    /// Appends a decision and its offers, all or nothing, if nothing was written under `run.<run>.>` since `after`.
    /// Each offer is at the same time its queue entry; so is a decision with an offer inside, which is one message.
    /// Several are an atomic batch, for which the server sets up a store of its own: some 3 ms.
    ///
    /// # Errors
    /// See [`AppendError`]. A batch of more than [`BATCH_LIMIT`] messages, or with offers of another run, is a
    /// mistake of the caller and refused.
    pub async fn append_decision(
        &self,
        run: RunId,
        after: Seq,
        decided: &Decided,
        offers: &[TaskOffered],
        encoding: Encoding,
    ) -> Result<Appended, AppendError> {
        let messages = self.decision(run, decided.clone(), offers.to_vec(), encoding).await?;
        self.append(run, messages, Fence { filter: subject::run_fence(run), after }).await
    }

    /// The same with a link of the run's hash chain over all messages, of a decision and offers of which nothing is needed
    /// any more: they are not copied.
    ///
    /// # Errors
    /// See [`Self::append_decision`].
    pub async fn append_linked(
        &self,
        run: RunId,
        new: LinkedDecision,
    ) -> Result<AppendedDecision, AppendError> {
        let LinkedDecision { after, decided, offers, link, encoding } = new;
        let seen = self.core.observer.as_ref().map(|observer| {
            let seen = DecisionSeen::of(&decided);
            let offers = u32::try_from(offers.len()).unwrap_or(u32::MAX);
            (observer, DecisionSeen { offers: seen.offers.max(offers), ..seen })
        });
        let mut messages = self.decision(run, decided, offers, encoding).await?;
        let link = link.over(messages.iter().map(|message| digest(&message.subject, &message.payload)));
        let seal = self.core.signatures.seal(run, link.hash);
        let link = Link { seal, ..link };
        if let Some(first) = messages.first_mut() {
            first.headers.add(Link::HEADER, &link.to_header());
        }
        let fence = Fence { filter: subject::run_fence(run), after };
        let Appended { first, .. } = self.append(run, messages, fence).await?;
        if link.seal.is_some() {
            self.core.signatures.introduced_in(run);
        }
        if let Some((observer, seen)) = seen {
            observer.decided(run, first, &seen);
        }
        Ok(AppendedDecision { first, link: link.hash })
    }

    /// The messages that a decision is, with its offers.
    async fn decision(
        &self,
        run: RunId,
        decided: Decided,
        offers: Vec<TaskOffered>,
        encoding: Encoding,
    ) -> Result<Vec<Message>, AppendError> {
        check_batch(run, &decided, &offers)?;
        let (subject, about) = match decided.offer.as_deref() {
            Some(offer) => place_of(offer),
            None => (Subject::Decided(run), About::run(run)),
        };
        let mut messages = Vec::with_capacity(1 + offers.len());
        let said = decided.offer.as_deref().map(statement);
        let outer = decided.goal().and_then(Goal::outer_run);
        let mut first = self.core.seal(subject.to_string(), Body::Decided(decided), about, encoding).await?;
        said.iter().for_each(|said| self.core.vouch(said, &mut first));
        outer.iter().for_each(|outer| first.headers.add(OUTER_RUN, &outer.to_string()));
        messages.push(first);
        for offer in offers {
            let ((subject, about), said) = (place_of(&offer), statement(&offer));
            let body = Body::Offered(offer);
            let mut message = self.core.seal(subject.to_string(), body, about, encoding).await?;
            self.core.vouch(&said, &mut message);
            messages.push(message);
        }
        Ok(messages)
    }

    /// Appends an agent's event if nobody wrote about this generation of the task since `after`.
    ///
    /// # Errors
    /// See [`AppendError`].
    pub async fn append_agent(
        &self,
        run: RunId,
        key: &AgentKey,
        after: Seq,
        event: &AgentEvent,
        encoding: Encoding,
    ) -> Result<Seq, AppendError> {
        self.append_named(Uuid::now_v7(), run, key, after, event, encoding).await
    }

    /// The same under an id of the author's choice, by which it is known again ([`Record::read_named`]).
    ///
    /// # Errors
    /// As [`Self::append_agent`].
    pub async fn append_named(
        &self,
        id: Uuid,
        run: RunId,
        key: &AgentKey,
        after: Seq,
        event: &AgentEvent,
        encoding: Encoding,
    ) -> Result<Seq, AppendError> {
        let subject = Subject::Event(run, key.clone(), event.kind()).to_string();
        let attempt = if let AgentEvent::Started(started) = event {
            Some(started.attempt).filter(|attempt| *attempt > Attempt(0))
        } else {
            None
        };
        let about = About { attempt, ..About::task(run, &key.task) };
        let body = body_of(event).map_err(|garbled| BusError::Other {
            what: "a write to the record".into(),
            reason: format!("what cannot be read is not written: {}", garbled.why),
        })?;
        let message = self.core.seal_as(id, subject, body, about, encoding).await?;
        let filter = subject::task_fence(run, &key.task, key.generation);
        let appended = self.append(run, vec![message], Fence { filter, after }).await?;
        if let Some(observer) = &self.core.observer {
            observer.reported(run, key, event, self.core.trace.as_ref());
        }
        Ok(appended.last)
    }

    /// The only write to the record. The server accepts a fence that does not cover the subject and then guards
    /// nothing, so that is checked here.
    async fn append(
        &self,
        run: RunId,
        messages: Vec<Message>,
        fence: Fence,
    ) -> Result<Appended, AppendError> {
        if let Some(stray) =
            messages.iter().find(|message| !subject::matches(&fence.filter, &message.subject))
        {
            let reason = format!("the fence {} does not cover {}", fence.filter, stray.subject);
            return Err(BusError::Other { what: "a write to the record".into(), reason }.into());
        }
        self.core.append_to(self.core.part_of(run).await?, messages, fence).await
    }
}

fn check_batch(run: RunId, decided: &Decided, offers: &[TaskOffered]) -> Result<(), AppendError> {
    let wrong = |reason: String| {
        Err(AppendError::Bus(BusError::Other { what: "a write to the record".into(), reason }))
    };
    if offers.len() >= BATCH_LIMIT {
        return wrong(format!(
            "a batch of {} offers; chain decisions of {} or more",
            offers.len(),
            BATCH_LIMIT
        ));
    }
    if usize::try_from(decided.offers).ok() != Some(offers.len()) {
        return wrong(format!("the decision announces {} offers, {} follow", decided.offers, offers.len()));
    }
    if decided.offer.is_some() && (decided.tells_secret() || !offers.is_empty()) {
        return wrong("an offer inside a decision that tells the run's secret, or has other offers".into());
    }
    match decided.offer.as_deref().into_iter().chain(offers).find(|offer| offer.run != run) {
        Some(offer) => wrong(format!("an offer of run {} in a decision of run {run}", offer.run)),
        None => Ok(()),
    }
}

/// Where an offer is written, and what its envelope says: agents read it from there.
fn place_of(offer: &TaskOffered) -> (Subject, About) {
    let subject = Subject::Offer(offer.run, offer.queue.clone(), offer.task.clone());
    let receiver = match &offer.queue {
        Queue::Agent(agent) => Some(agent.clone()),
        Queue::Role(_) => None,
    };
    (
        subject,
        About {
            expires: Some(offer.deadline),
            receiver,
            trace: offer.trace.clone(),
            ..About::task(offer.run, &offer.task)
        },
    )
}

/// What is written of an event. What could not be read is nothing to be written.
fn body_of(event: &AgentEvent) -> Result<Body, Garbled> {
    Ok(match event.clone() {
        AgentEvent::Started(started) => Body::Started(started),
        AgentEvent::ToolStarted(started) => Body::ToolStarted(started),
        AgentEvent::Step(step) => Body::Step(step),
        AgentEvent::Released(released) => Body::Released(released),
        AgentEvent::Outcome(outcome) => Body::Outcome(Arc::unwrap_or_clone(outcome)),
        AgentEvent::Unreadable(unreadable) => return Err(unreadable),
    })
}
