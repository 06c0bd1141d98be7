//! Carrying out what was decided: asks the model, runs tools, writes the record. One task from `started` to its
//! outcome.

mod act;
mod approve;
mod asked;
mod conclude;
mod consult;
mod guard;
mod think;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_shared::flow::{
    AgentState, Awaited, ContractViolation, Information, ModelCall, Note, Observation, Step, TaskOffered,
    Usage,
};
use muster_shared::ids::Role;
use muster_shared::run::AgentEvent;
use muster_shared::time::millis;

use self::act::{Acted, SeenOfAll};
use self::asked::Questions;
use self::conclude::{Conclusion, Stopped};
use super::approval::lets_any_through;
use super::close::{CloseOutcome, outcome_of, verdict_of, write_outcome};
use super::decide::{ChosenAction, NextStep, exhausted};
use super::history::{History, in_brief};
use super::interrupt::{HandedOver, Interrupts, cancelled, released_by, unless_handed_over};
use super::journal::{Journal, JournalError, JournalOpening, Starter};
use super::mailbox::Mailbox;
use super::ownership::TaskOwnership;
use super::progress::ProgressStream;
use super::prompt::Conversation;
use super::resources::TaskResources;
use super::several::none_done;
use super::submit::mark_offline;
use super::uncertain;
use crate::definition::Contract;
use crate::model::call_admission::CallAdmission;
use crate::model::chat::ModelError;
use crate::roles::{Submission, refusal};

/// What a task is connected to while it is worked on.
pub struct Connections<T> {
    /// Where it is written down.
    pub record: muster_bus::Record,
    /// How long a bus that cannot be reached is waited for.
    pub patience: Duration,
    /// Tells when it is to stop.
    pub interrupt: Interrupts,
    /// What other tasks tell it.
    pub mailbox: Mailbox,
    /// Ends with the task's time.
    pub time_is_up: T,
    /// Where what it does is said live.
    pub progress: ProgressStream,
}

/// Takes a task to its end, or until its time is up. `equip` makes ready what it needs, once the task is known to be ours.
pub async fn drive<E, T>(
    offer: &TaskOffered,
    starter: &Starter,
    connections: Connections<T>,
    equip: E,
) -> CloseOutcome
where
    E: AsyncFnOnce() -> Result<TaskResources, String> + Send,
    T: Future<Output = ()> + Send,
{
    let Connections { record, patience, interrupt, mailbox, time_is_up, progress } = connections;
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
    let (wasted, gate, questions) = (Usage::default(), Gate::default(), Questions::default());
    let (contract, contract_violation) = (None, None);
    let mut course = TaskSession {
        offer,
        role: &starter.key.role,
        history,
        pending,
        notes,
        mailbox,
        told,
        shown_whole: None,
        wasted,
        gate,
        questions,
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
    /// A guard refused what the model was to be asked; why.
    Guarded(String),
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

/// How the tools of an answer are called.
struct ToolCalls {
    /// Whether none of them changes anything.
    pure: bool,
    clock: Clock,
}

/// The gate of a task. One at a time passes it: the loop itself, or a tool that asks something while it is called.
type Gate = tokio::sync::Mutex<CallAdmission>;

/// One task on its way.
struct TaskSession<'a> {
    offer: &'a TaskOffered,
    /// The role of whoever does it.
    role: &'a Role,
    history: History,
    /// Calls of the step being taken, which no event holds yet.
    pending: Vec<ModelCall>,
    /// What is remarked on it.
    notes: Vec<Note>,
    /// What other tasks tell this one.
    mailbox: Mailbox,
    /// What of it the model is told with the step being taken.
    told: Vec<Information>,
    /// How many of the last steps the conversation shows whole, where it shows others in short.
    shown_whole: Option<usize>,
    /// What calls used that gave no answer.
    wasted: Usage,
    /// Asked before every call.
    gate: Gate,
    /// What tools ask the model while they are called.
    questions: Questions,
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
        let mut resources = equipped.map_err(Failure::Setup)?;
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
        let gate = gate
            .telling(self.progress.waiter())
            .held_by(Arc::<TaskOwnership>::clone(&self.ownership))
            .owing(owing);
        self.gate = Gate::new(gate);
        self.questions = Questions::open(&mut resources);
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
                self.say(&chosen, toolbox);
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
            // They are settled before; should they come here, the next turn asks again.
            NextStep::AskAgain { .. } | NextStep::Consult { .. } | NextStep::LookUp { .. } => {
                return Ok(None);
            }
            NextStep::Refuse { mut chosen, observation } | NextStep::Observe { mut chosen, observation } => {
                self.say(&chosen, toolbox);
                none_done(&mut chosen.more);
                (self.make_step(chosen, Some(observation), clock), false)
            }
            NextStep::CallTool { chosen, pure } => {
                self.say(&chosen, toolbox);
                return self.call_tools(journal, toolbox, chosen, ToolCalls { pure, clock }).await;
            }
        };
        self.go_on(journal, toolbox, step, lasting).await
    }

    /// Calls what guards let through of the tools of an answer, and journals the step.
    async fn call_tools(
        &mut self,
        journal: &mut Journal,
        toolbox: &mut Toolbox,
        mut chosen: ChosenAction,
        ToolCalls { pure, mut clock }: ToolCalls,
    ) -> Result<Option<End>, Failure> {
        if let Err(handed_over) = self.guard_calls(&mut chosen, &toolbox.resources, &mut clock).await {
            self.keep(journal, &chosen, clock).await?;
            self.pending.clear();
            return Err(handed_over.into());
        }
        self.approve_calls(journal, &chosen, &toolbox.resources, clock).await?;
        let lasting = !pure && lets_any_through(&chosen);
        let key = self.idempotency_key();
        if lasting {
            self.announce(journal, &chosen, clock, key.clone()).await?;
        }
        self.shown_whole = toolbox.conversation.as_ref().and_then(Conversation::shown_whole);
        let acting = self.act_all(&chosen, pure, &key, &toolbox.resources, &mut clock);
        let acting =
            self.answering(&toolbox.resources, unless_handed_over(self.handing_over.clone(), acting));
        let put_down: Failure = match acting.await {
            Ok(Acted::Observed(SeenOfAll { first, more, notes })) => {
                self.count_questions();
                chosen.more = more;
                chosen.notes.extend(notes);
                let step = self.make_step(chosen, Some(first), clock);
                return self.go_on(journal, toolbox, step, lasting).await;
            }
            Ok(Acted::Waits(wait)) => self.waits(*wait),
            Err(handed_over) => handed_over.into(),
        };
        if lasting {
            // What was announced holds them no more.
            self.wasted += self.questions.take().usage();
        } else {
            // So that whoever goes on need not ask the model again.
            self.count_questions();
            self.keep(journal, &chosen, clock).await?;
        }
        self.pending.clear();
        Err(put_down)
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
            more: chosen.more,
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

    fn say(&self, chosen: &ChosenAction, toolbox: &Toolbox) {
        self.progress.is(AgentState::Acting);
        let (step, most) = (self.history.next_step(), toolbox.resources.limits.max_steps);
        let of_calls = match chosen.more.iter().filter(|one| one.observation.is_none()).count() {
            0 => String::new(),
            more => format!(", the first of {} calls", more + 1),
        };
        let text = format!("step {step} of {most}{of_calls}: {}", in_brief(&chosen.action));
        self.progress.status(&text, self.history.usage());
    }
}
