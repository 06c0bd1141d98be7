//! Rules, notifications and the stored state, on hand-written entries.

use muster_shared::ids::{RunId, Seq};
use muster_shared::run::AgentEvent;

use super::*;
use crate::render::golden;

const MINUTE: u64 = 60_000;

fn step_entry(seq: u64, at: u64, tool: &str, status: &str, millis: u64) -> Entry {
    let step = json!({
        "number": 1, "thought": {}, "action": {"name": tool, "arguments": {}}, "millis": millis,
        "observation": {"status": status, "content": "12345", "millis": millis}
    });
    let key = json!({"role": "worker", "agent": "worker-1", "task": "1", "generation": 1});
    let event = AgentEvent::Step(serde_json::from_value(step).unwrap());
    let event = RecordEvent::Agent(serde_json::from_value(key).unwrap(), event);
    let run: RunId = "00000000-0000-7000-8000-000000000001".parse().unwrap();
    Entry { seq: Seq(seq), at: Millis(at), run, event }
}

fn names(state: &mut State, now: u64) -> Vec<String> {
    state.evaluate(&AlertSettings::default(), Millis(now)).into_keys().collect()
}

#[test]
fn failing_tool_and_slow_role_fire_until_their_window_has_passed() {
    let (mut state, start) = (State::default(), 1000 * MINUTE);
    let calls = [("success", 1), ("error", 2), ("timeout", 3), ("refused", 4), ("success", 5)];
    for (status, seq) in calls {
        state.apply(&step_entry(seq, start, "web_search", status, 31_000));
    }
    assert_eq!(names(&mut state, start), ["step_time/worker"], "four calls are too few");
    state.apply(&step_entry(6, start, "web_search", "success", 31_000));
    // Redelivered entries and submissions do not add calls.
    state.apply(&step_entry(6, start, "web_search", "success", 31_000));
    state.apply(&step_entry(7, start, "submit", "error", 31_000));
    let firing = state.evaluate(&AlertSettings::default(), Millis(start));
    assert_eq!(firing["tool_failures/web_search"], "tool web_search: 40% of 5 calls failed");
    assert_eq!(firing["step_time/worker"], "role worker: mean step time 31.0 s (7 steps)");
    assert!(names(&mut state, start + 10 * MINUTE).is_empty());
    assert!(state.minutes.is_empty());
}

#[test]
fn rates_and_times_at_their_threshold_do_not_fire() {
    let mut state = State::default();
    for (seq, status) in (1..).zip(["error", "success", "success", "success", "success"]) {
        state.apply(&step_entry(seq, MINUTE, "calculator", status, 30_000));
    }
    assert!(names(&mut state, MINUTE).is_empty());
}

#[test]
fn change_is_notified_once_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("alerts.json");
    let mut state = State::load(&file, &Places::from(Seq(0)));
    state.questions.insert("questions/r/1".to_owned(), Millis(MINUTE));
    assert!(names(&mut state, 2 * MINUTE).is_empty());
    let firing = state.evaluate(&AlertSettings::default(), Millis(7 * MINUTE));
    let notification = state.notification(&firing).unwrap();
    assert_eq!(notification["text"], "run r: question 1 has waited for 6m");
    assert_eq!(notification["alerts"][0]["status"], "firing");
    state.firing = firing.clone().into_keys().collect();
    state.position = Places::from(Seq(9));
    state.save(&file).unwrap();

    let mut state = State::load(&file, &Places::from(Seq(12)));
    assert_eq!(state.notification(&firing), None);
    state.questions.clear();
    let firing = state.evaluate(&AlertSettings::default(), Millis(8 * MINUTE));
    let notification = state.notification(&firing).unwrap();
    assert_eq!(notification["alerts"][0]["status"], "resolved");
    assert_eq!(notification["alerts"][0]["subject"], "r/1");

    let of_new_log = State::load(&file, &Places::from(Seq(3)));
    assert!(of_new_log.firing.is_empty() && of_new_log.position == Places::from(Seq(3)));
}

#[test]
fn recorded_run_leaves_no_open_question_and_counts_its_steps() {
    let mut state = State::default();
    golden::entries().iter().for_each(|entry| state.apply(entry));
    assert!(state.questions.is_empty());
    assert!(state.minutes.values().flatten().any(|(name, _)| name.starts_with("step_time/")));
}

#[test]
fn names_and_subjects_are_bounded() {
    let mut state = State::default();
    for n in 0..2 * MAX_SUBJECTS as u64 {
        state.apply(&step_entry(n + 1, MINUTE, &format!("tool\u{1b}[31m\n{n}"), "success", 1));
    }
    let minute = state.minutes.values().next().unwrap();
    assert_eq!(minute.len(), MAX_SUBJECTS);
    assert!(minute.keys().all(|name| !name.contains(['\u{1b}', '\n'])));
}

#[test]
fn only_http_urls_have_a_host() {
    for (url, host) in [
        ("http://127.0.0.1:8080/a", Some("127.0.0.1:8080")),
        ("https://hooks.example.org/b", Some("hooks.example.org:443")),
        ("http://[::1]:9/", Some("[::1]:9")),
        ("ftp://example.org/", None),
        ("hooks.example.org", None),
    ] {
        assert_eq!(host_of(url).map(|host| host.to_string()).as_deref(), host, "{url}");
    }
}
