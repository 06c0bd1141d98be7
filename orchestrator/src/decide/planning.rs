//! What follows from a planner's proposal: it is adopted, asked for again with the reasons, or repaired by rule.

use muster_shared::flow::{Ending, Plan, PlanDraft};
use muster_shared::ids::{Seq, TaskId};
use muster_shared::plan::{self, PlanProblem};
use muster_shared::run::RunEvent;

use super::draft::Draft;
use super::failure::{self, Failure};
use super::outcome::completed;
use super::{review, survey};

/// Judges a plan. The first one that is refused is asked for again; later ones are repaired as far as rules can.
pub(super) fn propose(draft: &mut Draft<'_>, seq: Seq, proposal: &PlanDraft) {
    let Some(run) = draft.open() else { return };
    let asked_again = !run.refused_plans.is_empty();
    let limits = run.limits.clone();
    let roles = survey::leaf_roles(draft.situation().capacity);
    let mut proposal = proposal.clone();
    plan::matching::give_to_specialists(&mut proposal, &roles, draft.specialists());
    let problems = plan::check(&proposal, &limits, &roles);
    if !problems.is_empty() && !asked_again && limits.max_generations > 1 {
        return refuse(draft, seq, &problems);
    }
    let (plan, repairs) = plan::repair(&proposal, &limits, &roles);
    let left = plan::check_plan(&plan, &limits, &roles);
    if left.is_empty() {
        adopt(draft, seq, plan, &repairs);
    } else {
        refuse(draft, seq, &left);
    }
}

fn adopt(draft: &mut Draft<'_>, seq: Seq, plan: Plan, repairs: &[String]) {
    completed(draft, TaskId::Plan, seq);
    draft.emit(RunEvent::PlanAdopted { plan, repairs: repairs.to_vec() });
    review::begin(draft, repairs);
}

fn refuse(draft: &mut Draft<'_>, seq: Seq, problems: &[PlanProblem]) {
    let reasons: Vec<String> = problems.iter().map(PlanProblem::to_string).collect();
    let reason = format!("the plan was refused: {}", reasons.join("; "));
    draft.emit(RunEvent::PlanRefused { reasons });
    let failure = Failure { ending: Ending::Done, outcome: Some(seq), reason };
    failure::failed(draft, &TaskId::Plan, failure);
}
