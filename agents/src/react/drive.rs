//! Carrying out what was decided: asks the model, runs tools, writes the record. One task from `started` to its
//! outcome.

mod act;
mod consult;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_shared::flow::response::TOO_LONG;
use muster_shared::flow::{
    Action, AgentState, Awaited, ContractViolation, Ending, Information, ModelCall, Note, Observation,
    Outcome, Step, TaskOffered, Thought, Usage,
};
use muster_shared::run::{AgentEvent, Released};

use self::act::Acted;
use super::close::{CloseOutcome, outcome_of, verdict_of, write_outcome};
use super::decide::{ChosenAction, NextStep, decide, exhausted};
use super::files::with_news;
use super::history::{History, cut, in_brief};
use super::interrupt::{HandedOver, Interrupts, cancelled, released_by, unless_handed_over};
use super::journal::{Journal, JournalError, JournalOpening, Starter};
use super::mailbox::Mailbox;
use super::model::{Asking, Heard, ModelClient, offline_answer};
use super::opening::opening;
use super::ownership::TaskOwnership;
use super::partial::best_so_far;
use super::progress::ProgressStream;
use super::prompt::{CallStyle, Conversation};
use super::resources::TaskResources;
use super::submit::mark_offline;
use super::uncertain;
use crate::definition::Contract;
use crate::model::call_admission::CallAdmission;
use crate::model::chat::{ModelError, ModelErrorKind};
use crate::roles::{Submission, data_by_rule, refusal};

/// Longest description of what a task waits for that is kept with it, in characters.
const WAIT_SHOWN: usize = 200;

/// Takes a task to its end, or until `time_is_up`. `equip` makes ready what it needs, once the task is known to be ours.
pub async fn drive<E>(
    offer: &TaskOffered,
    starter: &Starter,
    (record, patience): (muster_bus::Record, Duration),
    (interrupt, mailbox, time_is_up): (Interrupts, Mailbox, impl Future<Output = ()> + Send),
    progress: ProgressStream,
    equip: E,
) -> CloseOutcome
where
    E: AsyncFnOnce() -> Result<TaskResources, String> + Send,
{
    let (mut journal, history) = match Journal::open(record, offer, starter, patience).await {
        Ok(JournalOpening::Ours(opened)) => *opened,
        Ok(JournalOpening::Closed) => return CloseOutcome::Closed,
        Err(error) => return verdict_of(&error, offer),
    };
    if let Some(outcome) = history.ended_before() {
        return write_outcome(&mut journal, outcome).await.unwrap_or_else(|error| verdict_of(&error, offer));
    }
    if let Some(why) = history.announced_unreadably() {
        let submission = uncertain::unreadable(history.next_step(), why);
        let outcome = outcome_of(&history, submission, None, Usage::default());
        return write_outcome(&mut journal, outcome).await.unwrap_or_else(|error| verdict_of(&error, offer));
    }
    let (handing_over, ownership) = (interrupt.clone(), journal.ownership());
    let (pending, notes, told) = (Vec::new(), Vec::new(), Vec::new());
    let (wasted, gate) = (Usage::default(), CallAdmission::default());
    let (contract, contract_violation) = (None, None);
    let mut course = TaskSession {
        offer,
        history,
        pending,
        notes,
        mailbox,
        told,
        wasted,
        gate,
        ownership,
        handing_over,
        progress,
        contract,
        contract_violation,
    };
    let stopped = tokio::select! {
        biased;
        reason = cancelled(interrupt) => Stopped::Cancelled(reason),
        () = time_is_up => Stopped::DeadlinePassed,
        end = course.work(&mut journal, equip) => Stopped::Ended(Box::new(end)),
    };
    let written = match course.conclude(stopped) {
        Conclusion::Outcome(outcome) => write_outcome(&mut journal, *outcome).await,
        Conclusion::Released(released) => {
            let verdict = if released.parked { CloseOutcome::Parked } else { CloseOutcome::Released };
            journal.append(&AgentEvent::Released(released)).await.map(|()| verdict)
        }
        Conclusion::Nothing(error) => Err(error),
    };
    written.unwrap_or_else(|error| verdict_of(&error, offer))
}

/// What ended the work.
enum Stopped {
    Ended(Box<Result<End, Failure>>),
    Cancelled(String),
    DeadlinePassed,
}

/// What is written in the end.
enum Conclusion {
    Outcome(Box<Outcome>),
    Released(Released),
    Nothing(JournalError),
}

/// The model is done.
struct End {
    submission: Submission,
    chosen: Option<ChosenAction>,
    clock: Clock,
}

/// Why work cannot go on.
enum Failure {
    Journal(JournalError),
    Model(ModelError),
    Setup(String),
    HandedOver,
    /// The task waits: it is put down until what it waits for is there.
    Waits(Box<Awaited>),
}

impl From<HandedOver> for Failure {
    fn from(HandedOver: HandedOver) -> Self {
        Self::HandedOver
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

/// Time of a step, and how much of it was spent outside.
#[derive(Clone, Copy)]
struct Clock {
    begun: Instant,
    outside: Duration,
}

impl Clock {
    fn start() -> Self {
        Self { begun: Instant::now(), outside: Duration::ZERO }
    }
}

/// One task on its way.
struct TaskSession<'a> {
    offer: &'a TaskOffered,
    history: History,
    /// Calls of the step being taken, which no event holds yet.
    pending: Vec<ModelCall>,
    /// What is remarked on it.
    notes: Vec<Note>,
    /// What other tasks tell this one.
    mailbox: Mailbox,
    /// What of it the model is told with the step being taken.
    told: Vec<Information>,
    /// What calls used that gave no answer.
    wasted: Usage,
    /// Asked before every call.
    gate: CallAdmission,
    /// Tells whether the task is still ours.
    ownership: Arc<TaskOwnership>,
    /// Tells when the task is to be handed over.
    handing_over: Interrupts,
    progress: ProgressStream,
    /// What a specialist promises.
    contract: Option<Contract>,
    /// What of it does not hold.
    contract_violation: Option<ContractViolation>,
}

/// The equipment, the conversation, and what follows from both.
struct Toolbox {
    resources: TaskResources,
    conversation: Option<Conversation>,
}

impl TaskSession<'_> {
    async fn work<E>(&mut self, journal: &mut Journal, equip: E) -> Result<End, Failure>
    where
        E: AsyncFnOnce() -> Result<TaskResources, String> + Send,
    {
        let equipped = unless_handed_over(self.handing_over.clone(), equip()).await?;
        let resources = equipped.map_err(Failure::Setup)?;
        self.contract = resources.rules.contract.clone();
        if let Some(contract_violation) =
            self.contract.as_ref().and_then(|contract| contract.refused(self.offer))
        {
            let submission = refusal(&contract_violation);
            self.contract_violation = Some(contract_violation);
            return Ok(End { submission, chosen: None, clock: Clock::start() });
        }
        let gate = resources.gate(self.offer, self.history.usage());
        let owing = if resources.model.is_offline() { 0 } else { self.history.unanswered() };
        self.gate = gate
            .telling(self.progress.waiter())
            .held_by(Arc::<TaskOwnership>::clone(&self.ownership))
            .owing(owing);
        let mut toolbox = Toolbox { resources, conversation: None };
        if let Some(end) = self.finish_begun(journal, &mut toolbox).await? {
            return Ok(end);
        }
        toolbox.conversation = self.converse(&toolbox.resources);
        loop {
            if released_by(self.handing_over.borrow().as_ref()).is_some() {
                return Err(Failure::HandedOver);
            }
            let case = toolbox.resources.case(self.offer);
            if let Some(submission) = exhausted(&self.history, &case) {
                return Ok(End { submission, chosen: None, clock: Clock::start() });
            }
            if let Some(end) = self.step(journal, &mut toolbox).await? {
                return Ok(end);
            }
        }
    }

    /// One turn of the loop; gives the end if this was the last.
    async fn step(&mut self, journal: &mut Journal, toolbox: &mut Toolbox) -> Result<Option<End>, Failure> {
        let mut clock = Clock::start();
        self.progress.begin(self.history.next_step());
        let next = self.think(toolbox, &mut clock).await?;
        self.settle(journal, toolbox, next, clock).await
    }

    /// Carries out what was decided; gives the end if this was the last step.
    async fn settle(
        &mut self,
        journal: &mut Journal,
        toolbox: &mut Toolbox,
        next: NextStep,
        mut clock: Clock,
    ) -> Result<Option<End>, Failure> {
        let next = self.consult(journal, &toolbox.resources, next, &mut clock).await?;
        let (step, lasting) = match next {
            NextStep::Submit { chosen, mut submission } => {
                self.say(&chosen.action, toolbox);
                if toolbox.resources.model.is_offline() {
                    mark_offline(&mut submission.product);
                }
                toolbox.resources.name_files(&mut submission.product).await;
                return Ok(Some(End { submission, chosen: Some(chosen), clock }));
            }
            NextStep::Conclude { submission, notes } => {
                self.remark(notes);
                return Ok(Some(End { submission, chosen: None, clock }));
            }
            // Both are settled before; should they come here, the next turn asks again.
            NextStep::AskAgain { .. } | NextStep::Consult { .. } => return Ok(None),
            NextStep::Refuse { chosen, observation } | NextStep::Observe { chosen, observation } => {
                self.say(&chosen.action, toolbox);
                (self.make_step(chosen, Some(observation), clock), false)
            }
            NextStep::CallTool { chosen, pure } => {
                self.say(&chosen.action, toolbox);
                if !pure {
                    self.announce(journal, &chosen, clock).await?;
                }
                let key = self.idempotency_key();
                let acting = self.act(&chosen, &key, &toolbox.resources, &mut clock);
                let put_down: Failure = match unless_handed_over(self.handing_over.clone(), acting).await {
                    Ok(Acted::Observed(observation)) => {
                        let step = self.make_step(chosen, Some(observation), clock);
                        return self.go_on(journal, toolbox, step, !pure).await;
                    }
                    Ok(Acted::Waits(wait)) => self.waits(*wait),
                    Err(handed_over) => handed_over.into(),
                };
                if pure {
                    // So that whoever goes on need not ask the model again.
                    self.keep(journal, &chosen, clock).await?;
                }
                self.pending.clear();
                return Err(put_down);
            }
        };
        self.go_on(journal, toolbox, step, lasting).await
    }

    /// Journals a step; the task goes on.
    async fn go_on(
        &mut self,
        journal: &mut Journal,
        toolbox: &mut Toolbox,
        step: Step,
        lasting: bool,
    ) -> Result<Option<End>, Failure> {
        self.progress.is(AgentState::Observing);
        self.journal_step(journal, step, lasting).await?;
        if let (Some(conversation), Some(step)) = (&mut toolbox.conversation, self.history.steps().last()) {
            conversation.step(step);
        }
        Ok(None)
    }

    /// Asks until an answer can be used or the limit of asking is reached.
    async fn think(&mut self, toolbox: &mut Toolbox, clock: &mut Clock) -> Result<NextStep, Failure> {
        if let Some(next) = opening(&self.history, &toolbox.resources.case(self.offer)) {
            return Ok(next);
        }
        let mut asked = 0;
        self.check_goal(toolbox, clock).await?;
        loop {
            asked += 1;
            let handing_over = self.handing_over.clone();
            let heard = unless_handed_over(handing_over, self.ask(toolbox, clock)).await??;
            self.pending.extend(heard.call);
            let next = decide(&self.history, &heard.answer, asked, &toolbox.resources.case(self.offer));
            match (next, &mut toolbox.conversation) {
                (NextStep::AskAgain { reason, notes }, Some(conversation)) => {
                    self.remark(notes);
                    conversation.ask_again(&heard.verbatim, &reason);
                }
                (NextStep::AskAgain { .. }, None) if asked < toolbox.resources.limits.max_asks => {}
                (next, _) => return Ok(next),
            }
        }
    }

    async fn ask(&mut self, toolbox: &mut Toolbox, clock: &mut Clock) -> Result<Heard, Failure> {
        let begun = Instant::now();
        let heard = self.ask_untimed(toolbox).await;
        clock.outside += begun.elapsed();
        heard.map_err(|error| {
            self.wasted += self.gate.take();
            Failure::Model(error)
        })
    }

    async fn ask_untimed(&mut self, toolbox: &mut Toolbox) -> Result<Heard, ModelError> {
        let resources = &toolbox.resources;
        let model = match &resources.model {
            ModelClient::Offline(rules) => {
                let mut heard = offline_answer(*rules, self.offer, &self.history);
                if let Some(contract) = &resources.rules.contract {
                    heard.answer.complete(|result| data_by_rule(contract, result));
                }
                return Ok(heard);
            }
            ModelClient::Chat(model) => model,
        };
        let asking = Asking {
            template: &resources.template,
            toolset: &resources.toolset,
            redactor: &resources.redactor,
            limits: resources.limits,
        };
        let conversation = toolbox
            .conversation
            .get_or_insert_with(|| resources.converse(self.offer, &self.history, model.style()));
        if conversation.begins_step() {
            let redacted = |mut one: Information| {
                one.text = resources.redactor.redact(&one.text).into_owned();
                one
            };
            self.told.extend(self.mailbox.take(self.history.steps()).into_iter().map(redacted));
            conversation.hear(&self.told);
            let news =
                self.mailbox.progress().map(|progress| resources.redactor.redact(&progress).into_owned());
            let files = resources.files(self.offer).await;
            conversation.tell_files(with_news(files, news.as_deref(), self.offer));
        }
        match model.ask(conversation, &asking, &mut self.gate, &mut self.progress).await {
            Err(error) if model.gives_up_native(&error) => {
                tracing::info!(model = %error.target, "no native tool calls; asking in text");
                *conversation = resources.converse(self.offer, &self.history, CallStyle::Text);
                conversation.hear(&self.told);
                model.ask(conversation, &asking, &mut self.gate, &mut self.progress).await
            }
            heard => heard,
        }
    }

    fn converse(&self, resources: &TaskResources) -> Option<Conversation> {
        match &resources.model {
            ModelClient::Chat(model) => Some(resources.converse(self.offer, &self.history, model.style())),
            ModelClient::Offline(_) => None,
        }
    }

    async fn journal_step(
        &mut self,
        journal: &mut Journal,
        step: Step,
        lasting: bool,
    ) -> Result<(), Failure> {
        let event = AgentEvent::Step(step);
        journal.append(&event).await?;
        if let AgentEvent::Step(step) = event {
            self.pending.clear();
            self.notes.clear();
            self.told.clear();
            self.history.push(step, lasting);
        }
        Ok(())
    }

    fn make_step(&self, chosen: ChosenAction, observation: Option<Observation>, clock: Clock) -> Step {
        Step {
            number: self.history.next_step(),
            thought: chosen.thought,
            action: chosen.action,
            observation,
            notes: self.notes.iter().cloned().chain(chosen.notes).collect(),
            heard: self.told.clone(),
            calls: self.pending.clone(),
            millis: millis(clock.begun.elapsed()),
            outside_millis: millis(clock.outside),
        }
    }

    /// Remarks something on the step being taken; how often the model declined is said once.
    fn remark(&mut self, notes: Vec<Note>) {
        if notes.iter().any(|note| matches!(note, Note::Declined { .. })) {
            self.notes.retain(|note| !matches!(note, Note::Declined { .. }));
        }
        self.notes.extend(notes);
    }

    fn say(&self, action: &Action, toolbox: &Toolbox) {
        self.progress.is(AgentState::Acting);
        let (step, most) = (self.history.next_step(), toolbox.resources.limits.max_steps);
        self.progress.status(&format!("step {step} of {most}: {}", in_brief(action)), self.history.usage());
    }

    fn conclude(mut self, stopped: Stopped) -> Conclusion {
        self.wasted += self.gate.close();
        let ended = |ending, reason| (Submission::without_product(ending, reason), None, Clock::start());
        let (submission, chosen, clock) = match stopped {
            Stopped::Ended(end) => match *end {
                Ok(End { submission, chosen, clock }) => (submission, chosen, clock),
                Err(Failure::Journal(JournalError::TooLarge { bytes, most })) => {
                    // What is too large is what was to be kept of this step.
                    self.pending.clear();
                    let reason = format!("a step has {bytes} bytes, {most} is the most the record takes");
                    ended(Ending::AgentFailed, reason)
                }
                Err(Failure::Journal(error)) => return Conclusion::Nothing(error),
                Err(Failure::Model(error)) if error.kind == ModelErrorKind::Superseded => {
                    return Conclusion::Nothing(self.ownership.lost());
                }
                Err(Failure::Model(error)) if error.kind == ModelErrorKind::BudgetExhausted => {
                    let so_far = best_so_far(&self.history, self.offer, error.message);
                    (so_far.ending(Ending::BudgetExhausted), None, Clock::start())
                }
                Err(Failure::Model(error)) if error.kind == ModelErrorKind::ContextTooLong => {
                    ended(Ending::ModelFailed, format!("{error}: the question is {TOO_LONG}"))
                }
                Err(Failure::Model(error)) => ended(Ending::ModelFailed, error.to_string()),
                Err(Failure::Setup(reason)) => ended(Ending::AgentFailed, reason),
                Err(Failure::HandedOver) => return Conclusion::Released(self.released()),
                Err(Failure::Waits(awaited)) => return Conclusion::Released(self.waiting(awaited)),
            },
            Stopped::Cancelled(reason) => ended(Ending::Cancelled, reason),
            Stopped::DeadlinePassed => {
                // What was learnt in time is kept: it counts as a part if nobody else can do the whole.
                let so_far = best_so_far(&self.history, self.offer, "the task's time was up".to_owned());
                (so_far.ending(Ending::DeadlinePassed), None, Clock::start())
            }
        };
        let submission = match &self.contract {
            Some(contract) => {
                let (submission, contract_violation) = contract.hold(submission);
                self.contract_violation = contract_violation.or(self.contract_violation);
                submission
            }
            None => submission,
        };
        let last = self.last_step(chosen, clock);
        self.progress.ended(submission.ending, self.history.usage());
        let outcome = outcome_of(&self.history, submission, last, self.wasted);
        Conclusion::Outcome(Box::new(Outcome { contract_violation: self.contract_violation, ..outcome }))
    }

    /// What is said when the task is handed over, with what was used and nobody has counted.
    fn released(&self) -> Released {
        let why = self.handing_over.borrow().clone();
        self.with_usage(released_by(why.as_ref()).unwrap_or_default())
    }

    /// What is said when the task is put down until something is there.
    fn waiting(&self, awaited: Box<Awaited>) -> Released {
        let reason = format!("it waits for {}", cut(&awaited.wait.in_words(), WAIT_SHOWN));
        self.with_usage(Released { reason, parked: true, wait: Some(awaited), ..Released::default() })
    }

    fn with_usage(&self, released: Released) -> Released {
        let mut usage = self.wasted;
        if released.parked {
            usage += self.history.usage();
        }
        for call in &self.pending {
            usage += call.usage;
        }
        Released { usage, ..released }
    }

    /// The step that ends the task. Calls that led to no action are kept too: they were paid for.
    fn last_step(&self, chosen: Option<ChosenAction>, clock: Clock) -> Option<Step> {
        let chosen = match chosen {
            Some(chosen) => chosen,
            None if self.pending.is_empty() && self.notes.is_empty() => return None,
            None => ChosenAction {
                thought: Thought::default(),
                action: Action { name: Action::SUBMIT.to_owned(), arguments: serde_json::Value::Null },
                left_out: 0,
                notes: Vec::new(),
            },
        };
        Some(self.make_step(chosen, None, clock))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
