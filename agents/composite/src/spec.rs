//! What a composite is as a tool: it follows from the tools that it calls. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use muster_shared::flow::RolePermission;
use muster_shared::plan::tools::stays;
use muster_tools::{ToolSource, ToolSpec, Uncertain};

use crate::ENDING;
use crate::file::Composite;

/// How long undoing may take, beside the time of the steps.
pub(crate) const UNDO_TIME: Duration = Duration::from_secs(60);
/// What the engine grants beside, so that the composite tells itself what its time did not suffice for.
const MARGIN: Duration = Duration::from_secs(5);

/// The specification of a composite, by those of the tools that it calls.
///
/// # Errors
/// Names a tool that no composite may call.
pub(crate) fn spec_of(composite: &Composite, inner: &[&ToolSpec]) -> Result<ToolSpec, String> {
    // What waits for people, peers or runs puts the task down: half a composite cannot be put down.
    let waits = |spec: &&&ToolSpec| spec.permission != RolePermission::Tools || stays(&spec.name);
    if let Some(gated) = inner.iter().find(waits) {
        return Err(format!(
            "`{}` waits for somebody, and a composite cannot be put down in the middle: let the model call it by itself",
            gated.name
        ));
    }
    let is_undone = composite.steps.iter().any(|step| step.compensate.is_some());
    let undo_time = if is_undone { UNDO_TIME } else { Duration::ZERO };
    let by_way_of = inner.iter().flat_map(|spec| &spec.inner).cloned();
    let all: BTreeSet<String> = inner.iter().map(|spec| spec.name.clone()).chain(by_way_of).collect();
    let mut spec =
        ToolSpec::new(composite.name.clone(), composite.description.clone(), composite.parameters.clone())
            .with_timeout(composite.time + undo_time + MARGIN)
            // Its tools are called again by themselves.
            .never_repeated()
            .calling(all);
    if inner.iter().any(|spec| !spec.pure) {
        let lasting = inner.iter().filter(|spec| !spec.pure).map(|spec| spec.uncertain);
        spec = spec.with_side_effects().when_uncertain(strictest(lasting));
    }
    spec.grants = inner.iter().flat_map(|spec| spec.grants.iter().copied()).collect();
    let stem = composite.name.rsplit('.').next().unwrap_or_default();
    spec = spec.from_source(ToolSource::File(format!("{stem}{ENDING}")));
    Ok(match &composite.sample {
        Some(sample) => spec.with_sample(sample.clone()),
        None => spec,
    })
}

/// What is done about a call of which nobody knows whether it took effect: what the strictest of its tools says.
fn strictest(all: impl Iterator<Item = Uncertain>) -> Uncertain {
    let rank = |one: &Uncertain| match one {
        Uncertain::Repeat => 0,
        Uncertain::Ask => 1,
        Uncertain::Fail => 2,
    };
    all.max_by_key(rank).unwrap_or(Uncertain::Repeat)
}
