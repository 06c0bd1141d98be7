//! Every state transition of the loop, each reached by an answer of a scripted model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
use std::collections::BTreeMap;

use muster_shared::flow::response::NOT_CHECKED;
use muster_shared::flow::{
    Action, Check, CorpusRef, Ending, Note, ObservationStatus, RolePermissions, SpinLevel, Step, TaskOffered,
    Verifier, Work,
};
use muster_shared::ids::Role;
use serde_json::{Value, json};

use super::consult::{ConsultQuestion, consulted};
use super::decide::{NextStep, StepContext, StepLimits, decide, exhausted};
use super::history::History;
use super::limits::{AtLimit, Verification};
use super::parse::ParseFailure;
use super::submit::ModelAnswer;
use super::testing::answer;
use super::toolset::Toolset;
use super::verify::Verify;
use crate::roles::rules_for;
use crate::testing::{ability, leaf, step};

fn asked_again(reason: &str, notes: &[Note]) -> &'static str {
    match (notes.last(), reason) {
        (Some(Note::Declined { times: 1 }), _) => "ask again: declined, in other words",
        (Some(Note::Declined { .. }), _) => "ask again: declined, for less",
        (_, reason) if reason.contains("no step is left") => "ask again: at the limit",
        (_, reason) if reason.contains("`ending` is") => "ask again: submission with faults",
        (_, _) => "ask again: not understood",
    }
}

/// A transition by its name: what comes next, and why.
fn transition(next: &NextStep) -> &'static str {
    match next {
        NextStep::CallTool { pure: true, .. } => "call a pure tool",
        NextStep::CallTool { pure: false, .. } => "call a tool with lasting effect",
        NextStep::Refuse { chosen, .. } => match chosen.notes.last() {
            None => "refuse: unknown tool",
            Some(note) => refused_for(note),
        },
        NextStep::Consult { question, .. } => match question {
            ConsultQuestion::Reasoning => "consult: reasoning",
            ConsultQuestion::Verify(Verify::Cited) => "consult: statements with their lines",
            ConsultQuestion::Verify(Verify::Whole) => "consult: verify at once",
            ConsultQuestion::Verify(Verify::One(_)) => "consult: verify link by link",
            ConsultQuestion::Act => "consult: an action in thought",
            ConsultQuestion::Declined => "consult: whether it declined",
        },
        NextStep::LookUp { .. } => "look up: what it cites",
        NextStep::Observe { observation, .. } => match observation.status {
            ObservationStatus::Success => "observe: done in thought",
            ObservationStatus::Error => "observe: thought gave nothing",
            ObservationStatus::Timeout | ObservationStatus::Refused => panic!("{observation:?}"),
        },
        NextStep::AskAgain { reason, notes } => asked_again(reason, notes),
        NextStep::Submit { submission, .. } => match submission.ending {
            Ending::Done if submission.reason.contains(NOT_CHECKED) => "submit: not verified",
            Ending::Done => "submit: done",
            Ending::DonePartial if submission.reason.contains("verification found") => "submit: not mended",
            Ending::DonePartial => "submit: done_partial",
            Ending::Escalate => "submit: escalate",
            Ending::Delegate => "submit: delegate",
            Ending::Blocked => "submit: blocked",
            Ending::GaveUp => "submit: give_up",
            Ending::ModelFailed
            | Ending::AgentFailed
            | Ending::DeadlinePassed
            | Ending::Cancelled
            | Ending::BudgetExhausted => panic!("no model submits this"),
        },
        NextStep::Conclude { submission, notes } => match (submission.ending, notes.last()) {
            (Ending::Escalate, Some(Note::Spin { .. })) => "conclude: circles, a person has to look",
            (Ending::Escalate, Some(Note::Declined { .. })) => "conclude: declined, a person has to look",
            (Ending::Escalate, _) => "conclude: at the limit, a person has to look",
            (Ending::DonePartial, _) if submission.reason.contains("plain text") => {
                "conclude: prose is taken"
            }
            (Ending::DonePartial, _) => "conclude: at the limit, best partial answer",
            (Ending::GaveUp, _) => "conclude: at the limit, nothing to show",
            (Ending::BudgetExhausted, _) => "conclude: budget",
            (Ending::ModelFailed, _) => "conclude: no answer could be used",
            (
                Ending::Done
                | Ending::Delegate
                | Ending::Blocked
                | Ending::AgentFailed
                | Ending::DeadlinePassed
                | Ending::Cancelled,
                _,
            ) => panic!("{submission:?}"),
        },
    }
}

fn refused_for(note: &Note) -> &'static str {
    match note {
        Note::Spin { level: SpinLevel::SameAction, .. } => "refuse: same action",
        Note::Spin { level: SpinLevel::SameKind, .. } => "refuse: same kind of action",
        Note::Spin { level: SpinLevel::SameReasoning, .. } => "refuse: same reasoning",
        Note::Closed { .. } => "refuse: closed gate",
        Note::Denied { .. } => "refuse: no right",
        Note::Verified { by: Verifier::Rules, .. } => "refuse: verified by rule",
        Note::Verified { by: Verifier::Model, .. } => "refuse: verified by the model",
        Note::Reconsidered
        | Note::Declined { .. }
        | Note::LookedUp { .. }
        | Note::Doubted { .. }
        | Note::Disputed { .. }
        | Note::Guarded { .. }
        | Note::Approval { .. }
        | Note::Form { .. }
        | Note::NotChecked { .. } => panic!("{note:?}"),
    }
}

const ALL: [&str; 39] = [
    "call a pure tool",
    "call a tool with lasting effect",
    "refuse: unknown tool",
    "refuse: same action",
    "refuse: same kind of action",
    "refuse: same reasoning",
    "refuse: closed gate",
    "refuse: verified by rule",
    "refuse: verified by the model",
    "consult: reasoning",
    "consult: verify at once",
    "consult: verify link by link",
    "consult: an action in thought",
    "consult: whether it declined",
    "look up: what it cites",
    "observe: done in thought",
    "observe: thought gave nothing",
    "ask again: declined, in other words",
    "ask again: declined, for less",
    "ask again: at the limit",
    "ask again: submission with faults",
    "ask again: not understood",
    "submit: done",
    "submit: not mended",
    "submit: not verified",
    "submit: done_partial",
    "submit: escalate",
    "submit: delegate",
    "submit: blocked",
    "submit: give_up",
    "conclude: circles, a person has to look",
    "conclude: declined, a person has to look",
    "conclude: at the limit, a person has to look",
    "conclude: prose is taken",
    "conclude: at the limit, best partial answer",
    "conclude: at the limit, nothing to show",
    "conclude: budget",
    "conclude: no answer could be used",
    // Between steps: without another question.
    "exhausted",
];

/// A task on its way: what was done, what its rules are.
#[derive(Clone)]
struct Scene {
    steps: Vec<Step>,
    limits: StepLimits,
    permissions: RolePermissions,
    critical: bool,
    documents: bool,
}

impl Scene {
    fn new(steps: Vec<Step>) -> Self {
        Self {
            steps,
            limits: StepLimits { max_steps: 6, ..StepLimits::USUAL },
            permissions: RolePermissions::OPEN,
            critical: false,
            documents: false,
        }
    }

    fn in_case<T>(&self, then: impl FnOnce(&History, &StepContext<'_>) -> T) -> T {
        let mut offer: TaskOffered = leaf(Role::Worker);
        if let Work::Execute { task, .. } = &mut offer.work {
            task.critical = self.critical;
        }
        offer.corpus =
            self.documents.then(|| CorpusRef { id: "c".into(), files: 1, bytes: 9, outline: String::new() });
        let mut history = History::default();
        self.steps.iter().for_each(|step| history.push(step.clone(), false));
        let tools =
            [("corpus.search", true), ("calculator", true), ("workspace.write", false), ("analyze", true)];
        let abilities = tools.map(|(name, pure)| ability(name, pure)).to_vec();
        let rules = rules_for(&offer.work);
        let toolset = Toolset::new(abilities, (rules.schema)(&offer)).behind(self.permissions);
        let (permissions, limits) = (self.permissions, self.limits);
        then(
            &history,
            &StepContext { offer: &offer, rules, toolset: &toolset, permissions, has_model: true, limits },
        )
    }

    fn answered(&self, answer: &ModelAnswer, asked: u32) -> NextStep {
        self.in_case(|history, case| decide(history, answer, asked, case))
    }

    /// What follows when the model is asked apart and says this.
    fn told(&self, answer: &ModelAnswer, said: Result<Value, String>) -> NextStep {
        self.told_upon(answer, 1, said)
    }

    fn told_upon(&self, answer: &ModelAnswer, asked: u32, said: Result<Value, String>) -> NextStep {
        self.in_case(|history, case| match decide(history, answer, asked, case) {
            NextStep::Consult { chosen, question } => consulted(history, chosen, question, said, case),
            other => panic!("nothing is asked: {other:?}"),
        })
    }
}

fn acts(action: &str, arguments: Value) -> ModelAnswer {
    answer(Some("I go on as I did"), action, arguments)
}

fn ends(ending: &str) -> ModelAnswer {
    acts(Action::SUBMIT, json!({"ending": ending, "reason": "so", "conclusion": "c"}))
}

fn failed(failure: ParseFailure) -> ModelAnswer {
    ModelAnswer { said: "Well.".into(), reasoning: None, parsed: Err(failure) }
}

fn searched(numbers: std::ops::RangeInclusive<u32>, status: ObservationStatus) -> Vec<Step> {
    let search = |number| {
        let mut step = step(number, "corpus.search", json!({"query": number}), status);
        step.thought.text = "I go on as I did".into();
        step
    };
    numbers.map(search).collect()
}

fn told_so(steps: u32, note: &Note) -> Vec<Step> {
    let told = |step: Step| Step { notes: vec![note.clone()], ..step };
    searched(1..=steps, ObservationStatus::Refused).into_iter().map(told).collect()
}

/// Every decision that a scripted model leads to.
fn table() -> Vec<NextStep> {
    use ObservationStatus::{Error, Success};
    let start = Scene::new(Vec::new());
    let limited = |limits: StepLimits, scene: &Scene| Scene { limits, ..scene.clone() };
    let search = |query: &str| acts("corpus.search", json!({"query": query}));
    let refusal = failed(ParseFailure::Refusal { said: "I can't".into() });
    let in_vain = Scene::new(searched(1..=2, Error));
    let stuck = Scene::new(searched(1..=3, Error));
    let spun = Scene::new(told_so(2, &Note::Spin { level: SpinLevel::SameAction, times: 1 }));
    let full = Scene::new(searched(1..=5, Success));
    let barren = Scene::new(searched(1..=5, Error));
    let finding = json!({"text": "so it is", "verified": true});
    let half = acts(Action::SUBMIT, json!({"ending": "done", "conclusion": "c", "findings": [finding]}));
    let citing = acts(Action::SUBMIT, json!({"ending": "done", "conclusion": "so it is (a.md:3)"}));
    let with_documents = Scene { documents: true, ..start.clone() };
    let critical = Scene { critical: true, ..start.clone() };
    let link_by_link = limited(StepLimits { verification: Verification::Full, ..start.limits }, &start);
    let analyze = acts("analyze", json!({"material": "thin ice"}));
    let fault = json!({"faults": [{"check": Check::Consistency, "why": "it contradicts itself"}]});
    let no_revision = limited(StepLimits { max_revisions: 0, ..start.limits }, &start);
    let escalating = limited(StepLimits { at_limit: AtLimit::Escalate, ..start.limits }, &full);
    let by_budget = limited(StepLimits { by_budget: true, ..start.limits }, &full);
    let no_tools =
        Scene { permissions: RolePermissions { tools: false, ..RolePermissions::OPEN }, ..start.clone() };
    let mut table = vec![
        start.answered(&search("a"), 1),
        start.answered(&acts("workspace.write", json!({"query": "a"})), 1),
        start.answered(&acts("zzz", json!({})), 1),
        full.answered(&search("x"), 1),
        Scene::new(searched(1..=1, Success)).answered(&acts("corpus.search", json!({"query": 1})), 1),
        stuck.answered(&search("b"), 1),
        in_vain.answered(&acts("calculator", json!({"query": "1"})), 1),
        in_vain.told(&acts("calculator", json!({"query": "1"})), Ok(json!({"same": true, "why": "w"}))),
        no_tools.answered(&search("a"), 1),
        start.answered(&half, 1),
        no_revision.answered(&half, 1),
        with_documents.answered(&citing, 1),
        critical.answered(&ends("done"), 1),
        critical.told(&ends("done"), Ok(fault)),
        critical.told(&ends("done"), Err("no JSON".into())),
        link_by_link.answered(&ends("done"), 1),
        start.answered(&analyze, 1),
        start.told(&analyze, Ok(json!({"summary": "s", "parts": []}))),
        start.told(&analyze, Err("no JSON".into())),
        start.answered(&refusal, 1),
        start.answered(&refusal, 2),
        start.answered(&refusal, 3),
        start.answered(&answer(None, "corpus.search", json!({"query": "a"})), 1),
        start.answered(&ends("fine"), 1),
        start.answered(&failed(ParseFailure::Empty), 1),
        start.answered(&failed(ParseFailure::Empty), 3),
        start.answered(&failed(ParseFailure::NoAction), 3),
        start.told_upon(&failed(ParseFailure::NoAction), 3, Ok(json!({"declined": false}))),
        start.told_upon(&failed(ParseFailure::NoAction), 3, Ok(json!({"declined": true}))),
        spun.answered(&acts("corpus.search", json!({"query": 2})), 1),
        full.answered(&search("x"), 3),
        barren.answered(&search("x"), 3),
        escalating.answered(&search("x"), 3),
        by_budget.answered(&search("x"), 3),
    ];
    let endings = ["done", "done_partial", "escalate", "delegate", "blocked", "give_up"];
    table.extend(endings.iter().map(|ending| start.answered(&ends(ending), 1)));
    table
}

#[test]
fn every_transition_is_reached() {
    let mut reached: BTreeMap<&str, u32> = ALL.iter().map(|name| (*name, 0)).collect();
    for next in table() {
        let name = transition(&next);
        *reached.get_mut(name).unwrap_or_else(|| panic!("{name:?} is not listed")) += 1;
    }
    let over = Scene::new(searched(1..=6, ObservationStatus::Success));
    if over.in_case(exhausted).is_some() {
        *reached.get_mut("exhausted").unwrap() += 1;
    }
    println!("transitions of the loop, and how often the table reached each:");
    reached.iter().for_each(|(name, times)| println!("{times:>3}  {name}"));
    let missing: Vec<&str> =
        reached.iter().filter(|(_, times)| **times == 0).map(|(name, _)| *name).collect();
    println!("{} of {} reached", ALL.len() - missing.len(), ALL.len());
    assert!(missing.is_empty(), "not reached: {missing:?}");
}
