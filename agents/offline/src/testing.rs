//! What the tests of the offline model share: offers, documents in memory, and a fleet in one loop.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use muster_corpus::{CitedPlace, Corpus, CorpusOptions, Hit, MemoryBlobs};
use muster_shared::flow::{
    Action, CorpusRef, Ending, Finding, LeafRef, Observation, ObservationStatus, Plan, PlanDraft, PlanTask,
    Product, RefineOperation, Reflection, Report, RunLimits, Step, StepDigest, TaskDraft, TaskOffered,
    TaskResult, Work,
};
use muster_shared::ids::{Queue, Role, RunId, TaskId, TaskIndex};
use serde_json::{Value, json};

use super::text::stem_set;
use super::{OfflineModel, OfflineMove};

/// An offer to plan a goal, with documents.
pub(super) fn offer(goal: &str) -> TaskOffered {
    let work = serde_json::json!({ "plan": { "roles": ["worker", "researcher"], "held_to": {} } });
    let corpus = CorpusRef { id: "c".to_owned(), files: 3, bytes: 1000, outline: String::new() };
    let offer = serde_json::json!({
        "run": "01890000-0000-7000-8000-000000000000".parse::<RunId>().unwrap(), "task": TaskId::Plan, "generation": 1,
        "queue": Queue::Role(Role::Planner), "work": work, "goal": goal, "corpus": corpus,
        "limits": RunLimits::default(), "deadline": 0, "nonce": "",
    });
    serde_json::from_value(offer).unwrap()
}

/// The plan made for an offer.
pub(super) fn plan_of(offer: &TaskOffered) -> PlanDraft {
    match product(&OfflineModel.next(offer, &[]).action) {
        Product::Plan(plan) => plan,
        other => panic!("no plan: {other:?}"),
    }
}

/// The product of a submission.
pub(super) fn product(action: &Action) -> Product {
    assert_eq!(action.name, Action::SUBMIT);
    serde_json::from_value(action.arguments.clone()).unwrap()
}

/// Answers tool calls.
pub(super) trait Tools {
    /// Calls a tool.
    fn call(&mut self, name: &str, arguments: &serde_json::Value) -> Observation;
}

/// Documents in memory, searched by the number of words in common.
#[derive(Debug, Default)]
pub(super) struct Documents(pub(super) BTreeMap<String, String>);

impl Documents {
    /// Documents by path.
    pub(super) fn new(documents: &[(&str, &str)]) -> Self {
        Self(documents.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    fn shown(path: &str, lines: &[(usize, &str)]) -> String {
        let (first, last) = (lines.first().map_or(0, |line| line.0), lines.last().map_or(0, |line| line.0));
        let body: Vec<String> = lines.iter().map(|(number, text)| format!("{number}| {text}")).collect();
        format!("{path}:{first}-{last}\n{}", body.join("\n"))
    }

    /// The passages with the rarest of the words searched for, best first.
    fn search(&self, query: &str) -> String {
        let wanted = stem_set(query);
        let mut passages: Vec<(String, BTreeSet<String>)> = Vec::new();
        for (path, text) in &self.0 {
            let lines: Vec<(usize, &str)> = (1..).zip(text.lines()).collect();
            for passage in lines.chunks(8) {
                let words = stem_set(&passage.iter().map(|line| line.1).collect::<Vec<_>>().join(" "));
                if !wanted.is_disjoint(&words) {
                    passages.push((Self::shown(path, passage), words));
                }
            }
        }
        let rarity = |word: &String| {
            let with = passages.iter().filter(|(_, words)| words.contains(word)).count();
            (passages.len() as f64 / with.max(1) as f64).ln() + 1.0
        };
        let weights: BTreeMap<&String, f64> = wanted.iter().map(|word| (word, rarity(word))).collect();
        let mut hits: Vec<(f64, &String)> = passages
            .iter()
            .map(|(shown, words)| {
                (
                    weights.iter().filter(|(word, _)| words.contains(**word)).map(|(_, weight)| weight).sum(),
                    shown,
                )
            })
            .collect();
        hits.sort_by(|a, b| b.0.total_cmp(&a.0));
        let shown: Vec<&str> = hits.into_iter().take(8).map(|hit| hit.1.as_str()).collect();
        if shown.is_empty() { "No document matches.".to_owned() } else { shown.join("\n\n") }
    }

    fn read(&self, path: &str, from: u64, to: u64) -> Option<String> {
        let text = self.0.get(path)?;
        let lines: Vec<(usize, &str)> = (1..)
            .zip(text.lines())
            .skip(usize::try_from(from).ok()?.saturating_sub(1))
            .take(usize::try_from(to + 1 - from).ok()?)
            .collect();
        Some(Self::shown(path, &lines))
    }
}

impl Tools for Documents {
    fn call(&mut self, name: &str, arguments: &serde_json::Value) -> Observation {
        let text = |key: &str| arguments[key].as_str().unwrap_or_default();
        let number = |key: &str| arguments[key].as_u64().unwrap_or(1);
        let content = match name {
            "corpus.search" => Some(self.search(text("query"))),
            "corpus.read" => self.read(text("path"), number("from"), number("to")),
            "calculator" => computed(text("expression")),
            _ => None,
        };
        let status = if content.is_some() { ObservationStatus::Success } else { ObservationStatus::Error };
        Observation::new(status, content.unwrap_or_else(|| format!("{name} failed")))
    }
}

/// What the calculator says of the expressions that the tests ask for. Of others it says that it cannot.
fn computed(expression: &str) -> Option<String> {
    let known = [("12% of 3400", "408"), ("2 + 2", "4"), ("2 + 3", "5")];
    let (_, value) = known.into_iter().find(|(asked, _)| *asked == expression)?;
    Some(format!("{expression} = {value}"))
}

/// Most that an observation shows, in bytes, as where agents call their tools.
const MOST_SHOWN: usize = 32 * 1024;

/// A folder of documents, searched and read as agents do, with what is found shown in the same words.
pub(super) struct Folder {
    runtime: tokio::runtime::Runtime,
    corpus: Corpus,
    /// Where index and packs are kept while the folder is in use.
    _cache: tempfile::TempDir,
}

impl Folder {
    /// The documents below `path`, and how many they are.
    pub(super) fn open(path: &Path) -> (Self, u64) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let cache = tempfile::tempdir().unwrap();
        let options = CorpusOptions::new(cache.path().to_owned(), vec![path.to_owned()]);
        let opened = runtime.block_on(Corpus::open_or_build(options, &MemoryBlobs::default())).unwrap();
        (Self { runtime, corpus: opened.corpus, _cache: cache }, opened.documents)
    }

    /// What of findings does not stand by the rule that agents are held to.
    pub(super) fn refused(&self, findings: &[Finding]) -> Vec<String> {
        let cited = (1..).zip(findings).flat_map(|(group, finding)| {
            finding.citations.iter().map(move |at| CitedPlace {
                path: at.path.clone(),
                line: at.line,
                last: at.line,
                quote: at.quote.clone(),
                statement: finding.text.clone(),
                group,
            })
        });
        let cited: Vec<CitedPlace> = cited.collect();
        let found = self.runtime.block_on(self.corpus.look_up(cited.clone(), false)).unwrap();
        let wrong = cited.into_iter().zip(found).filter(|(_, found)| found.standing().is_none());
        wrong
            .map(|(place, found)| format!("{}:{} {:?}: {found:?}", place.path, place.line, place.statement))
            .collect()
    }

    fn answer(&self, name: &str, arguments: &serde_json::Value) -> Option<String> {
        let text = |key: &str| arguments[key].as_str();
        match name {
            "corpus.search" => {
                let most = usize::try_from(arguments["k"].as_u64()?).ok()?;
                let hits = self.runtime.block_on(self.corpus.search(text("query")?, most)).ok()?;
                let shown: Vec<String> = hits.iter().map(Hit::shown).collect();
                Some(if shown.is_empty() {
                    "No passage has any of it.".to_owned()
                } else {
                    shown.join("\n\n")
                })
            }
            "corpus.read" => {
                let (from, to) = (arguments["from"].as_u64()?, arguments["to"].as_u64()?);
                let lines = self.corpus.read_around(text("path")?, from, to, text("find"));
                self.runtime.block_on(lines).ok().map(|lines| lines.shown())
            }
            _ => computed(text("expression")?),
        }
    }
}

impl Tools for Folder {
    fn call(&mut self, name: &str, arguments: &serde_json::Value) -> Observation {
        let answer = self.answer(name, arguments);
        let status = if answer.is_some() { ObservationStatus::Success } else { ObservationStatus::Error };
        let mut content = answer.unwrap_or_else(|| format!("{name} failed"));
        let truncated = content.len() > MOST_SHOWN;
        content.truncate(content.floor_char_boundary(MOST_SHOWN));
        Observation { status, content, millis: 0, truncated, cached: None }
    }
}

/// What a run in one loop gave.
#[derive(Debug)]
pub(super) struct Ran {
    /// The report.
    pub(super) report: Report,
    /// What each leaf gave, with its steps.
    pub(super) leaves: Vec<(LeafRef, Vec<Step>)>,
    /// How many refinements changed the plan.
    pub(super) refinements: usize,
}

/// Runs one task to its end.
pub(super) fn run_task(offer: &TaskOffered, tools: &mut dyn Tools) -> (Product, Vec<Step>) {
    let mut steps: Vec<Step> = Vec::new();
    loop {
        assert!(steps.len() < offer.limits.max_steps as usize, "does not end: {steps:#?}");
        let next = OfflineModel.next(offer, &steps);
        assert_eq!(next, OfflineModel.next(offer, &steps), "the same inputs gave two answers");
        if next.action.name == Action::SUBMIT {
            return (product(&next.action), steps);
        }
        let observation = tools.call(&next.action.name, &next.action.arguments);
        let number = u32::try_from(steps.len()).unwrap() + 1;
        steps.push(step(number, next, observation));
    }
}

/// A step as it stands in the record.
pub(super) fn step(number: u32, taken: OfflineMove, observation: Observation) -> Step {
    let OfflineMove { thought, action } = taken;
    let step = json!({ "number": number, "thought": thought, "action": action });
    Step { observation: Some(observation), ..serde_json::from_value(step).unwrap() }
}

fn work(work: Value) -> Work {
    serde_json::from_value(work).unwrap()
}

/// The work of a leaf that builds on these results.
pub(super) fn execute(task: &PlanTask, inputs: &[&LeafRef]) -> Work {
    work(json!({ "execute": { "task": task, "inputs": inputs, "parents": [], "progress": "" } }))
}

/// Runs a goal from plan to report, the leaves in order, one after the other.
pub(super) fn run(base: &TaskOffered, tools: &mut dyn Tools) -> Ran {
    let mut plan = Plan { goal: base.goal.clone(), ..Plan::default() };
    place(&mut plan, None, &plan_of(base).tasks);
    let mut ran: Vec<(LeafRef, Vec<Step>)> = Vec::new();
    let mut reflections: Vec<(TaskIndex, Reflection)> = Vec::new();
    let mut refinements = 0;
    while let Some((index, task)) = next_leaf(&plan, &ran) {
        let inputs = ran.iter().map(|done| &done.0).filter(|leaf| task.depends_on.contains(&leaf.index));
        let work = execute(&task, &inputs.collect::<Vec<_>>());
        let (product, steps) = run_task(&TaskOffered { work, ..base.clone() }, tools);
        let Product::Result(result) = product else { panic!("no result: {product:?}") };
        let reflection = reflect(base, &index, &task, &result, &steps);
        let wants = reflection.refine.is_some();
        reflections.push((index.clone(), reflection));
        let PlanTask { name, goal, query, .. } = task;
        ran.push((LeafRef { index, name, goal, query, result }, steps));
        if wants && refine(base, &mut plan, &reflections, &ran) {
            refinements += 1;
        }
    }
    let report = write(base, &ran, &reflections);
    Ran { report, leaves: ran, refinements }
}

fn next_leaf(plan: &Plan, ran: &[(LeafRef, Vec<Step>)]) -> Option<(TaskIndex, PlanTask)> {
    let done: BTreeSet<&TaskIndex> = ran.iter().map(|(leaf, _)| &leaf.index).collect();
    plan.leaves()
        .filter(|(index, _)| !done.contains(index))
        .find(|(_, task)| task.depends_on.iter().all(|needed| done.contains(needed)))
        .map(|(index, task)| (index.clone(), task.clone()))
}

fn place(plan: &mut Plan, parent: Option<&TaskIndex>, drafts: &[TaskDraft]) {
    let taken = u16::try_from(plan.children(parent).count()).unwrap();
    for (number, draft) in (taken + 1..).zip(drafts) {
        let index = parent.map_or_else(|| TaskIndex::top(number), |parent| parent.child(number));
        let depends_on = draft
            .depends_on
            .iter()
            .map(|name| {
                let named =
                    plan.tasks.iter().find(|(_, task)| &task.name == name).map(|(index, _)| index.clone());
                named.unwrap_or_else(|| name.parse().unwrap())
            })
            .collect();
        let task = PlanTask {
            name: draft.name.clone(),
            goal: draft.goal.clone(),
            role: draft.role.as_deref().unwrap_or("worker").parse().unwrap(),
            depends_on,
            query: draft.query.clone(),
            ..PlanTask::new("", "", Role::Worker)
        };
        plan.tasks.insert(index.clone(), task);
        place(plan, Some(&index), &draft.subtasks);
    }
}

fn reflect(
    base: &TaskOffered,
    index: &TaskIndex,
    task: &PlanTask,
    result: &TaskResult,
    steps: &[Step],
) -> Reflection {
    let digest = |step: &Step| StepDigest {
        number: step.number,
        action: step.action.name.clone(),
        status: step.observation.as_ref().map(|observation| observation.status),
        millis: 0,
        more: Vec::new(),
    };
    let steps: Vec<StepDigest> = steps.iter().map(digest).collect();
    let work = work(json!({ "reflect": {
        "index": index, "task": task, "ending": Ending::Done, "reason": "", "result": result, "steps": steps,
        "progress": "",
    } }));
    match product(&OfflineModel.next(&TaskOffered { work, ..base.clone() }, &[]).action) {
        Product::Reflection(reflection) => reflection,
        other => panic!("no reflection: {other:?}"),
    }
}

fn refine(
    base: &TaskOffered,
    plan: &mut Plan,
    reflections: &[(TaskIndex, Reflection)],
    ran: &[(LeafRef, Vec<Step>)],
) -> bool {
    let results: Vec<&LeafRef> = ran.iter().map(|(leaf, _)| leaf).collect();
    let work = work(json!({ "refine": {
        "held_to": {}, "plan": plan, "progress": "", "reasons": [], "reflections": reflections, "results": results,
        "operations_left": base.limits.max_refine_operations,
    } }));
    let Product::Refinement(operations) =
        product(&OfflineModel.next(&TaskOffered { work, ..base.clone() }, &[]).action)
    else {
        panic!("no refinement");
    };
    let mut changed = false;
    for operation in operations {
        if let RefineOperation::Add { tasks, .. } = operation {
            place(plan, None, &tasks);
            assert!(plan.children(None).count() <= usize::from(base.limits.max_width));
            changed = true;
        }
    }
    changed
}

/// The report on these results.
pub(super) fn write(
    base: &TaskOffered,
    ran: &[(LeafRef, Vec<Step>)],
    reflections: &[(TaskIndex, Reflection)],
) -> Report {
    let mut last: BTreeMap<&TaskIndex, &Reflection> = BTreeMap::new();
    last.extend(reflections.iter().map(|(index, reflection)| (index, reflection)));
    let results: Vec<&LeafRef> = ran.iter().map(|(leaf, _)| leaf).collect();
    let uncovered: Vec<&String> = last.values().flat_map(|reflection| &reflection.uncovered).collect();
    let work = work(json!({ "write": { "results": results, "failed": [], "uncovered": uncovered } }));
    match product(&OfflineModel.next(&TaskOffered { work, ..base.clone() }, &[]).action) {
        Product::Report(report) => report,
        other => panic!("no report: {other:?}"),
    }
}
