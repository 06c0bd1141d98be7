//! The dashboard as people use it: in a real Chromium, on a real fleet, through each page and action. What of it was seen is
//! kept under `target/screenshots`.
#![allow(clippy::print_stdout, reason = "figures are told beside what is asserted")]

mod large;
mod line;
mod logic;
mod looks;
mod roles;
mod steering;

use std::path::{Path, PathBuf};
use std::time::Duration;

use muster_support::browser::{Axe, Browser, Page, Theme};
use muster_support::dashboard::Dashboard;
use muster_support::fleet::Folder;
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use muster_support::skip::skipped;
use serde_json::{Value, json};

use super::help::{act, done, submit};

/// How long something may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(40);

/// What nobody may take for markup.
const HOSTILE: &str = "<img src=x onerror=\"window.broken=1\"><script>window.broken=2</script> & <b>bold</b>";

/// Set to 1 where there has to be a browser: then nothing is passed over.
const NEEDED: &str = "MUSTER_NEED_BROWSER";

/// The browser of this machine; nothing, with a word, where there is none and none is needed.
fn browser() -> Option<Browser> {
    match Browser::find() {
        Some(program) => Some(Browser::start(&program).unwrap()),
        None => {
            assert!(
                std::env::var(NEEDED).as_deref() != Ok("1"),
                "there is no Chromium: deploy/install-chromium.sh"
            );
            skipped("the dashboard in a browser", "there is no Chromium here");
            None
        }
    }
}

fn axe() -> Option<Axe> {
    match Axe::fetch(Path::new(env!("CARGO_MANIFEST_DIR"))) {
        Ok(axe) => Some(axe),
        Err(error) => {
            assert!(std::env::var(NEEDED).as_deref() != Ok("1"), "{error}");
            skipped("barriers on the pages of the dashboard", &error.to_string());
            None
        }
    }
}

fn picture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/screenshots").join(format!("{name}.png"))
}

/// A page and its checks.
struct Seen<'a> {
    page: &'a Page,
    base: &'a str,
}

impl Seen<'_> {
    /// Goes to a part of the dashboard without loading it anew.
    fn go(&self, hash: &str, ready: &str) {
        self.page.js(&format!("location.hash = {}; 0", json!(hash))).unwrap();
        self.until(ready);
    }

    fn until(&self, condition: &str) -> Duration {
        self.page.until(condition, LIMIT).unwrap_or_else(|error| {
            let _ = self.page.picture(&picture("failed"));
            panic!("{error}; {:?}", self.page.troubles())
        })
    }

    fn click(&self, selector: &str, text: &str) {
        let text = Some(text).filter(|text| !text.is_empty());
        self.page.click(selector, text).unwrap_or_else(|error| {
            let _ = self.page.picture(&picture("failed"));
            panic!("{error}; {}", self.page.js("document.body.innerText.slice(0, 2000)").unwrap_or_default())
        });
    }

    fn js(&self, expression: &str) -> Value {
        self.page.js(expression).unwrap()
    }

    /// The number that stands behind a figure.
    fn figure(&self, name: &str) -> Value {
        let told =
            self.js(&format!("document.querySelector('[data-figure=\"{name}\"]')?.dataset.value ?? null"));
        told.as_str().and_then(|text| text.parse::<u64>().ok()).map_or(Value::Null, Value::from)
    }

    /// Nothing was taken for markup, no script threw, and no rule of the page was broken.
    fn is_sound(&self, place: &str) {
        assert_eq!(self.js("window.broken ?? null"), Value::Null, "{place}: a text was taken for markup");
        let marked =
            self.js("document.querySelectorAll('main script, main iframe, [onerror], [onload]').length");
        assert_eq!(marked, 0, "{place}: a text was taken for markup");
        let troubles = self.page.troubles();
        assert!(troubles.is_empty(), "{place}: {troubles:#?}");
    }
}

/// A model that plans two tasks, one of which asks a person; it cites, and is as hostile as it can.
fn model() -> ModelServer {
    ModelServer::start(Script::answering(answer)).unwrap()
}

fn answer(request: &CapturedRequest) -> Reply {
    let system = request.system();
    let reply = if system.contains("You are the planner") {
        let task = |name: &str, goal: &str, needs: &[&str]| json!({ "name": name, "goal": goal, "role": "worker", "depends_on": needs });
        let tasks = [
            task("count the hops", &format!("Count. {HOSTILE}"), &[]),
            task("ask which year", "Ask a person.", &[]),
            task(&format!("check {HOSTILE}"), "Check it.", &["1", "2"]),
        ];
        submit(&json!({ "thought": "Three.", "goal": "Hops.", "tasks": tasks }))
    } else if system.contains("You are the reflector") {
        submit(&json!({ "thought": "Seen.", "summary": format!("It went well. {HOSTILE}") }))
    } else if system.contains("You are the refiner") {
        submit(&json!({ "thought": "Fine.", "operations": [] }))
    } else if system.contains("You are the writer") {
        let body = format!(
            "# Hops {HOSTILE}\n\nA loop has **five** hops (`delegation.md:7`), see [here](javascript:window.broken=3) and \
             [there](https://example.org/).\n\n| what | how many |\n|---|---|\n| hops | 5 |\n"
        );
        submit(&json!({ "thought": "So.", "title": "Hops", "body": body, "unanswered": [] }))
    } else if request.holds("Ask a person.") && request.turns() == 0 {
        let asked = json!({ "question": format!("Which year? {HOSTILE}"), "choices": ["1890", "1891"], "why": "Both stand there.", "ask_person": true });
        act("request_info", asked)
    } else if request.holds("Count.") && request.turns() < 2 {
        act("calculator", json!({ "expression": format!("4 + {}", request.turns() + 1) }))
    } else {
        done(&format!("Five. {HOSTILE}"))
    };
    reply.with_usage(1200, 45, 0).with_delay(Duration::from_millis(40))
}

#[test]
fn people_use_the_dashboard_in_a_real_browser() {
    let Some(browser) = browser() else { return };
    let axe = axe();
    let server = model();
    let folder = super::support::folder();
    super::support::write_documents(&folder);
    folder.write("docs/hostile.md", format!("# {HOSTILE}\n\n{HOSTILE}\n")).unwrap();
    let fleet = super::help::up(&server, folder, &[]);
    let mut dashboard = Dashboard::start(fleet.folder(), &[]).unwrap();
    let base = dashboard.base().to_owned();

    let page = browser.page().unwrap();
    page.look(1360, 900, Theme::Light).unwrap();
    let seen = Seen { page: &page, base: &base };
    line::first_page(&seen, dashboard.token());
    logic::holds(&seen);
    let run = steering::from_goal_to_report(&seen, fleet.folder());
    steering::goes_back_and_forks(&seen, fleet.folder(), &run);
    steering::tries_prompts(&seen, fleet.folder(), &run);
    looks::of_all_pages(&seen, axe.as_ref(), &run, fleet.folder());
    steering::scales(&seen);
    roles::viewer(&browser, &base, fleet.folder());
    large::thousand_tasks(&seen, &fleet, &run);
    line::lost_and_mended(&seen, &mut dashboard, fleet.folder());
}

/// What commands print, as JSON.
fn told(folder: &Folder, words: &[&str]) -> Value {
    folder.json(words).unwrap()
}
