//! What pages are told: everything at first, then what changed of what they show.

use muster_orchestrator::decide::{AgentsByRole, waits_for_within};
use muster_shared::ids::{RunId, TaskId};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::super::watcher::{Line, MOST_WAITING, Told, Watcher, tapped};
use super::dirty::DirtyRun;
use super::shown::Shown;
use super::waiting::waiting;
use super::{FLEET_EVERY, Following, Way};
use crate::app::now;
use crate::commands::runs;
use crate::live::feed::Wishes;
use crate::live::model::{LiveRun, Model};
use crate::render;
use crate::render::trace::entry_json;

/// Most entries that are told at once; a page that lacks more asks for them.
const MOST_ENTRIES: usize = 500;

impl Following {
    /// All that a page is told first.
    pub(super) fn everything(&self, watcher: &Watcher) -> Vec<Told> {
        let mut told = vec![self.link()];
        told.push(Told::new("fleet", &self.fleet()));
        told.push(Told::new("questions", &waiting(&self.model)));
        if let Some(run) = watcher.run.and_then(|run| self.model.run(run)).filter(|run| run.state().is_some())
        {
            told.extend(self.whole(run));
        }
        told
    }

    /// Tells the pages what changed.
    pub(super) fn flush(&mut self, wishes: &Wishes) {
        self.due = None;
        let mut dirty = std::mem::take(&mut self.dirty);
        let is_early = self.fleet_told.is_some_and(|told| told.elapsed() < FLEET_EVERY);
        if dirty.fleet && is_early {
            // Its turn comes.
            (dirty.fleet, self.dirty.fleet) = (false, true);
            self.due = self.fleet_told.map(|told| told + FLEET_EVERY);
        }
        if self.watchers.is_empty() {
            return;
        }
        let mut told = Vec::new();
        if dirty.link {
            told.push(self.link());
        }
        if dirty.fleet {
            self.fleet_told = Some(Instant::now());
            told.push(Told::new("fleet", &self.fleet()));
        }
        if dirty.questions {
            told.push(Told::new("questions", &waiting(&self.model)));
        }
        let states = dirty.briefs.iter().filter_map(|run| self.model.run(*run)?.state());
        told.extend(states.map(|state| Told::new("run-brief", &runs::brief(state))));
        for one in &told {
            self.tell_all(one);
        }
        for (run, changed) in dirty.runs {
            self.tell_run(run, &changed);
        }
        for (run, task) in dirty.doing {
            self.tell_doing(run, &task);
        }
        self.tell_traffic(&dirty.lines, dirty.lines_left_out);
        self.let_go(Some(wishes));
    }

    fn tell_run(&mut self, run: RunId, changed: &DirtyRun) {
        if !self.watchers.iter().any(|watcher| watcher.run == Some(run)) {
            return;
        }
        let Some(live) = self.model.run(run) else { return };
        let told = if changed.entries.len() > MOST_ENTRIES {
            self.whole(live)
        } else {
            let agents = self.agents();
            let news = match live.state() {
                Some(state) => self.shown.entry(run).or_default().news(state),
                None => Map::new(),
            };
            vec![Told::new("run", &in_json(live, changed, news, &agents, &self.model))]
        };
        for watcher in self.watchers.iter().filter(|watcher| watcher.run == Some(run)) {
            for told in &told {
                watcher.tell(told);
            }
        }
    }

    fn tell_doing(&self, run: RunId, task: &TaskId) {
        let Some(live) = self.model.run(run) else { return };
        let text = live.doing().and_then(|doing| doing.get(task));
        let mut told = json!({ "run": run, "task": task, "text": text });
        if let Some(spoken) = live.spoken(task) {
            told["step"] = json!(spoken.step);
            told["thought"] = json!(spoken.thought);
            told["answer"] = json!(spoken.answer);
            told["status"] = json!(spoken.status);
        }
        let told = Told::new("doing", &told);
        let looking = self.watchers.iter().filter(|watcher| watcher.run == Some(run));
        for watcher in looking {
            watcher.tell(&told);
        }
    }

    fn tell_traffic(&self, lines: &[Line], left_out: u64) {
        if lines.is_empty() && left_out == 0 {
            return;
        }
        let rate = self.model.traffic().rate(now());
        let dropped = self.model.traffic().dropped() + left_out;
        for (watcher, filter) in
            self.watchers.iter().filter_map(|watcher| Some((watcher, watcher.tap.as_ref()?)))
        {
            let shown: Vec<&Value> =
                lines.iter().filter(|line| filter.shows(line)).map(|line| &line.value).collect();
            watcher.tell(&Told::new("tap", &tapped(&shown, rate, dropped)));
        }
    }

    pub(super) fn tell_all(&self, told: &Told) {
        for watcher in &self.watchers {
            watcher.tell(told);
        }
    }

    fn link(&self) -> Told {
        match &*self.way.borrow() {
            Way::Open(_) => Told::new("back", &json!({})),
            Way::Closed(why) => Told::new("away", &json!({ "reason": why })),
        }
    }

    pub(super) fn fleet(&self) -> Value {
        let fleet = self.model.fleet();
        let events: Vec<Value> =
            fleet.happened().map(|one| json!({ "at": one.at, "text": one.text })).collect();
        json!({ "processes": fleet.shown().in_json(), "events": events })
    }

    /// Who is there by role.
    fn agents(&self) -> AgentsByRole {
        self.model.fleet().profiles().collect()
    }

    /// A run in full, but for its entries, which are asked for.
    fn whole(&self, run: &LiveRun) -> Vec<Told> {
        let Some(state) = run.state() else { return Vec::new() };
        let changed = DirtyRun { tasks: state.tasks.keys().cloned().collect(), ..DirtyRun::default() };
        let mut told = in_json(run, &changed, Shown::default().news(state), &self.agents(), &self.model);
        told["full"] = json!(true);
        let doing = run.doing().into_iter().flatten();
        let doing = doing
            .map(|(task, text)| Told::new("doing", &json!({ "run": run.id(), "task": task, "text": text })));
        std::iter::once(Told::new("run", &told)).chain(doing).take(MOST_WAITING / 2).collect()
    }
}

fn in_json(
    run: &LiveRun,
    changed: &DirtyRun,
    news: Map<String, Value>,
    agents: &AgentsByRole,
    model: &Model,
) -> Value {
    let entries: Vec<Value> = changed.entries.iter().map(|entry| entry_json(entry)).collect();
    let mut told = json!({
        "run": run.id(), "seq": run.last(), "count": run.folded(), "removed": changed.removed, "entries": entries,
    });
    if let Some(state) = run.state() {
        let of = |task: &TaskId| Some((task.to_string(), render::json::task(state.tasks.get(task)?)));
        let tasks: Map<String, Value> = changed.tasks.iter().filter_map(of).collect();
        told["head"] = runs::brief(state);
        told["tasks"] = Value::Object(tasks);
        // What the run waits for, whether that is a person or an agent.
        told["questions"] = json!(state.questions);
        let child = |run: RunId| model.run(run)?.state();
        told["waits_for"] = json!(waits_for_within(state, agents, &child));
    }
    if let Value::Object(fields) = &mut told {
        fields.extend(news);
    }
    if let Some(why) = run.damaged() {
        told["damaged"] = json!(why);
    }
    told
}
