//! The judgement: what the record and the model's log say.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use muster_bus::RecordFilter;
use muster_shared::flow::{ModelCall, Step};
use muster_shared::ids::{Generation, RunId, Seq, TaskId};
use muster_shared::run::{AgentEvent, AgentKey, Entry, RecordEvent, RunEvent, RunState, apply, invariants};
use serde::Serialize;

use super::recovery::{Spread, Spreads, Times};
use super::shape::Shape;
use super::torment::{Faults, Torment};
use super::traffic::{Seen, connect, hash};
use super::{chain, model, recovery};
use crate::model_server::LogEntry;

/// How often the record is read until it is given up.
const READS: u32 = 10;
/// Pause before the record is read once more.
const PAUSE: Duration = Duration::from_secs(1);
/// For so long after it was woken a process may send what it was about to send when it was frozen: it looked whether its
/// task was still its own, and nobody can look and send in one.
const WAKING_MILLIS: u64 = 100;
/// Most findings of a kind that are kept in words.
const KEPT: usize = 20;

/// What came of an ordeal.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ChaosResult {
    /// Runs that were submitted.
    pub runs: usize,
    /// Runs that ended with a report, exactly once.
    pub reported: usize,
    /// What was done to the fleet.
    pub faults: Faults,
    /// Entries that were seen in the record and are not there any more, or say something else.
    pub lost: usize,
    /// Outcomes beyond the first of a generation of a task, and ends of a run beyond the first.
    pub doubled: usize,
    /// Model calls whose answer was in the record when they were made again.
    pub repeated_calls: usize,
    /// Such calls that a process was about to send when it was frozen, and sent when it was woken.
    pub calls_on_waking: usize,
    /// Model calls that were made.
    pub calls: usize,
    /// Model calls whose answer is in the record.
    pub calls_in_record: usize,
    /// Model calls that a run without any fault takes.
    pub calls_needed: usize,
    /// Entries of the record.
    pub entries: usize,
    /// How long it took to go on after a kill.
    pub recovery: Spreads,
    /// What came of the fleets of each shape.
    pub shapes: Vec<OfShape>,
    /// Folders of fleets that stay for a look at them.
    pub kept: Vec<PathBuf>,
    /// Runs that took more than ten times the median of their shape, in words.
    pub slow: Vec<String>,
    /// The longest time in which nothing was written to the record while runs went on, in milliseconds, and after which
    /// entry it began.
    pub longest_pause: (u64, Seq),
    #[serde(skip)]
    times: Times,
    #[serde(skip)]
    lengths: Vec<(RunId, u64)>,
    /// What is wrong, in words.
    pub wrong: Vec<String>,
}

/// What came of fleets of one shape.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OfShape {
    /// The shape, in words.
    pub shape: String,
    /// How long runs took from their first entry to their end.
    pub took: Spread,
    /// How many took more than ten times the median.
    pub slow: usize,
}

/// A run that takes so many times the median of its shape is slow.
const SLOW: u64 = 10;

impl ChaosResult {
    /// This fleet had a shape, and this was done to it.
    pub(super) fn of_shape(self, shape: Shape, faults: Faults) -> Self {
        let took = Spread::of(self.lengths.iter().map(|(_, took)| *took).collect());
        let slow = self.lengths.iter().filter(|(_, length)| *length > took.p50_ms.saturating_mul(SLOW));
        let slow: Vec<String> = slow
            .map(|(run, length)| {
                format!("run {run} took {length} ms, the median is {} ms: {}", took.p50_ms, shape.name())
            })
            .collect();
        let of_shape = OfShape { shape: shape.name(), took, slow: slow.len() };
        Self { faults, shapes: vec![of_shape], slow, ..self }
    }

    /// This and what came of another fleet.
    pub(super) fn and(self, other: Self) -> Self {
        let times = self.times.and(other.times);
        let mut wrong: Vec<String> = self.wrong.into_iter().chain(other.wrong).collect();
        wrong.truncate(KEPT);
        Self {
            runs: self.runs + other.runs,
            reported: self.reported + other.reported,
            faults: self.faults.and(other.faults),
            lost: self.lost + other.lost,
            doubled: self.doubled + other.doubled,
            repeated_calls: self.repeated_calls + other.repeated_calls,
            calls_on_waking: self.calls_on_waking + other.calls_on_waking,
            calls: self.calls + other.calls,
            calls_in_record: self.calls_in_record + other.calls_in_record,
            calls_needed: self.calls_needed + other.calls_needed,
            entries: self.entries + other.entries,
            recovery: times.spreads(),
            shapes: self.shapes.into_iter().chain(other.shapes).collect(),
            kept: self.kept.into_iter().chain(other.kept).collect(),
            slow: self.slow.into_iter().chain(other.slow).collect(),
            times,
            longest_pause: self.longest_pause.max(other.longest_pause),
            lengths: self.lengths.into_iter().chain(other.lengths).collect(),
            wrong,
        }
    }

    /// Whether nothing was lost, doubled or repeated, and every run has its report.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.wrong.is_empty()
            && self.reported == self.runs
            && (self.lost, self.doubled, self.repeated_calls) == (0, 0, 0)
            && self.calls_on_waking <= self.faults.frozen
    }

    pub(super) fn of(
        url: &str,
        seen: &Seen,
        torment: &Torment,
        log: &[LogEntry],
        begun: SystemTime,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entries = read_log(url)?;
        let mut verdict = Self::judge(&entries, seen, torment, log, begun);
        let misfits =
            runtime.block_on(async { chain::misfits(&connect(url).await?, seen.runs.keys()).await })?;
        misfits.into_iter().for_each(|misfit| verdict.say(misfit));
        Ok(verdict)
    }

    fn judge(entries: &[Entry], seen: &Seen, torment: &Torment, log: &[LogEntry], begun: SystemTime) -> Self {
        let mut verdict = Self { entries: entries.len(), calls: log.len(), ..Self::default() };
        verdict.runs = seen.runs.len() + seen.unsent.len();
        verdict.calls_needed = verdict.runs * model::CALLS;
        verdict
            .wrong
            .extend(seen.unsent.iter().take(KEPT).map(|why| format!("a goal could not be sent: {why}")));
        verdict.look_for_lost(entries, seen);
        let mut by_run: BTreeMap<RunId, Vec<&Entry>> = BTreeMap::new();
        for entry in entries {
            by_run.entry(entry.run).or_default().push(entry);
        }
        for run in seen.runs.keys() {
            verdict.judge_run(*run, by_run.get(run).map(Vec::as_slice).unwrap_or_default());
        }
        verdict.look_for_repetitions(entries, log, begun, torment.wakings());
        verdict.longest_pause = longest_pause(entries);
        verdict.times = recovery::measure(&by_run, entries, torment.victims());
        verdict.recovery = verdict.times.spreads();
        verdict
    }

    fn say(&mut self, what: String) {
        if self.wrong.len() < KEPT {
            self.wrong.push(what);
        }
    }

    fn look_for_lost(&mut self, entries: &[Entry], seen: &Seen) {
        let there: HashMap<Seq, u64> = entries.iter().map(|entry| (entry.seq, hash(entry))).collect();
        for (seq, said) in &seen.entries {
            if there.get(seq) != Some(said) {
                self.lost += 1;
                self.say(format!("entry {seq} was seen and is gone or changed"));
            }
        }
    }

    fn judge_run(&mut self, run: RunId, entries: &[&Entry]) {
        let mut state: Option<RunState> = None;
        let mut outcomes: HashSet<(TaskId, Generation)> = HashSet::new();
        let mut ended = 0;
        for entry in entries {
            let before = state.clone();
            if let Err(error) = apply(&mut state, entry) {
                return self.say(format!("run {run} does not fold at {}: {error}", entry.seq));
            }
            if let (Some(before), Some(after)) = (&before, &state)
                && let Err(broken) = invariants::check_all(before, entry, after)
            {
                self.say(format!("run {run}: {}", broken.join("; ")));
            }
            match &entry.event {
                RecordEvent::Agent(key, AgentEvent::Outcome(_)) => {
                    if !outcomes.insert((key.task.clone(), key.generation)) {
                        self.doubled += 1;
                        self.say(format!("run {run}: a second outcome of {} at {}", key.task, entry.seq));
                    }
                }
                RecordEvent::Decided(decided) => {
                    ended += decided.events.iter().filter(|event| event.ends_run()).count();
                }
                RecordEvent::Agent(..) | RecordEvent::Offered(_) => {}
            }
        }
        let end = entries.iter().find(|entry| is_end(entry));
        if let (Some(first), Some(end)) = (entries.first(), end) {
            self.lengths.push((run, end.at.0.saturating_sub(first.at.0)));
        }
        self.doubled += usize::from(ended > 1);
        match state {
            Some(state) if state.report.is_some() && ended == 1 => self.reported += 1,
            Some(state) => self.say(format!(
                "run {run} is {:?} without a report: {}",
                state.status,
                state.reason.unwrap_or_else(|| "it goes on".to_owned())
            )),
            None => self.say(format!("run {run} is not in the record")),
        }
    }

    /// A call is repeated when the same question, as far into its task, comes again after its answer was stored.
    fn look_for_repetitions(
        &mut self,
        entries: &[Entry],
        log: &[LogEntry],
        begun: SystemTime,
        wakings: &[SystemTime],
    ) {
        let wakings: Vec<u64> = wakings.iter().map(|at| millis(*at)).collect();
        let on_waking = |at| wakings.iter().any(|woken| (*woken..*woken + WAKING_MILLIS).contains(&at));
        let stored = stored_calls(entries);
        self.calls_in_record = stored.len();
        let began = millis(begun);
        let mut asked: HashMap<u64, Vec<(usize, u64)>> = HashMap::new();
        for entry in log {
            let request = &entry.request;
            let at = began + u64::try_from(request.at.as_millis()).unwrap_or(u64::MAX);
            let earlier = asked.entry(place(entry)).or_default();
            let known = earlier.iter().find_map(|(number, _)| Some((*number, stored.get(number)?)));
            let repeated = known.filter(|(_, answer)| answer.at.0 < at);
            if repeated.is_some() && on_waking(at) {
                self.calls_on_waking += 1;
            } else if let Some((number, answer)) = repeated {
                self.repeated_calls += 1;
                self.say(format!(
                    "call {} at {at} repeats call {number}, whose answer was in the record: {}",
                    request.number,
                    course(entries, answer)
                ));
            }
            asked.entry(place(entry)).or_default().push((request.number, at));
        }
    }
}

/// The longest time between two entries, and after which one it began.
fn longest_pause(entries: &[Entry]) -> (u64, Seq) {
    let pause = |pair: &[Entry]| (pair[1].at.0.saturating_sub(pair[0].at.0), pair[0].seq);
    entries.windows(2).map(pause).max().unwrap_or_default()
}

/// The event log of all runs of a fleet.
///
/// # Errors
/// If it cannot be read.
pub fn read_log(url: &str) -> io::Result<Vec<Entry>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(read(url))
}

/// Reads the whole record; once more when a server was killed just now, or has only just come back.
async fn read(url: &str) -> io::Result<Vec<Entry>> {
    let once = async || {
        let bus = connect(url).await?;
        let read = bus.record().read(&RecordFilter::Everything, Seq(0)).await;
        read.map_err(|error| io::Error::other(error.to_string()))
    };
    for _ in 1..READS {
        if let Ok(entries) = once().await {
            return Ok(entries);
        }
        tokio::time::sleep(PAUSE).await;
    }
    once().await
}

/// The task that a request belongs to and how far it has come: the brief carries a number that no other task has.
fn place(entry: &LogEntry) -> u64 {
    let request = &entry.request;
    let mut hasher = DefaultHasher::new();
    request.system().hash(&mut hasher);
    let brief = request.messages.iter().find(|message| message.role == "user");
    brief.map(|message| message.text.as_str()).hash(&mut hasher);
    request.turns().hash(&mut hasher);
    hasher.finish()
}

/// What the record says of the task that an answer belongs to, in brief.
fn course(entries: &[Entry], answer: &Entry) -> String {
    let RecordEvent::Agent(about, _) = &answer.event else { return String::new() };
    let of_task = entries.iter().filter(|entry| entry.run == answer.run).filter_map(|entry| {
        let RecordEvent::Agent(key, event) = &entry.event else { return None };
        let AgentKey { agent, generation, .. } = key;
        let said = || format!("{} {} {agent}/{generation} at {}", entry.seq, event.kind(), entry.at.0);
        (key.task == about.task).then(said)
    });
    format!("task {} of run {}: {}", about.task, answer.run, of_task.collect::<Vec<_>>().join(", "))
}

/// Where the answer to each call was stored.
fn stored_calls(entries: &[Entry]) -> HashMap<usize, &Entry> {
    let mut stored = HashMap::new();
    for entry in entries {
        let RecordEvent::Agent(_, event) = &entry.event else { continue };
        for number in calls_of(event).iter().flat_map(|call| model::calls_in(&call.answer)) {
            stored.entry(number).or_insert(entry);
        }
    }
    stored
}

fn calls_of(event: &AgentEvent) -> &[ModelCall] {
    let step: Option<&Step> = match event {
        AgentEvent::Step(step) => Some(step),
        AgentEvent::ToolStarted(tool) => Some(&tool.step),
        AgentEvent::Outcome(outcome) => outcome.last_step.as_deref(),
        AgentEvent::Started(_) | AgentEvent::Released(_) | AgentEvent::Unreadable(_) => None,
    };
    step.map(|step| step.calls.as_slice()).unwrap_or_default()
}

pub(crate) fn millis(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Whether an entry is one of those that end a run.
pub(super) fn is_end(entry: &Entry) -> bool {
    match &entry.event {
        RecordEvent::Decided(decided) => decided.events.iter().any(RunEvent::ends_run),
        RecordEvent::Offered(_) | RecordEvent::Agent(..) => false,
    }
}
