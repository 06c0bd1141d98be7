//! Takes turns of a run in the simulation: sends the broker what a turn of the product asks for, and gives it the answer.

use std::collections::BTreeMap;
use std::rc::Rc;

use muster_journal::WithDecisions;
use muster_orchestrator::decide::{Decision, Place, Situation, Wanted, decide};
use muster_orchestrator::turn::{Action, Appending, Driver, Failure, Next, RunLog, View, WrittenAt};
use muster_orchestrator::{Capacity, Holding, Roomed, decide_with_room};
use muster_shared::flow::Placement;
use muster_shared::ids::{AgentId, Generation, Queue, RunId, Seq, TaskId};
use muster_shared::run::{ApplyError, Entry, Input, RunState};
use muster_shared::time::Millis;
use uuid::Uuid;

use crate::Sabotage;
use crate::io::Io;
use crate::messages::{Answer, Request};

/// A command of a queue that waits for its answer.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) item: u64,
    pub(crate) delivered: u32,
}

pub(crate) type RunMessage = muster_orchestrator::turn::RunMessage<Rc<Entry>, Ticket>;
pub(crate) type Inbox = muster_orchestrator::turn::Inbox<Rc<Entry>, Ticket>;
pub(crate) type RunDriver = Driver<Rc<Entry>, Ticket>;
pub(crate) type RunAction = Action<Rc<Entry>, Ticket>;
pub(crate) type Need = Next<Rc<Entry>>;

/// A turn that waits for an answer.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) next: Need,
    pub(crate) tickets: Vec<Ticket>,
    /// Whether it began with the wish for a new run.
    pub(crate) begins: bool,
    /// Under which lease it was begun.
    pub(crate) epoch: Option<Seq>,
    /// Whether somebody else has the run by what the broker said last.
    pub(crate) elsewhere: bool,
}

pub(crate) fn begins_run(commands: &[Input]) -> bool {
    let begins =
        |input: &Input| matches!(input, Input::Goal { .. } | Input::Fork { .. } | Input::Refuse { .. });
    commands.iter().any(begins)
}

/// What a step takes into account.
pub(crate) fn view<'a>(fleet: &'a Capacity, holds_lease: bool, io: &mut Io<'_>) -> View<'a> {
    let batch = Uuid::from_u128(u128::from(io.random.next()) << 64 | u128::from(io.random.next()));
    let as_strangers = io.is_sabotaged(Sabotage::LentHeldAgainst);
    let decide = if as_strangers { decide_as_strangers } else { decide_with_room };
    View { now: io.clock, fleet, holds_lease, batch, decide }
}

/// All that was written about a generation of a task.
fn all_of(run: RunId, (task, generation): (&TaskId, Generation)) -> Request {
    let (task, decisions) = (task.clone(), WithDecisions::No);
    Request::ReadTask { run, task, generation, after: Seq(0), decisions }
}

/// What the broker is asked for a turn; nothing for what is answered at once.
pub(crate) fn request(run: RunId, need: &Need, io: &Io<'_>) -> Option<Request> {
    match need {
        Next::Read(_) => Some(Request::ReadRun(run)),
        Next::LastStep(step) => Some(all_of(run, step.task())),
        Next::LastWord(step) => Some(all_of(run, step.task())),
        Next::Append(step) => {
            let mut decided = Box::new(step.written.decided.clone());
            if io.is_sabotaged(Sabotage::InputsUntold) {
                decided.inputs.retain(|input| !matches!(input, Input::Agent { .. }));
            }
            let (after, offers) = (step.written.after, step.written.offers.clone());
            let link = step.written.link.clone();
            Some(Request::Decide { run, after, decided, offers, link })
        }
        Next::Claim(_) | Next::FindAgents(_) | Next::Tell(_) | Next::Perform(_) | Next::Done(_) => None,
    }
}

/// Goes on with the broker's answer; nothing when none came in time.
pub(crate) fn answered(need: Need, answer: Option<Answer>, view: &View<'_>) -> Need {
    match need {
        Next::Read(step) => step.read(fold(answer), view),
        Next::LastStep(step) => step.read(entries(answer), view),
        Next::LastWord(step) => {
            let last = entries(answer).map(|entries| entries.last().map(|entry| entry.at));
            step.read(last, view)
        }
        Next::Append(step) => step.went(
            match answer {
                Some(Answer::Appended { first, link: Some(link), .. }) => {
                    Appending::Appended(WrittenAt { first, link })
                }
                Some(_) => Appending::Conflict,
                None => Appending::Ambiguous,
            },
            view,
        ),
        need @ (Next::Claim(_) | Next::FindAgents(_) | Next::Tell(_) | Next::Perform(_) | Next::Done(_)) => {
            need
        }
    }
}

fn fold(mut answer: Option<Answer>) -> Result<RunLog, Failure> {
    let chain = match &mut answer {
        Some(Answer::Record { chain, .. }) => std::mem::take(chain),
        _ => Vec::new(),
    };
    Ok(RunLog::default().read(&entries(answer)?)?.chained(chain))
}

fn entries(answer: Option<Answer>) -> Result<Vec<Rc<Entry>>, Failure> {
    match answer {
        Some(Answer::Entries(entries) | Answer::Record { entries, .. }) => Ok(entries),
        _ => Err(Failure { is_transient: true, reason: "no answer came in time".to_owned() }),
    }
}

/// A decision as it was made when what was lent to a run counted as taken for the run itself too.
#[expect(
    clippy::needless_pass_by_value,
    reason = "it stands in for the rule of the product, which takes the run"
)]
fn decide_as_strangers(
    fleet: &Capacity,
    id: RunId,
    run: Option<Box<RunState>>,
    inputs: &[Input],
    now: Millis,
) -> Result<Roomed, ApplyError> {
    let run = run.as_deref();
    let held = |decision: &Decision| decision.after.as_deref().map(Holding::of).unwrap_or_default();
    let placing = AsStranger(fleet);
    let look = |capacity: &BTreeMap<Queue, u32>| {
        decide(run, inputs, Situation { id, now, capacity, specialists: &[], placing: &placing })
    };
    let mut capacity = fleet.none(run);
    let mut decision = look(&capacity)?;
    if !decision.wanted.is_empty() {
        capacity = fleet.lend(id, held(&decision), &decision.wanted);
        decision = look(&capacity)?;
    }
    let woken = fleet.settle(id, held(&decision), &decision.wanted);
    Ok(Roomed { decision, capacity, specialists: Vec::new(), woken })
}

/// Has the fleet take a run for a stranger, for whom nothing is kept.
#[derive(Debug)]
struct AsStranger<'a>(&'a Capacity);

impl Place for AsStranger<'_> {
    fn place(&self, wanted: &Wanted<'_>) -> Option<Placement> {
        self.0.place(&Wanted { run: RunId::from_uuid(Uuid::nil()), ..wanted.clone() })
    }
}

/// The agents of a fleet as far as somebody was told.
pub(crate) fn known(agents: &BTreeMap<AgentId, String>) -> Vec<AgentId> {
    agents.keys().cloned().collect()
}
