//! Blueprints: what is wrong with one is found at its place before anything runs, and one with nothing wrong expands
//! into plans that can be carried out.

use std::collections::BTreeMap;

use muster_shared::blueprint::{
    Blueprint, BlueprintProgress, BlueprintStep, Ended, Expansion, FallbackStep, Filled, Param, ParamKind,
    StepOutcome, check, check_limits, check_lists, expand, fill, fill_text, parse, shipped, shipped_names,
    write,
};
use muster_shared::flow::{Finding, Plan, PlanTask, RunLimits, TaskResult};
use muster_shared::ids::{Role, TaskIndex};
use muster_shared::plan::check_plan;
use proptest::prelude::*;
use serde_json::{Value, json};

const ROLES: [Role; 2] = [Role::Researcher, Role::Worker];

/// A run by a blueprint without a fleet.
struct Run {
    filled: Filled,
    limits: RunLimits,
    plan: Plan,
    step_outcomes: BTreeMap<String, StepOutcome>,
    ended: BTreeMap<TaskIndex, Ended>,
    approvals: BTreeMap<String, bool>,
}

impl Run {
    fn new(filled: Filled, limits: RunLimits) -> Self {
        let plan = Plan { goal: filled.goal(), tasks: BTreeMap::new() };
        Self {
            filled,
            limits,
            plan,
            step_outcomes: BTreeMap::new(),
            ended: BTreeMap::new(),
            approvals: BTreeMap::new(),
        }
    }

    fn expand(&mut self) -> Expansion {
        let progress = BlueprintProgress {
            limits: &self.limits,
            plan: &self.plan,
            step_outcomes: &self.step_outcomes,
            ended: &self.ended,
            approvals: &self.approvals,
        };
        let found = expand(&self.filled, &progress);
        assert_eq!(found, expand(&self.filled, &progress), "the same comes of the same");
        self.plan.tasks.extend(found.tasks.clone());
        self.step_outcomes.extend(found.step_outcomes.clone());
        found
    }

    fn open(&self) -> Vec<TaskIndex> {
        let leaves = self.plan.leaves().map(|(leaf, _)| leaf);
        leaves.filter(|leaf| !self.ended.contains_key(leaf)).cloned().collect()
    }

    fn end(&mut self, leaf: &str, conclusion: &str) {
        let result = TaskResult { conclusion: conclusion.to_owned(), ..TaskResult::default() };
        let ended = Ended { result: Some(result), ..Ended::default() };
        self.ended.insert(leaf.parse().unwrap(), ended);
    }

    fn fail(&mut self, leaf: &str) {
        let ended = Ended { why: "the model gave up".to_owned(), ..Ended::default() };
        self.ended.insert(leaf.parse().unwrap(), ended);
    }

    fn goal(&self, index: &str) -> &str {
        &self.plan.tasks[&index.parse::<TaskIndex>().unwrap()].goal
    }
}

fn blueprint(steps: &str) -> Blueprint {
    let head = "name = 'b'\nversion = '1'\ngoal = 'g'\n[params.topics]\ntype = 'list'\ndefault = []\n[params.depth]\n";
    parse(&format!("{head}\n{steps}")).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn run(steps: &str, params: &Value) -> Run {
    let given = params.as_object().unwrap().clone().into_iter().collect();
    Run::new(fill(&blueprint(steps), &given).unwrap(), RunLimits::default())
}

#[test]
fn the_blueprints_that_come_with_muster_are_in_order() {
    for name in shipped_names() {
        let blueprint =
            parse(shipped(name).unwrap()).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
        assert_eq!(blueprint.name, name);
        assert_eq!(check_limits(&blueprint, &RunLimits::default(), &ROLES), []);
        assert_eq!(parse(&write(&blueprint)).unwrap(), blueprint, "{name} survives being written");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let step = |more: &str| {
        format!("name = 'b'\nversion = '1'\ngoal = 'g'\n[[steps]]\nid = 'a'\ngoal = 'x'\n{more}\n")
    };
    let table = [
        ("name = 'b'\nversion = ".to_owned(), 2, "string values must be quoted"),
        (step("mood = 'good'"), 7, "unknown field `mood`"),
        (step("role = 'king of'"), 7, "is no role"),
        (step("role = 'reseacher'"), 7, "did you mean \"researcher\"?"),
        (step("role = 'planner'"), 7, "does no steps"),
        (step("after = ['b']"), 7, "there is no step \"b\""),
        (step("after = ['a']"), 7, "cannot use what it gives itself"),
        (step("if = 'params.depth == 3'"), 7, "there is no parameter \"depth\""),
        (step("if = 'a.ok ='"), 7, "is expected before"),
        (step("for_each = 'params.topics'"), 7, "there is no parameter \"topics\""),
        (step("approval = ''"), 7, "the question is empty"),
        (step("pattern = 'commitee:3'"), 7, "is no pattern: write hierarchical, auction, committee:3"),
        (step("pattern = 'committee:12'"), 7, "2 to 9 members"),
        (step("needs = ['law', ' ']"), 7, "steps[1].needs[2]: it is empty"),
        (step("needs = [\n'law',\n'{{params.what}}']"), 9, "nothing in double braces"),
        (step(&format!("needs = [{}]", "'x',".repeat(17))), 7, "16 is the most"),
        (step("[[steps]]\nid = 'b'\ngoal = '{{item}}'"), 9, "only steps with for_each have one"),
        (step("[[steps]]\nid = 'b'\ngoal = '{{a.mood}}'"), 9, "refers to nothing"),
        (step("[[steps]]\nid = 'b'\ngoal = '{{c.result}}'"), 9, "there is no step \"c\""),
        (step("[[steps]]\nid = 'a'\ngoal = 'y'"), 8, "there is a step \"a\" already"),
        (step("[[steps]]\nid = 'b'\ngoal = 'X'"), 9, "the same as step \"a\""),
        (step("after = ['b']\n[[steps]]\nid = 'b'\ngoal = '{{a.result}}'"), 5, "wait for each other: a, b"),
        (step("[[steps.fallback]]\ngoal = ''"), 8, "the goal is empty"),
        ("name = 'b'\nversion = '1'\ngoal = 'g'\nsteps = []".to_owned(), 4, "there is no step"),
        ("name = 'B b'\nversion = '1'\ngoal = '{{x.result}}'\nsteps = []".to_owned(), 1, "is no name"),
        (step("[params.n]\ntype = 'integer'\ndefault = 'x'"), 9, "is not a whole number"),
        (step("if = 'params.n > 3'\n[params.n]\ntype = 'string'"), 7, "cannot compare"),
    ];
    for (text, line, why) in table {
        let problems = parse(&text).expect_err(&text);
        let fits = problems.iter().any(|problem| problem.line == line && problem.to_string().contains(why));
        assert!(fits, "{text}\n{problems:#?}");
    }
}

#[test]
fn values_are_read_by_kind_and_refused_with_the_reason() {
    let text = "name = 'b'\nversion = '1'\ngoal = 'g'\n[[steps]]\nid = 'a'\ngoal = 'x'\n\
                [params.n]\ntype = 'integer'\nrequired = true\n[params.yes]\ntype = 'boolean'\ndefault = false\n\
                [params.list]\ntype = 'list'\n[params.how]\nchoices = ['slow', 'fast']";
    let blueprint = parse(text).unwrap();
    let given = |pairs: &[(&str, &str)]| {
        let given = pairs.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        fill_text(&blueprint, &given)
    };
    let filled = given(&[("n", "3"), ("list", "a, b"), ("yes", "yes")]).unwrap();
    assert_eq!(filled.params["n"], json!(3));
    assert_eq!(filled.params["list"], json!(["a", "b"]));
    assert_eq!(filled.params["yes"], json!(true));
    let table: [(&[(&str, &str)], &str); 5] = [
        (&[], "params.n: it is not given"),
        (&[("n", "three")], "params.n: \"three\" is not a whole number"),
        (&[("n", "3"), ("how", "fastt")], "did you mean \"fast\"?"),
        (&[("n", "3"), ("m", "4")], "has no such parameter"),
        (&[("n", "3"), ("yes", "perhaps")], "is not true or false"),
    ];
    for (pairs, why) in table {
        let wrong = given(pairs).unwrap_err();
        assert!(wrong.iter().any(|error| error.to_string().contains(why)), "{pairs:?}: {wrong:?}");
    }
}

#[test]
fn a_step_comes_once_what_decides_on_it_has_ended() {
    let mut run = run(
        "[[steps]]\nid='scan'\ngoal='scan {{params.depth}}'\n\
         [[steps]]\nid='deep'\ngoal='dig into {{scan.result}}'\nif='scan.result contains \"more\"'\n\
         [[steps]]\nid='sum'\ngoal='sum up {{deep.result}}'",
        &json!({ "depth": "far" }),
    );
    run.expand();
    assert_eq!(run.plan.tasks.len(), 1);
    assert_eq!(run.goal("1"), "scan far");
    run.end("1", "There is more.");
    run.expand();
    assert_eq!(run.goal("2"), "dig into {{1.result}}");
    assert_eq!(run.goal("3"), "sum up {{2.result}}");
    assert!(run.expand().is_empty(), "decided once");
}

#[test]
fn what_is_left_out_is_named_where_it_is_used() {
    let mut run = run(
        "[[steps]]\nid='scan'\ngoal='scan'\nif='params.depth'\n[[steps]]\nid='sum'\ngoal='sum up {{scan.result}}'",
        &json!({}),
    );
    run.expand();
    assert!(matches!(run.step_outcomes["scan"], StepOutcome::LeftOut { .. }));
    assert_eq!(run.goal("2"), "sum up (step scan was left out: its condition does not hold: params.depth)");
}

#[test]
fn what_a_step_needs_and_how_it_is_given_out_reaches_its_tasks() {
    let mut run = run(
        "[[steps]]\nid='look'\ngoal='look at {{item}}'\nfor_each='params.topics'\npattern='redundant'\n\
         [[steps]]\nid='judge'\ngoal='judge'\nneeds=[' law ', 'tax']\npattern='Committee:3:1'\n\
         [[steps.fallback]]\ngoal='judge plainly'\n\
         [[steps]]\nid='bid'\ngoal='count'\npattern='auction'\n\
         [[steps]]\nid='plain'\ngoal='write it up'",
        &json!({ "topics": ["ants", "bees"] }),
    );
    run.expand();
    run.fail("2-1");
    run.expand();
    let cases: [(&str, Option<&str>, &[&str]); 8] = [
        ("1", None, &[]),
        ("1-1", Some("redundant:2"), &[]),
        ("1-2", Some("redundant:2"), &[]),
        ("2", None, &[]),
        ("2-1", Some("committee:3:1"), &["law", "tax"]),
        ("2-2", None, &[]),
        ("3", Some("auction"), &[]),
        ("4", None, &[]),
    ];
    assert_eq!(run.plan.tasks.len(), cases.len());
    for (index, pattern, needs) in cases {
        let task = &run.plan.tasks[&index.parse::<TaskIndex>().unwrap()];
        let shown = task.pattern.map(|pattern| pattern.to_string());
        assert_eq!(
            (shown.as_deref(), &task.needs[..]),
            (pattern, &needs.iter().map(|need| (*need).to_owned()).collect::<Vec<_>>()[..]),
            "{index}"
        );
    }
    assert_eq!(check_plan(&run.plan, &run.limits, &ROLES), []);
    let text = write(&run.filled.blueprint);
    assert_eq!(parse(&text).unwrap(), run.filled.blueprint, "{text}");
}

#[test]
fn the_column_of_a_pattern_is_that_of_its_value() {
    let text = "name = 'b'\nversion = '1'\ngoal = 'g'\n[[steps]]\nid = 'a'\ngoal = 'x'\npattern = 'auktion'";
    let problems = parse(text).unwrap_err();
    let found: Vec<_> =
        problems.iter().map(|problem| (problem.line, problem.column, problem.at.as_str())).collect();
    assert_eq!(found, [(7, 11, "steps[1].pattern")]);
}

#[test]
fn a_list_makes_a_task_of_each_item_once() {
    let mut run = run(
        "[[steps]]\nid='look'\nname='Look'\ngoal='look at {{item}}'\nfor_each='params.topics'\n\
         [[steps]]\nid='sum'\ngoal='sum up {{look.result}}'",
        &json!({ "topics": ["ants", "bees {{9.result}}", "Ants"] }),
    );
    run.expand();
    assert_eq!(run.goal("1-1"), "look at ants");
    assert_eq!(run.goal("1-2"), "look at bees { {9.result}}");
    assert_eq!(run.goal("2"), "sum up {{1.result}}");
    assert_eq!(run.plan.tasks.len(), 4);
    assert_eq!(check_plan(&run.plan, &run.limits, &ROLES), []);
}

fn topics(number: usize) -> Value {
    json!({ "topics": (1..=number).map(|n| format!("topic {n}")).collect::<Vec<_>>() })
}

const LOOK: &str = "[[steps]]\nid='look'\ngoal='look at {{item}}'\nfor_each='params.topics'";

#[test]
fn items_that_cannot_stand_beside_each_other_are_done_in_batches() {
    for (items, batches) in [(5, None), (6, Some(2)), (8, Some(2)), (11, Some(3)), (14, Some(3))] {
        let mut run =
            run(&format!("{LOOK}\n[[steps]]\nid='sum'\ngoal='sum up {{{{look.result}}}}'"), &topics(items));
        assert_eq!(check_lists(&run.filled, &run.limits), []);
        run.expand();
        let StepOutcome::Placed { tasks, note, left_out, .. } = &run.step_outcomes["look"] else { panic!() };
        assert_eq!((tasks.len(), note.as_str(), *left_out), (items, "", 0));
        let goals: Vec<&str> = tasks.iter().map(|task| run.plan.tasks[task].goal.as_str()).collect();
        for n in 1..=items {
            assert!(goals.contains(&format!("look at topic {n}").as_str()), "{goals:?}");
        }
        let one = "1".parse::<TaskIndex>().unwrap();
        let below = run.plan.children(Some(&one)).count();
        assert_eq!(below, batches.unwrap_or(items), "{items}");
        assert_eq!(run.goal("2"), "sum up {{1.result}}");
        assert_eq!(check_plan(&run.plan, &run.limits, &ROLES), []);
    }
}

#[test]
fn a_list_that_there_is_no_room_for_is_refused_before_anything_runs() {
    let (filled, limits) = {
        let run = run(LOOK, &topics(40));
        (run.filled, run.limits)
    };
    let problems = check_lists(&filled, &limits);
    assert_eq!(problems.len(), 1);
    let told = problems[0].to_string();
    assert!(told.contains("40 items") && told.contains("limits.max_tasks (20)"), "{told}");
    let limits = RunLimits { max_tasks: 60, max_width: 10, ..limits };
    assert_eq!(check_lists(&filled, &limits), []);
}

#[test]
fn what_a_step_gives_too_many_of_is_named_and_counted() {
    let steps = "[[steps]]\nid='scan'\ngoal='list them'\n\
                 [[steps]]\nid='look'\ngoal='look at {{item}}'\nfor_each='scan.result'";
    let mut run = run(steps, &json!({}));
    run.expand();
    let lines: Vec<String> = (1..=40).map(|n| format!("- thing {n}")).collect();
    run.end("1", &lines.join("\n"));
    run.expand();
    let StepOutcome::Placed { tasks, note, left_out, .. } = &run.step_outcomes["look"] else { panic!() };
    assert_eq!(tasks.len() + usize::try_from(*left_out).unwrap(), 40);
    assert!(*left_out > 0 && note.contains("of 40 items are left out") && note.contains("thing "), "{note}");
    assert_eq!(check_plan(&run.plan, &run.limits, &ROLES), []);
}

#[test]
fn the_failure_block_stands_after_the_batches() {
    let steps = "[[steps]]\nid='look'\ngoal='look at {{item}}'\nfor_each='params.topics'\n\
                 [[steps.fallback]]\ngoal='look it up'";
    let mut run = run(steps, &topics(7));
    run.expand();
    for task in run.open() {
        run.fail(&task.to_string());
    }
    run.expand();
    let StepOutcome::Placed { fallback, .. } = &run.step_outcomes["look"] else { panic!() };
    assert_eq!(fallback.iter().map(ToString::to_string).collect::<Vec<_>>(), ["1-3"]);
    assert_eq!(check_plan(&run.plan, &run.limits, &ROLES), []);
}

#[test]
fn a_failure_block_stands_in_for_a_step_that_gave_nothing() {
    let mut run = run(
        "[[steps]]\nid='fetch'\ngoal='fetch it'\n[[steps.fallback]]\ngoal='look it up'\n\
         [[steps]]\nid='sum'\ngoal='sum up {{fetch.result}}'",
        &json!({}),
    );
    run.expand();
    assert_eq!(run.open(), ["1-1".parse().unwrap()], "what uses it waits until it is known what came of it");
    run.fail("1-1");
    run.expand();
    assert!(run.goal("1-2").starts_with("look it up"), "{}", run.goal("1-2"));
    assert!(run.goal("1-2").contains("the model gave up"));
    run.end("1-2", "found");
    run.expand();
    assert_eq!(run.goal("2"), "sum up {{1-2.result}}");
}

/// A refiner adds tasks where a step is to stand that nothing was decided of so far.
#[test]
fn a_step_gives_way_to_what_was_added_to_the_plan_meanwhile() {
    let mut run = run(
        "[[steps]]\nid='fetch'\ngoal='fetch it'\n[[steps.fallback]]\ngoal='look it up'\n\
         [[steps]]\nid='sum'\ngoal='sum up {{fetch.result}}'\n\
         [[steps]]\nid='send'\ngoal='send {{sum.result}}'",
        &json!({}),
    );
    run.expand();
    for index in ["1-2", "2"] {
        let added = PlanTask::new("More", format!("look at {index}, too"), "worker".parse().unwrap());
        run.plan.tasks.insert(index.parse().unwrap(), added);
        run.end(index, "seen");
    }
    run.fail("1-1");
    run.expand();
    assert!(run.goal("1-3").starts_with("look it up"), "{:#?}", run.plan);
    run.end("1-3", "found");
    run.expand();
    assert_eq!((run.goal("2"), run.goal("4")), ("look at 2, too", "sum up {{1-3.result}}"));
    run.end("4", "a sum");
    run.expand();
    assert_eq!(
        (run.goal("3"), &*run.plan.tasks[&"3".parse().unwrap()].depends_on),
        ("send {{4.result}}", &["4".parse().unwrap()][..])
    );
    assert_eq!(check_plan(&run.plan, &run.limits, &ROLES), []);

    let steps: Vec<String> =
        (1..=7).map(|n| format!("[[steps]]\nid='s{n}'\ngoal='do {n}'\nneeds=[]")).collect();
    let steps =
        format!("{}\n[[steps]]\nid='s8'\ngoal='do 8 with {{{{s7.result}}}}'\nif='s7.ok'", steps.join("\n"));
    let mut run = self::run(&steps, &json!({}));
    run.expand();
    let added = PlanTask::new("More", "look at more", "worker".parse().unwrap());
    run.plan.tasks.insert("2-3".parse().unwrap(), added);
    run.end("2-2", "seven");
    run.expand();
    assert_eq!((run.goal("2-3"), run.goal("3")), ("look at more", "do 8 with {{2-2.result}}"));
}

#[test]
fn a_step_that_needs_approval_waits_for_it() {
    let steps = "[[steps]]\nid='draft'\ngoal='draft it'\n\
                 [[steps]]\nid='send'\ngoal='send {{draft.result}}'\napproval='May it be sent?'";
    for (approved, tasks) in [(true, 2), (false, 1)] {
        let mut run = run(steps, &json!({}));
        assert!(run.expand().questions.is_empty(), "nothing is asked before there is something to look at");
        run.end("1", "Dear all");
        let asked = run.expand();
        assert_eq!(asked.questions.len(), 1);
        assert_eq!(asked.questions[0].text, "May it be sent?");
        run.approvals.insert("send".to_owned(), approved);
        assert!(run.expand().questions.is_empty());
        assert_eq!(run.plan.tasks.len(), tasks);
    }
}

#[test]
fn more_steps_than_stand_beside_each_other_are_put_into_parts() {
    let steps: Vec<String> = (1..=7).map(|n| format!("[[steps]]\nid='s{n}'\ngoal='do {n}'")).collect();
    let mut run = run(&steps.join("\n"), &json!({}));
    run.expand();
    assert_eq!(run.goal("2-2"), "do 7");
    assert_eq!(check_plan(&run.plan, &run.limits, &ROLES), []);
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(vec!["find it", "compare", "sum up", "read { this }", "x"]).prop_map(str::to_owned),
        2 => prop::sample::select(vec!["{{1.result}}", "{", "}}", "{{", "{{2-1.findings}}"]).prop_map(str::to_owned),
        1 => Just("long ".repeat(300)),
        1 => "[a-z {}.0-9“ß-]{0,16}",
    ]
}

/// What stands in a blueprint itself: a stray brace is no reference, a pair of them around words is refused.
fn prose() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec!["find it", "compare", "sum up", "read { this }", "x", "{", "}"]).prop_map(str::to_owned),
        1 => Just("long ".repeat(150)),
        1 => "[a-z .0-9“ß-]{0,16}",
    ]
}

fn goal(position: usize) -> impl Strategy<Value = String> {
    let mut references = vec!["{{params.text}}".to_owned(), "{{params.list}}".to_owned(), " ".to_owned()];
    for earlier in 0..position {
        references.push(format!("{{{{s{earlier}.result}}}}"));
        references.push(format!("{{{{s{earlier}.findings}}}}"));
    }
    let parts = prop_oneof![prose(), prop::sample::select(references)];
    prop::collection::vec(parts, 1..6).prop_map(|parts| parts.concat())
}

fn condition(position: usize) -> impl Strategy<Value = Option<String>> {
    let mut conditions = vec!["params.text == 'x'".to_owned(), "count(params.list) > 1".to_owned()];
    for earlier in 0..position {
        conditions.push(format!("s{earlier}.ok and s{earlier}.result contains 'e'"));
        conditions.push(format!("not s{earlier}.ok or count(s{earlier}.findings) == 0"));
    }
    prop::option::weighted(0.3, prop::sample::select(conditions))
}

fn list(position: usize) -> impl Strategy<Value = Option<String>> {
    let mut lists = vec!["params.list".to_owned()];
    for earlier in 0..position {
        lists.push(format!("s{earlier}.findings"));
        lists.push(format!("s{earlier}.result"));
    }
    prop::option::weighted(0.3, prop::sample::select(lists))
}

fn step(position: usize) -> impl Strategy<Value = BlueprintStep> {
    let fallback = prop::collection::vec(goal(position), 0..3).prop_map(|goals| {
        let steps = goals.into_iter().map(|goal| FallbackStep { goal, ..FallbackStep::default() });
        steps.collect::<Vec<_>>()
    });
    let role = prop::option::of(prop::sample::select(vec!["worker", "Researcher"]));
    (
        goal(position),
        goal(position),
        condition(position),
        list(position),
        fallback,
        role,
        any::<(bool, bool)>(),
        prop::option::of(prop::sample::select(vec!["auction", "committee:2", "redundant"])),
    )
        .prop_map(
            move |(goal, expected, condition, for_each, fallback, role, (critical, gate), pattern)| {
                BlueprintStep {
                    id: format!("s{position}"),
                    goal,
                    // Only goals may refer to results.
                    expected_output: if expected.contains("{{s") { String::new() } else { expected },
                    condition,
                    for_each,
                    fallback: if gate { fallback } else { Vec::new() },
                    role: role.map(str::to_owned),
                    pattern: pattern.map(str::to_owned),
                    critical,
                    approval: (gate && critical).then(|| "Go on?".to_owned()),
                    ..BlueprintStep::default()
                }
            },
        )
}

fn any_blueprint() -> impl Strategy<Value = Blueprint> {
    (1..9_usize).prop_flat_map(|steps| (0..steps).map(step).collect::<Vec<_>>()).prop_map(|steps| {
        let text = Param::default();
        let list = Param { kind: ParamKind::List, ..Param::default() };
        Blueprint {
            name: "any".to_owned(),
            version: "1".to_owned(),
            goal: "g".to_owned(),
            params: BTreeMap::from([("text".to_owned(), text), ("list".to_owned(), list)]),
            steps,
            ..Blueprint::default()
        }
    })
}

fn result() -> impl Strategy<Value = Option<(TaskResult, bool)>> {
    let result =
        (words(), prop::collection::vec(words(), 0..9)).prop_map(|(conclusion, findings)| TaskResult {
            conclusion: format!("{conclusion}\n- one\n2. two"),
            findings: findings.into_iter().map(|text| Finding { text, ..Finding::default() }).collect(),
            ..TaskResult::default()
        });
    prop::option::weighted(0.7, (result, any::<bool>()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Whatever a blueprint says, whatever its values are and whatever its tasks give: at every moment there is a plan
    /// within the limits, and in the end something was decided of every step.
    #[test]
    fn any_blueprint_expands_into_a_plan_that_can_be_carried_out(
        blueprint in any_blueprint(),
        text in words(),
        items in prop::collection::vec("[a-z{} ]{1,9}x", 0..12),
        results in prop::collection::vec(result(), 1..20),
        width in 2..8_u16,
        approve in any::<bool>(),
    ) {
        let limits = RunLimits { max_width: width, max_tasks: 30, ..RunLimits::default() };
        prop_assume!(check(&blueprint).is_empty() && check_limits(&blueprint, &limits, &ROLES).is_empty());
        let given = BTreeMap::from([("text".to_owned(), json!(text)), ("list".to_owned(), json!(items))]);
        let mut run = Run::new(fill(&blueprint, &given).unwrap(), limits);
        let mut results = results.into_iter().cycle();
        for _ in 0..200 {
            let asked = run.expand().questions;
            let problems = check_plan(&run.plan, &run.limits, &ROLES);
            let all_known = run.plan.tasks.is_empty() || problems.is_empty();
            prop_assert!(all_known, "{problems:?}\n{:#?}", run.plan);
            for question in asked {
                run.approvals.insert(question.step, approve);
            }
            if let Some(leaf) = run.open().first().cloned() {
                let ended = match results.next().flatten() {
                    Some((result, _)) => Ended { result: Some(result), ..Ended::default() },
                    None => Ended { why: "{{it failed".to_owned(), ..Ended::default() },
                };
                run.ended.insert(leaf, ended);
            } else if run.step_outcomes.len() == run.filled.blueprint.steps.len() && run.expand().is_empty() {
                break;
            }
        }
        prop_assert_eq!(run.step_outcomes.len(), run.filled.blueprint.steps.len());
        prop_assert!(run.open().is_empty());
    }
}

#[test]
fn what_hides_or_steers_is_written_as_what_it_is() {
    let mut blueprint = parse(shipped(shipped_names().next().unwrap()).unwrap()).unwrap();
    let evil = "a\u{9b}2J \u{202e}\u{200b}\u{e0041} 'single' \"double\" back\\slash \u{1}<0:\nline\u{ad}";
    blueprint.description = evil.to_owned();
    let text = write(&blueprint);
    assert!(!text.chars().any(|c| muster_shared::text::is_control(c) && c != '\n'), "{text:?}");
    assert!(text.contains("\\U0000009B") && text.contains("\\U0000202E"), "{text}");
    assert_eq!(parse(&text).unwrap(), blueprint, "{text}");
}
