//! The commands that steer a run: each finds the run that it is about and asks one thing of it.

mod editor;
mod follow;
mod plan;
mod target;

use muster_shared::flow::{Plan, PlanDraft};
use muster_shared::ids::TaskIndex;
use muster_shared::run::{QuestionState, RequestAction, RunState};

pub(super) use self::target::Target;
use crate::app::App;
use crate::args::{AnswerArgs, ApproveArgs, EditArgs, RejectArgs, SteerCommand, TaskArgs};
use crate::exit::{Exit, Failure};
use crate::output;

/// Does what a command says: of which run something is asked, what it is, and why.
pub(super) async fn steer(app: &App, command: &SteerCommand) -> Result<Exit, Failure> {
    let order = command.order();
    let run = order.run.as_str();
    let mut reason = order.reason.clone();
    let (target, action) = match command {
        // A run that nobody waits for any more can still be stopped.
        SteerCommand::Cancel(_) => (Target::find_any(app, run).await?, RequestAction::Cancel),
        SteerCommand::Pause(_) => (Target::find(app, run).await?, RequestAction::Pause),
        SteerCommand::Resume(args) => {
            let deadline_ms = args.deadline.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
            (Target::find(app, run).await?, RequestAction::Resume { deadline_ms })
        }
        SteerCommand::Skip(args) => {
            (of_task(app, args).await?, RequestAction::Skip { task: args.task.at.clone() })
        }
        SteerCommand::Redo(args) => {
            (of_task(app, args).await?, RequestAction::Redo { task: args.task.at.clone() })
        }
        SteerCommand::Edit(args) => edit(app, args).await?,
        SteerCommand::Answer(args) => answer(app, args).await?,
        SteerCommand::Approve(args) => {
            let target = Target::find_asking(app, run, asks_for_verdict).await?;
            if args.show {
                output::line(plan::written(plan_of(&target)?)?.trim_end())?;
                return Ok(Exit::Completed);
            }
            let plan = edited_plan(&target, args).await?.map(Box::new);
            (target, RequestAction::Approve { plan })
        }
        SteerCommand::Reject(args) => {
            let target = Target::find_asking(app, run, asks_for_verdict).await?;
            reason = feedback(app, args)?;
            (target, RequestAction::Reject)
        }
    };
    target.ask(order, action, reason).await
}

/// The run that a task is in, if the task is in its plan.
async fn of_task(app: &App, args: &TaskArgs) -> Result<Target, Failure> {
    let target = Target::find(app, &args.task.run(&args.order.run)).await?;
    target.check(&args.task.at)?;
    Ok(target)
}

async fn edit(app: &App, args: &EditArgs) -> Result<(Target, RequestAction), Failure> {
    let run = args.task.as_ref().map_or_else(|| args.order.run.clone(), |task| task.run(&args.order.run));
    let task = args.task.as_ref().map(|task| &task.at);
    let target = Target::find(app, &run).await?;
    if let Some(task) = task {
        target.check(task)?;
    }
    let before = goal_of(&target.state, task);
    let goal = match &args.goal {
        Some(goal) => goal.clone(),
        None => editor::edited(before.clone(), "md").await?,
    };
    if goal.trim() == before.trim() {
        return Err(Failure::usage("the goal is the same as before: nothing was changed"));
    }
    let goal = app.redactor.redact(goal.trim()).into_owned();
    Ok((target, RequestAction::Edit { task: task.cloned(), goal }))
}

/// The goal as it stands; empty when there is none yet.
fn goal_of(state: &RunState, task: Option<&TaskIndex>) -> String {
    let Some(task) = task else { return state.goal.text.clone() };
    let planned = state.plan.as_ref().and_then(|plan| plan.tasks.get(task));
    planned.map(|task| task.goal.clone()).unwrap_or_default()
}

async fn answer(app: &App, args: &AnswerArgs) -> Result<(Target, RequestAction), Failure> {
    let (run, question) = (args.question.run(&args.order.run), args.question.at);
    let is_open = |state: &RunState| state.questions.get(&question).is_some_and(QuestionState::is_open);
    let target = Target::find_asking(app, &run, is_open).await?;
    let text = match (&args.text, args.choice) {
        (Some(text), _) => app.redactor.redact(text.trim()).into_owned(),
        (None, Some(choice)) => {
            let choices =
                target.state.questions.get(&question).map(|asked| asked.question.choices.as_slice());
            if choices.is_some_and(<[String]>::is_empty) {
                return Err(Failure::usage(format!("question {question} has no choices"))
                    .help("answer with a text; use `muster approve` to approve a plan"));
            }
            choice.to_string()
        }
        (None, None) => return Err(Failure::usage("there is no answer: give a text, or --choice N")),
    };
    Ok((target, RequestAction::Answer { question, text }))
}

/// Whether a run asks about something that is approved or rejected.
fn asks_for_verdict(state: &RunState) -> bool {
    state.open_questions().any(|(_, asked)| asked.about.is_approved())
}

fn plan_of(target: &Target) -> Result<&Plan, Failure> {
    target.state.plan.as_ref().ok_or_else(|| Failure::usage("there is no plan yet"))
}

/// The plan as it is to be; nothing where it stays as it is.
async fn edited_plan(target: &Target, args: &ApproveArgs) -> Result<Option<PlanDraft>, Failure> {
    if args.edit {
        return plan::by_editor(plan_of(target)?).await;
    }
    args.plan.as_deref().map(plan::from_file).transpose()
}

/// What is to be different.
fn feedback(app: &App, args: &RejectArgs) -> Result<String, Failure> {
    let feedback = app.redactor.redact(args.feedback.trim()).into_owned();
    if feedback.is_empty() {
        return Err(Failure::usage("the feedback is empty: say what to change"));
    }
    Ok(feedback)
}
