//! A decision while it is being made: the run's state, and what was decided so far.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::flow::{Placement, Specialty, TaskOffered};
use muster_shared::ids::{AgentId, Queue, Seq, TaskId};
use muster_shared::run::event::{TaskAborted, TaskCompleted, TaskFailed};
use muster_shared::run::{
    ApplyError, Input, RunEvent, RunState, TaskState, apply_offer, begin_run, close_inputs, fold_event,
};
use muster_shared::time::Millis;
use uuid::Uuid;

use super::as_it_was::AsItWas;
use super::effect::Effect;
use super::{Decision, Situation, is_of_agent};

/// A decision in the making. Every event is folded at once, so that what is decided next sees what folding the
/// record gives later.
pub(super) struct DecisionBuilder<'a> {
    situation: Situation<'a>,
    /// In one place: it is large, and handed on from part to part.
    run: Option<Box<RunState>>,
    /// The run as it stood before, while all that was decided so far may be put off.
    before: Option<AsItWas>,
    events: Vec<RunEvent>,
    offers: Vec<TaskOffered>,
    effects: Vec<Effect>,
    /// What the queues take, once the fleet was asked.
    lent: Option<BTreeMap<Queue, u32>>,
    /// Whether it is only looked for what would be offered.
    only_looks: bool,
    /// Whether something is due sooner by what was decided.
    is_urgent: bool,
    wanted: BTreeMap<Queue, u32>,
    requests: BTreeSet<Uuid>,
    most_offers: usize,
    more: bool,
    told_of_specialists: bool,
    placements: Vec<Placement>,
    given: BTreeMap<AgentId, u32>,
    /// What outcomes of this decision do not hold that their agents promise.
    broken: BTreeMap<Seq, Vec<String>>,
    /// The outcomes that guards refused with this decision.
    refused: BTreeSet<Seq>,
    wrong: Option<ApplyError>,
}

impl<'a> DecisionBuilder<'a> {
    pub(super) fn new(run: Option<Box<RunState>>, situation: Situation<'a>) -> Self {
        let may_wait = run.as_ref().is_some_and(|run| run.control.paused.is_none());
        Self {
            situation,
            run,
            before: may_wait.then(AsItWas::new),
            events: Vec::new(),
            offers: Vec::new(),
            effects: Vec::new(),
            lent: None,
            only_looks: false,
            is_urgent: false,
            wanted: BTreeMap::new(),
            requests: BTreeSet::new(),
            most_offers: 0,
            more: false,
            told_of_specialists: false,
            placements: Vec::new(),
            given: BTreeMap::new(),
            broken: BTreeMap::new(),
            refused: BTreeSet::new(),
            wrong: None,
        }
    }

    /// The run as it stands, ended or not.
    pub(super) fn run(&self) -> Option<&RunState> {
        self.run.as_deref()
    }

    /// The run as it stands, if anything can still be decided about it.
    pub(super) fn open(&self) -> Option<&RunState> {
        self.run.as_deref().filter(|run| self.wrong.is_none() && !run.status.is_ended())
    }

    /// The run, while it is open.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn require_open(&self) -> Result<&RunState, String> {
        self.open().ok_or_else(|| "the run has ended".to_owned())
    }

    /// A task of the run, while the run is open.
    pub(super) fn task(&self, task: &TaskId) -> Option<&TaskState> {
        self.open()?.tasks.get(task)
    }

    pub(super) const fn situation(&self) -> &Situation<'a> {
        &self.situation
    }

    /// What the roles are for that users defined. From now on the decision depends on it.
    pub(super) const fn specialists(&mut self) -> &'a [Specialty] {
        self.told_of_specialists |= !self.situation.specialists.is_empty();
        self.situation.specialists
    }

    /// The tools that tasks of a plan may name. From now on the decision depends on what agents say they have.
    pub(super) fn nameable_tools(&mut self) -> Vec<String> {
        muster_shared::plan::tools::known(self.specialists())
    }

    /// Whether a task of the plan ends with what was decided so far.
    pub(super) fn ends_a_leaf(&self) -> bool {
        self.events.iter().any(|event| {
            matches!(
                event,
                RunEvent::TaskCompleted(TaskCompleted { task: TaskId::Leaf(_), .. })
                    | RunEvent::TaskFailed(TaskFailed { task: TaskId::Leaf(_), .. })
                    | RunEvent::TaskAborted(TaskAborted { task: TaskId::Leaf(_), .. })
            )
        })
    }

    /// Takes note that the result of an outcome does not fit the contract of its agent.
    pub(super) fn broken(&mut self, outcome: Seq, faults: &[String]) {
        self.broken.insert(outcome, faults.to_vec());
    }

    /// What of an agent's contract the result of an outcome does not hold.
    pub(super) fn contract_violation(&self, outcome: Seq) -> Option<&[String]> {
        self.broken.get(&outcome).map(Vec::as_slice)
    }

    /// Takes note that guards refused what an outcome gave.
    pub(super) fn was_refused_by_guard(&mut self, outcome: Seq) {
        self.refused.insert(outcome);
    }

    /// Whether they did.
    pub(super) fn is_refused_by_guard(&self, outcome: Seq) -> bool {
        self.refused.contains(&outcome)
    }

    pub(super) const fn now(&self) -> Millis {
        self.situation.now
    }

    /// How many offers the queue takes after those made so far.
    pub(super) fn room(&self, queue: &Queue) -> u32 {
        let made = self.offers.iter().filter(|offer| offer.queue == *queue).count();
        let room = self.capacity().get(queue).copied().unwrap_or(0);
        room.saturating_sub(u32::try_from(made).unwrap_or(u32::MAX))
    }

    /// How many offers each queue takes. Its keys are also the roles that the fleet knows.
    pub(super) fn capacity(&self) -> &BTreeMap<Queue, u32> {
        self.lent.as_ref().unwrap_or(self.situation.capacity)
    }

    /// From now on it is only looked for what would be offered if there were room: no queue has any.
    pub(super) const fn begin_to_look(&mut self) {
        self.only_looks = true;
    }

    /// Whether it is only looked for what would be offered.
    pub(super) const fn only_looks(&self) -> bool {
        self.only_looks
    }

    /// Asks the fleet for room for what would be offered. What is wanted in spite of it is found out anew.
    pub(super) fn borrow_room(&mut self) {
        self.only_looks = false;
        self.given.clear();
        let wanted = std::mem::take(&mut self.wanted);
        self.more = false;
        let asks = self.wrong.is_none() && !wanted.is_empty();
        let Some(run) = self.run.as_deref().filter(|_| asks) else { return };
        let mut capacity = self.situation.capacity.clone();
        capacity.extend(self.situation.placing.lend(run, &wanted));
        self.lent = Some(capacity);
    }

    /// Sets how many offers the decision makes at most.
    pub(super) const fn limit_offers(&mut self, most: usize) {
        self.most_offers = most;
    }

    /// Whether the decision makes all the offers that it may.
    pub(super) const fn is_full(&self) -> bool {
        self.offers.len() >= self.most_offers
    }

    /// Whether this is the first time that the decision hears of a request.
    pub(super) fn takes_up(&mut self, request: Uuid) -> bool {
        self.requests.insert(request)
    }

    pub(super) fn emit(&mut self, event: impl Into<RunEvent>) {
        debug_assert!(!self.only_looks, "nothing is decided meanwhile");
        if self.wrong.is_some() {
            return;
        }
        let event = event.into();
        if !concerns_nobody(&event) {
            self.before = None;
        }
        if let (Some(before), Some(run)) = (&mut self.before, &self.run) {
            before.before_event(run, &event);
        }
        match self.fold(&event) {
            Ok(()) => self.events.push(event),
            Err(wrong) => self.wrong = Some(wrong),
        }
    }

    fn fold(&mut self, event: &RunEvent) -> Result<(), ApplyError> {
        let Situation { id, now, .. } = self.situation;
        match &mut self.run {
            Some(run) => fold_event(run, event, now),
            None => {
                self.run = Some(Box::new(begin_run(id, event, now)?));
                Ok(())
            }
        }
    }

    pub(super) fn offer(&mut self, offer: TaskOffered) {
        self.before = None;
        let Some(run) = self.run.as_deref_mut().filter(|_| self.wrong.is_none()) else { return };
        match apply_offer(run, &offer, self.situation.now) {
            Ok(()) => self.offers.push(offer),
            Err(wrong) => self.wrong = Some(wrong),
        }
    }

    /// Whether all that was decided so far may be put off.
    pub(super) const fn may_wait(&self) -> bool {
        self.before.is_some()
    }

    /// What was decided is to be written now.
    pub(super) fn must_not_wait(&mut self) {
        (self.before, self.is_urgent) = (None, true);
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.before = None;
        self.effects.push(effect);
    }

    /// Whether whoever works for the run is told that it is over.
    pub(super) fn cancels_run(&self) -> bool {
        self.effects.iter().any(|effect| matches!(effect, Effect::CancelRun { .. }))
    }

    /// What was given, or would have been given, to each agent so far.
    pub(super) const fn given(&self) -> &BTreeMap<AgentId, u32> {
        &self.given
    }

    /// Takes note that a task goes where the fleet says. The decision depends on it, so it stands in the record.
    pub(super) fn placed(&mut self, placement: Placement) {
        self.placements.push(placement);
    }

    /// Takes note that a task has to wait for where the fleet says. That matters where it could have gone elsewhere.
    pub(super) fn held_back(&mut self, placement: Placement, otherwise: &Queue) {
        if placement.to != *otherwise && self.room(otherwise) > 0 {
            self.placements.push(placement.bare());
        }
    }

    /// Counts what an agent is given by name.
    pub(super) fn give(&mut self, queue: &Queue) {
        if let Queue::Agent(agent) = queue {
            let count = self.given.entry(agent.clone()).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// Notes that an offer would have been made if the queue had room for it.
    pub(super) fn want(&mut self, queue: Queue) {
        let count = self.wanted.entry(queue).or_default();
        *count = count.saturating_add(1);
    }

    /// The queues for which there was no room.
    pub(super) fn wanted(&self) -> impl Iterator<Item = &Queue> {
        self.wanted.keys()
    }

    /// Leaves an offer to the next decision, which follows at once.
    pub(super) fn postpone(&mut self, queue: Queue) {
        self.more = true;
        self.want(queue);
    }

    pub(super) fn finish(mut self, inputs: &[Input]) -> Result<Decision, ApplyError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let changes_nothing = self.events.is_empty() && self.offers.is_empty() && self.effects.is_empty();
        let names_agents = inputs.iter().any(is_of_agent);
        let deferrable = self.is_deferrable();
        // A decision of which nothing is written leaves the run as it is.
        if let Some(run) = self.run.as_deref_mut().filter(|_| !changes_nothing || names_agents) {
            if let Some(before) = &mut self.before {
                before.before_closing(run, inputs);
            }
            close_inputs(run, inputs);
        }
        let Self { run, before, events, offers, effects, lent, wanted, more, placements, .. } = self;
        let told_of_specialists = self.told_of_specialists;
        Ok(Decision {
            events,
            offers,
            effects,
            wanted,
            lent,
            more,
            deferrable,
            told_of_specialists,
            placements,
            after: run,
            before,
        })
    }

    /// Whether nobody waits for what was decided: it can as well be written with the next decision. That there
    /// will be one is certain while something is in an agent's hands, but for a run that is paused.
    fn is_deferrable(&self) -> bool {
        self.run.as_ref().is_none_or(|run| run.control.paused.is_none())
            && !self.is_urgent
            && self.offers.is_empty()
            && self.effects.is_empty()
            && self.events.iter().all(concerns_nobody)
    }
}

/// What is not named here is written at once: whoever it concerns does not wait for the next decision.
const fn concerns_nobody(event: &RunEvent) -> bool {
    matches!(
        event,
        RunEvent::TaskStarted(_)
            | RunEvent::TaskReleased(_)
            | RunEvent::Reflected(_)
            | RunEvent::RefinementWanted(_)
            | RunEvent::TaskCompleted(_)
    )
}
