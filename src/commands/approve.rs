//! `muster approve`: lets a run carry out its plan, perhaps an edited one.

use std::path::Path;

use muster_shared::flow::{Plan, PlanDraft};
use muster_shared::plan::as_draft;
use muster_shared::wire::Command;

use super::edit::by_editor;
use super::order::{Target, asks_for_verdict};
use super::plan_file;
use crate::app::App;
use crate::args::ApproveArgs;
use crate::exit::{Exit, Failure};
use crate::output;

/// What a person reads above the plan they edit.
const EXPLANATION: &str = "# The plan as it is to be carried out. Tasks are done in any order that their depends_on allows, by \
                           the role\n# that they name. What begins with # is not read. Save and leave to approve it.\n\n";

/// Approves what a run asks about.
pub(super) async fn approve(app: &App, args: &ApproveArgs) -> Result<Exit, Failure> {
    let target = Target::find_asking(app, &args.order.run, asks_for_verdict).await?;
    if args.show {
        output::line(written(plan(&target)?)?.trim_end())?;
        return Ok(Exit::Completed);
    }
    let edited = if args.edit {
        let before = written(plan(&target)?)?;
        let after = by_editor(format!("{EXPLANATION}{before}"), "toml").await?;
        let edited = parse(&after, false)?;
        (edited != parse(&before, false)?).then_some(edited)
    } else {
        args.plan.as_deref().map(from_file).transpose()?
    };
    let reason = args.order.reason.clone();
    let command = Command::Approve { run: target.run, plan: edited.map(Box::new), reason, id: None };
    target.order(&args.order, command).await
}

fn plan(target: &Target) -> Result<&Plan, Failure> {
    target.state.plan.as_ref().ok_or_else(|| Failure::usage("there is no plan yet"))
}

fn written(plan: &Plan) -> Result<String, Failure> {
    toml::to_string_pretty(&as_draft(plan))
        .map_err(|error| Failure::failed(format!("the plan cannot be written as TOML: {error}")))
}

fn from_file(file: &Path) -> Result<PlanDraft, Failure> {
    parse(
        &plan_file::text_of(file)?,
        file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")),
    )
}

fn parse(text: &str, is_json: bool) -> Result<PlanDraft, Failure> {
    plan_file::parse(text, if is_json { "json" } else { "toml" }).map_err(|error| {
        Failure::usage(format!("the plan cannot be understood: {error}"))
            .help("`muster approve RUN --show` prints the plan as it is written; the run waits on")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        let text = "goal = \"Add up.\"\n[[tasks]]\nname = \"fruit\"\ngoal = \"Count\"\n[[tasks.subtasks]]\nname = \"the \
                    apples\"\ngoal = \"Count apples\"\n[[tasks.subtasks]]\nname = \"the pears\"\ngoal = \"Count pears\"\n\
                    depends_on = [\"the apples\"]\n";
        let draft = parse(text, false).unwrap();
        let limits = muster_shared::flow::RunLimits::default();
        let roles = [muster_shared::ids::Role::Worker];
        let (plan, _) = muster_shared::plan::repair(&draft, &limits, &roles);
        let again = parse(&format!("{EXPLANATION}{}", written(&plan).unwrap()), false).unwrap();
        assert_eq!(again.tasks[0].subtasks[1].depends_on, ["the apples"]);
        assert_eq!(muster_shared::plan::repair(&again, &limits, &roles).0, plan);
        assert!(parse("tasks = 7", false).is_err());
    }
}
