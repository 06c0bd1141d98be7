//! `muster explain` as text.

use muster_shared::explain::{
    ClaimStatus, ConflictSummary, Evidence, Explanation, ExplanationItem, TaskFailures,
};
use muster_shared::ids::Seq;
use muster_shared::run::Phase;

use super::figures;
use super::paint::Paint;

/// Columns of one line.
const MAX_LINE: usize = 400;
/// Items of one section, failures of one task, and sources of one statement.
const MAX_ITEMS: usize = 8;
const MAX_ITEMS_FULL: usize = 40;
const MAX_SOURCES: usize = 4;
/// Log entries after one statement.
const MAX_ENTRIES: usize = 4;

/// Explanation as text, wrapped at `width` columns. `full` adds log entries, alternatives, turning points, requests, and cost tables.
pub(crate) fn text(explained: &Explanation, full: bool, width: Option<usize>, paint: Paint) -> String {
    let page = Page { explained, full };
    let what = match &explained.task {
        Some(task) => format!("Task {task} of run {}", explained.run.short()),
        None => format!("Run {}", explained.run.short()),
    };
    let mut parts = vec![paint.bold(&format!("{what}: {}", figures::one_line(&explained.goal, 200)))];
    let sections = page.sections().into_iter().filter(|(_, lines)| !lines.is_empty());
    parts.extend(sections.map(|(title, lines)| format!("{}\n  {}", paint.bold(title), lines.join("\n  "))));
    figures::fitted(parts.join("\n\n"), width)
}

type Section = (&'static str, Vec<String>);

struct Page<'a> {
    explained: &'a Explanation,
    full: bool,
}

impl Page<'_> {
    fn sections(&self) -> Vec<Section> {
        let Explanation { result, evidence, failures, .. } = self.explained;
        let mut all = vec![
            ("Result", self.result()),
            ("Evidence", self.list(evidence, |one| self.evidence(one))),
            ("Conflicts", self.list(&result.conflicts, |one| self.conflict(one))),
            ("Unanswered", self.list(&result.unanswered, |item| self.item(item))),
            ("Assumptions", self.list(&result.assumed, |item| self.item(item))),
            ("Failures", self.list(failures, |one| self.failures(one))),
        ];
        if self.full {
            all.extend([
                ("Alternatives considered", self.list(&self.explained.considered, |item| self.item(item))),
                ("Turning points", self.list(&self.explained.turning_points, |item| self.timed(item))),
                ("Goals and commands", self.list(&self.explained.requests, |item| self.timed(item))),
                ("People", self.list(&self.explained.people, |item| self.timed(item))),
                ("Verdicts of guards", self.list(&self.explained.guards, |item| self.timed(item))),
            ]);
        }
        all.push(("Time and cost", self.totals()));
        if self.full {
            all.extend(self.costs());
        }
        all
    }

    fn costs(&self) -> [Section; 3] {
        let cost = &self.explained.cost;
        let by_task = self.list(&cost.by_task, |row| {
            let task = row.task.as_ref().map_or_else(|| "unknown task".to_owned(), ToString::to_string);
            let child = row.run.map(|run| format!(" (child run {})", run.short())).unwrap_or_default();
            let (model, tools) = (figures::millis(row.model_ms), figures::millis(row.tool_ms));
            vec![format!("{task}{child}: {}; model {model}, tools {tools}", figures::usage(&row.usage))]
        });
        let models = self.list(&cost.by_model, |row| {
            let (calls, time) = (figures::plural(row.calls, "call"), figures::millis(row.millis));
            vec![format!("{}: {calls}, {time}; {}", line(&row.model), figures::usage(&row.usage))]
        });
        let tools = self.list(&cost.tools.iter().collect::<Vec<_>>(), |(tool, used)| {
            let (tool, calls) = (line(tool), figures::plural(used.calls, "call"));
            let mean = used.mean_ms().map(|mean| format!("; mean {}", figures::millis(mean)));
            let (failed, timed_out, refused) = (used.failures, used.timeouts, used.refused);
            let failed = format!("{failed} failed, {timed_out} timed out, {refused} refused");
            vec![format!("{tool}: {calls}, {failed}{}", mean.unwrap_or_default())]
        });
        [("Cost by task", by_task), ("Models", models), ("Tools", tools)]
    }

    fn list<T>(&self, items: &[T], lines: impl Fn(&T) -> Vec<String>) -> Vec<String> {
        let max = if self.full { MAX_ITEMS_FULL } else { MAX_ITEMS };
        let mut all: Vec<String> = items.iter().take(max).flat_map(lines).collect();
        all.extend(more(items.len(), max));
        all
    }

    fn result(&self) -> Vec<String> {
        let result = &self.explained.result;
        let mut lines = vec![line(&result.how)];
        lines.extend(result.tasks.map(|tasks| tasks.in_words()));
        if let (Some(title), Some(by)) = (&result.report, &result.report_by) {
            let title = if title.is_empty() { "no title" } else { title };
            lines.push(line(&format!("report: {title}; by {by}")));
        }
        if self.full {
            lines.extend(result.because.iter().flat_map(|item| self.item(item)));
        }
        lines
    }

    fn evidence(&self, one: &Evidence) -> Vec<String> {
        let mut sources: Vec<String> =
            one.citations.iter().take(MAX_SOURCES).map(|at| format!("{}:{}", at.path, at.line)).collect();
        sources.extend(
            one.citations
                .len()
                .checked_sub(MAX_SOURCES)
                .filter(|more| *more > 0)
                .map(|more| format!("{more} more")),
        );
        let mut about = vec![if sources.is_empty() {
            "no citations".to_owned()
        } else {
            figures::one_line(&sources.join(", "), 200)
        }];
        about.extend((one.confidence > 0).then(|| format!("confidence {}%", one.confidence)));
        about.extend(one.looked_up.then(|| "quotes found in the sources".to_owned()));
        about.extend(one.verified.then(|| "verified by another task".to_owned()));
        about.extend(match one.status {
            ClaimStatus::Uncontested => None,
            ClaimStatus::Upheld(number) => Some(format!("confirmed in conflict {number}")),
            ClaimStatus::Overruled(number) => Some(format!("rejected in conflict {number}")),
            ClaimStatus::Contested(number) => Some(format!("conflict {number} is not settled")),
            ClaimStatus::BothHold(number) => Some(format!("conflict {number}: both claims are true")),
        });
        if self.full {
            let step = one.found_in.map(|found| format!(", step {}", found.step)).unwrap_or_default();
            let by = one.agent.as_ref().map(|agent| format!(", {agent}")).unwrap_or_default();
            about.push(format!("task {}{step}{by}", one.task));
        }
        let mut entries: Vec<Seq> =
            one.found_in.map(|found| found.entry).into_iter().chain(one.entry).collect();
        entries.dedup();
        vec![line(&one.text), format!("  {}{}", about.join("; "), self.entries(&entries))]
    }

    fn conflict(&self, one: &ConflictSummary) -> Vec<String> {
        let head = format!("{}. {}{}", one.number, line(&one.subject), self.entries(&one.entries));
        let sides = one.sides.iter().take(MAX_ITEMS_FULL).map(|side| format!("  {}", line(side)));
        std::iter::once(head).chain(sides).chain([format!("  → {}", line(&one.end))]).collect()
    }

    fn failures(&self, one: &TaskFailures) -> Vec<String> {
        let what = one.task.as_ref().map(|task| line(format!("{task} {}", one.name).trim_end()));
        let end = one.end.map(|end| format!(": {} in the end", end.in_words())).unwrap_or_default();
        let max = if self.full { MAX_ITEMS_FULL } else { MAX_ITEMS };
        let mut lines = vec![format!("{}{end}", what.as_deref().unwrap_or("run"))];
        for failure in one.items.iter().take(max) {
            let mark = if failure.is_answer { "→ " } else { "" };
            let item = self.item(&failure.item).into_iter().enumerate();
            lines.extend(item.map(|(n, text)| format!("  {}{text}", if n == 0 { mark } else { "" })));
        }
        lines.extend(more(one.items.len(), max).map(|text| format!("  {text}")));
        lines
    }

    fn item(&self, item: &ExplanationItem) -> Vec<String> {
        let mut texts = item.text.lines();
        let first = format!("{}{}", line(texts.next().unwrap_or_default()), self.entries(&item.entries));
        let details: Vec<&str> = texts.collect();
        let mut lines = vec![first];
        lines.extend(details.iter().take(MAX_ITEMS_FULL).map(|text| format!("  {}", line(text))));
        lines.extend(more(details.len(), MAX_ITEMS_FULL).map(|text| format!("  {text}")));
        lines
    }

    /// Item with the time since the first entry.
    fn timed(&self, item: &ExplanationItem) -> Vec<String> {
        let mut lines = self.item(item);
        if let (Some(at), Some(first)) = (item.at, lines.first_mut()) {
            *first = format!("+{} {first}", figures::span(at.since(self.explained.began_at)));
        }
        lines
    }

    fn entries(&self, entries: &[Seq]) -> String {
        if !self.full {
            return String::new();
        }
        let shown: Vec<String> = entries.iter().take(MAX_ENTRIES).map(ToString::to_string).collect();
        let further = if entries.len() > shown.len() { ", …" } else { "" };
        match shown.as_slice() {
            [] => String::new(),
            [one] => format!(" [entry {one}]"),
            several => format!(" [entries {}{further}]", several.join(", ")),
        }
    }

    fn totals(&self) -> Vec<String> {
        let Explanation { cost, phases, total_ms, .. } = self.explained;
        let phases = phases.iter().take(MAX_ITEMS).map(|one| {
            let paused = if one.paused { ", paused" } else { "" };
            let phase = match one.phase {
                Phase::Planning => "planning",
                Phase::Executing => "execution",
                Phase::Writing => "writing",
                Phase::Ended => "after the end",
            };
            format!("{phase}{paused} {}", figures::millis(one.millis))
        });
        let mut lines = vec![format!("{} in total: {}", figures::millis(*total_ms), figures::list(phases))];
        lines.push(figures::usage(&cost.total));
        lines.extend(
            cost.budget.map(|budget| format!("of the budget: {}", figures::spent(&budget, &cost.total))),
        );
        lines
    }
}

fn more(all: usize, max: usize) -> Option<String> {
    let further = all.checked_sub(max).filter(|further| *further > 0)?;
    Some(format!("and {further} more: --json shows all"))
}

fn line(text: &str) -> String {
    figures::one_line(text, MAX_LINE)
}
