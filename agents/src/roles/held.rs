//! Whether a plan, or a change of one, would be taken: the very rules by which it is judged later, looked at where it is
//! made, so that it is mended in the same conversation. Whoever judges it later has the last word.

use std::collections::BTreeMap;

use muster_shared::flow::{
    BlueprintBrief, HeldTo, PlanDraft, Product, RefineBrief, RefineOperation, ReplanBrief, RunLimits,
    Specialty, TaskOffered, TaskStatus, Work,
};
use muster_shared::ids::{Role, TaskIndex};
use muster_shared::plan::tools::Nameable;
use muster_shared::plan::{
    self, PlanProblem, RefineRules, Rigour, Values, matching, refine_by, replan, tools as tool_rules,
};

use super::Submission;

/// What is wrong with what was submitted, one line each; empty where it would be taken.
pub(crate) fn problems(offer: &TaskOffered, submission: &Submission) -> Vec<String> {
    match (&offer.work, &submission.product) {
        (
            Work::Plan { roles, specialists, tools, blueprints, replan, held_to, .. },
            Some(Product::Plan(draft)),
        ) => {
            let to = Against::new(&offer.limits, roles, specialists, tools, blueprints, held_to);
            of_plan(draft, replan.as_deref(), &to)
        }
        (
            Work::Refine { plan, roles, specialists, tools, blueprints, held_to, .. },
            Some(Product::Refinement(operations)),
        ) => {
            let to = Against::new(&offer.limits, roles, specialists, tools, blueprints, held_to);
            of_operations(plan, operations, &to)
        }
        (Work::Reflect { refine: Some(brief), .. }, Some(Product::Reflection(reflection))) => {
            let RefineBrief { plan, roles, tools, blueprints, held_to, .. } = brief.as_ref();
            let to = Against::new(&offer.limits, roles, &[], tools, blueprints, held_to);
            of_operations(plan, &reflection.operations, &to)
        }
        (
            Work::Plan { .. }
            | Work::Execute { .. }
            | Work::Reflect { .. }
            | Work::Refine { .. }
            | Work::Write { .. }
            | Work::DraftReview { .. },
            _,
        ) => Vec::new(),
    }
}

/// What it is held against.
struct Against<'a> {
    limits: &'a RunLimits,
    roles: Vec<Role>,
    specialists: &'a [Specialty],
    named: Nameable<'a>,
    statuses: &'a BTreeMap<TaskIndex, TaskStatus>,
    values: Values,
}

impl<'a> Against<'a> {
    fn new(
        limits: &'a RunLimits,
        roles: &[String],
        specialists: &'a [Specialty],
        tools: &'a [String],
        blueprints: &'a [BlueprintBrief],
        held_to: &'a HeldTo,
    ) -> Self {
        Self {
            limits,
            roles: roles.iter().filter_map(|role| role.parse().ok()).collect(),
            specialists,
            named: Nameable { tools, blueprints },
            statuses: &held_to.statuses,
            values: Values::new(&held_to.context, &held_to.statuses),
        }
    }
}

fn of_plan(draft: &PlanDraft, replanned: Option<&ReplanBrief>, to: &Against<'_>) -> Vec<String> {
    if draft.tasks.is_empty() && !draft.questions.is_empty() {
        return Vec::new();
    }
    if let Some(brief) = replanned {
        let rigour = (Rigour::Strict, Some(&to.values));
        let wrong = replan(&brief.plan, to.statuses, draft, to.limits, &to.roles, rigour).err();
        let tools = tool_rules::problems(draft, to.named);
        return wrong.into_iter().flatten().chain(tools).collect();
    }
    let mut draft = draft.clone();
    matching::give_to_specialists(&mut draft, &to.roles, to.specialists);
    let mut wrong = plan::check(&draft, to.limits, &to.roles);
    wrong.extend(to.values.unwritten_in(&draft, to.limits));
    let wrong = wrong.iter().map(PlanProblem::to_string);
    wrong.chain(tool_rules::problems(&draft, to.named)).collect()
}

/// `split 1-2: a task is split into 2 to 4, not 1`.
fn of_operations(
    plan: &muster_shared::flow::Plan,
    operations: &[RefineOperation],
    to: &Against<'_>,
) -> Vec<String> {
    let rules = RefineRules {
        limits: to.limits,
        roles: &to.roles,
        specialists: to.specialists,
        named: to.named,
        values: Some(&to.values),
    };
    let refused = refine_by(plan, to.statuses, operations, &rules).refused;
    refused.into_iter().map(|no| format!("{}: {}", no.operation.in_words(), no.reason)).collect()
}
