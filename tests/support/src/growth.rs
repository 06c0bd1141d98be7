//! One task of very many steps: does a step cost more at the end than at the beginning?

use std::io;
use std::sync::Arc;
use std::time::Duration;

use muster_bus::{Bus, RecordFilter};
use muster_shared::flow::Step;
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::run::{AgentEvent, Entry, RecordEvent};
use muster_shared::secret::Redactor;
use serde::Serialize;
use serde_json::json;

use crate::fleet::Folder;
use crate::model_server::{CapturedRequest, ModelServer, Reply, Script};

/// Steps whose times are taken together: the stamps of the broker are in milliseconds.
const TOGETHER: usize = 10;
/// How long the model thinks: long enough that the loop never waits for its own writes of the step before.
const DELAY: Duration = Duration::from_millis(2);

/// What a step costs at the two ends of a long task.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Growth {
    /// Steps of the task.
    pub steps: usize,
    /// Steps at each end that were looked at.
    pub looked_at: usize,
    /// Own time of a step at the beginning, journaled, in milliseconds: the median of the means of ten steps each.
    pub own_first_ms: f64,
    /// The same at the end.
    pub own_last_ms: f64,
    /// Bytes that a step adds to the record at the beginning, as JSON, on average.
    pub bytes_first: usize,
    /// The same at the end.
    pub bytes_last: usize,
    /// Bytes of the last request to the model, which tells the whole task.
    pub last_request: usize,
}

impl Growth {
    /// Own time at the end, by that at the beginning.
    #[must_use]
    pub fn of_time(&self) -> f64 {
        self.own_last_ms / self.own_first_ms
    }

    /// Size at the end, by that at the beginning.
    #[must_use]
    pub fn of_size(&self) -> f64 {
        self.bytes_last as f64 / self.bytes_first as f64
    }
}

/// Has a fleet of its own do a task of so many steps, and compares `looked_at` of them at each end.
///
/// # Errors
/// When the fleet does not come up, or the run does not end well.
pub fn measure(program: &str, nats: Option<&str>, steps: usize, looked_at: usize) -> io::Result<Growth> {
    let script = Script::answering(move |request| answer(request, steps)).with_delay(DELAY).keeping(4);
    let server = ModelServer::start(script)?;
    let mut folder = Folder::new(program)?
        .with("OPENAI_API_KEY", "key-of-the-scripted-server")
        .with("OPENAI_BASE_URL", server.openai_url());
    if let Some(nats) = nats {
        folder = folder.with("MUSTER_NATS_SERVER", nats);
    }
    let most = steps + 10;
    let settings = ["agent.model=openai/scripted".to_owned(), format!("limits.max_steps={most}")];
    let arguments: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let fleet = folder.up(&arguments)?;
    let asked = [&arguments[..], &["run", "Add up a long list.", "--json"]].concat();
    let summary = fleet.folder().json(&asked)?;
    let run = summary["run"].as_str().and_then(|run| run.parse().ok());
    let run: RunId = run.ok_or_else(|| io::Error::other(format!("no run in {summary}")))?;
    let entries = read(&fleet.url(), run)?;
    let last_request =
        server.log().iter().map(|entry| entry.request.body.to_string().len()).max().unwrap_or(0);
    compare(&entries, looked_at, last_request)
        .ok_or_else(|| io::Error::other(format!("the task did not take {} steps", 2 * looked_at)))
}

/// The model's answer to one request, where one task takes so many steps.
#[must_use]
pub fn answer(request: &CapturedRequest, steps: usize) -> Reply {
    let submit = |arguments| Reply::call("submit", &arguments);
    let system = request.system();
    if system.contains("You are the planner") {
        let task =
            json!({ "name": "the long list", "goal": "Work out all sums of the list.", "role": "worker" });
        return submit(json!({ "goal": "Add up.", "tasks": [task] }));
    }
    if system.contains("You are the reflector") {
        return submit(json!({ "summary": "A long way." }));
    }
    if system.contains("You are the writer") {
        return submit(json!({ "title": "Sums", "body": "# Sums\n\nAll are known.", "unanswered": [] }));
    }
    let step = request.turns();
    if step < steps {
        // Of one length, so that what differs in size is not what was said.
        let expression = format!("{} + {}", 10_000 + step, 20_000 + step);
        return Reply::call("calculator", &json!({ "thought": "The next sum.", "expression": expression }));
    }
    submit(json!({ "ending": "done", "conclusion": "All sums are known.", "findings": [] }))
}

fn read(url: &str, run: RunId) -> io::Result<Vec<Entry>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let who: AgentId = "growth".parse().map_err(|_| io::Error::other("a bad name"))?;
    let settings = crate::way::settings(url);
    let entries = runtime.block_on(async {
        let bus = Bus::connect(&settings, &who, Arc::new(Redactor::default())).await?;
        bus.record().read(&RecordFilter::Run(run), Seq(0)).await
    });
    entries.map_err(|error| io::Error::other(error.to_string()))
}

/// One step in the record.
struct Taken {
    /// When it was stored.
    at: u64,
    outside: u64,
    bytes: usize,
}

fn compare(entries: &[Entry], looked_at: usize, last_request: usize) -> Option<Growth> {
    let steps: Vec<Taken> = entries.iter().filter_map(taken).collect();
    if steps.len() < 2 * looked_at || looked_at < TOGETHER {
        return None;
    }
    let (first, last) = (&steps[..looked_at], &steps[steps.len() - looked_at..]);
    let size = |part: &[Taken]| part.iter().map(|step| step.bytes).sum::<usize>() / part.len();
    // The first step carries the whole of the brief.
    Some(Growth {
        steps: steps.len(),
        looked_at,
        own_first_ms: own(first),
        own_last_ms: own(last),
        bytes_first: size(&first[1..]),
        bytes_last: size(last),
        last_request,
    })
}

fn taken(entry: &Entry) -> Option<Taken> {
    let RecordEvent::Agent(_, AgentEvent::Step(step)) = &entry.event else { return None };
    let bytes = serde_json::to_vec::<Step>(step).map_or(0, |bytes| bytes.len());
    Some(Taken { at: entry.at.0, outside: step.outside_millis, bytes })
}

/// From one step's storing to the next one's, without what was spent outside.
fn own(steps: &[Taken]) -> f64 {
    let mean = |part: &[Taken]| {
        let whole =
            part.last().map_or(0, |step| step.at).saturating_sub(part.first().map_or(0, |step| step.at));
        let outside: u64 = part.iter().skip(1).map(|step| step.outside).sum();
        whole.saturating_sub(outside) as f64 / (part.len() - 1).max(1) as f64
    };
    let mut means: Vec<f64> = steps.chunks(TOGETHER).filter(|part| part.len() > 1).map(mean).collect();
    means.sort_by(f64::total_cmp);
    means.get(means.len() / 2).copied().unwrap_or(0.0)
}
