//! Looks after the tasks at hand: the queue is told that they are worked on for as long as their programs are heard of.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use crate::desk::Desk;
use crate::open::OpenTask;
use crate::{orders, take};

/// How often is looked.
const LOOK: Duration = Duration::from_millis(500);
/// Who was not looked after for so long may have been given up by others.
const STOOD_STILL: Duration = Duration::from_secs(3);
/// The queue is told at least so often.
const PROGRESS: Duration = Duration::from_secs(10);
/// How long a program may take to end the step in hand when its task is to be put down.
const PARKING: Duration = Duration::from_secs(1);

/// Looks until the gateway stops.
pub(crate) async fn watch(desk: Arc<Desk>) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let often = PROGRESS.min(desk.bus.settings().ack_wait / 3);
    let (mut told, mut looked) = (Instant::now(), Instant::now());
    let mut connections = desk.bus.record().connections();
    loop {
        ticks.tick().await;
        let now_at = desk.bus.record().connections();
        if std::mem::replace(&mut looked, Instant::now()).elapsed() >= STOOD_STILL || now_at != connections {
            connections = now_at;
            desk.let_all_go();
        }
        let open = desk.open();
        let tell = told.elapsed() >= often;
        if tell {
            told = Instant::now();
            desk.programs.let_go(|agent| open.iter().any(|task| task.agent == *agent));
        }
        for task in open {
            look(&desk, task, tell).await;
        }
    }
}

async fn look(desk: &Arc<Desk>, task: Arc<OpenTask>, tell: bool) {
    // What others ended is at hand no more.
    if let Ok(course) = task.course.try_lock()
        && let Some(closed) = course.closed.clone()
    {
        desk.close(&task, closed, course.answers());
        return;
    }
    if task.silent_for() >= desk.settings.silence {
        // What came in while this process stood still is read first.
        if task.suspect() {
            let desk = Arc::clone(desk);
            tokio::spawn(async move { give_up(&desk, &task).await });
        }
        return;
    }
    if let Some((since, why)) = task.is_to_park()
        && since.elapsed() >= PARKING
    {
        let desk = Arc::clone(desk);
        tokio::spawn(async move {
            let mut course = task.course.lock().await;
            if course.closed.is_none() {
                orders::put_down(&desk, &task, &mut course, &why).await;
            }
        });
        return;
    }
    if tell && let Err(error) = desk.bus.tasks().progress_of(&task.ack).await {
        tracing::debug!(%error, "the queue could not be told of progress");
    }
}

/// Hands on the task of a silent program. Of one that is silent about all its tasks the registry entry is removed too: it gets
/// no more offers, even if its connection is still open.
async fn give_up(desk: &Desk, task: &OpenTask) {
    let why = format!("nothing was heard of {} for {} s", task.agent, desk.settings.silence.as_secs());
    let program = desk.programs.find(&task.agent);
    let silent = program.filter(|program| program.silent_for() >= desk.settings.silence);
    // A request of the program is in progress.
    if silent.is_some() && task.course.try_lock().is_err() {
        return;
    }
    take::hand_on(desk, task, &why).await;
    if let Some(program) = silent {
        tracing::warn!(run = %task.key.run, task = %task.key.task, why, "a program is taken for dead");
        program.forget().await;
    }
}
