//! A task that was done by a blueprint: the report of its run is what it gives.

use muster_shared::flow::{ObservationStatus, PlanTask, Product, Step, TaskResult};

use super::text::normalise_space;
use super::{OfflineMove, thought};
use muster_shared::plan::tools::BLUEPRINT;

/// What stands before the report in what the task was told.
const REPORT: &str = "Its report:\n\n";

/// Longest conclusion that is made of a report, in characters.
const MOST_TOLD: usize = 6_000;

/// The report of the run that did the task, if one did.
pub(super) fn report<'a>(task: &PlanTask, steps: &'a [Step]) -> Option<&'a str> {
    task.blueprint.as_ref()?;
    let step = steps.first().filter(|step| step.action.name == BLUEPRINT)?;
    let observed = step.observation.as_ref();
    let told = observed.filter(|observed| observed.status == ObservationStatus::Success)?;
    Some(told.content.split_once(REPORT).map_or(told.content.as_str(), |(_, report)| report))
}

/// Ends the task with the report.
pub(super) fn submit(report: &str) -> OfflineMove {
    // A heading of the report would be one of the report that it becomes a part of.
    let lines = report.lines().map(|line| line.trim_start_matches('#').trim());
    let text = normalise_space(&lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" "));
    let conclusion = text.chars().take(MOST_TOLD).collect();
    let milestones = vec!["done by its blueprint".to_owned()];
    let result = TaskResult { conclusion, milestones, ..TaskResult::default() };
    OfflineMove::submit(thought("The blueprint's run has ended.", "", "Submit."), &Product::Result(result))
}
