//! Values of the shared context that goals use, `{{context.KEY}}`: whether they are there, or will be when the task begins
//! (P7).

use std::collections::BTreeSet;

use super::check::{Bounds, MAX_TEXT_BYTES, PlanProblem};
use super::{draft, order, reference};
use crate::flow::{Plan, PlanDraft, PlanTask, RunLimits};
use crate::ids::TaskIndex;
use crate::run::Statuses;
use crate::text::within_bytes;

/// What is known of the values of a run when a plan is checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values {
    /// The keys that have a value.
    there: BTreeSet<String>,
    /// The tasks that write nothing any more.
    ended: BTreeSet<TaskIndex>,
}

impl Values {
    /// Of a run with values under these keys, whose tasks have come so far.
    #[must_use]
    pub fn new<'a>(there: impl IntoIterator<Item = &'a String>, statuses: &Statuses) -> Self {
        let ended = statuses.iter().filter(|(_, status)| status.is_ended()).map(|(index, _)| index.clone());
        Self { there: there.into_iter().cloned().collect(), ended: ended.collect() }
    }

    /// Of each task, the values it uses that nobody has written and that nothing which ends before it says it writes.
    #[must_use]
    pub fn unwritten(&self, plan: &Plan) -> Vec<PlanProblem> {
        let of_task = |(index, task): (&TaskIndex, &PlanTask)| {
            let (index, missing) = (index.clone(), self.missing(plan, index, task));
            missing.into_iter().map(move |key| PlanProblem::UnwrittenContext { task: index.clone(), key })
        };
        plan.tasks.iter().flat_map(of_task).collect()
    }

    /// The same of a plan as somebody proposes it. One that is far too large is not looked at: that is what is wrong with it.
    #[must_use]
    pub fn unwritten_in(&self, proposal: &PlanDraft, limits: &RunLimits) -> Vec<PlanProblem> {
        let (plan, _) = draft::read(proposal);
        if plan.tasks.len() > Bounds::of(limits).readable() { Vec::new() } else { self.unwritten(&plan) }
    }

    /// Puts words in the place of what [`Self::unwritten`] finds in tasks that may be changed, and says so, one line each.
    /// Whoever does the task is told of the value all the same, should somebody write it.
    pub fn mend(&self, plan: &mut Plan, may_change: impl Fn(&TaskIndex) -> bool) -> Vec<String> {
        let mut notes = Vec::new();
        for problem in self.unwritten(plan) {
            let PlanProblem::UnwrittenContext { task: index, key } = problem else { continue };
            let Some(task) = plan.tasks.get_mut(&index).filter(|_| may_change(&index)) else { continue };
            task.goal = without(&task.goal, &key);
            notes.push(format!(
                "{index} {} does without {{{{context.{key}}}}}: nobody has written it, and nothing that {index} waits \
                 for says that it writes it",
                task.name
            ));
        }
        notes
    }

    fn missing(&self, plan: &Plan, index: &TaskIndex, task: &PlanTask) -> BTreeSet<String> {
        let used = reference::find_context(&task.goal).filter_map(|(_, found)| found.ok());
        let used: BTreeSet<&str> = used.filter(|key| !self.there.contains(*key)).collect();
        if used.is_empty() {
            return BTreeSet::new();
        }
        let before = all_before(plan, index);
        let is_before = |at: &TaskIndex| plan.leaves_of(at).all(|leaf| before.contains(leaf));
        let may_write = |at: &TaskIndex| plan.leaves_of(at).any(|leaf| !self.ended.contains(leaf));
        let writers = plan.tasks.iter().filter(|(at, _)| is_before(at) && may_write(at));
        let writers: Vec<&PlanTask> = writers.map(|(_, task)| task).collect();
        let unsaid = used.into_iter().filter(|key| !writers.iter().any(|task| speaks_of(task, key)));
        unsaid.map(str::to_owned).collect()
    }
}

/// The leaves that end before this task begins, whether it needs them itself or what it needs does.
fn all_before(plan: &Plan, index: &TaskIndex) -> BTreeSet<TaskIndex> {
    let mut found = order::dependencies(plan, index);
    let mut open: Vec<TaskIndex> = found.iter().cloned().collect();
    while let Some(leaf) = open.pop() {
        for needed in order::dependencies(plan, &leaf) {
            if found.insert(needed.clone()) {
                open.push(needed);
            }
        }
    }
    found
}

/// Whether a task names the key as something that it has to do with, other than by using its value.
fn speaks_of(task: &PlanTask, key: &str) -> bool {
    let own = [&task.name, &task.goal, &task.expected_output];
    own.into_iter()
        .chain(&task.milestones)
        .any(|text| names(&replaced(text, |_| Some(String::from(" "))), key))
}

/// Whether a text names a key in words: as a word by itself, or as `context.KEY`.
#[must_use]
pub fn names(text: &str, key: &str) -> bool {
    let of_key = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    text.match_indices(key).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + key.len()..]);
        let before = before.strip_suffix("context.").unwrap_or(before);
        // A dot after it may end a sentence.
        let after = after.strip_prefix('.').unwrap_or(after);
        !before.ends_with(|letter| of_key(letter) || letter == '.') && !after.starts_with(of_key)
    })
}

/// What stands in a goal that has to do without a value.
#[must_use]
pub fn in_words(key: &str) -> String {
    format!("(context.{key} is not there yet: you are told when it is written)")
}

fn without(goal: &str, key: &str) -> String {
    within_bytes(&replaced(goal, |found| (found == Some(key)).then(|| in_words(key))), MAX_TEXT_BYTES)
}

/// The text with references to the shared context replaced where something is given for them.
fn replaced(text: &str, by: impl Fn(Option<&str>) -> Option<String>) -> String {
    let (mut new, mut from) = (String::with_capacity(text.len()), 0);
    for (range, found) in reference::find_context(text) {
        if let Some(words) = by(found.ok()) {
            new.push_str(&text[from..range.start]);
            new.push_str(&words);
            from = range.end;
        }
    }
    new.push_str(&text[from..]);
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{RefineOperation, TaskDraft, TaskStatus};
    use crate::ids::Role;
    use crate::plan::replan::{Rigour, replan};
    use crate::plan::{check_plan, refine, repair, repair_knowing};

    const WANTS: &str = "Look within {{context.limit}} hops.";

    fn task(name: &str, goal: &str, on: &[&str], subtasks: Vec<TaskDraft>) -> TaskDraft {
        let depends_on = on.iter().map(|on| (*on).to_owned()).collect();
        TaskDraft { name: name.into(), goal: goal.into(), depends_on, subtasks, ..TaskDraft::default() }
    }

    fn leaf(name: &str, goal: &str, on: &[&str]) -> TaskDraft {
        task(name, goal, on, Vec::new())
    }

    fn proposal(tasks: Vec<TaskDraft>) -> PlanDraft {
        PlanDraft { goal: "g".into(), tasks, ..PlanDraft::default() }
    }

    fn plan(tasks: Vec<TaskDraft>) -> Plan {
        repair(&proposal(tasks), &RunLimits::default(), &[Role::Worker]).0
    }

    fn said(problems: &[PlanProblem]) -> Vec<String> {
        let said = |problem: &PlanProblem| match problem {
            PlanProblem::UnwrittenContext { task, key } => format!("{task} {key}"),
            other => other.to_string(),
        };
        problems.iter().map(said).collect()
    }

    #[test]
    fn a_key_is_named_where_it_stands_by_itself() {
        let cases = [
            ("Agree on limit.", "limit", true),
            ("limit", "limit", true),
            ("Write context.limit, then go on", "limit", true),
            ("Write `limit`", "limit", true),
            ("(limit)", "limit", true),
            ("Agree on limits.", "limit", false),
            ("the rate.limit", "limit", false),
            ("limit.door", "limit", false),
            ("the time-limit", "limit", false),
            ("limit_2", "limit", false),
            ("delimit", "limit", false),
            ("limits and limit", "limit", true),
            ("write rate.limit.", "rate.limit", true),
            ("mycontext.limit", "limit", false),
            ("", "limit", false),
        ];
        for (text, key, named) in cases {
            assert_eq!(names(text, key), named, "{text:?} {key}");
        }
    }

    #[test]
    fn a_value_is_written_before_or_said_to_be() {
        let with = |change: fn(&mut TaskDraft)| {
            let mut first = leaf("agree", "Agree.", &[]);
            change(&mut first);
            vec![first, leaf("look", WANTS, &["1"])]
        };
        let (agree, look) = (|| leaf("agree", "Agree on limit.", &[]), |on: &[&str]| leaf("look", WANTS, on));
        let parts = || vec![leaf("a", "A.", &[]), leaf("b", "B.", &["a"])];
        let agree_in_parts = || TaskDraft { subtasks: parts(), ..agree() };
        let all = || task("all", "All.", &["1"], vec![look(&[]), leaf("b", "B.", &[])]);
        let cases: Vec<(&str, Vec<TaskDraft>, &[&str])> = vec![
            ("nobody says so", with(|_| {}), &["2 limit"]),
            ("in its goal", with(|task| task.goal = "Agree on limit.".into()), &[]),
            ("in its name", with(|task| task.name = "limit".into()), &[]),
            ("in a milestone", with(|task| task.milestones = vec!["limit is there".into()]), &[]),
            ("in its output", with(|task| task.expected_output = "limit".into()), &[]),
            ("by using it", with(|it| it.goal = "Raise {{context.limit}}.".into()), &["1 limit", "2 limit"]),
            ("without depending on it", vec![agree(), look(&[])], &["2 limit"]),
            ("by way of another", vec![agree(), leaf("wait", "Wait.", &["1"]), look(&["2"])], &[]),
            ("by what the task above needs", vec![agree(), all()], &[]),
            ("by a task above that ends before", vec![agree_in_parts(), look(&["1"])], &[]),
            (
                "by a task above of which a part ends before",
                vec![agree_in_parts(), look(&["1-1"])],
                &["2 limit"],
            ),
            (
                "one of two",
                vec![agree(), leaf("look", "{{context.limit}} {{context.colour}}", &["1"])],
                &["2 colour"],
            ),
        ];
        for (what, tasks, wanted) in cases {
            let found = Values::default().unwritten_in(&proposal(tasks), &RunLimits::default());
            assert_eq!(said(&found), wanted, "{what}");
            if let Some(problem) = found.first() {
                let words = problem.to_string();
                assert!(
                    words.contains("in the goal of the task that writes it and depend on that task"),
                    "{words}"
                );
            }
        }
    }

    #[test]
    fn what_is_there_may_be_used_and_who_has_ended_writes_nothing() {
        let plan = plan(vec![leaf("agree", "Agree on limit.", &[]), leaf("look", WANTS, &["1"])]);
        let statuses: Statuses = [(TaskIndex::top(1), TaskStatus::Completed)].into();
        let limit = "limit".to_owned();
        for (there, statuses, wanted) in
            [(vec![], Statuses::new(), 0), (vec![], statuses.clone(), 1), (vec![&limit], statuses, 0)]
        {
            assert_eq!(Values::new(there, &statuses).unwritten(&plan).len(), wanted);
        }
    }

    #[test]
    fn what_nobody_writes_becomes_words_and_that_is_noted() {
        let draft = proposal(vec![
            leaf("one", "Use {{context.a}} and {{ context.a }}, {{context.b}}.", &[]),
            leaf("two", "Use {{ context.a }} and {{context.a}}, {{context.b}}.", &[]),
            leaf("b", "Write b.", &[]),
            leaf("three", "Use {{context.b}}.", &["3"]),
        ]);
        let (limits, roles, values) = (RunLimits::default(), [Role::Worker], Values::default());
        let (plan, notes) = repair_knowing(&draft, &limits, &roles, Some(&values));
        assert_eq!(values.unwritten(&plan), []);
        assert_eq!(check_plan(&plan, &limits, &roles), [], "what is the same once it is mended is one task");
        let goals: Vec<&str> = plan.tasks.values().map(|task| task.goal.as_str()).collect();
        assert_eq!(goals.len(), 3, "{goals:?}");
        let words = in_words("a");
        assert!(goals[0].starts_with(&format!("Use {words} and {words}, (context.b is not")), "{goals:?}");
        assert_eq!(goals[2], "Use {{context.b}}.");
        assert!(notes.iter().any(|note| note.contains("1 one does without {{context.a}}")), "{notes:?}");
    }

    #[test]
    fn what_is_added_later_is_held_against_the_same_rule() {
        let (limits, roles, values) = (RunLimits::default(), [Role::Worker], Values::default());
        let plan = plan(vec![leaf("agree", "Agree on limit.", &[]), leaf("other", "Other.", &[])]);
        let add = |on: &[&str]| RefineOperation::Add {
            after: TaskIndex::top(2),
            tasks: vec![leaf("look", WANTS, on)],
        };
        let refined = refine(&plan, &Statuses::new(), &[add(&["2"])], &limits, &roles, Some(&values));
        assert!(refined.refused[0].reason.contains("task 3 uses {{context.limit}}"), "{refined:?}");
        let refined = refine(&plan, &Statuses::new(), &[add(&["1"])], &limits, &roles, Some(&values));
        assert_eq!((refined.refused.len(), refined.plan.tasks.len()), (0, 3));
        // Who uses it does not lose who writes it.
        let delete = RefineOperation::Delete { task: TaskIndex::top(1), reason: String::new() };
        let less = refine(&refined.plan, &Statuses::new(), &[delete], &limits, &roles, Some(&values));
        assert!(less.refused[0].reason.contains("task 3 uses {{context.limit}}"), "{less:?}");
    }

    #[test]
    fn a_new_plan_may_use_what_is_there_and_what_its_own_tasks_write() {
        let (limits, roles) = (RunLimits::default(), [Role::Worker]);
        let plan = plan(vec![leaf("agree", "Agree on limit.", &[]), leaf("other", "Other.", &[])]);
        let statuses: Statuses = [(TaskIndex::top(1), TaskStatus::Completed)].into();
        let limit = "limit".to_owned();
        let (none, there) = (Values::new([], &statuses), Values::new([&limit], &statuses));
        let of_past = proposal(vec![leaf("look", WANTS, &["1"])]);
        let own = proposal(vec![leaf("set", "Write limit.", &[]), leaf("look", WANTS, &["set"])]);
        for (values, draft, refused) in
            [(&none, &of_past, true), (&there, &of_past, false), (&none, &own, false)]
        {
            let strict = replan(&plan, &statuses, draft, &limits, &roles, (Rigour::Strict, Some(values)));
            let said = strict.err().unwrap_or_default().join("; ");
            assert_eq!(said.contains("task 3 uses {{context.limit}}"), refused, "{said}");
            let mended =
                replan(&plan, &statuses, draft, &limits, &roles, (Rigour::Mend, Some(values))).unwrap();
            assert_eq!(values.unwritten(&mended.plan), []);
            let noted = mended.changes.iter().any(|change| change.contains("3 look does without"));
            assert_eq!(noted, refused, "{:?}", mended.changes);
        }
    }
}
