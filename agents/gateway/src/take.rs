//! `take`: waits for a task, begins it in the program's name, and gives it with everything that there is to know of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use muster_agents::react::close::outcome_of;
use muster_agents::react::history::History;
use muster_agents::react::journal::{Journal, JournalError, JournalOpening, Starter};
use muster_agents::react::progress::ProgressStream;
use muster_agents::react::uncertain;
use muster_agents::roles::{Submission, refusal};
use muster_bus::{Delivered, GatewayRequest, TakenTask};
use muster_shared::flow::{AgentState, Arm, Ending, Outcome, Step, TaskOffered, Usage};
use muster_shared::ids::{Queue, Role, Seq};
use muster_shared::run::{AgentEvent, Released};
use muster_shared::wire::gateway::{GatewayRefusal, TakeRequest};
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::open::{OpenTask, Opened};
use crate::past::{Past, TaskKey};
use crate::programs::Program;
use crate::queues::{Waiter, hand_back};
use crate::refusal::{Closed, busy, failed};
use crate::token::Token;
use crate::{beat, offer, orders};

/// A task whose record could not be written goes back to its queue after this time.
const UNWRITTEN_PAUSE: Duration = Duration::from_secs(2);
/// A task that is to be done alone goes back for so long while its program has others.
const NOT_ALONE_PAUSE: Duration = Duration::from_secs(1);

pub(crate) async fn take(
    desk: &Arc<Desk>,
    asked: &GatewayRequest,
    role: &Role,
    request: TakeRequest,
) -> Result<Option<Value>, GatewayRefusal> {
    let _seat = desk.seat(role).map_err(busy)?;
    desk.programs.may_be(&request.agent, role).await?;
    let program = desk.programs.enter(role, &request, |program| orders::listen(desk, program))?;
    let in_hand = desk.of_agent(&program.id);
    program.hear(u32::try_from(in_hand.len()).unwrap_or(u32::MAX)).await.map_err(failed)?;
    if let Some(again) = in_hand.iter().find(|task| request.id.is_some() && task.take_id == request.id) {
        return Ok(Some(given(desk, again).await));
    }
    if program.is_to_end.load(Ordering::Relaxed) {
        return Ok(Some(json!({ "task": null, "order": "shutdown" })));
    }
    if in_hand.len() >= usize::try_from(program.slots).unwrap_or(usize::MAX) {
        let (has, slots) = (in_hand.len(), program.slots);
        return Err(busy(format!(
            "you have {has} tasks in hand, and said that you do {slots} at a time: finish one first"
        )));
    }
    let until = Instant::now() + patience(desk, &request);
    loop {
        let Some(taken) = wait(desk, &program, &request, until).await? else {
            let is_to_end = program.is_to_end.load(Ordering::Relaxed);
            let order = if is_to_end {
                json!({ "task": null, "order": "shutdown" })
            } else {
                json!({ "task": null })
            };
            return Ok(Some(order));
        };
        let Some(task) = begin(desk, &program, &request, taken).await else { continue };
        let answer = given(desk, &task).await;
        deliver(desk, asked, &task, &answer).await;
        return Ok(None);
    }
}

fn patience(desk: &Desk, request: &TakeRequest) -> Duration {
    let most = desk.settings.patience;
    request.patience_ms.map_or(most, |wanted| Duration::from_millis(wanted).min(most))
}

/// Waits for the next task; nothing when none came in time.
async fn wait(
    desk: &Arc<Desk>,
    program: &Arc<Program>,
    request: &TakeRequest,
    until: Instant,
) -> Result<Option<TakenTask>, GatewayRefusal> {
    let (of_role, own) = (Queue::Role(program.role.clone()), Queue::Agent(program.id.clone()));
    // Asked again while it waits: the newer one is answered.
    if let Some(message) = &request.id
        && let Some(before) = desk.queues.waits_by(&of_role, &program.id, message)
    {
        before.leave();
    }
    let mine = desk.queues.waiting(&own) + desk.of_agent(&program.id).len();
    if mine >= usize::try_from(program.slots).unwrap_or(usize::MAX) {
        return Err(busy(format!(
            "you wait for {mine} tasks already, and said that you do {} at a time",
            program.slots
        )));
    }
    let (waiter, mut taken) = Waiter::new(program.id.clone(), request.id.clone(), until);
    desk.queues.wait(&waiter, &[of_role, own]);
    crate::presence::listen(desk);
    let every = desk.bus.settings().heartbeat;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        tokio::select! {
            biased;
            task = &mut taken => return Ok(task.ok()),
            () = desk.stop.cancelled() => break,
            () = tokio::time::sleep(left.min(every)) => {
                if left <= every {
                    break;
                }
                let busy = u32::try_from(desk.of_agent(&program.id).len()).unwrap_or(u32::MAX);
                if let Err(error) = program.hear(busy).await {
                    tracing::warn!(%error, agent = %program.id, "a heartbeat is lost");
                }
            }
        }
    }
    waiter.leave();
    // It may have come in this very moment.
    Ok(taken.try_recv().ok())
}

/// Begins a task in the program's name; nothing when there is nothing to be done about it.
async fn begin(
    desk: &Arc<Desk>,
    program: &Arc<Program>,
    request: &TakeRequest,
    taken: TakenTask,
) -> Option<Arc<OpenTask>> {
    if taken.offer.alone && !desk.of_agent(&program.id).is_empty() {
        hand_back(taken, NOT_ALONE_PAUSE);
        return None;
    }
    let offer = taken.offer.clone();
    let starter = starter(program, &taken);
    let record = program.bus.record();
    let patience = desk.shared.patience();
    let (journal, history) = match Journal::open(record, &offer, &starter, patience).await {
        Ok(JournalOpening::Ours(opened)) => *opened,
        Ok(JournalOpening::Closed) => {
            if let Err(error) = taken.done().await {
                tracing::debug!(%error, "the queue gives the task out again when its time is up");
            }
            return None;
        }
        Err(JournalError::Lost | JournalError::Closed) => {
            tracing::info!(run = %offer.run, task = %offer.task, "another agent has the task");
            return None;
        }
        Err(error @ (JournalError::TooLarge { .. } | JournalError::Bus(_))) => {
            tracing::warn!(run = %offer.run, task = %offer.task, %error, "the record could not be written");
            hand_back(taken, UNWRITTEN_PAUSE);
            return None;
        }
    };
    let task =
        open(desk, program, request, Begun { offer, ack: starter.ack, started: journal.last(), history })
            .await?;
    let task = Arc::new(task);
    desk.put(Arc::clone(&task));
    orders::catch_up(desk, program);
    if settle(desk, &task).await {
        return None;
    }
    task.progress.is(AgentState::Thinking);
    beat::keep(desk, &task).await;
    Some(task)
}

fn starter(program: &Program, taken: &TakenTask) -> Starter {
    let key = TaskKey::of(&taken.offer).author(&program.id, &program.role);
    let (ack, host) = (taken.ack_subject.clone(), "by a gateway".to_owned());
    Starter { key, ack, host, delivered: taken.delivered, waited: taken.waited }
}

/// A task whose `started` stands in the record.
struct Begun {
    offer: TaskOffered,
    ack: String,
    started: Seq,
    history: History,
}

async fn open(
    desk: &Arc<Desk>,
    program: &Program,
    request: &TakeRequest,
    Begun { offer, ack, started, history }: Begun,
) -> Option<OpenTask> {
    let secret = match desk.secret_of(offer.run).await {
        Ok(secret) => secret,
        Err(error) => {
            tracing::warn!(%error, run = %offer.run, "a task that was begun is left to others: no token can be made");
            return None;
        }
    };
    let token = Token {
        run: offer.run,
        task: offer.task.clone(),
        generation: offer.generation,
        role: program.role.clone(),
        agent: program.id.clone(),
        started,
        home: desk.bus.who().clone(),
    };
    let redactor = Arc::clone(desk.shared.redactor());
    let progress = ProgressStream::new(program.bus.live(), redactor, program.role.clone(), &offer);
    Some(OpenTask::new(Opened {
        role: program.role.clone(),
        agent: program.id.clone(),
        started,
        token: token.signed(&secret),
        take_id: request.id.clone(),
        model: program.model.clone(),
        contract: program.contract.clone(),
        progress,
        bus: program.bus.clone(),
        patience: desk.shared.patience(),
        offer,
        past: Past { history, last: started, ack, recorded: std::collections::HashMap::new(), closed: None },
    }))
}

/// Does what needs no program: a task that had ended already ends, one that does not fit what the program takes on is
/// refused, and what was waited for becomes the observation of its step. Says whether the task has ended with it.
async fn settle(desk: &Desk, task: &OpenTask) -> bool {
    let mut course = task.course.lock().await;
    if let Some(outcome) = course.history.ended_before() {
        let make = |_: &crate::open::Course| Ok(AgentEvent::Outcome(outcome.clone().into()));
        if course.write(task, task.id_of(None), make).await.is_ok() {
            orders::close(desk, task, &mut course, Closed::Ended).await;
        }
        return true;
    }
    if let Some(why) = course.history.announced_unreadably() {
        let submission = uncertain::unreadable(course.history.next_step(), why);
        orders::end(desk, task, &mut course, submission, Closed::Ended).await;
        return true;
    }
    if task.offer.trial.as_ref().is_some_and(|mark| mark.arm == Arm::Shadow) {
        // What a program does by itself nobody can keep from having an effect.
        let why =
            "a shadow is done by Muster's own agents only: of a program nobody knows what its work changes";
        let submission = Submission::without_product(Ending::Blocked, why.to_owned());
        orders::end(desk, task, &mut course, submission, Closed::Ended).await;
        return true;
    }
    if let Some(violation) = task.contract.refused(&task.offer) {
        let submission: Submission = refusal(&violation);
        let make = |course: &crate::open::Course| {
            let outcome = outcome_of(&course.history, submission.clone(), None, Usage::default());
            let outcome = Outcome { contract_violation: Some(violation.clone()), ..outcome };
            Ok(AgentEvent::Outcome(outcome.into()))
        };
        if course.write(task, task.id_of(None), make).await.is_ok() {
            orders::close(desk, task, &mut course, Closed::Ended).await;
        }
        return true;
    }
    let Some(step) = answered(task, &course.history) else { return false };
    let make = |_: &crate::open::Course| Ok(AgentEvent::Step(step.clone()));
    if let Err(refusal) = course.write(task, task.id_of(Some("answered")), make).await {
        tracing::warn!(run = %task.key.run, task = %task.key.task, why = refusal.message, "an answer was not recorded");
    }
    false
}

/// The step that waited, with what came of it.
fn answered(task: &OpenTask, history: &History) -> Option<Step> {
    let answered = task.offer.answered.as_deref()?;
    let begun = history.begun().filter(|begun| begun.step.number == answered.step)?;
    Some(Step { observation: Some(answered.observation.clone()), ..begun.step.clone() })
}

/// The answer that gives a task.
async fn given(desk: &Desk, task: &Arc<OpenTask>) -> Value {
    let files = match desk.bus.files().list(task.key.run).await {
        Ok(list) => list.files,
        Err(error) => {
            tracing::warn!(%error, run = %task.key.run, "a program is not told of the run's files");
            Vec::new()
        }
    };
    let course = task.course.lock().await;
    let told = offer::Told {
        offer: &task.offer,
        token: &task.token,
        history: &course.history,
        files: &files,
        contract: &task.contract,
        permissions: desk.shared.permissions(&task.role),
    };
    json!({ "task": offer::told(&told, desk.bus.gateway().most_bytes()) })
}

/// Gives the answer. A program that is not there any more has taken nothing.
async fn deliver(desk: &Arc<Desk>, asked: &GatewayRequest, task: &Arc<OpenTask>, answer: &Value) {
    let about = (task.key.run, &task.key.task);
    // What another gateway passed on has its answer waited for there.
    let delivered = if asked.is_passed_on {
        Ok(Delivered::Sent)
    } else {
        desk.bus.gateway().deliver(asked, answer, about).await
    };
    let why = match delivered {
        Ok(Delivered::Sent) => return,
        Ok(Delivered::Gone) => "its program was gone before it had the task".to_owned(),
        Err(error) => format!("the task cannot be told: {error}"),
    };
    tracing::info!(run = %task.key.run, task = %task.key.task, agent = %task.agent, why, "a task goes to another");
    hand_on(desk, task, &why).await;
}

/// Gives a task back that its program has not, or does not care for any more; it goes to another at once.
pub(crate) async fn hand_on(desk: &Desk, task: &OpenTask, why: &str) {
    let mut course = task.course.lock().await;
    if course.closed.is_some() {
        return;
    }
    let released = Released { reason: why.to_owned(), ..Released::default() };
    let make = |course: &crate::open::Course| Ok(AgentEvent::Released(course.released(released.clone())));
    if let Err(refusal) = course.write(task, task.id_of(None), make).await {
        tracing::info!(run = %task.key.run, task = %task.key.task, why = refusal.message, "not handed on");
    } else if let Err(error) = desk.bus.tasks().hand_on(&task.ack).await {
        tracing::debug!(%error, "the queue gives the task out again when its time is up");
    }
    let closed = course.closed.clone().unwrap_or_else(|| Closed::HandedOn(why.to_owned()));
    course.closed = Some(closed.clone());
    desk.close(task, closed, course.answers());
}
