//! The end of a task: what is written of it, whatever stopped the work.

use muster_shared::flow::response::TOO_LONG;
use muster_shared::flow::{Action, Awaited, Ending, Outcome, Step, Thought};
use muster_shared::run::Released;
use muster_shared::text::first_line;

use super::super::close::{outcome_of, with_usage};
use super::super::decide::ChosenAction;
use super::super::interrupt::released_by;
use super::super::journal::JournalError;
use super::super::partial::best_so_far;
use super::{Clock, End, Failure, TaskSession};
use crate::model::chat::ModelErrorKind;
use crate::roles::Submission;

/// Longest description of what a task waits for that is kept with it, in characters.
const WAIT_SHOWN: usize = 200;

/// What ended the work.
pub(super) enum Stopped {
    Ended(Box<Result<End, Failure>>),
    Cancelled(String),
    DeadlinePassed,
}

/// What is written in the end.
pub(super) enum Conclusion {
    Outcome(Box<Outcome>),
    Released(Released),
    Nothing(JournalError),
}

impl TaskSession<'_> {
    pub(super) fn conclude(mut self, stopped: Stopped) -> Conclusion {
        self.wasted += self.gate.get_mut().close();
        // What tools asked when the work was cut off.
        self.count_questions();
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
                Err(Failure::Guarded(reason)) => ended(Ending::Blocked, reason),
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
        let reason = format!("it waits for {}", first_line(&awaited.wait.in_words(), WAIT_SHOWN));
        self.with_usage(Released { reason, parked: true, wait: Some(awaited), ..Released::default() })
    }

    fn with_usage(&self, released: Released) -> Released {
        with_usage(released, &self.history, &self.pending, self.wasted)
    }

    /// The step that ends the task. Calls that led to no action are kept too: they were paid for.
    fn last_step(&self, chosen: Option<ChosenAction>, clock: Clock) -> Option<Step> {
        let chosen = match chosen {
            Some(chosen) => chosen,
            None if self.pending.is_empty() && self.notes.is_empty() => return None,
            None => ChosenAction {
                thought: Thought::default(),
                action: Action { name: Action::SUBMIT.to_owned(), arguments: serde_json::Value::Null },
                more: Vec::new(),
                notes: Vec::new(),
            },
        };
        Some(self.make_step(chosen, None, clock))
    }
}
