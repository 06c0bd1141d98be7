//! Planning again by rule: a draft is improved by what earlier runs taught, and what is left of a plan that failed is
//! planned anew, another way than before.

use std::collections::BTreeSet;

use muster_shared::flow::{
    LeafRef, Plan, PlanDraft, PlanTask, Product, ReplanBrief, RunLimits, TaskDraft, TaskOffered,
};
use muster_shared::ids::{Role, TaskIndex};
use muster_shared::plan::as_draft;

use super::planner::{CHECK_NAME, check, is_check};
use super::reflector::WEAK;
use super::subquestions::asked_in;
use super::text::counted;
use super::{OfflineMove, lessons, refiner, thought};

/// Most questions that are searched for more widely from the beginning.
const MAX_WIDENED: usize = 2;

/// Improves a plan before it is carried out: what is known to need a wider search gets one at once, beside the plain one.
pub(super) fn improve(plan: &Plan, taught: &[String], limits: &RunLimits) -> OfflineMove {
    let searched = plan.leaves().filter(|(_, task)| task.role == Role::Researcher);
    let asked = searched.map(|(_, task)| asked_in(task));
    let worth = asked.filter(|asked| !asked.widened && lessons::advise_wider(taught, &asked.question));
    let open: Vec<String> = worth
        .map(|asked| asked.question)
        .filter(|subquestion| !is_widened(plan, subquestion))
        .take(MAX_WIDENED)
        .collect();
    let room = refiner::room(plan, limits);
    let mut draft = as_draft(plan);
    let text = if open.is_empty() || room == 0 {
        "What earlier runs taught asks for nothing else.".to_owned()
    } else {
        draft.tasks.extend(refiner::wider(plan, &open, room));
        format!("Earlier runs needed a wider search for: {}", open.join(" "))
    };
    submit(text, "What was found out once need not be found out again.", draft)
}

/// Plans what is left: what failed is tried another way, what had not begun stays planned, and what was found without
/// being looked up is looked up.
pub(super) fn anew(offer: &TaskOffered, brief: &ReplanBrief) -> OfflineMove {
    let past = Past { brief, limits: &offer.limits };
    let mut others = past.others();
    let most = usize::from(offer.limits.max_width.min(offer.limits.max_tasks)).max(1);
    others.truncate(most.saturating_sub(1));
    let unchecked = past.unchecked();
    let mut tasks = past.searches();
    // One place is kept for whoever looks up what they find.
    tasks.truncate(most.saturating_sub(others.len() + 1).max(1));
    let to_check = tasks.iter().map(|task| task.name.clone()).chain(unchecked).collect::<Vec<_>>();
    let count = tasks.len();
    tasks.extend(others);
    if tasks.len() < most && (!to_check.is_empty() || tasks.is_empty()) {
        tasks.push(past.check(to_check));
    }
    let text = format!(
        "The plan failed: {}. {} to be made another way.",
        brief.reasons.join("; "),
        counted(count, "search is", "searches are"),
    );
    let draft = PlanDraft { goal: brief.plan.goal.clone(), tasks, ..PlanDraft::default() };
    submit(text, "What ended well stays; the rest is not tried the same way twice.", draft)
}

fn submit(text: String, reasoning: &str, draft: PlanDraft) -> OfflineMove {
    OfflineMove::submit(thought(text, reasoning, "Submit the plan."), &Product::Plan(draft))
}

/// Whether the plan has a wider search for a question.
fn is_widened(plan: &Plan, subquestion: &str) -> bool {
    plan.tasks.values().map(asked_in).any(|other| other.widened && other.question == subquestion)
}

/// A plan that failed, and what it gave.
struct Past<'a> {
    brief: &'a ReplanBrief,
    limits: &'a RunLimits,
}

impl Past<'_> {
    fn result(&self, index: &TaskIndex) -> Option<&LeafRef> {
        self.brief.results.iter().find(|leaf| leaf.index == *index)
    }

    /// Searches for what failed, is not sure, or had not begun. What was searched for in vain twice is left open.
    fn searches(&self) -> Vec<TaskDraft> {
        let plan = &self.brief.plan;
        let mut found: Vec<TaskDraft> = Vec::new();
        for (index, task) in plan.leaves().filter(|(_, task)| is_search(task)) {
            let asked = asked_in(task);
            let again = match self.result(index) {
                Some(leaf) if !self.is_weak(leaf) => continue,
                None if !self.was_tried(index, task) => as_it_was(task, &self.brief.results),
                Some(_) | None if asked.widened || is_widened(plan, &asked.question) => continue,
                _ => TaskDraft { role: Some(task.role.to_string()), ..refiner::search(&asked.question) },
            };
            if found.iter().all(|other| other.name != again.name) {
                found.push(again);
            }
        }
        found
    }

    /// Leaves that did not end well and neither search nor check: they are tried once more.
    fn others(&self) -> Vec<TaskDraft> {
        let open = self.brief.plan.leaves().filter(|(index, task)| {
            self.result(index).is_none() && !is_search(task) && !is_check(task.query.as_ref())
        });
        let mut names = BTreeSet::new();
        open.filter(|(_, task)| names.insert(&task.name))
            .map(|(_, task)| as_it_was(task, &self.brief.results))
            .collect()
    }

    /// Results with places that nobody has looked up.
    fn unchecked(&self) -> Vec<String> {
        let checks = self
            .brief
            .plan
            .leaves()
            .filter(|(index, task)| is_check(task.query.as_ref()) && self.result(index).is_some());
        let checked: BTreeSet<&TaskIndex> = checks.flat_map(|(_, task)| &task.depends_on).collect();
        let cited = self.brief.results.iter().filter(|leaf| {
            leaf.result.findings.iter().any(|found| !found.citations.is_empty() && !found.verified)
        });
        cited.filter(|leaf| !checked.contains(&leaf.index)).map(|leaf| leaf.index.to_string()).collect()
    }

    /// Looks these up; everything there is, when nothing is named.
    fn check(&self, mut of: Vec<String>) -> TaskDraft {
        if of.is_empty() {
            of = self.brief.results.iter().map(|leaf| leaf.index.to_string()).collect();
        }
        let earlier = self.brief.plan.tasks.values().filter(|task| is_check(task.query.as_ref())).count();
        TaskDraft { name: format!("{CHECK_NAME} again ({})", earlier + 1), ..check(of) }
    }

    fn is_weak(&self, leaf: &LeafRef) -> bool {
        let best = leaf.result.findings.iter().map(|found| found.confidence).max();
        best.is_none_or(|best| best < WEAK.max(self.limits.replan_below_confidence))
    }

    /// Whether the reasons speak of a task; what had not begun failed in nothing.
    fn was_tried(&self, index: &TaskIndex, task: &PlanTask) -> bool {
        let called = format!("{index} {}", task.name);
        self.brief.reasons.iter().any(|reason| reason.contains(&called))
    }
}

fn is_search(task: &PlanTask) -> bool {
    matches!(task.role, Role::Researcher | Role::Specialist(_))
}

/// A task as it was planned. What it builds on is there, or it goes on without.
fn as_it_was(task: &PlanTask, done: &[LeafRef]) -> TaskDraft {
    let is_done = |needed: &&TaskIndex| done.iter().any(|leaf| leaf.index == **needed);
    TaskDraft {
        depends_on: task.depends_on.iter().filter(is_done).map(TaskIndex::to_string).collect(),
        name: task.name.clone(),
        goal: task.goal.clone(),
        query: task.query.clone(),
        role: Some(task.role.to_string()),
        criticism: task.criticism.clone(),
        milestones: task.milestones.clone(),
        expected_output: task.expected_output.clone(),
        needs: task.needs.clone(),
        critical: task.critical,
        max_steps: task.max_steps,
        ..TaskDraft::default()
    }
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::{Citation, Finding, SearchQuery, TaskResult, TaskStatus, Work};
    use muster_shared::plan::replan::{Rigour, first_new, replan};
    use muster_shared::plan::{check_plan, repair};
    use muster_shared::run::Statuses;

    use super::super::testing::{offer, plan_of};
    use super::*;
    use crate::lessons::of_search;

    const GOAL: &str = "How does a worker survive an outage? What is a lease? What is 2 + 3?";

    fn roles() -> [Role; 2] {
        [Role::Worker, Role::Researcher]
    }

    /// The plan that is made for the goal at first.
    fn planned() -> Plan {
        repair(&plan_of(&offer(GOAL)), &RunLimits::default(), &roles()).0
    }

    fn with(change: impl FnOnce(&mut Work)) -> PlanDraft {
        let mut offer = offer(GOAL);
        change(&mut offer.work);
        plan_of(&offer)
    }

    fn names(tasks: &[TaskDraft]) -> Vec<&str> {
        tasks.iter().map(|task| task.name.as_str()).collect()
    }

    #[test]
    fn a_draft_gets_what_earlier_runs_found_worth_while_and_nothing_else() {
        let before = planned();
        let question = "How does a worker survive an outage?".to_owned();
        let asked = SearchQuery { question, ..SearchQuery::default() };
        let lesson = of_search(&asked, None, true).unwrap();
        for (lessons, more) in [(vec![lesson], 2), (vec!["name the roots first".to_owned()], 0)] {
            let improved = with(|work| {
                let Work::Plan { draft, lessons: taught, .. } = work else { panic!("{work:?}") };
                (*draft, *taught) = (Some(Box::new(before.clone())), lessons);
            });
            let (plan, repairs) = repair(&improved, &RunLimits::default(), &roles());
            assert_eq!(repairs, Vec::<String>::new());
            assert!(check_plan(&plan, &RunLimits::default(), &roles()).is_empty());
            assert_eq!(plan.tasks.len(), before.tasks.len() + more, "{:?}", names(&improved.tasks));
            assert!(before.tasks.iter().all(|(index, task)| plan.tasks.get(index) == Some(task)));
        }
    }

    /// What a leaf found, and how sure that is.
    fn found(at: &TaskIndex, confidence: u8) -> LeafRef {
        let citations = vec![Citation { path: "a.md".into(), line: 1, quote: "a".into() }];
        let findings = vec![Finding { text: "a".into(), confidence, citations, ..Finding::default() }];
        let result = TaskResult { findings, ..TaskResult::default() };
        LeafRef { index: at.clone(), name: String::new(), goal: String::new(), query: None, result }
    }

    fn statuses(plan: &Plan, results: &[LeafRef], failed: &TaskIndex) -> Statuses {
        let status = |at: &TaskIndex| {
            let done = results.iter().any(|leaf| leaf.index == *at);
            match (done, at == failed) {
                (true, _) => TaskStatus::Completed,
                (false, true) => TaskStatus::Failed,
                (false, false) => TaskStatus::Created,
            }
        };
        plan.tasks.keys().map(|at| (at.clone(), status(at))).collect()
    }

    #[test]
    fn what_failed_is_tried_another_way_and_what_had_not_begun_stays_planned() {
        let plan = planned();
        let index =
            |name: &str| plan.tasks.iter().find(|(_, task)| task.name.starts_with(name)).unwrap().0.clone();
        let (outage, lease) = (index("How does a worker"), index("What is a lease"));
        // The outage failed, or is not sure; the lease had not begun, or is known.
        for (failed, lease_known) in [(true, false), (true, true), (false, true)] {
            let unsure = (!failed).then(|| found(&outage, 10));
            let results: Vec<LeafRef> =
                unsure.into_iter().chain(lease_known.then(|| found(&lease, 95))).collect();
            let statuses = statuses(&plan, &results, &outage);
            let brief = ReplanBrief {
                asked_for: false,
                plan: plan.clone(),
                progress: String::new(),
                reasons: vec![format!("{outage} {} failed: gone", plan.tasks[&outage].name)],
                results,
                lessons: Vec::new(),
                first: first_new(&plan),
                left: 2,
            };
            let draft = with(|work| {
                let Work::Plan { replan, .. } = work else { panic!("{work:?}") };
                *replan = Some(Box::new(brief));
            });
            let named = names(&draft.tasks);
            assert_eq!(
                named.iter().filter(|name| name.starts_with("Wider: How does")).count(),
                1,
                "{named:?}"
            );
            let plain = named.contains(&plan.tasks[&lease].name.as_str());
            assert_eq!(plain, !lease_known, "{named:?}");
            assert!(named.contains(&"Compute"), "{named:?}");
            let check = draft.tasks.last().unwrap();
            assert!(check.name.starts_with(CHECK_NAME), "{named:?}");
            assert_eq!(check.depends_on.contains(&lease.to_string()), lease_known, "{check:?}");
            let made =
                replan(&plan, &statuses, &draft, &RunLimits::default(), &roles(), (Rigour::Strict, None));
            assert!(made.is_ok(), "{made:?}");
        }
    }
}
