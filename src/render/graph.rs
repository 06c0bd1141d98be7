//! The plan of a run as a graph (S4): tasks coloured by state, dependencies as arrows, parents as boxes.

use muster_shared::flow::{Plan, TaskStatus};
use muster_shared::ids::TaskIndex;
use muster_shared::run::{RunState, in_part};

use super::figures;

/// Longest label, in characters.
const LONGEST: usize = 60;

/// A kind of states that look alike.
struct Look {
    name: &'static str,
    fill: &'static str,
    line: &'static str,
}

const LOOKS: [Look; 7] = [
    Look { name: "created", fill: "#f2f2f2", line: "#8c8c8c" },
    Look { name: "queued", fill: "#fff3c4", line: "#b08800" },
    Look { name: "processing", fill: "#cfe3ff", line: "#1f6feb" },
    Look { name: "completed", fill: "#d2f4d9", line: "#1a7f37" },
    Look { name: "failed", fill: "#ffd7d5", line: "#cf222e" },
    Look { name: "skipped", fill: "#e9e2f5", line: "#8250df" },
    Look { name: "partly", fill: "#ffe7c2", line: "#bc4c00" },
];

const fn look(status: TaskStatus) -> &'static Look {
    match status {
        TaskStatus::Created | TaskStatus::Waiting => &LOOKS[0],
        TaskStatus::Queued => &LOOKS[1],
        TaskStatus::Processing => &LOOKS[2],
        TaskStatus::Completed | TaskStatus::Split => &LOOKS[3],
        TaskStatus::Failed | TaskStatus::Aborted => &LOOKS[4],
        TaskStatus::Skipped | TaskStatus::Blocked => &LOOKS[5],
    }
}

/// For Markdown viewers.
pub(crate) fn mermaid(plan: &Plan, state: &RunState) -> String {
    let mut text = String::from("flowchart LR\n");
    for look in &LOOKS {
        text += &format!("  classDef {} fill:{},stroke:{},color:#1c1c1c\n", look.name, look.fill, look.line);
    }
    nodes(plan, None, 1, &mut |index, depth, place| {
        let indent = "  ".repeat(depth);
        let label = mermaid_text(&label(plan, index));
        text += &match place {
            Rank::Leaf => {
                format!("{indent}{}[\"{label}\"]:::{}\n", id(index), look_of(state, index).name)
            }
            Rank::Begin => format!("{indent}subgraph {}[\"{label}\"]\n", id(index)),
            Rank::End => format!("{indent}end\n"),
        };
    });
    for (needed, index) in edges(plan) {
        text += &format!("  {} --> {}\n", id(needed), id(index));
    }
    for (task, member) in members(plan, state) {
        let look = look(status(state, member)).name;
        text += &format!("  {}([\"{member}\"]):::{look}\n  {} -.- {}\n", id(member), id(task), id(member));
    }
    text
}

/// For Graphviz.
pub(crate) fn dot(plan: &Plan, state: &RunState) -> String {
    let mut text = format!(
        "digraph plan {{\n  label=\"{}\";\n  rankdir=LR;\n  compound=true;\n  \
         node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n",
        dot_text(&figures::one_line(&state.goal.text, 100))
    );
    nodes(plan, None, 1, &mut |index, depth, place| {
        let indent = "  ".repeat(depth);
        let label = dot_text(&label(plan, index));
        text += &match place {
            Rank::Leaf => {
                let look = look_of(state, index);
                format!(
                    "{indent}{} [label=\"{label}\", fillcolor=\"{}\", color=\"{}\", tooltip=\"{}\"];\n",
                    id(index),
                    look.fill,
                    look.line,
                    look.name
                )
            }
            Rank::Begin => {
                format!("{indent}subgraph cluster_{} {{\n{indent}  label=\"{label}\";\n", id(index))
            }
            Rank::End => format!("{indent}}}\n"),
        };
    });
    let first_leaf = |index: &TaskIndex| plan.leaves_of(index).next().cloned();
    for (needed, index) in edges(plan) {
        // An arrow of a box is one of a leaf in it, cut at the box.
        let (Some(from), Some(to)) = (first_leaf(needed), first_leaf(index)) else { continue };
        let mut cut = Vec::new();
        if from != *needed {
            cut.push(format!("ltail=cluster_{}", id(needed)));
        }
        if to != *index {
            cut.push(format!("lhead=cluster_{}", id(index)));
        }
        let cut = if cut.is_empty() { String::new() } else { format!(" [{}]", cut.join(", ")) };
        text += &format!("  {} -> {}{cut};\n", id(&from), id(&to));
    }
    for (task, member) in members(plan, state) {
        let Look { name, fill, line } = look(status(state, member));
        let (task, node) = (id(task), id(member));
        text += &format!(
            "  {node} [label=\"{member}\", shape=ellipse, fillcolor=\"{fill}\", color=\"{line}\", tooltip=\"{name}\"];\n  \
             {task} -> {node} [style=dashed, arrowhead=none];\n"
        );
    }
    text += "}\n";
    text
}

/// Leaves of the plan that members do or did, with each of those.
fn members<'a>(plan: &'a Plan, state: &'a RunState) -> impl Iterator<Item = (&'a TaskIndex, &'a TaskIndex)> {
    let shared = state.groups.iter().filter(|(task, _)| plan.is_leaf(task));
    shared.flat_map(|(task, group)| group.members.iter().map(move |member| (task, member)))
}

enum Rank {
    Leaf,
    Begin,
    End,
}

fn nodes(
    plan: &Plan,
    parent: Option<&TaskIndex>,
    depth: usize,
    draw: &mut dyn FnMut(&TaskIndex, usize, &Rank),
) {
    let children: Vec<&TaskIndex> = plan.children(parent).map(|(index, _)| index).collect();
    for index in children {
        if plan.is_leaf(index) {
            draw(index, depth, &Rank::Leaf);
        } else {
            draw(index, depth, &Rank::Begin);
            nodes(plan, Some(index), depth + 1, draw);
            draw(index, depth, &Rank::End);
        }
    }
}

/// From what is needed to what needs it.
fn edges(plan: &Plan) -> impl Iterator<Item = (&TaskIndex, &TaskIndex)> {
    plan.tasks.iter().flat_map(|(index, task)| {
        task.depends_on
            .iter()
            .filter(|needed| plan.tasks.contains_key(*needed))
            .map(move |needed| (needed, index))
    })
}

/// How a leaf is drawn.
fn look_of(state: &RunState, index: &TaskIndex) -> &'static Look {
    if in_part(state, index).is_some() { &LOOKS[6] } else { look(status(state, index)) }
}

fn status(state: &RunState, index: &TaskIndex) -> TaskStatus {
    state.planned(index).map_or(TaskStatus::Created, |task| task.status)
}

fn label(plan: &Plan, index: &TaskIndex) -> String {
    let name = plan.tasks.get(index).map_or("", |task| task.name.as_str());
    format!("{index} {}", figures::one_line(name, LONGEST))
}

/// A name that both languages take as it is. The same index always has the same one.
fn id(index: &TaskIndex) -> String {
    format!("t{}", index.to_string().replace('-', "_").replace('~', "m"))
}

/// Inside quotes, Mermaid reads entities and Markdown; everything but letters, digits and plain marks is written as an
/// entity.
fn mermaid_text(text: &str) -> String {
    text.chars().fold(String::new(), |mut written, c| {
        if c.is_alphanumeric() || matches!(c, ' ' | '-' | '.' | ',' | ':' | '?' | '!' | '/' | '(' | ')' | '…')
        {
            written.push(c);
        } else {
            written += &format!("#{};", u32::from(c));
        }
        written
    })
}

fn dot_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use muster_shared::flow::{Goal, PlanTask, RunLimits};
    use muster_shared::ids::{Role, RunId, TaskId};
    use muster_shared::run::event::{PlanAdopted, RunCreated};
    use muster_shared::run::{RunEvent, RunState, apply_event};
    use muster_shared::time::Millis;
    use proptest::prelude::*;

    use super::*;

    fn task(name: &str, depends_on: &[&str]) -> PlanTask {
        let depends_on = depends_on.iter().map(|index| index.parse().unwrap()).collect();
        PlanTask { depends_on, ..PlanTask::new(name, "g", Role::Worker) }
    }

    fn run(tasks: &[(&str, PlanTask)]) -> (Plan, RunState) {
        let tasks: BTreeMap<TaskIndex, PlanTask> =
            tasks.iter().map(|(index, task)| (index.parse().unwrap(), task.clone())).collect();
        let plan = Plan { goal: "g".to_owned(), tasks };
        let id = RunId::from_uuid(uuid::Uuid::from_u128(1));
        let mut state = None;
        let created = RunEvent::RunCreated(RunCreated {
            goal: Box::new(Goal::new("say \"hello\"")),
            limits: RunLimits::default(),
            event_version: 1,
            secret: String::new(),
            deadline: Millis(10),
        });
        let adopted = RunEvent::PlanAdopted(PlanAdopted { plan: plan.clone(), repairs: Vec::new() });
        for event in [created, adopted] {
            apply_event(&mut state, id, &event, Millis(1)).unwrap();
        }
        (plan, state.unwrap())
    }

    #[test]
    fn states_are_colours_parents_are_boxes_and_dependencies_arrows() {
        let (plan, mut state) = run(&[
            ("1", task("search", &[])),
            ("1-1", task("one", &[])),
            ("1-2", task("two", &["1-1"])),
            ("2", task("check", &["1"])),
        ]);
        state.tasks.get_mut(&TaskId::Leaf("1-1".parse().unwrap())).unwrap().status = TaskStatus::Failed;
        let drawn = mermaid(&plan, &state);
        for part in [
            "subgraph t1[\"1 search\"]",
            "t1_1[\"1-1 one\"]:::failed",
            "t2[\"2 check\"]:::created",
            "t1_1 --> t1_2",
            "t1 --> t2",
        ] {
            assert!(drawn.contains(part), "{part} in {drawn}");
        }
        let drawn = dot(&plan, &state);
        for part in [
            "subgraph cluster_t1 {",
            "t1_1 [label=\"1-1 one\", fillcolor=\"#ffd7d5\"",
            "t1_1 -> t2 [ltail=cluster_t1];",
            "label=\"say \\\"hello\\\"\";",
        ] {
            assert!(drawn.contains(part), "{part} in {drawn}");
        }
    }

    proptest! {
        /// Whatever a model calls its tasks, no name ends a string, a line or a box.
        #[test]
        fn names_do_no_harm(name in "(\\PC|[\"\\\\\n\r\\]\\}\\[{;#<>&`|]){0,80}") {
            let (plan, state) = run(&[("1", task(&name, &[])), ("2", task("end", &["1"]))]);
            let (plain, plain_state) = run(&[("1", task("a", &[])), ("2", task("end", &["1"]))]);
            let drawn = mermaid(&plan, &state);
            prop_assert_eq!(drawn.lines().count(), mermaid(&plain, &plain_state).lines().count());
            prop_assert_eq!(drawn.matches('"').count(), 4);
            let drawn = dot(&plan, &state);
            prop_assert_eq!(drawn.lines().count(), dot(&plain, &plain_state).lines().count());
            for line in drawn.lines() {
                let quotes = line.replace("\\\\", "").replace("\\\"", "");
                prop_assert_eq!(quotes.matches('"').count() % 2, 0, "{}", line);
            }
        }
    }
}
