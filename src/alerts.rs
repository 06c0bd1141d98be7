//! Alerts: three rules over the event log, posted to one webhook.
//!
//! The supervisor of `muster up` evaluates them. It owns the lock of the fleet folder, so each fleet has one evaluator. The
//! state, with the position in the event log, is a file in that folder: a restart neither repeats nor misses an alert.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use muster_agents::tools::edges::http_caller;
use muster_bus::{Bus, BusError, Places, RecordFilter};
use muster_shared::flow::rights::HostPattern;
use muster_shared::flow::{Action, ObservationStatus, Step};
use muster_shared::run::{AgentEvent, Entry, RecordEvent, RunEvent};
use muster_shared::span;
use muster_shared::time::Millis;
use muster_tool_server::file::http::{HttpCaller, HttpRequest, Method};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, interval_at, sleep, timeout};

use crate::absent::missing;
use crate::app::{App, now};
use crate::exit::{Failure, usage};
use crate::fleet::private;
use crate::redaction::redacted_json;
use crate::render::figures::one_line;
use crate::settings::AlertSettings;

/// Environment variable of the webhook URL. Only the supervisor receives it.
pub(crate) const WEBHOOK_VARIABLE: &str = "MUSTER_ALERTS_WEBHOOK";

const CHECK_INTERVAL: Duration = Duration::from_secs(5);
const RETRY_DELAY: Duration = Duration::from_secs(5);
const POST_TIMEOUT: Duration = Duration::from_secs(10);
/// Posts of one notification, one per check.
const MAX_ATTEMPTS: u32 = 60;
const BATCH_DELAY: Duration = Duration::from_millis(250);
const WINDOW_MINUTES: u64 = 10;
const MIN_CALLS: u64 = 5;
const MIN_STEPS: u64 = 3;
/// Tools and roles per minute, and open questions. Further ones are ignored.
const MAX_SUBJECTS: usize = 1000;
const MAX_NAME: usize = 80;

const TOOL_FAILURES: &str = "tool_failures";
const STEP_TIME: &str = "step_time";
const QUESTIONS: &str = "questions";

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Sum {
    count: u64,
    /// Failed calls, or milliseconds of steps.
    total: u64,
}

impl Sum {
    fn mean(self) -> f64 {
        self.total as f64 / self.count.max(1) as f64
    }
}

/// State of the evaluator. Alerts are named `RULE/SUBJECT`.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    position: Places,
    /// Calls and steps, by minute and alert.
    minutes: BTreeMap<u64, BTreeMap<String, Sum>>,
    /// Open questions with the time they were asked.
    questions: BTreeMap<String, Millis>,
    /// Alerts that were notified and not yet resolved.
    firing: BTreeSet<String>,
}

impl State {
    /// The stored state, unless it is of another event log.
    fn load(file: &Path, newest: &Places) -> Self {
        let stored = std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let is_of_this_log = |state: &Self| {
            let mut furthest = newest.clone();
            furthest.reach_all(&state.position);
            furthest == *newest
        };
        stored.filter(is_of_this_log).unwrap_or_else(|| Self { position: newest.clone(), ..Self::default() })
    }

    fn save(&self, file: &Path) -> std::io::Result<()> {
        private::replace(file, &serde_json::to_vec(self)?)
    }

    fn apply(&mut self, entry: &Entry) {
        if self.position.covers(entry.run, entry.seq) {
            return;
        }
        self.position.reach(entry.run, entry.seq);
        let of_run = format!("{QUESTIONS}/{}/", entry.run);
        match &entry.event {
            RecordEvent::Decided(decided) => {
                for event in &decided.events {
                    match event {
                        RunEvent::QuestionAsked(asked) if self.questions.len() < MAX_SUBJECTS => {
                            self.questions.insert(format!("{of_run}{}", asked.id), entry.at);
                        }
                        RunEvent::QuestionAnswered(answered) => {
                            self.questions.remove(&format!("{of_run}{}", answered.reply.question));
                        }
                        RunEvent::QuestionWithdrawn(withdrawn) => {
                            self.questions.remove(&format!("{of_run}{}", withdrawn.id));
                        }
                        RunEvent::RunCompleted(_) | RunEvent::RunFailed(_) | RunEvent::RunAborted(_) => {
                            self.questions.retain(|name, _| !name.starts_with(&of_run));
                        }
                        _ => {}
                    }
                }
            }
            RecordEvent::Agent(key, AgentEvent::Step(step)) => {
                self.add_step(entry.at, &key.role.to_string(), step);
            }
            RecordEvent::Agent(key, AgentEvent::Outcome(outcome)) => {
                if let Some(step) = &outcome.last_step {
                    self.add_step(entry.at, &key.role.to_string(), step);
                }
            }
            _ => {}
        }
    }

    fn add_step(&mut self, at: Millis, role: &str, step: &Step) {
        self.add(at, STEP_TIME, role, step.millis);
        for (action, observation) in step.acts() {
            let Some(observation) = observation.filter(|seen| seen.cached.is_none()) else { continue };
            let failed = match observation.status {
                ObservationStatus::Success => 0,
                ObservationStatus::Error | ObservationStatus::Timeout => 1,
                ObservationStatus::Refused => continue,
            };
            if action.name != Action::SUBMIT {
                self.add(at, TOOL_FAILURES, &action.name, failed);
            }
        }
    }

    fn add(&mut self, at: Millis, rule: &str, subject: &str, value: u64) {
        let minute = self.minutes.entry(at.0 / 60_000).or_default();
        let name = format!("{rule}/{}", one_line(subject, MAX_NAME));
        if minute.len() < MAX_SUBJECTS || minute.contains_key(&name) {
            let sum = minute.entry(name).or_default();
            (sum.count, sum.total) = (sum.count + 1, sum.total.saturating_add(value));
        }
    }

    /// Alerts whose condition is true, with a description.
    fn evaluate(&mut self, limits: &AlertSettings, now: Millis) -> BTreeMap<String, String> {
        self.minutes = self.minutes.split_off(&(now.0 / 60_000).saturating_sub(WINDOW_MINUTES - 1));
        let mut sums: BTreeMap<&String, Sum> = BTreeMap::new();
        for (name, sum) in self.minutes.values().flatten() {
            let whole = sums.entry(name).or_default();
            (whole.count, whole.total) = (whole.count + sum.count, whole.total.saturating_add(sum.total));
        }
        let max_step = limits.max_step_duration.as_millis();
        let measured = sums.into_iter().filter_map(|(name, sum)| {
            let (rule, subject) = name.split_once('/')?;
            let (mean, count) = (sum.mean(), sum.count);
            let text = match rule {
                TOOL_FAILURES if count >= MIN_CALLS && mean > limits.max_tool_failure_rate => {
                    format!("tool {subject}: {:.0}% of {count} calls failed", mean * 100.0)
                }
                STEP_TIME if count >= MIN_STEPS && u128::from(sum.total / count) > max_step => {
                    format!("role {subject}: mean step time {:.1} s ({count} steps)", mean / 1000.0)
                }
                _ => return None,
            };
            Some((name.clone(), text))
        });
        let waiting = self.questions.iter().filter(|(_, at)| now.since(**at) > limits.max_question_wait);
        let waiting = waiting.map(|(name, at)| {
            let subject = name.rsplit('/').next().unwrap_or_default();
            let run = name.split('/').nth(1).unwrap_or_default();
            let wait = span::text(now.since(*at));
            (name.clone(), format!("run {run}: question {subject} has waited for {wait}"))
        });
        measured.chain(waiting).collect()
    }

    /// The notification of the changes since the last one.
    fn notification(&self, firing: &BTreeMap<String, String>) -> Option<Value> {
        let alert = |name: &str, status: &str, text: &str| {
            let (rule, subject) = name.split_once('/').unwrap_or((name, ""));
            json!({ "id": name, "rule": rule, "subject": subject, "status": status, "text": text })
        };
        let new = firing.iter().filter(|(name, _)| !self.firing.contains(*name));
        let over = self.firing.iter().filter(|name| !firing.contains_key(*name));
        let alerts: Vec<Value> = new
            .map(|(name, text)| alert(name, "firing", text))
            .chain(over.map(|name| alert(name, "resolved", &format!("resolved: {name}"))))
            .collect();
        let texts: Vec<&str> = alerts.iter().filter_map(|alert| alert["text"].as_str()).collect();
        let text = texts.join("\n");
        (!alerts.is_empty()).then(|| json!({ "text": text, "alerts": alerts }))
    }
}

/// Evaluator of the alerts of one fleet.
pub(crate) struct Alerts {
    limits: AlertSettings,
    url: SecretString,
    host: HostPattern,
    http: Arc<dyn HttpCaller>,
    file: PathBuf,
    attempts: u32,
}

impl Alerts {
    /// The evaluator, if a webhook is set.
    ///
    /// # Errors
    /// The webhook is not a URL of http or https, or its file cannot be read.
    pub(crate) fn of(app: &App) -> Result<Option<Self>, Failure> {
        let limits = app.settings().alerts.clone();
        let wrong = |why: &str| {
            usage!("cannot use alerts.webhook: {why}")
                .help(format!("set {WEBHOOK_VARIABLE} to a URL such as https://hooks.example.org/muster"))
        };
        let Some(url) = limits.url().map_err(|why| wrong(&why))? else { return Ok(None) };
        // The user's own setting names the host, so a private address is allowed.
        let host = host_of(url.expose_secret()).ok_or_else(|| wrong("it is not an http or https URL"))?;
        if !cfg!(feature = "web") {
            return Err(missing("web"));
        }
        let http = http_caller(&app.settings().tool.web);
        let file = app.fleet.path().join("alerts.json");
        Ok(Some(Self { limits, url, host, http, file, attempts: 0 }))
    }

    /// Evaluates until the task is aborted.
    pub(crate) async fn watch(mut self, bus: Bus) {
        loop {
            if let Err(error) = self.follow(&bus).await {
                tracing::warn!(%error, "alerts cannot be evaluated; retrying");
            }
            sleep(RETRY_DELAY).await;
        }
    }

    async fn follow(&mut self, bus: &Bus) -> Result<(), BusError> {
        let mut state = State::load(&self.file, &bus.record().newest().await?);
        let from = state.position.clone();
        let mut entries = bus.record().look_on(&RecordFilter::Everything, from, BATCH_DELAY).await?;
        let mut checks = interval_at(Instant::now() + CHECK_INTERVAL, CHECK_INTERVAL);
        loop {
            tokio::select! {
                entry = entries.next() => match entry {
                    Some(Ok(entry)) => state.apply(&entry),
                    Some(Err(_)) => {}
                    None => return Ok(()),
                },
                _ = checks.tick() => self.check(&mut state).await,
            }
        }
    }

    async fn check(&mut self, state: &mut State) {
        let firing = state.evaluate(&self.limits, now());
        if let Some(notification) = state.notification(&firing) {
            self.attempts += 1;
            if self.attempts == 1 {
                tracing::warn!(alerts = %notification["text"], "alerts changed");
            }
            match self.post(notification).await {
                Err(why) if self.attempts < MAX_ATTEMPTS => {
                    tracing::warn!(why, attempt = self.attempts, "alert not delivered; retrying");
                }
                delivery => {
                    if let Err(why) = delivery {
                        tracing::error!(why, "alert not delivered; giving up");
                    }
                    self.attempts = 0;
                    state.firing = firing.into_keys().collect();
                }
            }
        }
        if let Err(error) = state.save(&self.file) {
            tracing::warn!(%error, "alert state not saved");
        }
    }

    async fn post(&self, notification: Value) -> Result<(), String> {
        let request = HttpRequest {
            method: Method::Post,
            url: self.url.expose_secret().to_owned(),
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: Some(redacted_json(notification.to_string(), serde_json::to_string).into()),
            private: vec![self.host.clone()],
            most: 0,
        };
        match timeout(POST_TIMEOUT, self.http.call(request)).await {
            Ok(Ok(answer)) if (200..300).contains(&answer.status) => Ok(()),
            Ok(Ok(answer)) => Err(format!("status {}", answer.status)),
            Ok(Err(failure)) => Err(failure.to_string()),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }
}

fn host_of(url: &str) -> Option<HostPattern> {
    let url = url::Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    HostPattern::read(&format!("{}:{}", url.host_str()?, url.port_or_known_default()?)).ok()
}

#[cfg(test)]
mod tests;
