//! What else was considered, what went wrong and what was done about it, and where the course changed.

use muster_shared::explain::{LookAt, StepTold, Told, Trouble};

use super::{Line, Section, Teller, figures, one_line, words};

/// Most things that are told of what went wrong with one task.
const MOST_OF_ONE: usize = 12;

pub(super) fn sections(teller: &Teller<'_>) -> Vec<Section> {
    let explained = teller.explained;
    let troubles = teller.section("What went wrong", &explained.troubles, |one| trouble(teller, one));
    if !teller.is_deep() {
        return vec![troubles];
    }
    vec![
        troubles,
        teller.section("What else was considered", &explained.considered, |told| teller.told(told, 0)),
        teller.section("Turning points", &explained.turning_points, |told| turning_point(teller, told)),
        teller.section("Steps", &explained.steps, step),
        teller.section("Worth a look", &explained.look_at, |look| vec![look_at(teller, look)]),
    ]
}

fn trouble(teller: &Teller<'_>, one: &Trouble) -> Vec<Line> {
    let what = match &one.task {
        Some(task) => one_line(format!("{task} {}", one.name).trim_end()),
        None => "the run".to_owned(),
    };
    let end = one.end.map(|end| format!(": {} in the end", end.in_words())).unwrap_or_default();
    let mut lines = vec![words(format!("{what}{end}"))];
    let most = if teller.is_deep() { MOST_OF_ONE } else { 2 };
    for item in one.items.iter().take(most) {
        let mut told = teller.told(&item.told, 1);
        if let (true, Some(Line::Words(_, text))) = (item.is_answer, told.first_mut()) {
            *text = format!("→ {text}");
        }
        lines.extend(told);
    }
    if one.items.len() > most {
        lines.push(Line::Words(1, format!("and {} more: --json shows all", one.items.len() - most)));
    }
    lines
}

/// Each in a line.
fn turning_point(teller: &Teller<'_>, told: &Told) -> Vec<Line> {
    let first = told.text.lines().next().unwrap_or_default().to_owned();
    teller.timed(&Told { text: first, ..told.clone() })
}

fn step(step: &StepTold) -> Vec<Line> {
    let went = match step.well {
        Some(true) => "",
        Some(false) => ", which did not go well",
        None => ", the end",
    };
    let (number, action) = (step.number, one_line(&step.action));
    let (model, tool) = (figures::millis(step.model_ms), figures::millis(step.tool_ms));
    vec![words(format!(
        "{} step {number}: {action}{went} (model {model}, tool {tool}; {}) [entry {}]",
        step.task, step.agent, step.entry
    ))]
}

fn look_at(teller: &Teller<'_>, look: &LookAt) -> Line {
    let run = teller.explained.run.short();
    let command = match look.step.filter(|_| look.has_prompt) {
        Some(step) => format!("muster prompt {run} {} {step}", look.task),
        None => format!("muster trace {run} {}", look.task),
    };
    Line::Command(command, look.why.clone())
}
