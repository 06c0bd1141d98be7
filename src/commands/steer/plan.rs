//! A plan that a person edits before it is approved, as TOML.

use std::path::Path;

use muster_shared::flow::{Plan, PlanDraft};
use muster_shared::plan::as_draft;

use super::super::plan_file;
use super::editor;
use crate::exit::{Failure, failed, usage};

/// What a person reads above the plan they edit.
const EXPLANATION: &str = "# The plan as it is to be carried out. Tasks are done in any order that their depends_on allows, by \
                           the role\n# that they name. What begins with # is not read. Save and leave to approve it.\n\n";

/// Has a person edit a plan in their editor. Nothing when they leave it as it is.
pub(super) async fn by_editor(plan: &Plan) -> Result<Option<PlanDraft>, Failure> {
    let before = written(plan)?;
    let after = editor::edited(format!("{EXPLANATION}{before}"), "toml").await?;
    let edited = parse(&after, false)?;
    Ok((edited != parse(&before, false)?).then_some(edited))
}

/// The plan as TOML.
pub(super) fn written(plan: &Plan) -> Result<String, Failure> {
    toml::to_string_pretty(&as_draft(plan))
        .map_err(|error| failed!("the plan cannot be written as TOML: {error}"))
}

/// The plan in a file of TOML or JSON.
pub(super) fn from_file(file: &Path) -> Result<PlanDraft, Failure> {
    parse(
        &plan_file::text_of(file)?,
        file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")),
    )
}

fn parse(text: &str, is_json: bool) -> Result<PlanDraft, Failure> {
    plan_file::parse(text, if is_json { "json" } else { "toml" }).map_err(|error| {
        usage!("the plan cannot be read: {error}")
            .help("`muster approve RUN --show` prints the plan in the expected form; the run keeps waiting")
    })
}

#[cfg(test)]
mod tests {
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
