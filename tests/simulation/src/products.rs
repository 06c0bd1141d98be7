//! What the model of a seed answers. It depends on the seed and the offer alone, not on who asks, nor when.

use muster_shared::flow::{
    Action, Advice, Awaited, CallForm, CallToApprove, ChildGoal, DraftRemark, DraftReview, DraftVerdict,
    Ending, Finding, Form, Observation, ObservationStatus, Outcome, Plan, PlanDraft, Product, Question,
    RefineOperation, Reflection, Report, Step, TaskDraft, TaskOffered, TaskResult, Thought, Usage, Wait,
    Work,
};
use muster_shared::ids::{Generation, QuestionId, RunId, TaskIndex};

use crate::random::Random;
use crate::teams;

/// A task that was offered so many times does not wait any more.
const MOST_WAITS: Generation = Generation(4);

fn random(seed: u64, offer: &TaskOffered, what: &str) -> Random {
    Random::of(seed, &format!("{}/{}/{}/{what}", offer.run, offer.task, offer.generation))
}

/// How many steps with a tool the task takes before its answer.
pub(crate) fn steps(seed: u64, offer: &TaskOffered) -> u32 {
    offer.work.leaf().map_or(0, |_| u32::try_from(random(seed, offer, "steps").below(4)).unwrap_or(0))
}

/// What the task waits for, and in which step. One that was answered may wait again; one that was begun often goes on.
pub(crate) fn wait(seed: u64, offer: &TaskOffered) -> Option<Awaited> {
    let task = offer.work.leaf()?;
    let mut random = random(seed, offer, "wait");
    if offer.generation > MOST_WAITS {
        return None;
    }
    if !random.chance(140) {
        return teams::value_wanted(seed, offer).map(|wait| Awaited { step: 1, wait });
    }
    let wait = match random.below(10) {
        0..=2 => Wait::Answer(question(&mut random)),
        3 => Wait::Approval(Box::new(call(&mut random))),
        4..=6 => Wait::Task(Box::new(part(&mut random))),
        // Some ask for what they are working on, which is refused.
        7 => Wait::Run(Box::new(ChildGoal { goal: task.goal.clone(), domain: None, blueprint: None })),
        n => {
            Wait::Run(Box::new(ChildGoal { goal: format!("look closer {n}"), domain: None, blueprint: None }))
        }
    };
    Some(Awaited { step: u32::try_from(random.between(1, 2)).unwrap_or(1), wait })
}

fn question(random: &mut Random) -> Question {
    Question {
        default: random.chance(500).then(|| "as usual".to_owned()),
        within_ms: random.chance(500).then(|| random.between(1_000, 60_000)),
        form: random.chance(200).then(|| Box::new(form())),
        ..Question::new("Which one?")
    }
}

fn form() -> CallForm {
    let properties = serde_json::json!({ "which": { "type": "string" } });
    let schema = serde_json::json!({ "type": "object", "properties": properties, "required": ["which"] });
    CallForm { id: "which".into(), form: Form::Values(schema) }
}

fn call(random: &mut Random) -> CallToApprove {
    let at = u32::try_from(random.below(2)).unwrap_or(0);
    CallToApprove { at, tool: "tool".into(), arguments: serde_json::Value::Null, why: String::new() }
}

fn part(random: &mut Random) -> TaskDraft {
    let number = 200 + random.below(5);
    let [part] = [plain(vec![task(number, random)])];
    part.into_iter().next().unwrap_or_default()
}

/// What somebody answers to a question, if they do, and after which time.
pub(crate) fn reply(seed: u64, run: RunId, id: QuestionId) -> Option<(u64, &'static str)> {
    let mut random = Random::of(seed, &format!("{run}/question {id}"));
    let texts = ["approve", "approve", "1", "leave out the second", "reject", "2", " "];
    let text = random.pick(&texts).copied().unwrap_or("yes");
    random.chance(700).then(|| (random.between(200, 40_000), text))
}

/// Whether the tool of a step has a lasting effect.
pub(crate) fn is_lasting(seed: u64, offer: &TaskOffered, step: u32) -> bool {
    random(seed, offer, &format!("tool {step}")).chance(300)
}

/// A step as it is journaled, with or without what came of it.
pub(crate) fn step(number: u32, observed: Option<ObservationStatus>) -> Step {
    Step {
        number,
        thought: Thought::default(),
        action: Action { name: "tool".into(), arguments: serde_json::Value::Null },
        observation: observed.map(|status| Observation::new(status, String::new())),
        more: Vec::new(),
        notes: Vec::new(),
        heard: Vec::new(),
        calls: Vec::new(),
        millis: 0,
        outside_millis: 0,
    }
}

/// What a task is given that took so many steps.
pub(crate) fn outcome(seed: u64, offer: &TaskOffered, steps: u32) -> Outcome {
    let mut random = random(seed, offer, "outcome");
    let (ending, product) = match random.below(100) {
        0..=84 => (Ending::Done, Some(product(seed, offer, &mut random))),
        85..=88 => (Ending::DonePartial, Some(product(seed, offer, &mut random))),
        // What does not belong to the task, or nothing at all.
        89..=90 => (Ending::Done, Some(Product::Report(Report::default()))),
        91 => (Ending::Done, None),
        _ => {
            let endings = [
                Ending::GaveUp,
                Ending::AgentFailed,
                Ending::ModelFailed,
                Ending::Blocked,
                Ending::Delegate,
                Ending::Escalate,
            ];
            (random.pick(&endings).copied().unwrap_or(Ending::GaveUp), None)
        }
    };
    ended(ending, product, steps, steps + 1)
}

/// Whether an agent ends the task with what nobody can read.
pub(crate) fn is_nonsense(seed: u64, offer: &TaskOffered) -> bool {
    random(seed, offer, "nonsense").chance(8)
}

/// The end of a task that took so many steps and calls.
pub(crate) fn ended(ending: Ending, product: Option<Product>, steps: u32, calls: u32) -> Outcome {
    let usage = Usage { model_calls: calls.into(), tool_calls: steps.into(), ..Usage::default() };
    let reason = if ending.is_success() { String::new() } else { format!("{ending:?}") };
    Outcome { ending, reason, product, last_step: None, steps: Vec::new(), usage, contract_violation: None }
}

fn product(seed: u64, offer: &TaskOffered, random: &mut Random) -> Product {
    match &offer.work {
        Work::Plan { .. } => {
            let mut plan = plan(random);
            teams::use_values(seed, offer, &mut plan);
            Product::Plan(plan)
        }
        Work::Execute { may_plan: true, .. } if random.chance(500) => Product::Result(TaskResult {
            conclusion: TaskResult::NOTHING_YET.into(),
            advice: Some(Advice { plan: Some("it falls into parts".into()), ..Advice::default() }),
            ..TaskResult::default()
        }),
        Work::Execute { .. } => {
            Product::Result(TaskResult { claims: teams::claims(seed, offer), ..result(random) })
        }
        Work::Reflect { refine, .. } => {
            let mut reflection = Reflection {
                summary: "so it went".into(),
                on_plan: if random.chance(300) { vec!["look twice".into()] } else { Vec::new() },
                uncovered: if random.chance(200) { vec!["a subquestion".into()] } else { Vec::new() },
                refine: random.chance(150).then(|| "there is more".to_owned()),
                ..Reflection::default()
            };
            if let Some(brief) = refine.as_ref().filter(|_| random.chance(500)) {
                reflection.refine = Some("there is more".to_owned());
                reflection.operations = operations(&brief.plan, random);
            }
            Product::Reflection(reflection)
        }
        Work::Refine { plan, .. } => Product::Refinement(operations(plan, random)),
        Work::Write { .. } => Product::Report(Report {
            title: format!("Seed {seed}"),
            body: "# So".into(),
            ..Report::default()
        }),
        Work::DraftReview { .. } => Product::DraftReview(draft_review(random)),
    }
}

fn draft_review(random: &mut Random) -> DraftReview {
    let revise = random.chance(500);
    let remark = DraftRemark { place: "So".into(), text: "it says little".into() };
    DraftReview {
        verdict: if revise { DraftVerdict::Revise } else { DraftVerdict::Accept },
        remarks: if revise { vec![remark] } else { Vec::new() },
        ..DraftReview::default()
    }
}

fn result(random: &mut Random) -> TaskResult {
    let advice = random.chance(100).then(|| Advice {
        refine: true,
        reason: "it is not enough".into(),
        plan: None,
        suggestions: Vec::new(),
    });
    let finding =
        Finding { text: "it is so".into(), subquestion: "a subquestion".into(), ..Finding::default() };
    let conclusion = random.pick(&["so", "so", "otherwise"]).copied().unwrap_or("so").to_owned();
    TaskResult { conclusion, findings: vec![finding], advice, ..TaskResult::default() }
}

fn plan(random: &mut Random) -> PlanDraft {
    let count = random.between(1, 5);
    let mut tasks: Vec<TaskDraft> = (1..=count).map(|n| task(n, random)).collect();
    match random.below(20) {
        0 => tasks.clear(),
        1 => tasks.iter_mut().for_each(|task| task.depends_on = vec!["1".into(), "2".into()]),
        2 => tasks.iter_mut().for_each(|task| task.name = "the same".into()),
        3 => tasks.extend((6..=12).map(|n| task(n, random))),
        4 => {
            if let Some(first) = tasks.first_mut() {
                first.subtasks = (1..=2).map(|n| task(n + 20, random)).collect();
            }
        }
        _ => {}
    }
    PlanDraft { goal: "the goal".into(), tasks, ..PlanDraft::default() }
}

fn task(number: u64, random: &mut Random) -> TaskDraft {
    let earlier: Vec<u64> = (1..number).filter(|_| random.chance(250)).collect();
    let roles = ["worker", "researcher", "worker", "nobody"];
    TaskDraft {
        name: format!("part {number}"),
        goal: match earlier.first() {
            Some(on) if random.chance(300) => format!("go on from {{{{{on}.result}}}}"),
            Some(_) | None => format!("find out about part {number}"),
        },
        role: random.pick(&roles).map(|role| (*role).to_owned()),
        depends_on: earlier.iter().map(u64::to_string).collect(),
        critical: random.chance(200),
        pattern: pattern(random),
        needs: needs(random),
        ..TaskDraft::default()
    }
}

/// Some tasks need what not all can do.
fn needs(random: &mut Random) -> Vec<String> {
    let chosen = teams::NEEDS.iter().filter(|_| random.chance(120));
    chosen.map(|word| (*word).to_owned()).collect()
}

/// Some tasks are done by several, or by whoever bids best.
fn pattern(random: &mut Random) -> Option<String> {
    let patterns = ["redundant:2", "committee:3", "committee:2:1", "redundant:3", "auction", "auction"];
    random.chance(300).then(|| random.pick(&patterns).map(|pattern| (*pattern).to_owned())).flatten()
}

fn operations(plan: &Plan, random: &mut Random) -> Vec<RefineOperation> {
    let known: Vec<TaskIndex> = plan.tasks.keys().cloned().collect();
    let count = random.between(1, 3);
    (0..count).map(|n| operation(&known, n, random)).collect()
}

fn operation(known: &[TaskIndex], n: u64, random: &mut Random) -> RefineOperation {
    let at = random.pick(known).cloned().unwrap_or_else(|| TaskIndex::top(1));
    let at = if random.chance(100) { at.child(9) } else { at };
    let mut new = |count: u64| (0..count).map(|m| task(100 + 10 * n + m, random)).collect::<Vec<_>>();
    match n % 4 {
        0 => RefineOperation::Add { after: at, tasks: plain(new(1)) },
        1 => RefineOperation::Split { task: at, into: plain(new(2)) },
        2 => RefineOperation::Delete { task: at, reason: "it is not needed".into() },
        _ => RefineOperation::Exit { reason: "enough".into() },
    }
}

/// Tasks that depend on nothing: what is added does not know the others' numbers.
fn plain(mut tasks: Vec<TaskDraft>) -> Vec<TaskDraft> {
    for task in &mut tasks {
        task.depends_on.clear();
        task.goal = format!("look into {}", task.name);
    }
    tasks
}
