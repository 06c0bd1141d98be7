//! A goal is begun, its plan changed and approved, a question answered; the run is looked at afterwards.

use std::time::{Duration, Instant};

use muster_shared::ids::RunId;
use muster_support::fleet::{Folder, wait_until};
use serde_json::{Value, json};

use super::{HOSTILE, LIMIT, Seen, picture, told};

/// From a goal that is typed to a report that is read: gives the run.
pub(super) fn from_goal_to_report(seen: &Seen<'_>, folder: &Folder) -> String {
    seen.go("#/runs", "document.querySelector('.empty')");
    seen.page.key("n").unwrap();
    seen.page.write("dialog textarea", &format!("How many hops has a loop? {HOSTILE}")).unwrap();
    seen.page.write("dialog input[name=documents]", "docs").unwrap();
    seen.js("document.querySelector('dialog select').value = 'ask'; 0");
    seen.click("dialog button", "Begin");
    // It is shown while it begins; the plan comes by itself.
    seen.until("location.hash.startsWith('#/runs/')");
    seen.until("document.querySelectorAll('.tree-row').length >= 3");
    let run = seen.js("location.hash.split('/')[2]").as_str().unwrap().to_owned();
    assert_eq!(seen.js("document.querySelector('.run-state .pill').dataset.status"), "processing");
    let full: RunId = run.parse().unwrap();
    seen.until("document.querySelector('.banner a')?.textContent === 'Answer'");
    seen.page.picture(&picture("run-alive")).unwrap();

    seen.click(".banner a", "Answer");
    change_and_approve(seen);
    assert_eq!(told(folder, &["show", &run, "--json"])["plan"]["tasks"]["4"]["name"], "look twice", "{full}");

    // A question that a task asks appears by itself, as text.
    seen.until("document.querySelector('.question-text')?.textContent.includes('Which year?')");
    assert!(seen.page.text(".question-text").unwrap().contains(HOSTILE));
    seen.page.picture(&picture("question")).unwrap();
    seen.is_sound("a question");
    seen.click("#questions .button", "1891");
    seen.until("document.querySelector('#questions .empty')");

    // How soon the end is seen: from the broker's stamp of it to the screen.
    seen.js(&format!("location.hash = '#/runs/{run}'; 0"));
    seen.until("document.querySelector('.run-state .pill')?.dataset.status");
    seen.js(
        "window.seenAt = new Promise((done) => { const pill = document.querySelector('.run-state .pill'); const look = () => \
         pill.dataset.status === 'completed' ? done(Date.now()) : requestAnimationFrame(look); look(); }); 0",
    );
    seen.until("document.querySelector('.run-state .pill').dataset.status === 'completed'");
    let shown = told(folder, &["show", &run, "--json"]);
    let late = seen.js("window.seenAt").as_u64().unwrap().saturating_sub(shown["ended_at"].as_u64().unwrap());
    println!("the end of the run is on the screen {late} ms after its entry");
    assert!(late < 3_000, "{late} ms");
    numbers_are_those_of_the_commands(seen, &shown, &run);
    run
}

/// The plan is changed in the editor, whose rules answer at once, and approved as it is then.
fn change_and_approve(seen: &Seen<'_>) {
    seen.until("document.querySelectorAll('.edit-row').length === 3");
    seen.click(".edit-row", "count the hops");
    let goal = "document.querySelector('.edit-form textarea').value";
    assert!(seen.js(goal).as_str().unwrap().contains(HOSTILE));
    // One is added: its name and its goal are needed.
    seen.click("#questions .button", "Add a task");
    seen.page.write(".edit-form input", "look twice").unwrap();
    seen.page.write(".edit-form textarea", "Count. Look twice.").unwrap();
    // By keys it goes to the end.
    for _ in 0..2 {
        seen.js("document.querySelector('.edit-row.chosen').focus(); 0");
        seen.js("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', altKey: true, bubbles: true, cancelable: true })); 0");
    }
    seen.until("document.querySelectorAll('.edit-row')[3]?.textContent.includes('look twice')");
    // What is wrong is said, and taken back.
    let needs = ".edit-form [name=needs]";
    let need = |text: &str| {
        seen.js(&format!(
            "(() => {{ const input = document.querySelector({}); input.value = {}; input.dispatchEvent(new Event('change')); }})()",
            json!(needs),
            json!(text)
        ));
    };
    need("9-9");
    seen.until("document.querySelector('ul.problem li')?.textContent.includes('9-9')");
    need("1");
    seen.until("!document.querySelector('ul.problem li')");
    seen.page.picture(&picture("plan-editor")).unwrap();
    dragged(seen);
    seen.is_sound("the editor of plans");
    seen.click("#questions .button.main", "Approve");
    seen.until("[...document.querySelectorAll('.note')].some((one) => one.textContent.includes('as you changed it'))");
}

/// A task is dragged before another one, and back behind it.
fn dragged(seen: &Seen<'_>) {
    let drag = |from: usize, to: usize, part: f64| {
        seen.js(&format!(
            "(() => {{ const rows = [...document.querySelectorAll('.edit-row')]; const [a, b] = [rows[{from}], rows[{to}]]; const data = new DataTransfer();\
             const box = b.getBoundingClientRect(); const at = {{ bubbles: true, cancelable: true, dataTransfer: data, clientX: box.left + 40, clientY: box.top + box.height * {part} }};\
             a.dispatchEvent(new DragEvent('dragstart', {{ bubbles: true, dataTransfer: data }})); b.dispatchEvent(new DragEvent('dragover', at)); b.dispatchEvent(new DragEvent('drop', at)); }})()"
        ));
    };
    drag(1, 0, 0.1);
    seen.until("document.querySelectorAll('.edit-row')[0].textContent.includes('ask which year')");
    drag(0, 1, 0.9);
    seen.until("document.querySelectorAll('.edit-row')[0].textContent.includes('count the hops')");
}

fn numbers_are_those_of_the_commands(seen: &Seen<'_>, shown: &Value, run: &str) {
    let usage = &shown["usage"];
    for (name, wanted) in [
        ("model calls", &usage["model_calls"]),
        ("tool calls", &usage["tool_calls"]),
        ("tokens in", &usage["input_tokens"]),
        ("tokens out", &usage["output_tokens"]),
        ("cost", &usage["cost_micros"]),
        ("steps", &usage["steps"]),
        ("tasks done", &shown["count"]["done"]),
    ] {
        assert_eq!(&seen.figure(name), wanted, "{name}");
    }
    let time = shown["ended_at"].as_u64().unwrap() - shown["created_at"].as_u64().unwrap();
    assert_eq!(seen.figure("time"), time);
    // The same in the part on spending, as `muster explain` has it.
    seen.go(&format!("#/runs/{run}/spending"), "document.querySelector('#spent')");
    for (name, field) in
        [("cost", "cost_micros"), ("tokens in", "input_tokens"), ("model calls", "model_calls")]
    {
        let figure = seen
            .js(&format!("Number(document.querySelector('#spent [data-figure=\"{name}\"]').dataset.value)"));
        assert_eq!(figure, usage[field], "{name}");
    }
    let rows = "[...document.querySelectorAll('[aria-label=\"Use by task\"] tbody tr')].map((row) => Number(row.children[4].textContent.replaceAll(',', ''))).reduce((a, b) => a + b, 0)";
    assert_eq!(seen.js(rows), usage["input_tokens"], "tasks make up the whole");
}

/// The slider shows the run as it stood; from there another one begins, which is paused, resumed and cancelled.
pub(super) fn goes_back_and_forks(seen: &Seen<'_>, folder: &Folder, run: &str) {
    let trace = folder.json_lines(&["trace", run, "--json"]).unwrap();
    let planned = trace.iter().find(|entry| entry["kind"] == "started" && entry["role"] == "worker").unwrap();
    let seq = planned["seq"].as_u64().unwrap();
    seen.go(&format!("#/runs/{run}/plan"), "document.querySelector('.tree-row')");
    seen.js(&format!(
        "(() => {{ const slider = document.querySelector('#slider'); slider.value = {seq}; slider.dispatchEvent(new Event('input')); }})()"
    ));
    seen.until("document.querySelector('.run-state .pill').dataset.status === 'processing'");
    seen.until("document.querySelector('.slider.past')");
    assert_eq!(seen.figure("tasks done"), 0, "as it stood");
    seen.page.picture(&picture("run-past")).unwrap();
    seen.click(".slider .button", "Fork from here");
    seen.click("dialog button", "Fork");
    seen.until(&format!("location.hash.startsWith('#/runs/') && !location.hash.includes('{run}')"));
    let fork = seen.js("location.hash.split('/')[2]").as_str().unwrap().to_owned();
    seen.until("document.querySelector('#run-actions .button')?.textContent === 'Pause'");
    let order = |name: &str, action: &str| {
        seen.click("#run-actions .button", name);
        seen.click("dialog button.main", action);
    };
    order("Pause", "Pause");
    seen.until("document.querySelector('.run-state .pill').textContent === 'paused'");
    order("Resume", "Resume");
    seen.until("document.querySelector('.run-state .pill').textContent !== 'paused'");
    // A task of it is left out.
    seen.until("document.querySelectorAll('.tree-row').length >= 3");
    seen.click(".tree-row .what", "check");
    seen.click(".inspector .button", "Skip");
    seen.click("dialog button.main", "Skip");
    wait_until("the task is left out", LIMIT, || {
        told(folder, &["show", &fork, "--json"])["tasks"]["3"]["status"] == "skipped"
    })
    .unwrap();
    seen.until("document.querySelector('.tree-row .mark.s-skipped')");
    seen.page.key("Escape").unwrap();
    order("Cancel run", "Cancel the run");
    seen.until("document.querySelector('.run-state .pill').dataset.status.startsWith('aborted')");
    assert!(told(folder, &["show", &fork, "--json"])["status"].to_string().contains("aborted"));
    seen.is_sound("a fork");

    seen.go(
        &format!("#/runs/{run}/compare/{fork}"),
        "document.querySelector('[aria-label=\"Figures of both runs\"]')",
    );
    seen.page.picture(&picture("compare")).unwrap();
    seen.go(&format!("#/runs/{run}/plan"), "document.querySelector('.tree-row')");
    seen.click("#run-actions .button", "Replay");
    seen.until("document.querySelector('dialog strong')?.textContent.includes('the same')");
    seen.page.picture(&picture("replay")).unwrap();
    seen.page.key("Escape").unwrap();
}

/// A step is asked again in the playground, and the run stays as it is.
pub(super) fn tries_prompts(seen: &Seen<'_>, folder: &Folder, run: &str) {
    let before = folder.json_lines(&["trace", run, "--json"]).unwrap().len();
    seen.go(&format!("#/runs/{run}/record"), "document.querySelectorAll('.entry-row').length > 5");
    seen.until(&format!(
        "document.querySelector('.run-tab .toolbar [role=status]').textContent === '{before} entries'"
    ));
    seen.page.write(".run-tab input[type=search]", "calculator").unwrap();
    seen.until("document.querySelectorAll('.entry-row').length > 0 && document.querySelectorAll('.entry-row').length < 5");
    seen.click(".entry-row", "calculator");
    seen.until("document.querySelector('.inspector .message')");
    let shown = seen.page.text(".inspector").unwrap();
    assert!(
        shown.contains("Thought") && shown.contains("calculator") && shown.contains("New in the prompt"),
        "{shown}"
    );
    seen.js("document.querySelector('.inspector details.prompt').open = true; 0");
    seen.page.picture(&picture("step")).unwrap();
    seen.is_sound("a step");
    seen.click(".inspector .button", "Playground");
    seen.until("document.querySelectorAll('.messages li').length >= 2");
    let began = Instant::now();
    seen.click("form .button.main", "Ask again");
    seen.until("document.querySelectorAll('.grid2 .block').length >= 2");
    assert!(began.elapsed() < Duration::from_secs(20));
    let both = seen.js("[...document.querySelectorAll('main h2')].map((one) => one.textContent)");
    assert!(both.to_string().contains("As it was") && both.to_string().contains("Now"), "{both}");
    seen.page.picture(&picture("playground")).unwrap();
    seen.is_sound("the playground");
    assert_eq!(
        folder.json_lines(&["trace", run, "--json"]).unwrap().len(),
        before,
        "nothing of it is recorded"
    );
}

/// A process of a role more, and one less.
pub(super) fn scales(seen: &Seen<'_>) {
    seen.go("#/fleet", "document.querySelector('[data-role=\"worker\"] .button')");
    let count = "document.querySelectorAll('.processes tbody tr').length";
    let before = seen.js(count).as_u64().unwrap();
    seen.click("[data-role=\"worker\"] .button", "+");
    seen.until(&format!("{count} === {}", before + 1));
    seen.click("[data-role=\"worker\"] .button", "−");
    seen.until(&format!("{count} === {before}"));
    seen.is_sound("the fleet");
}
