//! Properties of the rules about plans: any draft can be mended, any refinement leaves a good plan.

use muster_shared::flow::{Plan, PlanDraft, RefineOperation, RunLimits, TaskDraft, TaskStatus};
use muster_shared::ids::{Role, TaskIndex};
use muster_shared::plan::{check, check_plan, order, refine, repair};
use muster_shared::run::Statuses;
use proptest::prelude::*;

const ROLES: [Role; 2] = [Role::Researcher, Role::Worker];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(vec!["find the limits", "Find  the Limits", "compare a and b", "sum", "read it"])
            .prop_map(str::to_owned),
        2 => prop::sample::select(vec!["use {{1.result}}", "{{2-1.findings}} and {{1-1.result}}", "{{9.result}}", "{{{{1.x}}}}", "{{1-2.result}}{{2.result}}"])
            .prop_map(str::to_owned),
        1 => Just(String::new()),
        1 => Just("long ".repeat(1200)),
        2 => "[a-z {}.0-9“ß-]{0,24}",
    ]
}

fn dependency() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "1", "2", "3", "1-1", "1-2", "2-1", "1-1-1", "sum", "nothing", "1-2-1-1", "read it",
    ])
    .prop_map(str::to_owned)
}

fn task(subtasks: impl Strategy<Value = Vec<TaskDraft>>) -> impl Strategy<Value = TaskDraft> {
    let role = prop::option::of(prop::sample::select(vec!["worker", "Researcher", "king", "no such!", ""]));
    let depends_on = prop::collection::vec(dependency(), 0..4);
    (text(), text(), role, depends_on, subtasks, text(), any::<bool>()).prop_map(
        |(name, goal, role, depends_on, subtasks, milestone, critical)| TaskDraft {
            name,
            goal,
            role: role.map(str::to_owned),
            depends_on,
            subtasks,
            milestones: (0..milestone.len() % 7).map(|number| format!("{milestone} {number}")).collect(),
            critical,
            ..TaskDraft::default()
        },
    )
}

fn draft() -> impl Strategy<Value = PlanDraft> {
    let leaf = task(Just(Vec::new())).boxed();
    let tree = leaf.prop_recursive(6, 60, 7, |inner| task(prop::collection::vec(inner, 0..7)));
    prop::collection::vec(tree, 0..9).prop_map(|tasks| PlanDraft {
        goal: "g".to_owned(),
        tasks,
        ..PlanDraft::default()
    })
}

fn limits() -> impl Strategy<Value = RunLimits> {
    (0..6_u16, 0..5_u16, 0..25_u16, 0..6_u32, 0..5_u16).prop_map(
        |(max_width, max_depth, max_tasks, operations, max_milestones)| RunLimits {
            max_width,
            max_depth,
            max_tasks,
            max_milestones,
            max_refine_operations: operations,
            ..RunLimits::default()
        },
    )
}

fn has_substance(tasks: &[TaskDraft]) -> bool {
    tasks.iter().any(|task| {
        !task.name.trim().is_empty() || !task.goal.trim().is_empty() || has_substance(&task.subtasks)
    })
}

fn operation() -> impl Strategy<Value = RefineOperation> {
    let index = prop::sample::select(vec!["1", "2", "3", "1-1", "1-2", "2-1", "3-2", "1-1-1", "7"])
        .prop_map(|text| text.parse::<TaskIndex>().unwrap());
    let tasks = || prop::collection::vec(task(Just(Vec::new())), 0..6);
    prop_oneof![
        3 => (index.clone(), tasks()).prop_map(|(task, into)| RefineOperation::Split { task, into }),
        3 => (index.clone(), tasks()).prop_map(|(after, tasks)| RefineOperation::Add { after, tasks }),
        3 => index.prop_map(|task| RefineOperation::Delete { task, reason: String::new() }),
        1 => Just(RefineOperation::Exit { reason: String::new() }),
    ]
}

/// Runs a plan to its end with the given endings, and says in which order leaves started.
fn execute(plan: &Plan, endings: &[TaskStatus]) -> (Vec<TaskIndex>, Statuses) {
    let (mut statuses, mut started) = (Statuses::new(), Vec::new());
    let mut endings = endings.iter().cycle();
    loop {
        for (index, _) in order::blocked(plan, &statuses) {
            statuses.insert(index, TaskStatus::Blocked);
        }
        let ready = order::ready(plan, &statuses);
        let Some(next) = ready.first() else { break };
        for needed in order::dependencies(plan, next) {
            assert!(statuses[&needed].is_ended(), "{next} is ready before {needed} ended");
        }
        statuses.insert(next.clone(), *endings.next().unwrap());
        started.push(next.clone());
    }
    (started, statuses)
}

#[test]
fn a_goal_of_braces_still_gives_a_name() {
    let task = TaskDraft { goal: "}".to_owned(), ..TaskDraft::default() };
    let draft = PlanDraft { goal: "g".to_owned(), tasks: vec![task], ..PlanDraft::default() };
    let (plan, _) = repair(&draft, &RunLimits::default(), &ROLES);
    assert_eq!(check_plan(&plan, &RunLimits::default(), &ROLES), vec![]);
}

fn named(name: &str, goal: &str) -> TaskDraft {
    TaskDraft { name: name.to_owned(), goal: goal.to_owned(), ..TaskDraft::default() }
}

#[test]
fn more_than_twenty_tasks_are_too_many_and_those_most_alike_become_one() {
    let limits = RunLimits { max_width: 30, ..RunLimits::default() };
    let topics = [
        "leases",
        "orphans",
        "budgets",
        "prompts",
        "tools",
        "lessons",
        "goals",
        "people",
        "replay",
        "tests",
        "blueprints",
    ];
    let tasks = topics.iter().flat_map(|topic| {
        [
            named(&format!("{topic} in short"), &format!("Describe {topic} in short.")),
            named(&format!("{topic} in shorter"), &format!("Describe {topic} in shorter.")),
        ]
    });
    let draft = PlanDraft { goal: "g".to_owned(), tasks: tasks.collect(), ..PlanDraft::default() };
    let problems = check(&draft, &limits, &ROLES);
    assert!(
        problems[0].to_string().contains("22 tasks, 20 is the most: merge those that are alike"),
        "{problems:?}"
    );
    let (plan, notes) = repair(&draft, &limits, &ROLES);
    assert_eq!((plan.tasks.len(), notes.len()), (20, 2), "{notes:?}");
    let merged: Vec<&String> =
        plan.tasks.values().map(|task| &task.name).filter(|name| name.contains("; ")).collect();
    assert_eq!(merged.len(), 2);
    for name in merged {
        let (one, other) = name.split_once("; ").unwrap();
        assert_eq!(one.split(' ').next(), other.split(' ').next(), "{name}");
    }
}

#[test]
fn a_task_with_too_many_milestones_is_split_where_there_is_room() {
    let milestones = (1..=5).map(|number| format!("reach {number}")).collect();
    let large = TaskDraft { milestones, ..named("climb", "Climb up.") };
    let after =
        TaskDraft { depends_on: vec!["climb".to_owned()], ..named("rest", "Rest after {{1.result}}.") };
    let draft = PlanDraft { goal: "g".to_owned(), tasks: vec![large, after], ..PlanDraft::default() };
    let limits = RunLimits { max_milestones: 2, ..RunLimits::default() };
    let problems: Vec<String> = check(&draft, &limits, &ROLES).iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["task 1 has 5 milestones, 2 is the most of one task: split it into smaller ones"]);
    assert!(
        check(&draft, &limits.for_people(), &ROLES).is_empty(),
        "people say themselves how large a task is"
    );

    let (plan, notes) = repair(&draft, &limits, &ROLES);
    assert_eq!(check_plan(&plan, &limits, &ROLES), vec![]);
    assert!(notes[0].contains("into 3"), "{notes:?}");
    let parts: Vec<_> =
        ["1-1", "1-2", "1-3"].map(|index| plan.tasks[&index.parse().unwrap()].clone()).to_vec();
    assert_eq!(parts[1].milestones, ["reach 3", "reach 4"]);
    assert_eq!(parts[1].depends_on, ["1-1".parse().unwrap()]);
    assert!(
        parts[2].goal.starts_with("Part 3 of 3, up to: reach 5.") && parts[2].goal.ends_with("Climb up.")
    );

    let flat = RunLimits { max_depth: 1, ..limits };
    let (plan, _) = repair(&draft, &flat, &ROLES);
    assert_eq!(check_plan(&plan, &flat, &ROLES), vec![]);
    assert_eq!(
        plan.tasks[&"1".parse().unwrap()].milestones,
        ["reach 1", "reach 2; reach 3; reach 4; reach 5"]
    );
}

#[test]
fn how_large_tasks_are_to_be_says_what_planners_may() {
    use muster_shared::flow::Granularity::{Coarse, Fine, Normal};
    for (granularity, tasks, milestones) in [(Coarse, 5, 16), (Normal, 20, 8), (Fine, 20, 4)] {
        let limits = RunLimits { granularity, ..RunLimits::default() }.for_planners();
        assert_eq!((limits.max_tasks, limits.max_milestones), (tasks, milestones), "{granularity:?}");
    }
    let text = serde_json::to_string(&RunLimits::default()).unwrap();
    assert!(!text.contains("granularity"), "what is usual is not written");
}

#[test]
fn goal_of_a_parent_with_one_subtask_is_kept() {
    let task = |goal: &str, subtasks| TaskDraft {
        name: goal.into(),
        goal: goal.into(),
        subtasks,
        ..TaskDraft::default()
    };
    let tasks = vec![task("compare the offers", vec![task("read both offers", Vec::new())])];
    let draft = PlanDraft { goal: "g".into(), tasks, ..PlanDraft::default() };
    let (plan, _) = repair(&draft, &RunLimits::default(), &ROLES);
    let goals: Vec<&str> = plan.tasks.values().map(|task| task.goal.as_str()).collect();
    assert_eq!(goals, ["read both offers; as part of: compare the offers"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_repaired_draft_is_a_good_plan(draft in draft(), limits in limits()) {
        let (plan, notes) = repair(&draft, &limits, &ROLES);
        if has_substance(&draft.tasks) {
            prop_assert_eq!(check_plan(&plan, &limits, &ROLES), vec![], "{:#?}\n{:#?}", plan, notes);
        } else {
            prop_assert!(plan.tasks.is_empty());
        }
        prop_assert!(!notes.iter().any(|note| note.contains("could not be kept together")), "{:?}", notes);
    }

    #[test]
    fn a_good_draft_is_left_alone(draft in draft(), limits in limits()) {
        if check(&draft, &limits, &ROLES).is_empty() {
            let (plan, notes) = repair(&draft, &limits, &ROLES);
            let lifted = notes.iter().all(|note| note.contains("whose only subtask it was"));
            prop_assert!(lifted, "{:?}", notes);
            prop_assert!(!plan.tasks.is_empty());
        }
    }

    #[test]
    fn every_leaf_of_a_repaired_plan_ends(
        draft in draft(),
        endings in prop::collection::vec(prop::sample::select(vec![
            TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Skipped, TaskStatus::Aborted,
        ]), 1..9),
    ) {
        let (plan, _) = repair(&draft, &RunLimits::default(), &ROLES);
        let (started, statuses) = execute(&plan, &endings);
        prop_assert!(order::all_ended(&plan, &statuses));
        let once: std::collections::BTreeSet<_> = started.iter().collect();
        prop_assert_eq!(once.len(), started.len());
    }

    #[test]
    fn refining_keeps_the_plan_good_and_the_past_untouched(
        draft in draft(),
        rounds in prop::collection::vec((prop::collection::vec(operation(), 0..5), 0..4_usize), 1..4),
        endings in prop::collection::vec(prop::sample::select(vec![
            TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Processing, TaskStatus::Queued,
        ]), 1..9),
    ) {
        let limits = RunLimits::default();
        let (mut plan, _) = repair(&draft, &limits, &ROLES);
        prop_assume!(!plan.tasks.is_empty());
        let mut statuses = Statuses::new();
        let mut endings = endings.iter().cycle();
        for (operations, progress) in rounds {
            for _ in 0..progress {
                if let Some(next) = order::ready(&plan, &statuses).first() {
                    statuses.insert(next.clone(), *endings.next().unwrap());
                }
            }
            let refined = refine(&plan, &statuses, &operations, &limits, &ROLES, None);
            prop_assert_eq!(check_plan(&refined.plan, &limits, &ROLES), vec![]);
            for (index, status) in &statuses {
                prop_assert_eq!(refined.plan.tasks.get(index), plan.tasks.get(index), "{} was {:?}", index, status);
                let may_be_split = !matches!(status, TaskStatus::Completed);
                prop_assert!(may_be_split || refined.plan.is_leaf(index));
            }
            let split = |index: &TaskIndex| plan.is_leaf(index) && !refined.plan.is_leaf(index);
            let exit = |operation: &&RefineOperation| matches!(operation, RefineOperation::Exit { .. });
            let tried = operations.iter().filter(|operation| !exit(operation)).count();
            let refused = refined.refused.iter().filter(|refused| !exit(&&refused.operation)).count();
            let most = usize::try_from(limits.max_refine_operations).unwrap();
            prop_assert!(tried - refused <= most, "{} of {} were carried out", tried - refused, tried);
            let parents: Vec<TaskIndex> = plan.tasks.keys().filter(|index| split(index)).cloned().collect();
            statuses.extend(parents.into_iter().map(|index| (index, TaskStatus::Split)));
            plan = refined.plan;
        }
    }
}
