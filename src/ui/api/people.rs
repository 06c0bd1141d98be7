//! What waits for a person: questions, plans and calls to be approved.

use axum::extract::State;
use muster_shared::flow::{PlanDraft, RunLimits};
use muster_shared::ids::QuestionId;
use muster_shared::plan::as_draft;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::reply::{Problem, Reply, json};
use super::steer::{order, perform};
use super::{By, Named, Said, Shared, apart, record_of};
use crate::args::{AnswerArgs, ApproveArgs, RejectArgs, SteerCommand};
use crate::commands::steer::Edited;
use crate::commands::{plan_file, questions as asking, select, steer as steering};
use crate::place::Place;

/// How many runs, newest first, are looked at for questions: as many as `muster questions` does.
const LOOKED_AT: usize = 100;
/// Longest answer, in bytes.
const LONGEST: usize = 256 * 1024;

/// The questions that wait, as `muster questions --json` lists them.
pub(crate) async fn questions(State(ui): Shared) -> Reply {
    let bus = ui.bus()?;
    if let Some(known) = ui.hub.questions().await {
        return json(&known);
    }
    // The hub has only begun to follow the fleet.
    let newest = crate::commands::runs::newest(&bus, LOOKED_AT).await?;
    let all: Vec<Value> = newest.runs.iter().flat_map(|run| asking::listed(run, false)).collect();
    json(&all)
}

/// An answer to a question.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answered {
    text: Option<String>,
    choice: Option<usize>,
    form: Option<Value>,
    run: Option<String>,
}

fn question(text: &str) -> Result<QuestionId, Problem> {
    text.parse().map_err(|_| Problem::bad(format!("{text:?} is no question: they have numbers")))
}

/// Answers a question of a run.
pub(crate) async fn answer(
    State(ui): Shared,
    By(by): By,
    Named((run, asked)): Named<(String, String)>,
    Said(said): Said<Answered>,
) -> Reply {
    let question = Place::of(question(&asked)?);
    let text = match (said.text, said.form) {
        (Some(text), None) => Some(text),
        // What a form asks for is answered as JSON.
        (None, Some(form)) => Some(form.to_string()),
        (None, None) if said.choice.is_some() => None,
        (Some(_), Some(_)) => return Err(Problem::bad("an answer is a text or a form, and not both")),
        (None, None) => return Err(Problem::bad("there is no answer").help("give text, choice or form")),
    };
    if text.as_ref().is_some_and(|text| text.len() > LONGEST) {
        return Err(Problem::bad(format!("an answer has at most {LONGEST} bytes")));
    }
    let order = order(&ui, &by, &run, "").await?;
    let args = AnswerArgs { order, question, text, choice: said.choice, is_at_terminal: false };
    perform(&ui, &by, &SteerCommand::Answer(args)).await
}

/// The same, where the run is named in what is said.
pub(crate) async fn answer_named(
    state: Shared,
    by: By,
    Named(asked): Named<String>,
    Said(said): Said<Answered>,
) -> Reply {
    let run = said.run.clone().ok_or_else(|| {
        Problem::bad("the question's run is not named").help("give run: questions are numbered in each run")
    })?;
    answer(state, by, Named((run, asked)), Said(said)).await
}

/// The plan as it can be edited.
pub(crate) async fn plan(State(ui): Shared, Named(run): Named<String>) -> Reply {
    let (run, record) = record_of(&ui, &run).await?;
    let record = record.followed()?;
    let draft = apart(move || Ok(select::fold(run, &record.entries)?.plan.as_ref().map(as_draft))).await?;
    let draft = draft.ok_or_else(|| Problem::not_found(format!("run {} has no plan yet", run.short())))?;
    json(&draft)
}

/// A plan that somebody has edited.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Draft {
    plan: Value,
}

/// What is wrong with a plan, by the rules that it will be held to; nothing is changed.
pub(crate) async fn check(
    State(ui): Shared,
    Named(run): Named<String>,
    Said(Draft { plan }): Said<Draft>,
) -> Reply {
    let (run, record) = record_of(&ui, &run).await?;
    let record = record.followed()?;
    let limits: RunLimits = apart(move || Ok(select::fold(run, &record.entries)?.limits)).await?;
    let problems = match draft(plan) {
        Err(problem) => vec![problem.error],
        Ok(draft) => plan_file::problems(&draft, &limits),
    };
    json(&json!({ "problems": problems }))
}

fn draft(plan: Value) -> Result<PlanDraft, Problem> {
    serde_json::from_value(plan).map_err(|error| {
        Problem::bad(format!("the plan cannot be read: {error}")).help("a plan is as GET …/plan gives it")
    })
}

/// An approval, with what somebody changed first.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Approved {
    question: Option<u32>,
    plan: Option<Value>,
    arguments: Option<Value>,
    reason: String,
}

/// Approves what waits, as `muster approve` does.
pub(crate) async fn approve(
    State(ui): Shared,
    By(by): By,
    Named(run): Named<String>,
    Said(said): Said<Approved>,
) -> Reply {
    let order = order(&ui, &by, &run, &said.reason).await?;
    let asked = said.question.map(|number| question(&number.to_string())).transpose()?;
    let edited = match (said.plan, said.arguments) {
        (None, None) => None,
        (Some(plan), None) => Some(Edited::Plan(Box::new(draft(plan)?))),
        (None, Some(arguments @ Value::Object(_))) => Some(Edited::Arguments(arguments)),
        (None, Some(_)) => return Err(Problem::bad("the arguments of a call are a JSON object")),
        (Some(_), Some(_)) => return Err(Problem::bad("what is approved is a plan or a call, and not both")),
    };
    if let Some(edited) = edited {
        let bus = ui.bus_for(&by)?;
        let answered = Box::pin(steering::approved(&ui.app, &bus, &order, asked, edited)).await?;
        return json(&answered.in_json());
    }
    let question = asked.map(Place::of);
    let args = ApproveArgs { order, question, edit: false, plan: None, arguments: None, show: false };
    perform(&ui, &by, &SteerCommand::Approve(args)).await
}

/// A rejection, with what is to be different.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rejected {
    feedback: String,
    question: Option<u32>,
}

/// Rejects what waits, as `muster reject` does.
pub(crate) async fn reject(
    State(ui): Shared,
    By(by): By,
    Named(run): Named<String>,
    Said(said): Said<Rejected>,
) -> Reply {
    if said.feedback.len() > LONGEST {
        return Err(Problem::bad(format!("feedback has at most {LONGEST} bytes")));
    }
    let order = order(&ui, &by, &run, "").await?;
    let question = said.question.map(|number| question(&number.to_string())).transpose()?.map(Place::of);
    let feedback = ui.reason(&by, &said.feedback);
    perform(&ui, &by, &SteerCommand::Reject(RejectArgs { order, feedback, question })).await
}
