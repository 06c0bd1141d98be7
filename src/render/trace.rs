//! `muster trace`: the record of a run as a timeline.

use std::collections::BTreeMap;

use muster_shared::blueprint::StepOutcome;
use muster_shared::flow::{
    Action, ContextAuthor, Observation, ObservationStatus, Outcome, Placement, Product, Reply, Step,
    TaskOffered, Work,
};
use muster_shared::ids::{AgentId, TaskId, TaskIndex};
use muster_shared::run::{
    AgentEvent, AgentKey, Checked, Decided, Entry, Input, RecordEvent, Request, RunEvent,
};
use muster_shared::time::Millis;
use serde_json::{Value, json};

use super::paint::Paint;
use super::{conflicts, drafts, figures};

/// Most characters of a thought, an argument or an observation, unless all is wanted.
const BRIEF: usize = 240;

/// Writes entries one after the other; remembers when the run began and which process each agent is.
#[derive(Debug)]
pub(crate) struct Timeline {
    paint: Paint,
    full: bool,
    began: Option<Millis>,
    processes: BTreeMap<AgentId, u32>,
}

impl Timeline {
    /// An empty timeline.
    pub(crate) const fn new(paint: Paint, full: bool) -> Self {
        Self { paint, full, began: None, processes: BTreeMap::new() }
    }

    /// An entry as text. With a task, only what is about it; nothing when nothing is.
    pub(crate) fn entry(&mut self, entry: &Entry, only: Option<&TaskId>) -> Option<String> {
        let began = *self.began.get_or_insert(entry.at);
        if let RecordEvent::Agent(key, AgentEvent::Started(started)) = &entry.event {
            // One that does not say which process it is has none to be shown.
            if started.pid > 0 {
                self.processes.insert(key.agent.clone(), started.pid);
            }
        }
        let (who, what, details) = match &entry.event {
            RecordEvent::Decided(decided) => {
                let lines = self.decision(decided, only);
                if only.is_some() && lines.is_empty() {
                    return None;
                }
                (decided.by.to_string(), format!("decided on {}", inputs(&decided.inputs)), lines)
            }
            RecordEvent::Offered(offer) => {
                if only.is_some_and(|task| *task != offer.task) {
                    return None;
                }
                ("offer".to_owned(), offered(offer), Vec::new())
            }
            RecordEvent::Agent(key, event) => {
                if only.is_some_and(|task| *task != key.task) {
                    return None;
                }
                let (what, details) = self.agent(key, event);
                (self.who(&key.agent), what, details)
            }
        };
        let at = format!("{:>9}", format!("+{}", figures::span(entry.at.since(began))));
        let mut lines = vec![format!(
            "{} {} {} {what}",
            self.paint.dim(&format!("{:>6}", entry.seq)),
            self.paint.dim(&at),
            self.paint.bold(&who)
        )];
        lines.extend(details.into_iter().map(|line| figures::indent(&line, 17)));
        Some(lines.join("\n"))
    }

    fn who(&self, agent: &AgentId) -> String {
        self.processes.get(agent).map_or_else(|| agent.to_string(), |pid| format!("{agent} (pid {pid})"))
    }

    fn decision(&self, decided: &Decided, only: Option<&TaskId>) -> Vec<String> {
        let relevant = |event: &&RunEvent| only.is_none_or(|task| about(event).as_ref() == Some(task));
        let events = decided.events.iter().filter(relevant).map(|event| self.run_event(event));
        let offer = decided.offer.as_deref().filter(|offer| only.is_none_or(|task| *task == offer.task));
        let placements =
            decided.placements.iter().filter(|placed| only.is_none_or(|task| *task == placed.task));
        let placed = placements.filter(|placed| !placed.reasons.is_empty()).map(|placed| self.placed(placed));
        events.chain(offer.map(|offer| format!("→ {}", offered(offer)))).chain(placed).collect()
    }

    /// To whom a task goes, why, and why not to others.
    fn placed(&self, placement: &Placement) -> String {
        let to = placement.to.to_string();
        let mut text = format!(
            "{} goes to {}: {}",
            placement.task,
            to.trim_start_matches('@'),
            placement.reasons.join("; ")
        );
        for other in &placement.passed_over {
            text.push_str(&format!("\n  not to {}: {}", other.agent, self.brief(&other.reason)));
        }
        format!("→ {text}")
    }

    fn run_event(&self, event: &RunEvent) -> String {
        let text = match event {
            RunEvent::RunForked { from, .. } => format!("forked from {} at entry {}", from.run, from.at),
            RunEvent::RunCreated { goal, .. } => {
                let priority = match goal.priority {
                    0 => String::new(),
                    priority => format!(" (priority {priority})"),
                };
                format!("run created{priority}: {}", self.brief(&goal.text))
            }
            RunEvent::LessonsRecalled { lessons } => {
                let lines = lessons.iter().map(|lesson| format!("\n  {}", self.brief(lesson)));
                format!("taught by earlier runs:{}", lines.collect::<String>())
            }
            RunEvent::PlanRefused { reasons } => format!("plan refused: {}", self.brief(&reasons.join("; "))),
            RunEvent::PlanAdopted { plan, repairs } => {
                let mut text = format!("plan adopted: {}", figures::plural(plan.tasks.len() as u64, "task"));
                for repair in repairs {
                    text.push_str(&format!("\n  repaired: {}", self.brief(repair)));
                }
                text
            }
            RunEvent::StepsExpanded { step_outcomes, tasks } => {
                let lines = step_outcomes
                    .iter()
                    .map(|(step, outcome)| format!("\n  {}", self.brief(&expanded(step, outcome))));
                let tasks = figures::plural(tasks.len() as u64, "task");
                format!("blueprint expanded by {tasks}{}", lines.collect::<String>())
            }
            RunEvent::TaskStarted { task, agent, attempt, .. } => {
                format!("{task} is in work with {agent} (attempt {attempt})")
            }
            RunEvent::TaskOrphaned { task, agent, reason, .. } => {
                format!("{task} goes to another agent: {agent} is lost, {}", self.brief(reason))
            }
            RunEvent::TaskReleased { task, agent, .. } => {
                format!("{task} goes to another agent: {agent} handed it over")
            }
            RunEvent::TaskQuarantined { task, evidence, .. } => {
                format!("{task} is in quarantine: {}", self.brief(&evidence.reason))
            }
            RunEvent::TaskCompleted { task, .. } => format!("{task} completed"),
            RunEvent::TaskRetried { task, reason, .. } => {
                format!("{task} to be tried again: {}", self.brief(reason))
            }
            RunEvent::TaskTakenBack { task, agent, reason, .. } => {
                format!("{task} is taken from {agent}: {}", self.brief(reason))
            }
            RunEvent::TaskFailed { task, reason, .. } => format!("{task} failed: {}", self.brief(reason)),
            RunEvent::TaskBlocked { task, reason } => format!("{task} blocked: {}", self.brief(reason)),
            RunEvent::TaskAborted { task, reason } => format!("{task} stopped: {}", self.brief(reason)),
            RunEvent::MembersBegun { task, pattern, members, .. } => {
                let named: Vec<String> = members.iter().map(TaskIndex::to_string).collect();
                format!("{task} is done by {} ({pattern})", named.join(", "))
            }
            RunEvent::MembersDiscuss { task, round, views, .. } => {
                let said = views.iter().map(|view| format!("\n  {}", self.brief(&view.to_string())));
                format!("{task}: round {round} of discussion{}", said.collect::<String>())
            }
            RunEvent::ChairCalled { task, chair, views, .. } => {
                let said = views.iter().map(|view| format!("\n  {}", self.brief(&view.to_string())));
                format!("{task}: {chair} is to give the verdict{}", said.collect::<String>())
            }
            RunEvent::MembersSettled { task, verdict, .. } => {
                let others = verdict
                    .dissent
                    .iter()
                    .map(|other| format!("\n  dissent: {}", self.brief(&other.to_string())));
                format!(
                    "{task} completed with the result of {} ({}){}",
                    verdict.counts,
                    verdict.by.in_words(),
                    others.collect::<String>()
                )
            }
            RunEvent::DraftReviewBegun { .. }
            | RunEvent::DraftReviewed { .. }
            | RunEvent::DraftReviewMissed { .. } => drafts::event(event, |text| self.brief(text)),
            RunEvent::TaskSkipped { task, reason, .. } => format!("{task} skipped: {}", self.brief(reason)),
            RunEvent::TaskParked { task, .. } => format!("{task} was put down; it goes on later"),
            RunEvent::PlanEdited { plan, reason } => {
                let tasks = figures::plural(plan.tasks.len() as u64, "task");
                format!("plan edited ({}): {tasks}", self.brief(reason))
            }
            RunEvent::TaskWaits { task, wait, .. } => {
                format!("{task} waits for {}", self.brief(&wait.in_words()))
            }
            RunEvent::TaskAnswered { task, observation, .. } => {
                format!("{task} goes on: {}", self.brief(&observation.content))
            }
            RunEvent::TaskDelegated { task, to, .. } => {
                format!("{task} hands work over to the new task {to}")
            }
            RunEvent::InformationShared { number, from, person, key: _, to, text } => {
                let to: Vec<String> = to.iter().map(TaskIndex::to_string).collect();
                let from = from.as_ref().map_or_else(|| person.clone(), TaskIndex::to_string);
                format!("{from} shares information {number} with {}: {}", to.join(", "), self.brief(text))
            }
            RunEvent::ContextWritten { key, value, version, by } => {
                format!("{by} writes context.{key} (version {version}): {}", self.brief(&value.to_string()))
            }
            RunEvent::HandOverRefused { task, agent, reason, .. } => {
                let by = agent.as_ref().map(|agent| format!(" ({agent})")).unwrap_or_default();
                format!("{task}{by} may not hand work over: {}", self.brief(reason))
            }
            RunEvent::DeadlockEnded { task, reason, .. } => {
                format!("{task} goes on without what it waited for: {}", self.brief(reason))
            }
            RunEvent::ChildBegun { task, run, goal, .. } => {
                format!("{task} waits for a run of its own, {}: {}", run.short(), self.brief(&goal.text))
            }
            RunEvent::ChildAsked { run } => {
                format!("nothing was heard of {} for long: it is asked", run.short())
            }
            RunEvent::ChildEnded { run, end } => {
                let reason = if end.reason.is_empty() {
                    String::new()
                } else {
                    format!(": {}", self.brief(&end.reason))
                };
                format!("{} ended as {:?}{reason}", run.short(), end.status)
            }
            RunEvent::QuestionAsked { id, about, question, .. } => {
                format!("question {id} about {about}: {}", self.brief(&question.text))
            }
            RunEvent::QuestionAnswered { reply } => self.reply(reply),
            RunEvent::QuestionPassedOn { id, to, .. } => {
                format!("question {id} goes to {to}: nobody answered")
            }
            RunEvent::QuestionWithdrawn { id, reason } => {
                format!("question {id} is withdrawn: {}", self.brief(reason))
            }
            RunEvent::TaskReopened { task, reason } => {
                format!("{task} is done again: {}", self.brief(reason))
            }
            RunEvent::FailureAnswered { task, failure, response, model, withheld, .. } => {
                let which = model.as_ref().or(withheld.as_ref());
                let which = which.map(|which| format!(": {}", self.brief(which))).unwrap_or_default();
                format!("{task}: {}; {response}{which}", failure.in_words())
            }
            RunEvent::ErrorBudgetUsedUp { failures, asked } => {
                let then = if *asked { "a person is asked" } else { "nothing more is begun" };
                format!("error budget used up after {failures} failures: {then}")
            }
            RunEvent::DependencyLeft { task, without, reason } => {
                format!("{task} goes on without {without}: {}", self.brief(reason))
            }
            RunEvent::TaskStale { task, reason } => {
                format!("{task} rests on what has changed: {}", self.brief(reason))
            }
            RunEvent::ConflictFound { .. }
            | RunEvent::ConflictExamined { .. }
            | RunEvent::VerificationAdded { .. }
            | RunEvent::ConflictResolved { .. } => conflicts::event(event, |text| self.brief(text)),
            RunEvent::RunPaused { reason } => format!("run paused: {}", self.brief(reason)),
            RunEvent::RunResumed { reason, .. } => format!("run resumed: {}", self.brief(reason)),
            RunEvent::GoalEdited { task, goal, reason } => {
                let whose = task.as_ref().map_or_else(|| "the run".to_owned(), TaskIndex::to_string);
                format!("goal of {whose} changed ({}): {}", self.brief(reason), self.brief(goal))
            }
            RunEvent::RequestRefused { reason, .. } => format!("refused: {}", self.brief(reason)),
            RunEvent::Reflected { task, reflection } => {
                format!("reflection on {task}: {}", self.brief(&reflection.summary))
            }
            RunEvent::RefinementWanted { reason, .. } => {
                format!("change of plan wanted: {}", self.brief(reason))
            }
            RunEvent::PlanRefined { changes, refused, .. } => {
                let changed = changes.iter().map(|line| format!("\n  + {}", self.brief(line)));
                let refused = refused.iter().map(|no| format!("\n  refused: {}", self.brief(&no.reason)));
                format!("plan changed{}", changed.chain(refused).collect::<String>())
            }
            RunEvent::PlanningSkipped { reason } => format!("no planner is asked: {}", self.brief(reason)),
            RunEvent::PlanDrafted { plan, repairs } => {
                let repaired = repairs.iter().map(|line| format!("\n  repaired: {}", self.brief(line)));
                format!(
                    "plan of {} drafted, to be improved from earlier runs{}",
                    figures::plural(u64::try_from(plan.tasks.len()).unwrap_or(u64::MAX), "task"),
                    repaired.collect::<String>()
                )
            }
            RunEvent::PlanIterated { lessons, changes } => {
                let taught = lessons.iter().map(|line| format!("\n  lesson: {}", self.brief(line)));
                let changed = changes.iter().map(|line| format!("\n  + {}", self.brief(line)));
                format!("plan improved from earlier runs{}", taught.chain(changed).collect::<String>())
            }
            RunEvent::ReplanWanted { number, reason } => {
                format!("new plan {number} wanted for what is left: {}", self.brief(reason))
            }
            RunEvent::Replanned { number, changes, .. } => {
                let changed = changes.iter().map(|line| format!("\n  + {}", self.brief(line)));
                format!("what is left has a new plan ({number}){}", changed.collect::<String>())
            }
            RunEvent::RunGivenUp { plans, simpler, .. } => format!(
                "given up after {}; ask for less: {}",
                figures::plural(u64::try_from(plans.len()).unwrap_or(u64::MAX), "plan"),
                self.brief(simpler)
            ),
            RunEvent::AuctionOpened { task, number: _, closes: _ } => {
                format!("agents are asked to bid for {task}")
            }
            RunEvent::TaskAwarded { task, to, reasons, .. } => {
                let whose = to.as_ref().map_or_else(|| "nobody".to_owned(), ToString::to_string);
                format!("{task} is awarded to {whose}: {}", reasons.join("; "))
            }
            RunEvent::BidHeld { task, agent, promised_ms, took_ms, kept } => {
                let how = if *kept { "held" } else { "did not hold" };
                format!("{agent} {how} its bid for {task}: {took_ms} ms, promised {promised_ms} ms")
            }
            RunEvent::WordsUncovered { by, words } => {
                let who = match by {
                    Checked::Plan => "no task speaks of",
                    Checked::Report => "the report does not speak of",
                };
                format!("{who}: {}", self.brief(&words.join("; ")))
            }
            RunEvent::WritingBegan => "the report is being written".to_owned(),
            RunEvent::RunCompleted { report } => format!("run completed: {}", self.brief(&report.title)),
            RunEvent::RunFailed { reason } => format!("run failed: {}", self.brief(reason)),
            RunEvent::RunAborted { reason, .. } => format!("run stopped: {}", self.brief(reason)),
        };
        format!("→ {text}")
    }

    fn reply(&self, reply: &Reply) -> String {
        let id = reply.question;
        let text = reply.text.as_deref().map(|text| self.brief(text));
        match (&reply.by, text) {
            (Some(by), text) => {
                format!(
                    "question {id} answered by {}: {}",
                    figures::one_line(by, 40),
                    text.unwrap_or_default()
                )
            }
            (None, Some(text)) => {
                format!("question {id} was not answered in time; its default is taken: {text}")
            }
            (None, None) => format!("question {id} was not answered in time"),
        }
    }

    fn agent(&self, key: &AgentKey, event: &AgentEvent) -> (String, Vec<String>) {
        let task = &key.task;
        match event {
            AgentEvent::Started(started) => {
                let after = match started.after_step {
                    0 => String::new(),
                    step => format!(", going on after step {step}"),
                };
                let what = format!(
                    "started {task} (generation {}{}){}{after}",
                    key.generation,
                    if started.attempt.0 == 0 {
                        String::new()
                    } else {
                        format!(", attempt {}", started.attempt)
                    },
                    if started.host.is_empty() { String::new() } else { format!(" on {}", started.host) },
                );
                (what, Vec::new())
            }
            AgentEvent::ToolStarted(tool) => {
                (format!("{task} step {} is calling {}", tool.step.number, tool.step.action.name), Vec::new())
            }
            AgentEvent::Step(step) => (step_head(task, step), self.step(step)),
            AgentEvent::Released(released) => {
                (format!("handed {task} over: {}", self.brief(&released.reason)), Vec::new())
            }
            AgentEvent::Outcome(outcome) => self.outcome(task, outcome),
            AgentEvent::Unreadable(unreadable) => {
                let why = self.brief(&unreadable.why);
                (
                    format!(
                        "{} of {task} {}",
                        unreadable.kind,
                        self.paint.bad(&format!("[unreadable: {why}]"))
                    ),
                    Vec::new(),
                )
            }
        }
    }

    fn outcome(&self, task: &TaskId, outcome: &Outcome) -> (String, Vec<String>) {
        let mut details = outcome.last_step.as_deref().map_or_else(Vec::new, |step| {
            let mut lines = vec![format!("step {} ({})", step.number, figures::millis(step.millis))];
            lines.extend(self.step_giving(step, outcome.product.as_ref()));
            lines
        });
        if !outcome.reason.is_empty() {
            details.push(format!("because     {}", self.brief(&outcome.reason)));
        }
        details.push(format!("used        {}", figures::usage(&outcome.usage)));
        (format!("ended {task}: {}", word(&outcome.ending)), details)
    }

    fn step(&self, step: &Step) -> Vec<String> {
        self.step_giving(step, None)
    }

    /// A step; what the last one submitted stands in what the task gave.
    fn step_giving(&self, step: &Step, given: Option<&Product>) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |name: &str, text: &str| {
            if !text.trim().is_empty() {
                lines.push(format!("{name:<12}{}", self.brief(text)));
            }
        };
        for told in &step.heard {
            let name = told.from.as_ref().map(|_| format!(" ({})", told.name)).unwrap_or_default();
            line("heard", &format!("from {}{name}: {}", told.teller(), told.text));
        }
        line("thought", &step.thought.text);
        line("reasoning", &step.thought.reasoning);
        line("plan", &step.thought.plan);
        line("criticism", &step.thought.criticism);
        let Action { name, arguments } = &step.action;
        match (arguments, given.map(serde_json::to_string)) {
            (Value::Null, Some(Ok(given))) => line("action", &format!("{name} {given}")),
            // No action came of the last answers.
            (Value::Null, _) if name == Action::SUBMIT => {}
            (Value::Null, _) => line("action", name),
            (arguments, _) => line("action", &format!("{name} {arguments}")),
        }
        if let Some(observation) = &step.observation {
            line("observation", &observed(observation));
        }
        step.notes.iter().for_each(|note| line("note", &note.to_string()));
        lines
    }

    fn brief(&self, text: &str) -> String {
        if self.full { figures::harmless(text) } else { figures::one_line(text, BRIEF) }
    }
}

fn offered(offer: &TaskOffered) -> String {
    let priority = match &offer.work {
        Work::Execute { task, .. } if task.priority != 0 => format!(", priority {}", task.priority),
        Work::Execute { .. }
        | Work::Plan { .. }
        | Work::Reflect { .. }
        | Work::Refine { .. }
        | Work::Write { .. }
        | Work::DraftReview { .. } => String::new(),
    };
    format!("{} offered to {} (generation {}{priority})", offer.task, offer.queue, offer.generation)
}

fn step_head(task: &TaskId, step: &Step) -> String {
    let outside = figures::millis(step.outside_millis);
    format!("{task} step {} ({}, of which outside {outside})", step.number, figures::millis(step.millis))
}

fn observed(observation: &Observation) -> String {
    let status = match observation.status {
        ObservationStatus::Success => "ok",
        ObservationStatus::Error => "error",
        ObservationStatus::Timeout => "timed out",
        ObservationStatus::Refused => "refused",
    };
    format!("[{status}, {}] {}", figures::millis(observation.millis), observation.content)
}

/// The name that a value has in the record.
fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word.replace('_', " "),
        Ok(other) => other.to_string(),
        Err(_) => "?".to_owned(),
    }
}

fn inputs(inputs: &[Input]) -> String {
    let words = inputs.iter().map(|input| match input {
        Input::Goal { .. } => "a goal".to_owned(),
        Input::Fork { from, .. } => format!("a fork of {} at entry {}", from.run.short(), from.at),
        Input::Agent { seq } => format!("entry {seq}"),
        Input::Unreadable { seq, why: _ } => format!("entry {seq}, which cannot be read"),
        Input::Capacity => "free capacity".to_owned(),
        Input::ContractBroken { faults, .. } => {
            format!("a result breaks its contract: {}", faults.join("; "))
        }
        Input::Bids { task, bids, .. } => format!("{} bids for {task}", bids.len()),
        Input::ChildEnded { child, .. } => format!("the end of {}", child.short()),
        Input::Timer => "a deadline".to_owned(),
        Input::AgentLost { agent, .. } => format!("the loss of {agent}"),
        Input::Silent { task, agent, for_ms, .. } => {
            format!("the silence of {agent} about {task} for {} s", for_ms / 1000)
        }
        Input::Cancel { by, .. } => format!("a cancellation by {}", figures::one_line(by, 40)),
        Input::Pause { request } => format!("a pause asked for by {}", who(request)),
        Input::Resume { request, .. } => format!("a resumption asked for by {}", who(request)),
        Input::Skip { task, request } => format!("a wish by {} to skip {task}", who(request)),
        Input::Redo { task, request } => format!("a wish by {} to redo {task}", who(request)),
        Input::Edit { task, request, .. } => match task {
            Some(task) => format!("a new goal for {task} by {}", who(request)),
            None => format!("a new goal by {}", who(request)),
        },
        Input::Approve { request, .. } => format!("an approval by {}", who(request)),
        Input::Reject { request } => format!("a rejection by {}", who(request)),
        Input::Answer { question, request, .. } => {
            format!("an answer to question {question} by {}", who(request))
        }
        Input::SetContext { key, request, .. } => format!("a value for context.{key} by {}", who(request)),
        Input::Refuse { .. } => "a goal that is refused".to_owned(),
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "nothing new".to_owned() } else { words.join(", ") }
}

fn who(request: &Request) -> String {
    figures::one_line(&request.by, 40)
}

/// What became of a step of a blueprint, in a line.
fn expanded(step: &str, outcome: &StepOutcome) -> String {
    let list = |tasks: &[TaskIndex]| tasks.iter().map(TaskIndex::to_string).collect::<Vec<_>>().join(", ");
    match outcome {
        StepOutcome::Placed { tasks, fallback, note, .. } => {
            let fallback =
                if fallback.is_empty() { String::new() } else { format!(", instead {}", list(fallback)) };
            let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
            format!("{step}: {}{fallback}{note}", list(tasks))
        }
        StepOutcome::LeftOut { reason } => format!("{step}: left out, {reason}"),
    }
}

/// The task that a change is about.
fn about(event: &RunEvent) -> Option<TaskId> {
    match event {
        RunEvent::TaskStarted { task, .. }
        | RunEvent::TaskOrphaned { task, .. }
        | RunEvent::TaskReleased { task, .. }
        | RunEvent::TaskQuarantined { task, .. }
        | RunEvent::TaskCompleted { task, .. }
        | RunEvent::FailureAnswered { task, .. }
        | RunEvent::TaskRetried { task, .. }
        | RunEvent::TaskTakenBack { task, .. }
        | RunEvent::TaskFailed { task, .. }
        | RunEvent::TaskAborted { task, .. }
        | RunEvent::TaskParked { task, .. }
        | RunEvent::TaskWaits { task, .. }
        | RunEvent::TaskAnswered { task, .. }
        | RunEvent::DeadlockEnded { task, .. }
        | RunEvent::TaskReopened { task, .. } => Some(task.clone()),
        RunEvent::GoalEdited { task, .. } | RunEvent::InformationShared { from: task, .. } => {
            task.clone().map(TaskId::Leaf)
        }
        RunEvent::TaskBlocked { task, .. }
        | RunEvent::TaskSkipped { task, .. }
        | RunEvent::TaskDelegated { task, .. }
        | RunEvent::HandOverRefused { task, .. }
        | RunEvent::DependencyLeft { task, .. }
        | RunEvent::TaskStale { task, .. }
        | RunEvent::MembersBegun { task, .. }
        | RunEvent::MembersDiscuss { task, .. }
        | RunEvent::ChairCalled { task, .. }
        | RunEvent::AuctionOpened { task, .. }
        | RunEvent::TaskAwarded { task, .. }
        | RunEvent::BidHeld { task, .. }
        | RunEvent::MembersSettled { task, .. } => Some(TaskId::Leaf(task.clone())),
        RunEvent::ContextWritten { by, .. } => match by {
            ContextAuthor::Task { task, .. } => Some(TaskId::Leaf(task.clone())),
            ContextAuthor::Person(_) => None,
        },
        RunEvent::Reflected { task, .. } => Some(TaskId::Reflect(task.clone())),
        RunEvent::RefinementWanted { number, .. } | RunEvent::PlanRefined { number, .. } => {
            Some(TaskId::Refine(*number))
        }
        RunEvent::LessonsRecalled { .. }
        | RunEvent::PlanRefused { .. }
        | RunEvent::PlanAdopted { .. }
        | RunEvent::StepsExpanded { .. }
        | RunEvent::PlanEdited { .. }
        | RunEvent::PlanningSkipped { .. }
        | RunEvent::PlanDrafted { .. }
        | RunEvent::PlanIterated { .. }
        | RunEvent::ReplanWanted { .. }
        | RunEvent::Replanned { .. } => Some(TaskId::Plan),
        RunEvent::WritingBegan | RunEvent::RunCompleted { .. } => Some(TaskId::Write),
        RunEvent::DraftReviewBegun { number, .. }
        | RunEvent::DraftReviewed { number, .. }
        | RunEvent::DraftReviewMissed { number, .. } => Some(TaskId::DraftReview(*number)),
        RunEvent::ChildBegun { task, .. } => Some(task.clone()),
        RunEvent::ChildAsked { .. } | RunEvent::ChildEnded { .. } => None,
        RunEvent::VerificationAdded { task, .. } => Some(TaskId::Leaf(task.clone())),
        RunEvent::ConflictFound { .. }
        | RunEvent::ConflictExamined { .. }
        | RunEvent::ConflictResolved { .. }
        | RunEvent::RunCreated { .. }
        | RunEvent::RunForked { .. }
        | RunEvent::RunGivenUp { .. }
        | RunEvent::WordsUncovered { .. }
        | RunEvent::RunFailed { .. }
        | RunEvent::RunAborted { .. }
        | RunEvent::ErrorBudgetUsedUp { .. }
        | RunEvent::RunPaused { .. }
        | RunEvent::RunResumed { .. }
        | RunEvent::RequestRefused { .. }
        | RunEvent::QuestionAsked { .. }
        | RunEvent::QuestionAnswered { .. }
        | RunEvent::QuestionPassedOn { .. }
        | RunEvent::QuestionWithdrawn { .. } => None,
    }
}

/// What is said at once, while a run is watched, of an entry of an agent that cannot be read.
pub(crate) fn unreadable(entry: &Entry) -> Option<String> {
    let RecordEvent::Agent(key, AgentEvent::Unreadable(unreadable)) = &entry.event else { return None };
    let why = figures::one_line(&unreadable.why, BRIEF);
    Some(format!("{} of task {} by {}: [unreadable: {why}]", unreadable.kind, key.task, key.agent))
}

/// An entry that nobody can read, and which is none of an agent about a task: a line, or JSON.
pub(crate) fn stray(found: &muster_bus::Unreadable, paint: Paint) -> String {
    let why = figures::one_line(&found.reason, BRIEF);
    format!(
        "{} {:>9} {} {}",
        paint.dim(&format!("{:>6}", found.seq)),
        "",
        paint.bold(&figures::one_line(&found.subject, 120)),
        paint.bad(&format!("[unreadable: {why}]"))
    )
}

/// The same as JSON.
pub(crate) fn stray_json(found: &muster_bus::Unreadable) -> Value {
    json!({ "kind": "unreadable", "seq": found.seq, "subject": found.subject, "unreadable": found.reason })
}

/// An entry as JSON. The run's secret is left out.
pub(crate) fn entry_json(entry: &Entry) -> Value {
    let mut value = match &entry.event {
        RecordEvent::Decided(decided) => json!({ "kind": "decided", "by": decided.by, "event": decided }),
        RecordEvent::Offered(offer) => {
            json!({ "kind": "offered", "task": offer.task, "generation": offer.generation, "event": offer })
        }
        RecordEvent::Agent(key, event) => {
            let body = match event {
                AgentEvent::Started(started) => json!(started),
                AgentEvent::ToolStarted(tool) => json!(tool),
                AgentEvent::Step(step) => json!(step),
                AgentEvent::Released(released) => json!(released),
                AgentEvent::Outcome(outcome) => json!(outcome),
                AgentEvent::Unreadable(unreadable) => json!({ "unreadable": unreadable.why }),
            };
            json!({
                "kind": event.kind().to_string(), "role": key.role, "by": key.agent, "task": key.task,
                "generation": key.generation, "event": body,
            })
        }
    };
    value["seq"] = json!(entry.seq);
    value["at"] = json!(entry.at);
    value["run"] = json!(entry.run);
    hide_secret(&mut value);
    value
}

/// The run's secret guards the fences of prompts; whoever may read a trace need not know it.
fn hide_secret(value: &mut Value) {
    for list in ["events", "inputs"] {
        for item in value["event"][list].as_array_mut().into_iter().flatten() {
            let fields = item.as_object_mut().into_iter().flat_map(|fields| fields.values_mut());
            for field in fields {
                if let Some(secret) = field.get_mut("secret") {
                    *secret = json!("[redacted]");
                }
            }
            if let Some(secret) = item.get_mut("secret") {
                *secret = json!("[redacted]");
            }
        }
    }
    for nonce in ["/event/nonce", "/event/offer/nonce"] {
        if let Some(nonce) = value.pointer_mut(nonce) {
            *nonce = json!("[redacted]");
        }
    }
}
