//! What is ordered of programs and told to them while they work: heard in their names, and carried out for them.

use std::sync::{Arc, Weak};

use futures::StreamExt;
use muster_agents::react::close::outcome_of;
use muster_agents::roles::Submission;
use muster_shared::flow::{Ending, Usage};
use muster_shared::ids::{AgentId, Generation, RunId, TaskId};
use muster_shared::run::{AgentEvent, Released};
use muster_shared::wire::ControlMessage;

use crate::desk::Desk;
use crate::open::{Course, OpenTask};
use crate::programs::{Program, Programs};
use crate::refusal::Closed;

/// Hears what a program is told, for as long as it is known here.
pub(crate) fn listen(desk: &Arc<Desk>, program: &Arc<Program>) -> tokio::task::JoinHandle<()> {
    let (desk, agent, role) = (Arc::downgrade(desk), program.id.clone(), program.role.to_string());
    let control = program.bus.control();
    tokio::spawn(async move {
        match control.overhear(&agent, &role).await {
            Ok(mut told) => {
                while let Some(message) = told.next().await {
                    let Some(desk) = Weak::upgrade(&desk) else { return };
                    take(&desk, &agent, message);
                }
            }
            Err(error) => tracing::warn!(%error, %agent, "orders for a program are not heard"),
        }
    })
}

/// Carries a message out. An order about a task that is just being given is kept until it is at hand.
fn take(desk: &Arc<Desk>, agent: &AgentId, message: ControlMessage) {
    if !carry_out(desk, agent, &message)
        && let Some(program) = desk.programs.find(agent)
    {
        program.keep_order(message);
    }
}

/// Carries out what was ordered while a task was being given, and before it was at hand.
pub(crate) fn catch_up(desk: &Arc<Desk>, program: &Program) {
    for order in program.kept_orders() {
        carry_out(desk, &program.id, &order);
    }
}

/// Says whether the message was for anything at hand, or is not worth keeping.
fn carry_out(desk: &Arc<Desk>, agent: &AgentId, message: &ControlMessage) -> bool {
    let tasks = desk.of_agent(agent);
    match message {
        ControlMessage::CancelRun { run, reason } => cancel_all(desk, of_run(tasks, *run), reason),
        ControlMessage::CancelTask { run, task, generation, reason } => {
            cancel_all(desk, meant(tasks, *run, task, *generation), reason)
        }
        // A run may go on again: what was not at hand then is not put down later.
        ControlMessage::ParkRun { run, reason } => {
            of_run(tasks, *run).iter().for_each(|task| task.park(reason));
            true
        }
        ControlMessage::ParkTask { run, task, generation, reason } => {
            let meant = meant(tasks, *run, task, *generation);
            meant.iter().for_each(|task| task.park(reason));
            !meant.is_empty()
        }
        ControlMessage::Inform { run, task, generation, information, progress } => {
            for task in meant(tasks, *run, task, *generation) {
                task.mailbox.put(information);
                task.mailbox.show(progress.clone());
            }
            true
        }
        ControlMessage::Shutdown => {
            if let Some(program) = desk.programs.find(agent) {
                Programs::end(&program);
            }
            true
        }
        // Not for agents.
        ControlMessage::Owners(_) => true,
    }
}

/// Those of a run.
fn of_run(mut tasks: Vec<Arc<OpenTask>>, run: RunId) -> Vec<Arc<OpenTask>> {
    tasks.retain(|open| open.key.run == run);
    tasks
}

/// Those that a message about one generation of a task means.
fn meant(tasks: Vec<Arc<OpenTask>>, run: RunId, task: &TaskId, generation: Generation) -> Vec<Arc<OpenTask>> {
    let mut tasks = of_run(tasks, run);
    tasks.retain(|open| open.key.task == *task && open.key.generation == generation);
    tasks
}

/// Says whether there were any.
fn cancel_all(desk: &Arc<Desk>, tasks: Vec<Arc<OpenTask>>, reason: &str) -> bool {
    let are_any = !tasks.is_empty();
    tasks.into_iter().for_each(|task| cancel(desk, task, reason.to_owned()));
    are_any
}

/// The end of a cancelled task is written at once: whatever its program does meanwhile is in vain.
fn cancel(desk: &Arc<Desk>, task: Arc<OpenTask>, reason: String) {
    let desk = Arc::clone(desk);
    tokio::spawn(async move {
        let mut course = task.course.lock().await;
        let reason = desk.shared.redacted(&reason);
        let submission = Submission::without_product(Ending::Cancelled, reason.clone());
        end(&desk, &task, &mut course, submission, Closed::Cancelled(reason)).await;
    });
}

/// Ends a task without a word of its program.
pub(crate) async fn end(
    desk: &Desk,
    task: &OpenTask,
    course: &mut Course,
    submission: Submission,
    why: Closed,
) {
    let wasted = course.all_wasted();
    let id = task.id_of(None);
    let make = |course: &Course| {
        Ok(AgentEvent::Outcome(outcome_of(&course.history, submission.clone(), None, wasted).into()))
    };
    match course.write(task, id, make).await {
        Ok(_) => close(desk, task, course, why).await,
        Err(refusal) => {
            tracing::info!(run = %task.key.run, task = %task.key.task, why = refusal.message, "nothing was ended");
            if let Some(closed) = course.closed.clone() {
                desk.close(task, closed, course.answers());
            }
        }
    }
}

/// Puts a task down, to go on as its next generation.
pub(crate) async fn put_down(desk: &Desk, task: &OpenTask, course: &mut Course, reason: &str) {
    let released = Released { reason: reason.to_owned(), parked: true, ..Released::default() };
    let make = |course: &Course| Ok(AgentEvent::Released(course.released(released.clone())));
    match course.write(task, task.id_of(None), make).await {
        Ok(_) => close(desk, task, course, Closed::PutDown(reason.to_owned())).await,
        Err(refusal) => {
            tracing::info!(run = %task.key.run, task = %task.key.task, why = refusal.message, "not put down");
        }
    }
}

/// A task has ended for its program: it leaves its queue.
pub(crate) async fn close(desk: &Desk, task: &OpenTask, course: &mut Course, why: Closed) {
    course.closed = Some(why.clone());
    desk.close(task, why, course.answers());
    if let Err(error) = desk.bus.tasks().done_with(&task.ack).await {
        tracing::debug!(%error, "the queue gives the task out again when its time is up");
    }
}

impl Course {
    /// What calls used that gave no answer, with what no step will hold.
    pub(crate) fn all_wasted(&mut self) -> Usage {
        let mut wasted = self.wasted;
        if let Some(gate) = &mut self.gate {
            wasted += gate.close();
        }
        for call in self.pending.drain(..) {
            wasted += call.usage;
        }
        self.wasted = wasted;
        wasted
    }
}
