//! Which tools a task may name, so that whoever does it sees only what it needs (P3), and which blueprints (R7).

use super::blueprints;
use crate::flow::{BlueprintBrief, PlanDraft, Specialty, TaskDraft};
use crate::text::nearest_name;

/// The action that works by a blueprint.
pub const BLUEPRINT: &str = "blueprint";

/// The tools that come with Muster and need nobody's word. What of these a role may use is another matter; those that are
/// off until they are allowed are known by what agents say that they have. `corpus.look` is not among them: tasks that read
/// documents have it where there are pictures.
pub const STANDARD: [&str; 24] = [
    "analyze",
    "ask_peer",
    BLUEPRINT,
    "calculator",
    "compare",
    "corpus.read",
    "corpus.search",
    "delegate",
    "escalate",
    "generate",
    "plan",
    "read_context",
    "request_context",
    "request_info",
    "search",
    "share_info",
    "transform",
    "validate",
    "who_can",
    "workspace.append",
    "workspace.list",
    "workspace.read",
    "workspace.write",
    "write_context",
];

/// The tools for data.
pub const FOR_DATA: [&str; 5] = ["chart", "sql", "sql.save", "workspace.edit", "workspace.search"];

/// What every task keeps of what its role may use: how to reach a person before it guesses.
pub const ALWAYS: [&str; 2] = ["escalate", "request_info"];

/// The tools that can be named in a plan: those that come with Muster, and what agents say they have beside these.
#[must_use]
pub fn known(specialists: &[Specialty]) -> Vec<String> {
    let own = specialists.iter().flat_map(|specialist| specialist.tools.iter().cloned());
    let ours = STANDARD.iter().chain(&FOR_DATA).map(|&name| name.to_owned());
    let mut known: Vec<String> = ours.chain(own).collect();
    known.sort();
    known.dedup();
    known
}

/// Whether a tool comes with Muster and is on unless somebody narrows it.
#[must_use]
pub fn is_standard(tool: &str) -> bool {
    STANDARD.iter().chain(&FOR_DATA).any(|standard| is_same(standard, tool))
}

/// Whether a name that stands in a plan means this tool: `corpus.*` means all that begin with `corpus.`, and models
/// write `corpus_search` for `corpus.search`.
#[must_use]
pub fn means(named: &str, tool: &str) -> bool {
    let (named, tool) = (plain(named), plain(tool));
    match named.strip_suffix('*') {
        Some(prefix) => tool.starts_with(prefix),
        None => named == tool,
    }
}

/// Whether two names are those of one tool, as it is called or as models write it.
#[must_use]
pub fn is_same(one: &str, other: &str) -> bool {
    plain(one) == plain(other)
}

/// Whether a tool stays with every task, whatever came of it.
#[must_use]
pub fn stays(tool: &str) -> bool {
    ALWAYS.iter().any(|always| is_same(always, tool))
}

/// What tasks of a plan may name.
#[derive(Debug, Clone, Copy)]
pub struct Nameable<'a> {
    /// The tools.
    pub tools: &'a [String],
    /// The blueprints.
    pub blueprints: &'a [BlueprintBrief],
}

/// Of the tools and blueprints that tasks name, those that are not there, each with what to do.
#[must_use]
pub fn problems(draft: &PlanDraft, known: Nameable<'_>) -> Vec<String> {
    let mut found = Vec::new();
    each(&draft.tasks, &mut |task| found.extend(all_of(task, known)));
    found
}

/// What is wrong with the tools or the blueprint of one task; nothing when all of them are there.
#[must_use]
pub fn problem(task: &TaskDraft, known: Nameable<'_>) -> Option<String> {
    all_of(task, known).next()
}

fn all_of<'a>(task: &'a TaskDraft, known: Nameable<'a>) -> impl Iterator<Item = String> + 'a {
    let tools = unknown(task, known.tools).map(move |tool| said(task, tool, known));
    tools.chain(blueprints::problem(task, known))
}

/// Mends what [`problems`] finds: the nearest tool or blueprint takes the place of one that is not there, else it is left
/// out. Says what was done, one line each.
pub fn fit(draft: &mut PlanDraft, known: Nameable<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    fit_tasks(&mut draft.tasks, known, &mut notes);
    notes
}

fn fit_tasks(tasks: &mut [TaskDraft], known: Nameable<'_>, notes: &mut Vec<String>) {
    for task in tasks {
        fit_tasks(&mut task.subtasks, known, notes);
        blueprints::fit(task, known, notes);
        let mut fitting: Vec<String> = Vec::new();
        for tool in std::mem::take(&mut task.tools) {
            let tool = if is_known(&tool, known.tools) {
                Some(tool)
            } else {
                let near = nearest(&tool, known.tools);
                let done =
                    near.as_ref().map_or_else(|| "left it out".to_owned(), |near| format!("took {near}"));
                notes.push(format!("{:?} names the tool {tool:?}, which is not there: {done}", task.name));
                near
            };
            fitting.extend(tool.filter(|tool| !fitting.contains(tool)));
        }
        task.tools = fitting;
    }
}

fn each<'a>(tasks: &'a [TaskDraft], look: &mut impl FnMut(&'a TaskDraft)) {
    for task in tasks {
        look(task);
        each(&task.subtasks, look);
    }
}

fn unknown<'a>(task: &'a TaskDraft, known: &[String]) -> impl Iterator<Item = &'a str> {
    task.tools.iter().map(String::as_str).filter(|tool| !is_known(tool, known))
}

fn is_known(named: &str, known: &[String]) -> bool {
    known.iter().any(|tool| means(named, tool))
}

fn said(task: &TaskDraft, tool: &str, known: Nameable<'_>) -> String {
    let instead = match nearest(tool, known.tools) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("there are {}", known.tools.join(", ")),
    };
    format!("task {:?} names the tool {tool:?}, which nobody has: {instead}", task.name)
}

/// The known name nearest to one that is unknown, by edit distance.
pub(super) fn nearest(named: &str, known: &[String]) -> Option<String> {
    nearest_name(named, known.iter().map(String::as_str)).map(str::to_owned)
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(tools: &[&str]) -> PlanDraft {
        let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        let part = TaskDraft { name: "part".to_owned(), tools, ..TaskDraft::default() };
        let tasks =
            vec![TaskDraft { name: "whole".to_owned(), subtasks: vec![part], ..TaskDraft::default() }];
        PlanDraft { tasks, ..PlanDraft::default() }
    }

    #[test]
    fn a_tool_that_nobody_has_is_told_with_the_nearest_one() {
        let known = known(&[]);
        let known = Nameable { tools: &known, blueprints: &[] };
        let cases = [
            (
                vec!["calculator", "corpus.search", "corpus_read", "Corpus.*"],
                None,
                vec!["calculator", "corpus.search", "corpus_read", "Corpus.*"],
            ),
            (vec!["calculater"], Some("did you mean calculator?"), vec!["calculator"]),
            (vec!["serach"], Some("did you mean search?"), vec!["search"]),
            (vec!["corpus.serach", "corpus.search"], Some("corpus.search"), vec!["corpus.search"]),
            (vec!["teleport"], Some("there are analyze"), vec![]),
            (vec!["magic.*", "search"], Some("\"magic.*\""), vec!["search"]),
            (vec![], None, vec![]),
        ];
        for (tools, said, left) in cases {
            let mut draft = draft(&tools);
            let found = problems(&draft, known);
            assert_eq!(found.is_empty(), said.is_none(), "{tools:?}: {found:?}");
            if let Some(said) = said {
                assert!(found[0].contains(said) && found[0].contains("part"), "{found:?}");
            }
            let notes = fit(&mut draft, known);
            assert_eq!(notes.len(), found.len(), "{notes:?}");
            assert_eq!(draft.tasks[0].subtasks[0].tools, left);
            assert_eq!(problems(&draft, known), Vec::<String>::new());
        }
    }

    #[test]
    fn what_a_specialist_has_can_be_named() {
        let role = "auditor".parse().unwrap();
        let tools = vec!["nmap.scan".to_owned()];
        let auditor = Specialty {
            role,
            description: String::new(),
            capabilities: Vec::new(),
            tools,
            gives: Vec::new(),
        };
        for (tools, problems_found) in [(known(&[auditor]), 0), (known(&[]), 1)] {
            let known = Nameable { tools: &tools, blueprints: &[] };
            assert_eq!(problems(&draft(&["nmap.scan"]), known).len(), problems_found);
        }
    }
}
