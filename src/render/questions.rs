//! Questions that wait for a person, as text.

use muster_shared::flow::form::Field;
use muster_shared::flow::{About, Form, OnTimeout, PlanTask, Reply};
use muster_shared::ids::{QuestionId, TaskIndex};
use muster_shared::run::{QuestionEnd, QuestionState, RunState};
use muster_shared::time::Millis;

use super::figures;

/// Longest text of a question that is shown.
const SHOWN: usize = 600;

/// The questions of runs.
pub(crate) fn list(runs: &[RunState], all: bool, now: Millis) -> String {
    let of = |run: &RunState| {
        let asked = run.questions.iter().filter(|(_, asked)| all || asked.is_open());
        asked
            .map(|(id, asked)| format!("run {} {}", run.id.short(), one(run, *id, asked, now)))
            .collect::<Vec<_>>()
    };
    let found: Vec<String> = runs.iter().flat_map(of).collect();
    if found.is_empty() { "no question waits for an answer".to_owned() } else { found.join("\n\n") }
}

/// The questions of one run; empty when it has none.
pub(crate) fn of_run(run: &RunState, now: Millis) -> String {
    let asked = run.questions.iter().map(|(id, asked)| one(run, *id, asked, now));
    figures::lines(asked)
}

/// The open questions of a run, for below the tree of the run it belongs to; empty when nothing is asked.
pub(crate) fn open(run: &RunState, now: Millis) -> String {
    let asked = run.open_questions().map(|(id, asked)| one(run, id, asked, now));
    figures::lines(asked)
}

/// What to say when a question begins to wait: what it is, and how to answer.
pub(crate) fn news(run: &RunState, id: QuestionId, asked: &QuestionState) -> String {
    format!("{}; {}", figures::one_line(&asked.question.text, 200), how(run, id, asked))
}

/// A question in full.
pub(crate) fn one(run: &RunState, id: QuestionId, asked: &QuestionState, now: Millis) -> String {
    let question = &asked.question;
    let mut lines =
        vec![format!("question {id} about {}: {}", asked.about, figures::one_line(&question.text, SHOWN))];
    if !question.reason.is_empty() {
        lines.push(format!("  because  {}", figures::one_line(&question.reason, SHOWN)));
    }
    if asked.is_open() && asked.about == About::Plan {
        lines.extend(plan(run).into_iter().map(|line| format!("  {line}")));
    }
    lines.extend(question.form.iter().flat_map(|form| asked_for(&form.form)));
    let choices = (1..).zip(&question.choices);
    lines.extend(choices.map(|(number, choice)| format!("  {number}  {}", figures::one_line(choice, 200))));
    if let Some(who) = &asked.asked_of {
        lines.push(format!("  asked    {}", figures::one_line(who, 60)));
    }
    match &asked.end {
        None => {
            lines.extend(who(run, asked));
            let feedback = asked.feedback.iter();
            lines.extend(feedback.map(|text| format!("  feedback {}", figures::one_line(text, SHOWN))));
            lines.push(format!("  answer   {}", how(run, id, asked)));
            lines.push(format!(
                "  else     {} in {}",
                otherwise(run, asked),
                figures::span(asked.expires.since(now))
            ));
        }
        Some(QuestionEnd::Answered(Reply { text, by, .. })) => {
            let text =
                text.as_deref().map_or_else(|| "nothing".to_owned(), |text| figures::one_line(text, SHOWN));
            let by =
                by.as_deref().map_or_else(|| "nobody, in time".to_owned(), |by| figures::one_line(by, 60));
            lines.push(format!("  answered {text} (by {by})"));
        }
        Some(QuestionEnd::Withdrawn(why)) => {
            lines.push(format!("  withdrawn: {}", figures::one_line(why, 200)));
        }
    }
    lines.join("\n")
}

/// What a call of a tool asks for: each value, or the address.
fn asked_for(form: &Form) -> Vec<String> {
    let field = |field: Field<'_>| {
        let optional = if field.is_optional { ", may be left out" } else { "" };
        let about = figures::one_line(field.about, 200);
        let about = if about.is_empty() { about } else { format!(": {about}") };
        format!(
            "  {}  {}{optional}{about}",
            figures::one_line(field.name, 60),
            figures::one_line(&field.kind, 200)
        )
    };
    match form {
        Form::Values(_) => form.fields().into_iter().map(field).collect(),
        Form::Visit(url) => vec![format!("  open     {}", figures::one_line(url, 2_048))],
    }
}

/// Who may approve, and who did, where that is not left to anybody.
fn who(run: &RunState, asked: &QuestionState) -> Vec<String> {
    let people = &run.limits.people;
    let names = |names: &[String]| figures::list(names.iter().map(|name| figures::one_line(name, 60)));
    let mut lines = Vec::new();
    if !people.approve_by.is_empty() {
        lines.push(format!("  by       {} and nobody else", names(&people.approve_by)));
    }
    if people.approvals > 1 && asked.about.is_approved() {
        let by =
            if asked.approvals.is_empty() { String::new() } else { format!(": {}", names(&asked.approvals)) };
        lines.push(format!("  approved {} of {} times{by}", asked.approvals.len(), people.approvals));
    }
    lines
}

/// The plan that is asked about: who is to do what, after what.
fn plan(run: &RunState) -> Vec<String> {
    let Some(plan) = &run.plan else { return Vec::new() };
    let line = |(index, task): (&TaskIndex, &PlanTask)| {
        let indent = "  ".repeat(index.depth());
        let name = figures::one_line(&task.name, 100);
        if !plan.is_leaf(index) {
            return vec![format!("{indent}{index} {name}")];
        }
        let after: Vec<String> = task.depends_on.iter().map(TaskIndex::to_string).collect();
        let after = if after.is_empty() { String::new() } else { format!(", after {}", after.join(", ")) };
        let critical = if task.critical { ", critical" } else { "" };
        let mut lines = vec![format!("{indent}{index} {name} ({}{after}{critical})", task.role)];
        if !task.goal.is_empty() && task.goal.trim() != task.name.trim() {
            lines.push(format!("{indent}    {}", figures::one_line(&task.goal, 300)));
        }
        lines
    };
    plan.tasks.iter().flat_map(line).collect()
}

fn how(run: &RunState, id: QuestionId, asked: &QuestionState) -> String {
    let run = run.id.short();
    match asked.about {
        About::Plan => {
            format!(
                "`muster approve {run}`, `muster approve {run} --edit`, or `muster reject {run} \"what to change\"`"
            )
        }
        About::Milestone(_) | About::Failure(_) => {
            format!("`muster approve {run}`, or `muster reject {run} \"what to change\"`")
        }
        About::Step(_) => format!("`muster approve {run}`, or `muster answer {run} {id} reject`"),
        About::Call(_) => format!(
            "`muster approve {run} --question {id}`, with --edit to change the arguments, or `muster reject {run} \"why not\" \
             --question {id}`"
        ),
        About::Task(_) | About::Goal | About::Conflict(_) if asked.question.form.is_some() => {
            let how = asked.question.form.as_ref().map(|form| form.form.how()).unwrap_or_default();
            format!("`muster answer {run} {id} {how}`, or `muster answer {run} {id} decline`")
        }
        About::Task(_) | About::Goal | About::Conflict(_) if asked.question.choices.is_empty() => {
            format!("`muster answer {run} {id} \"…\"`")
        }
        About::Task(_) | About::Goal | About::Conflict(_) => {
            format!("`muster answer {run} {id} --choice N`")
        }
    }
}

/// Effect of a question that no person answers in time.
pub(crate) fn otherwise(run: &RunState, asked: &QuestionState) -> String {
    let stops = asked.about.needs_approval_to_continue(&run.limits.people);
    if stops || asked.on_timeout == OnTimeout::Abort {
        return "the run is stopped".to_owned();
    }
    let default = asked.question.default.as_ref();
    let taken = match (&asked.about, default) {
        (About::Call(_), _) => "the call is not made".to_owned(),
        (About::Step(_), _) => "the step is left out".to_owned(),
        (About::Failure(_), _) => "no further task is started".to_owned(),
        (_, Some(default)) => format!("{:?} is taken", figures::one_line(default, 100)),
        (_, None) if is_stuck(run, asked) => "the task ends as it stands".to_owned(),
        (_, None) => "it goes on without an answer".to_owned(),
    };
    match asked.on_timeout {
        OnTimeout::AskAnother => format!("somebody else is asked, and then {taken},"),
        OnTimeout::Abort | OnTimeout::Proceed => taken,
    }
}

/// Whether it is asked how a task is to be done that its agent gave up.
fn is_stuck(run: &RunState, asked: &QuestionState) -> bool {
    let About::Task(task) = &asked.about else { return false };
    let waiting = run.tasks.get(task).and_then(|state| state.waiting.as_ref());
    waiting.is_some_and(|waiting| waiting.step == 0)
}
