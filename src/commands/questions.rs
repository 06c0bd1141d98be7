//! `muster questions`: what waits for a person.

use muster_bus::Bus;
use muster_shared::ids::QuestionId;
use muster_shared::run::{QuestionState, RunState};
use serde_json::{Value, json};

use super::steer::call;
use super::{runs, select, within};
use crate::app::{App, now};
use crate::args::QuestionsArgs;
use crate::exit::{Exit, Failure};
use crate::{output, render};

/// Lists questions, those of the newest run first.
pub(super) async fn questions(app: &App, args: &QuestionsArgs) -> Result<Exit, Failure> {
    let runs = select::reading(app, async |bus| read(bus, args).await).await?;
    output::json_or_line(
        args.json,
        || runs.iter().flat_map(|run| listed(run, args.all)).collect::<Vec<Value>>(),
        || render::questions::list(&runs, args.all, now()),
    )
}

async fn read(bus: &Bus, args: &QuestionsArgs) -> Result<Vec<RunState>, Failure> {
    match &args.run {
        Some(wanted) => {
            let state = select::wanted(bus, wanted).await?;
            let within = within::all(bus, &state).await?;
            Ok(std::iter::once(state).chain(within).collect())
        }
        None => {
            let newest = runs::newest(bus, args.limit).await?;
            runs::tell_left_out(&newest.left_out);
            Ok(newest.runs)
        }
    }
}

/// The questions of a run as `muster questions --json` has them.
pub(crate) fn listed(run: &RunState, all: bool) -> Vec<Value> {
    let asked = run.questions.iter().filter(|(_, asked)| all || asked.is_open());
    let listed = |(id, asked): (&QuestionId, &QuestionState)| {
        let otherwise = render::questions::otherwise(run, asked);
        let mut listed = json!({
            "run": run.id, "question": id, "goal": run.goal.text, "asked": asked, "otherwise": otherwise,
        });
        if let Some((_, call)) = call::waiting(run, Some(*id)) {
            listed["call"] = json!(call);
        }
        listed
    };
    asked.map(listed).collect()
}
