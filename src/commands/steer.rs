//! The commands that steer a run: each finds the run that it is about and asks one thing of it.

pub(super) mod call;
mod editor;
mod follow;
mod plan;
mod target;

use muster_bus::Bus;
use muster_shared::flow::question::EDIT;
use muster_shared::flow::{Plan, PlanDraft};
use muster_shared::ids::{QuestionId, TaskIndex};
use muster_shared::run::{QuestionState, RequestAction, RunState};
use muster_shared::time::millis;
use serde_json::Value;

pub(crate) use self::target::Answered;
pub(super) use self::target::Target;
use crate::app::App;
use crate::args::{AnswerArgs, ApproveArgs, EditArgs, OrderArgs, RejectArgs, SteerCommand, TaskArgs};
use crate::exit::{Exit, Failure, usage};
use crate::output;
use crate::place::{Place, run_of};

/// Does what a command says: of which run something is asked, what it is, and why.
pub(super) async fn steer(app: &App, command: &SteerCommand) -> Result<Exit, Failure> {
    let bus = app.connect("cli").await?;
    if let SteerCommand::Approve(args) = command
        && args.show
    {
        let (target, question) = find_asking(&bus, &args.order.run, args.question.as_ref()).await?;
        output::line(&shown(&target, question)?)?;
        return Ok(Exit::Completed);
    }
    answered(app, &bus, command).await?.tell(command.order().json)
}

/// The same in the name of whoever speaks by this bus; what came of it.
///
/// # Errors
/// When there is no such run, or it cannot be asked that.
pub(crate) async fn answered(app: &App, bus: &Bus, command: &SteerCommand) -> Result<Answered, Failure> {
    let order = command.order();
    let run = order.run.as_str();
    let mut reason = order.reason.clone();
    let (target, action) = match command {
        // A run that nobody waits for any more can still be stopped.
        SteerCommand::Cancel(_) => (Target::find_any(bus, run).await?, RequestAction::Cancel),
        SteerCommand::Pause(_) => (Target::find(bus, run).await?, RequestAction::Pause),
        SteerCommand::Resume(args) => {
            let deadline_ms = args.deadline.map(millis);
            (Target::find(bus, run).await?, RequestAction::Resume { deadline_ms })
        }
        SteerCommand::Skip(args) => {
            (of_task(bus, args).await?, RequestAction::Skip { task: args.task.at.clone() })
        }
        SteerCommand::Redo(args) => {
            (of_task(bus, args).await?, RequestAction::Redo { task: args.task.at.clone() })
        }
        SteerCommand::Edit(args) => edit(app, bus, args).await?,
        SteerCommand::Answer(args) => answer(app, bus, args).await?,
        SteerCommand::Approve(args) => {
            let (target, question) = find_asking(bus, run, args.question.as_ref()).await?;
            let action = approval(app, &target, question, args).await?;
            (target, action)
        }
        SteerCommand::Reject(args) => {
            let (target, question) = find_asking(bus, run, args.question.as_ref()).await?;
            reason = feedback(app, args)?;
            (target, RequestAction::Reject { question })
        }
    };
    target.ask(order, action, reason).await
}

/// Approves with a plan, or with arguments of a call, that a person gave as they are to be.
///
/// # Errors
/// As [`answered`], and when nothing of that kind waits.
pub(crate) async fn approved(
    app: &App,
    bus: &Bus,
    order: &OrderArgs,
    question: Option<QuestionId>,
    edited: Edited,
) -> Result<Answered, Failure> {
    let place = question.map(Place::of);
    let (target, question) = find_asking(bus, &order.run, place.as_ref()).await?;
    let waiting = call::waiting(&target.state, question).map(|(id, _)| id);
    let action = match (waiting, edited) {
        (Some(_), Edited::Plan(_)) => {
            return Err(usage!("what waits is a call of a tool, and no plan").help("approve its arguments"));
        }
        (None, Edited::Arguments(_)) => return Err(no_call()),
        (Some(id), Edited::Arguments(mut arguments)) => {
            app.redactor.redact_value(&mut arguments);
            RequestAction::Approve { question: Some(id), arguments: Some(arguments), plan: None }
        }
        (None, Edited::Plan(plan)) => RequestAction::Approve { question, arguments: None, plan: Some(plan) },
    };
    target.ask(order, action, order.reason.clone()).await
}

/// What a person changed before he approved it.
pub(crate) enum Edited {
    /// The plan.
    Plan(Box<PlanDraft>),
    /// The arguments of a call.
    Arguments(Value),
}

fn no_call() -> Failure {
    usage!("no call of a tool waits here for its arguments")
        .help("`muster questions` shows what waits; name it with --question where several do")
}

/// The run that a task is in, if the task is in its plan.
async fn of_task(bus: &Bus, args: &TaskArgs) -> Result<Target, Failure> {
    let target = Target::find(bus, &args.task.run(&args.order.run)).await?;
    target.check(&args.task.at)?;
    Ok(target)
}

async fn edit(app: &App, bus: &Bus, args: &EditArgs) -> Result<(Target, RequestAction), Failure> {
    let run = run_of(args.task.as_ref(), &args.order.run);
    let task = args.task.as_ref().map(|task| &task.at);
    let target = Target::find(bus, &run).await?;
    if let Some(task) = task {
        target.check(task)?;
    }
    let before = goal_of(&target.state, task);
    let goal = match &args.goal {
        Some(goal) => goal.clone(),
        None => editor::edited(before.clone(), "md").await?,
    };
    if goal.trim() == before.trim() {
        return Err(usage!("the goal is the same as before: nothing was changed"));
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

async fn answer(app: &App, bus: &Bus, args: &AnswerArgs) -> Result<(Target, RequestAction), Failure> {
    let (run, question) = (args.question.run(&args.order.run), args.question.at);
    let is_open = |state: &RunState| state.questions.get(&question).is_some_and(QuestionState::is_open);
    let target = Target::find_asking(bus, &run, is_open).await?;
    let text = match (&args.text, args.choice) {
        (Some(text), _) => app.redactor.redact(text.trim()).into_owned(),
        (None, Some(choice)) => {
            let choices =
                target.state.questions.get(&question).map(|asked| asked.question.choices.as_slice());
            if choices.is_some_and(<[String]>::is_empty) {
                return Err(usage!("question {question} has no choices")
                    .help("answer with a text; use `muster approve` to approve a plan or a call"));
            }
            choice.to_string()
        }
        (None, None) => return Err(usage!("there is no answer: give a text, or --choice N")),
    };
    let asked = target.state.questions.get(&question).filter(|asked| asked.about.is_approved());
    if args.is_at_terminal
        && asked.is_some_and(|asked| asked.question.read(&text).is_ok_and(|choice| choice == EDIT))
    {
        let order = args.order.clone();
        let edit =
            ApproveArgs { order, question: None, edit: true, plan: None, arguments: None, show: false };
        let action = approval(app, &target, Some(question), &edit).await?;
        return Ok((target, action));
    }
    Ok((target, RequestAction::Answer { question, text }))
}

/// The run that asks for a verdict, and the question that is named.
async fn find_asking(
    bus: &Bus,
    run: &str,
    question: Option<&Place<QuestionId>>,
) -> Result<(Target, Option<QuestionId>), Failure> {
    let run = run_of(question, run);
    let named = question.map(|question| question.at);
    let asks = |state: &RunState| {
        let mut open = state.open_questions().filter(|(_, asked)| asked.about.is_approved());
        open.any(|(id, _)| named.is_none_or(|named| id == named))
    };
    Ok((Target::find_asking(bus, &run, asks).await?, named))
}

/// What waits to be approved, as it can be edited.
fn shown(target: &Target, question: Option<QuestionId>) -> Result<String, Failure> {
    match call::waiting(&target.state, question) {
        Some((_, call)) => call::written(call),
        None => Ok(plan::written(plan_of(target)?)?.trim_end().to_owned()),
    }
}

/// An approval, with what the person changed. It names the call that they looked at.
async fn approval(
    app: &App,
    target: &Target,
    question: Option<QuestionId>,
    args: &ApproveArgs,
) -> Result<RequestAction, Failure> {
    let Some((id, call)) = call::waiting(&target.state, question) else {
        if args.arguments.is_some() {
            return Err(no_call());
        }
        let plan = if args.edit {
            plan::by_editor(plan_of(target)?).await?
        } else {
            args.plan.as_deref().map(plan::from_file).transpose()?
        };
        let plan = plan.map(Box::new);
        return Ok(RequestAction::Approve { question, arguments: None, plan });
    };
    if args.plan.is_some() {
        return Err(usage!("question {id} is about a call of `{}`, and no plan", call.tool)
            .help("give --arguments, or --edit"));
    }
    let mut arguments = match &args.arguments {
        Some(text) => Some(call::given(text)?),
        None if args.edit => call::by_editor(call).await?,
        None => None,
    };
    if let Some(arguments) = &mut arguments {
        app.redactor.redact_value(arguments);
    }
    Ok(RequestAction::Approve { question: Some(id), arguments, plan: None })
}

fn plan_of(target: &Target) -> Result<&Plan, Failure> {
    target.state.plan.as_ref().ok_or_else(|| usage!("there is no plan yet"))
}

/// What is to be different.
fn feedback(app: &App, args: &RejectArgs) -> Result<String, Failure> {
    let feedback = app.redactor.redact(args.feedback.trim()).into_owned();
    if feedback.is_empty() {
        return Err(usage!("the feedback is empty: say what to change"));
    }
    Ok(feedback)
}
