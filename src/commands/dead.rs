//! `muster dead`: what could not be processed is looked at, tried again, or thrown away.

use std::time::Duration;

use muster_bus::{Bus, DeadLetter, Origin};
use muster_shared::ids::{RunId, Seq, TaskId};
use serde_json::{Value, json};

use super::{keep, steer};
use crate::app::{App, user};
use crate::args::{
    DeadAction, DeadLetterArgs, DeadListArgs, DeadRetryArgs, OrderArgs, SteerCommand, TaskArgs,
};
use crate::exit::{Exit, Failure, usage};
use crate::place::Place;
use crate::{output, render};

/// Remedy for a command without consent.
const NOT_ASKED: &str = "--yes does not ask";

/// How long a run's record is watched for the task to be opened again.
const WAIT: Duration = Duration::from_secs(10);

/// Looks after dead letters.
pub(super) async fn dead(app: &App, action: &DeadAction) -> Result<Exit, Failure> {
    let bus = app.connect("cli").await?;
    match action {
        DeadAction::List(args) => list(&bus, args).await,
        DeadAction::Show(args) => show(&bus, args).await,
        DeadAction::Retry(args) => retry(app, &bus, args).await,
        DeadAction::Drop(args) => discard(&bus, args).await,
    }
}

async fn list(bus: &Bus, args: &DeadListArgs) -> Result<Exit, Failure> {
    let letters = bus.dead().list(args.limit).await?;
    output::json_or_line(
        args.json,
        || letters.iter().map(render::dead::json).collect::<Vec<Value>>(),
        || render::dead::table(&letters),
    )
}

async fn show(bus: &Bus, args: &DeadLetterArgs) -> Result<Exit, Failure> {
    let letter = find(bus, args.seq).await?;
    output::json_or_line(args.json, || render::dead::json(&letter), || render::dead::letter(&letter))
}

async fn retry(
    app: &App,
    bus: &Bus,
    DeadRetryArgs { letter: args, yes }: &DeadRetryArgs,
) -> Result<Exit, Failure> {
    let letter = find(bus, args.seq).await?;
    let author = check(bus, &letter)?;
    let words = asked(&letter, author.as_deref());
    if !args.json {
        output::line!("{}\n\n{words}", render::dead::letter(&letter))?;
    }
    if !yes && !keep::agreed("Retry it?", NOT_ASKED)? {
        if args.json {
            output::json(&render::dead::json(&letter))?;
        }
        return Err(usage!("dead letter {} was not retried: it was not confirmed", args.seq).help(NOT_ASKED));
    }
    match retried(app, bus, bus, args.seq).await? {
        Retried::Sent => {
            tell(args, "retried", &format!("sent the command of dead letter {} again", args.seq))
        }
        Retried::Offered(answered) => answered.tell(args.json),
    }
}

/// What became of a dead letter that was tried again.
pub(crate) enum Retried {
    /// Its command was sent again.
    Sent,
    /// Its task is done again by its run.
    Offered(Box<steer::Answered>),
}

/// Checks that a letter may become an order again. Returns the author of its command, if the fleet has keys.
fn check(bus: &Bus, letter: &DeadLetter) -> Result<Option<String>, Failure> {
    let seq = letter.seq;
    let author = bus.dead().check_retry(letter).map_err(|why| {
        usage!("dead letter {seq} cannot be retried: {}", render::figures::one_line(&why, 600))
            .help(format!("`muster dead show {seq}` shows it, `muster dead drop {seq}` deletes it; give the order yourself if it is right"))
    })?;
    Ok(author.map(|order| order.by))
}

/// The effect of a retry, for the person who agrees to it.
fn asked(letter: &DeadLetter, author: Option<&str>) -> String {
    match (letter.origin(), author) {
        (Origin::Task { run, task }, _) => {
            format!("This offers task {task} of run {} again, in your name.", run.short())
        }
        (Origin::Command | Origin::Elsewhere, Some(author)) => {
            format!("This sends the command again, in the name of {author}, who signed it.")
        }
        (Origin::Command | Origin::Elsewhere, None) => "This sends the command again.".to_owned(),
    }
}

/// Retries a dead letter: a command is sent again in the name of its author, a task is offered again in the name of `by`.
///
/// # Errors
/// If no letter has this number, or if it may not become an order again.
pub(crate) async fn retried(app: &App, bus: &Bus, by: &Bus, seq: u64) -> Result<Retried, Failure> {
    let letter = find(bus, seq).await?;
    check(bus, &letter)?;
    match letter.origin() {
        Origin::Command => {
            bus.dead().resend(&letter).await?;
            Ok(Retried::Sent)
        }
        Origin::Task { run, task } => {
            let answered = offer_anew(app, by, seq, run, &task).await?;
            bus.dead().remove(letter.seq).await?;
            Ok(Retried::Offered(Box::new(answered)))
        }
        Origin::Elsewhere => Err(usage!(
            "dead letter {seq} came on {}, which cannot be retried",
            render::figures::one_line(&letter.subject, 80)
        )
        .help("`muster dead drop` deletes it")),
    }
}

/// Has the task of a dead letter done again by its run, as `muster redo` does.
async fn offer_anew(
    app: &App,
    bus: &Bus,
    seq: u64,
    run: RunId,
    task: &TaskId,
) -> Result<steer::Answered, Failure> {
    let TaskId::Leaf(index) = task else {
        return Err(usage!("{task} cannot be run again on its own: it depends on the tasks of the plan")
            .help(format!(
                "run one of those again with `muster redo`; `muster show {}` lists them",
                run.short()
            )));
    };
    let reason = format!("dead letter {seq} is tried again");
    let order = OrderArgs { run: run.to_string(), reason, by: user(), wait: WAIT, json: false };
    let task = TaskArgs { order, task: Place::of(index.clone()) };
    steer::answered(app, bus, &SteerCommand::Redo(task)).await
}

async fn discard(bus: &Bus, args: &DeadLetterArgs) -> Result<Exit, Failure> {
    dropped(bus, args.seq).await?;
    tell(args, "dropped", &format!("dropped dead letter {}", args.seq))
}

/// Throws a dead letter away.
///
/// # Errors
/// When there is none of this number.
pub(crate) async fn dropped(bus: &Bus, seq: u64) -> Result<(), Failure> {
    let letter = find(bus, seq).await?;
    Ok(bus.dead().remove(letter.seq).await?)
}

fn tell(args: &DeadLetterArgs, done: &str, words: &str) -> Result<Exit, Failure> {
    output::json_or_line(args.json, || json!({ "seq": args.seq, "done": done }), || words)
}

async fn find(bus: &Bus, seq: u64) -> Result<DeadLetter, Failure> {
    // Numbers start at 1: the server refuses 0.
    let found = if seq == 0 { None } else { bus.dead().get(Seq(seq)).await? };
    found.ok_or_else(|| {
        usage!("there is no dead letter {seq}")
            .help("`muster dead list` lists the dead letters with their numbers")
    })
}
