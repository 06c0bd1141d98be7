//! What is measured: runs folded out of the record, who is on the bus, and what was counted lately. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use muster_orchestrator::decide::{AgentsByRole, WaitsFor, waits_for};
use muster_shared::flow::{Budget, Usage};
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::run::{Entry, RunState, apply};
use muster_shared::time::Millis;
use muster_shared::wire::Profile;

use super::evaluate::{MOST_DETAIL, Reading, Readings};
use super::rule::{Condition, Rule, millis};
use super::state::Restarts;
use super::window::Window;
use crate::render::figures;

/// Most runs that are followed at the same time.
const MOST_RUNS: usize = 5_000;
/// Of how many runs that ended it is known up to where they were read.
const MOST_ENDED: usize = 500;
/// Most processes whose restarts are known, and most restarts of one of them.
pub(crate) const MOST_PROCESSES: usize = 300;
pub(crate) const MOST_TIMES: usize = 20;
/// Most columns of the name of a process with its host.
const MOST_KEY: usize = 60;
/// How long a process that is not seen any more is known.
const KNOWN: Duration = Duration::from_secs(24 * 3600);
/// What a budget of the whole fleet is called among series, and what dead letters and the record are.
const FLEET: &str = "fleet";

/// A run that is followed.
#[derive(Debug)]
struct Followed {
    /// How it stands; nothing where its record cannot be followed.
    run: Option<RunState>,
    /// The last entry.
    seq: Seq,
    /// When that was written.
    at: Millis,
}

/// What is read from the bus for a look, apart from what is followed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Measured {
    /// How many dead letters there are, and why the newest is one.
    pub(crate) dead: Option<(u64, String)>,
    /// How full the record is, from 0 to 1.
    pub(crate) fullness: Option<f64>,
    /// The budget of the whole fleet, and what of it is used.
    pub(crate) fleet: Option<(Budget, Usage)>,
}

/// All that rules are about, as far as it is followed.
#[derive(Debug)]
pub(crate) struct Sight {
    runs: BTreeMap<RunId, Followed>,
    ended: VecDeque<(RunId, Seq)>,
    agents: AgentsByRole,
    window: Window,
    restarts: BTreeMap<String, Restarts>,
}

/// A run is to be read from its beginning: what came cannot be folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToBeRead(pub(crate) RunId);

impl Sight {
    /// For rules, and with what is known of processes.
    pub(crate) fn new(rules: &[Rule], restarts: BTreeMap<String, Restarts>) -> Self {
        let longest = rules.iter().map(|rule| rule.window).max().unwrap_or_default();
        Self {
            runs: BTreeMap::new(),
            ended: VecDeque::new(),
            agents: AgentsByRole::default(),
            window: Window::new(longest),
            restarts,
        }
    }

    /// What is known of processes.
    pub(crate) const fn restarts(&self) -> &BTreeMap<String, Restarts> {
        &self.restarts
    }

    /// Takes an entry of the record in.
    ///
    /// # Errors
    /// When its run has to be read from the beginning first.
    pub(crate) fn take(&mut self, entry: &Entry, now: Millis) -> Result<(), ToBeRead> {
        let seen = self.runs.get(&entry.run).map(|followed| followed.seq);
        let ended = || self.ended.iter().find(|(run, _)| *run == entry.run).map(|(_, seq)| *seq);
        if seen.or_else(ended).is_some_and(|seen| entry.seq <= seen) {
            return Ok(());
        }
        self.window.count(entry, now);
        let Some(followed) = self.runs.get_mut(&entry.run) else { return self.begin(entry) };
        (followed.seq, followed.at) = (entry.seq, entry.at);
        let Some(run) = followed.run.take() else { return Ok(()) };
        let mut run = Some(run);
        if apply(&mut run, entry).is_err() {
            self.runs.remove(&entry.run);
            return Err(ToBeRead(entry.run));
        }
        followed.run = run;
        self.settle(entry.run);
        Ok(())
    }

    fn begin(&mut self, entry: &Entry) -> Result<(), ToBeRead> {
        if let Some((_, seq)) = self.ended.iter_mut().find(|(run, _)| *run == entry.run) {
            *seq = entry.seq;
            return Ok(());
        }
        if self.runs.len() >= MOST_RUNS {
            return Ok(());
        }
        let mut run = None;
        match apply(&mut run, entry) {
            Ok(()) if run.is_some() => {
                self.runs.insert(entry.run, Followed { run, seq: entry.seq, at: entry.at });
                Ok(())
            }
            // An agent writes about a run of which nothing is known here.
            Ok(()) => Ok(()),
            Err(_) => Err(ToBeRead(entry.run)),
        }
    }

    /// Takes the whole record of a run in, as far as it was not seen. One that cannot be followed is left alone from then on.
    pub(crate) fn read(&mut self, id: RunId, entries: &[Entry], now: Millis) {
        let seen = self.runs.remove(&id).map_or(Seq(0), |followed| followed.seq);
        for entry in entries.iter().filter(|entry| entry.seq > seen) {
            self.window.count(entry, now);
        }
        let Some(last) = entries.last() else { return };
        let mut run = None;
        let is_whole = entries.iter().all(|entry| apply(&mut run, entry).is_ok());
        let followed = Followed { run: run.filter(|_| is_whole), seq: last.seq, at: last.at };
        self.runs.insert(id, followed);
        self.settle(id);
    }

    /// An entry of a run cannot be read: it is left alone from then on.
    pub(crate) fn cannot_follow(&mut self, id: RunId, seq: Seq, now: Millis) {
        if self.runs.contains_key(&id) || self.runs.len() < MOST_RUNS {
            self.runs.insert(id, Followed { run: None, seq, at: now });
        }
    }

    /// A run that has ended is followed no more.
    fn settle(&mut self, id: RunId) {
        let has_ended = |followed: &Followed| followed.run.as_ref().is_some_and(|run| run.status.is_ended());
        if self.runs.get(&id).is_some_and(has_ended)
            && let Some(followed) = self.runs.remove(&id)
        {
            self.ended.push_back((id, followed.seq));
            if self.ended.len() > MOST_ENDED {
                self.ended.pop_front();
            }
        }
    }

    /// Somebody is there, or says something else of itself.
    pub(crate) fn joined(&mut self, profile: &Profile, now: Millis) {
        self.agents.joined(profile);
        // One without a name of its own is another one after each start.
        if profile.name.is_empty() || profile.name == profile.agent.as_str() {
            return;
        }
        let key = figures::one_line(&named(profile), MOST_KEY);
        if !self.restarts.contains_key(&key) && self.restarts.len() >= MOST_PROCESSES {
            return;
        }
        let known = self.restarts.entry(key).or_default();
        known.seen = now;
        if known.agent == profile.agent.as_str() || profile.started_at < known.started_at {
            return;
        }
        if !known.agent.is_empty() {
            known.times.push(now);
            let over = known.times.len().saturating_sub(MOST_TIMES);
            known.times.drain(..over);
        }
        profile.agent.as_str().clone_into(&mut known.agent);
        known.started_at = profile.started_at;
    }

    /// Somebody has left.
    pub(crate) fn left(&mut self, agent: &AgentId) {
        self.agents.left(agent);
    }

    /// Forgets what no rule looks at any more.
    pub(crate) fn forget(&mut self, now: Millis) {
        self.window.forget(now);
        let stays = |known: &Restarts| now.since(known.seen) < KNOWN || self.agents.is_there(&known.agent);
        self.restarts.retain(|_, known| stays(known));
    }

    /// What rules measure.
    pub(crate) fn readings(&self, rules: &[Rule], measured: &Measured, now: Millis) -> Readings {
        let measure = |rule: &Rule| Some((rule.name.clone(), self.measure(rule, measured, now)?));
        rules.iter().filter_map(measure).collect()
    }

    fn measure(&self, rule: &Rule, measured: &Measured, now: Millis) -> Option<Vec<Reading>> {
        Some(match rule.when {
            Condition::ToolFailures => self.tool_failures(rule, now),
            Condition::StepTime => self.step_time(rule, now),
            Condition::Questions => self.following().filter_map(|(run, _)| question(run, now)).collect(),
            Condition::Budget => {
                let fleet = measured.fleet.as_ref().and_then(|(budget, used)| fleet_budget(budget, used));
                self.following().filter_map(|(run, _)| budget(run)).chain(fleet).collect()
            }
            Condition::Restarts => self.restarted(rule, now),
            Condition::DeadLetters => {
                let (count, newest) = measured.dead.as_ref()?;
                #[expect(clippy::cast_precision_loss, reason = "a count that is compared with a threshold")]
                let count = *count as f64;
                vec![reading(FLEET, count, newest)]
            }
            Condition::Stalled => {
                self.following().filter_map(|(run, at)| stalled(run, at, &self.agents, now)).collect()
            }
            Condition::MissingRole => self.missing(),
            Condition::RecordFull => vec![reading(FLEET, measured.fullness? * 100.0, "")],
        })
    }

    fn following(&self) -> impl Iterator<Item = (&RunState, Millis)> {
        self.runs.values().filter_map(|followed| Some((followed.run.as_ref()?, followed.at)))
    }

    fn tool_failures(&self, rule: &Rule, now: Millis) -> Vec<Reading> {
        let tools = self.window.tools(rule.window, now);
        let enough =
            tools.into_iter().filter(|(_, calls)| calls.made > 0 && calls.made >= u64::from(rule.least));
        let share = |(tool, calls): (&str, super::window::Calls)| {
            #[expect(clippy::cast_precision_loss, reason = "a share")]
            let share = 100.0 * calls.failed as f64 / calls.made as f64;
            reading(tool, share, &format!("{} of {} calls", calls.failed, calls.made))
        };
        enough.map(share).collect()
    }

    fn step_time(&self, rule: &Rule, now: Millis) -> Vec<Reading> {
        let roles = self.window.roles(rule.window, now);
        let enough =
            roles.into_iter().filter(|(_, steps)| steps.count > 0 && steps.count >= u64::from(rule.least));
        let mean = |(role, steps): (&str, super::window::Steps)| {
            #[expect(clippy::cast_precision_loss, reason = "a mean of milliseconds")]
            let mean = steps.millis as f64 / steps.count as f64;
            reading(role, mean, &format!("{} steps", steps.count))
        };
        enough.map(mean).collect()
    }

    fn restarted(&self, rule: &Rule, now: Millis) -> Vec<Reading> {
        let count = |(process, known): (&String, &Restarts)| {
            let lately = known.times.iter().filter(|at| now.since(**at) <= rule.window).count();
            let lately = u32::try_from(lately).unwrap_or(u32::MAX);
            (lately > 0).then(|| reading(process, f64::from(lately), ""))
        };
        self.restarts.iter().filter_map(count).collect()
    }

    /// Roles that nobody has, with how many runs wait for each.
    fn missing(&self) -> Vec<Reading> {
        let mut lacking: BTreeMap<String, Vec<RunId>> = BTreeMap::new();
        for (run, _) in self.following() {
            for waits in waits_for(run, &self.agents) {
                let role = match waits {
                    WaitsFor::Orchestrator => "orchestrator".to_owned(),
                    WaitsFor::Role { role, .. } => role.to_string(),
                    WaitsFor::Resume { .. }
                    | WaitsFor::Answer { .. }
                    | WaitsFor::Place { .. }
                    | WaitsFor::Run { .. } => continue,
                };
                lacking.entry(role).or_default().push(run.id);
            }
        }
        let of_role = |(role, runs): (String, Vec<RunId>)| {
            let count = f64::from(u32::try_from(runs.len()).unwrap_or(u32::MAX));
            let first: Vec<String> = runs.iter().take(3).map(RunId::short).collect();
            Reading {
                run: runs.first().copied(),
                ..reading(&role, count, &format!("runs {}", first.join(", ")))
            }
        };
        lacking.into_iter().map(of_role).collect()
    }
}

/// A process as its restarts are told. A name that begins with no role was given by somebody, perhaps to processes of several
/// roles: these do not take it from each other.
fn named(Profile { name, host, role, .. }: &Profile) -> String {
    match name.starts_with(role.as_str()) {
        true => format!("{name}@{host}"),
        false => format!("{role} {name}@{host}"),
    }
}

fn reading(series: &str, value: f64, detail: &str) -> Reading {
    let detail = figures::one_line(detail, MOST_DETAIL);
    Reading { series: figures::one_line(series, 80), value, run: None, detail }
}

fn of_run(run: &RunState, value: f64, detail: &str) -> Reading {
    Reading { run: Some(run.id), ..reading(&run.id.short(), value, detail) }
}

/// How long the oldest open question has waited.
fn question(run: &RunState, now: Millis) -> Option<Reading> {
    let (number, oldest) = run.open_questions().min_by_key(|(_, asked)| asked.asked_at)?;
    let text = format!("question {number}: {}", oldest.question.text);
    Some(of_run(run, millis(now.since(oldest.asked_at)), &text))
}

/// What share of its budget a run has used, in the part of which it used most.
fn budget(run: &RunState) -> Option<Reading> {
    let used = run.used();
    let share = share(&run.limits.budget, &used)?;
    Some(of_run(run, share, &format!("{}: {}", figures::spent(&run.limits.budget, &used), run.goal.text)))
}

fn fleet_budget(budget: &Budget, used: &Usage) -> Option<Reading> {
    Some(reading(FLEET, share(budget, used)?, &figures::spent(budget, used)))
}

fn share(budget: &Budget, used: &Usage) -> Option<f64> {
    let used = [used.calls(), used.tokens(), used.cost_micros, used.steps];
    let parts = budget.parts().into_iter().zip(used).filter_map(|(most, used)| Some((most?, used)));
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let shares = parts.map(|(most, used)| 100.0 * used as f64 / most.max(1) as f64);
    shares.reduce(f64::max)
}

/// For how long nothing was written about a run that waits for nobody.
fn stalled(run: &RunState, at: Millis, agents: &AgentsByRole, now: Millis) -> Option<Reading> {
    let waits = waits_for(run, agents).into_iter().any(|waits| match waits {
        // A person, or another run, which is followed by itself.
        WaitsFor::Resume { .. } | WaitsFor::Answer { .. } | WaitsFor::Run { .. } => true,
        WaitsFor::Orchestrator | WaitsFor::Role { .. } | WaitsFor::Place { .. } => false,
    });
    (!waits).then(|| of_run(run, millis(now.since(at)), &run.goal.text))
}

#[cfg(test)]
pub(crate) mod tests;
