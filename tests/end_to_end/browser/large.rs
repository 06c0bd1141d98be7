//! A run of 1,000 tasks and 10,000 entries: it opens at once, is scrolled without a jerk, and the dashboard keeps up.

use std::time::{Duration, Instant};

use muster_bus::RecordFilter;
use muster_shared::flow::Step;
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::{AgentEvent, Entry, RecordEvent};
use muster_support::fleet::Fleet;
use muster_support::past;
use serde_json::{Value, json};

use super::{Seen, picture, told};

const TASKS: usize = 1_000;
const ENTRIES: usize = 10_000;
/// Longest that a page of it may take on a busy machine, where other tests run at the same time.
const OPENED: Duration = Duration::from_secs(6);

/// The same run with many more tasks in its plan and many more steps of those that were done.
fn grown(entries: Vec<Entry>) -> Vec<Entry> {
    let mut grown: Vec<Entry> = Vec::with_capacity(ENTRIES);
    let mut missing = ENTRIES.saturating_sub(entries.len());
    for entry in entries {
        let event = match entry.event {
            RecordEvent::Decided(decided) => {
                let mut value = json!(decided);
                value["events"].as_array_mut().into_iter().flatten().for_each(more_tasks);
                RecordEvent::Decided(serde_json::from_value(value).unwrap())
            }
            other @ (RecordEvent::Offered(_) | RecordEvent::Agent(..)) => other,
        };
        let steps = match &event {
            RecordEvent::Agent(key, AgentEvent::Step(step)) => {
                let more = std::mem::take(&mut missing);
                (1..=more).map(|n| (key.clone(), again(step, n))).collect()
            }
            RecordEvent::Agent(..) | RecordEvent::Decided(_) | RecordEvent::Offered(_) => Vec::new(),
        };
        let (run, at) = (entry.run, entry.at);
        grown.push(Entry { event, ..entry });
        grown.extend(steps.into_iter().map(|(key, step)| {
            let event = RecordEvent::Agent(key, AgentEvent::Step(step));
            // Nothing names these: their places are of no account.
            Entry { run, seq: Seq(u64::MAX), at, event }
        }));
    }
    grown
}

fn again(step: &Step, n: usize) -> Step {
    let mut step = step.clone();
    step.number += u32::try_from(n).unwrap();
    step.thought.text = format!("the same once more, {n}");
    step.calls.clear();
    step
}

fn more_tasks(event: &mut Value) {
    let Some(tasks) = event["plan"]["tasks"].as_object_mut() else { return };
    for n in tasks.len()..TASKS {
        let (group, place) = (n / 40 + 100, n % 40);
        let index = if place == 0 { group.to_string() } else { format!("{group}-{place}") };
        let needs =
            if place > 1 && place % 5 == 0 { json!([format!("{group}-{}", place - 1)]) } else { json!([]) };
        tasks.insert(
            index.clone(),
            json!({ "name": format!("look into {index}"), "goal": "Look into it.", "role": "worker", "depends_on": needs }),
        );
    }
}

/// Writes it into the record while no fleet is there: what is written in part would be gone on with.
fn write(fleet: &Fleet, run: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let run: RunId = run.parse().unwrap();
    let folder = fleet.folder();
    let entries = runtime.block_on(async {
        let bus = past::connect(&fleet.url()).await.unwrap();
        bus.record().read(&RecordFilter::Run(run), Seq(0)).await.unwrap()
    });
    folder.output(&["down"]).unwrap();
    let store = folder.path().join(".muster/nats");
    runtime.block_on(past::fill(&store, &grown(entries), 1)).unwrap();
    folder.output(&["up", "--detach"]).unwrap();
}

/// It is written into the record, opened, scrolled and looked at.
pub(super) fn thousand_tasks(seen: &Seen<'_>, fleet: &Fleet, run: &str) {
    let began = Instant::now();
    write(fleet, run);
    let runs = told(fleet.folder(), &["runs", "--json"]);
    let large = runs[0]["run"].as_str().unwrap().to_owned();
    assert_ne!(large, run);
    println!("a run of {TASKS} tasks and {ENTRIES} entries was written in {:?}", began.elapsed());

    seen.go("#/runs", &format!("document.querySelector('a[href=\"#/runs/{large}\"]')"));
    let began = Instant::now();
    seen.go(&format!("#/runs/{large}"), "document.querySelector('.tree-row')");
    let opened = began.elapsed();
    let rows = seen.js("document.querySelectorAll('.tree-row').length").as_u64().unwrap();
    assert!(rows < 80, "{rows} rows are built");
    let tree = seen
        .js("Number(document.querySelector('.tree .vrow').getAttribute('aria-setsize'))")
        .as_u64()
        .unwrap();
    assert!(tree as usize >= TASKS, "{tree}");
    let answered = format!(
        "performance.getEntriesByType('resource').findLast((one) => one.name.endsWith('/api/runs/{large}') && one.responseEnd)"
    );
    seen.until(&answered);
    let read = seen.js(&format!("{answered}.duration")).as_f64().unwrap();
    seen.page.picture(&picture("large-plan")).unwrap();
    let pan = frames(seen, "document.querySelector('canvas.graph')", "key");

    let began = Instant::now();
    seen.go(&format!("#/runs/{large}/record"), "document.querySelector('.entry-row')");
    let first = began.elapsed();
    seen.until("Number(document.querySelector('.run-tab .toolbar [role=status]').textContent.replace(/[^0-9]/g, '')) >= 10000");
    let whole = began.elapsed();
    let scrolled = frames(seen, "document.querySelector('.entries')", "scroll");
    seen.page.picture(&picture("large-record")).unwrap();
    let began = Instant::now();
    seen.go(&format!("#/runs/{large}/timeline"), "document.querySelector('.span-row')");
    let timeline = began.elapsed();
    seen.page.picture(&picture("large-timeline")).unwrap();
    // The dashboard knows it by now, and does not read it again before it is seen.
    seen.go("#/runs", &format!("document.querySelector('a[href=\"#/runs/{large}\"]')"));
    let began = Instant::now();
    seen.go(&format!("#/runs/{large}"), "document.querySelector('.tree-row')");
    let again = began.elapsed();
    println!(
        "it opens in {opened:?}, when it is known in {again:?}, and the whole of it is read in {read:.0} ms; its record in {first:?}, all of it in {whole:?}; its timeline in {timeline:?}; work of a frame: {scrolled} ms \
         when scrolled, {pan} ms when the graph is moved (medians)"
    );
    assert!(opened < OPENED && first < OPENED, "{opened:?}, {first:?}");
    assert!(scrolled < 16.0 && pan < 30.0, "{scrolled} and {pan} ms");
    seen.is_sound("a run of 1,000 tasks");
}

/// How long scripts and layout take for a frame while something moves: the median, in milliseconds.
fn frames(seen: &Seen<'_>, element: &str, how: &str) -> f64 {
    let step = match how {
        "scroll" => "el.scrollTop += 640",
        _ => {
            "el.dispatchEvent(new KeyboardEvent('keydown', { key: n % 20 < 10 ? '+' : '-', bubbles: true }))"
        }
    };
    let took = seen.js(&format!(
        "new Promise((done) => {{ const el = {element}; const own = window.requestAnimationFrame; const took = []; let n = 0;\
         window.requestAnimationFrame = (work) => own((at) => {{ const began = performance.now(); work(at); took.push(performance.now() - began); }});\
         const next = () => {{ {step}; if (++n < 60) own(next); else {{ window.requestAnimationFrame = own; took.sort((a, b) => a - b); done(took[took.length >> 1] ?? 0); }} }}; own(next); }})"
    ));
    took.as_f64().unwrap()
}
