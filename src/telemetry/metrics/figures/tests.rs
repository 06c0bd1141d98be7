//! What is counted, as it is told.
use muster_shared::ids::{AgentId, Generation, TaskId};
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::Form;
use super::*;

fn key() -> AgentKey {
    AgentKey {
        role: muster_shared::ids::Role::Worker,
        agent: AgentId::new("worker", 1),
        task: TaskId::Plan,
        generation: Generation(1),
    }
}

fn event(step: &Value) -> AgentEvent {
    AgentEvent::Step(serde_json::from_value(step.clone()).unwrap())
}

fn acted(tool: &str, status: &str, content: &str) -> Value {
    json!({
        "number": 1, "thought": {}, "action": { "name": tool }, "millis": 100,
        "observation": { "status": status, "content": content, "millis": 20 },
    })
}

fn asked(usage: &Value) -> Value {
    json!({
        "number": 2, "thought": {}, "action": { "name": "submit" }, "millis": 100,
        "calls": [{
            "model": "gemini/flash", "template": { "name": "worker", "version": 1, "hash": "" }, "request_hash": "",
            "same_messages": 0, "messages": [], "parameters": { "room": 3000 }, "answer": "", "usage": usage,
            "millis": 700,
        }],
    })
}

fn told_by(figures: &Figures, role: Role) -> String {
    Form::Open.write(figures.all(role, None).into_iter())
}

fn told(figures: &Figures) -> String {
    told_by(figures, Role::Orchestrator)
}

#[test]
fn steps_are_counted_and_nothing_that_a_model_made_up_is_a_label() {
    let (figures, run) = (Figures::new(), RunId::from_uuid(Uuid::from_u128(7)));
    for step in [
        acted("erase \"}everything", "refused", ""),
        acted("erase_all", "refused", ""),
        acted("calculator", "success", "4"),
        acted("calculator", "refused", ""),
        acted("corpus.search", "success", "No passage has any word of `x`."),
        acted("corpus.search", "success", "a.md:1 x"),
        asked(&json!({ "input_tokens": 500, "output_tokens": 10, "cost_micros": 2_000_000 })),
        asked(&json!({ "reused_calls": 1, "reused_micros": 5 })),
    ] {
        figures.reported(run, &key(), &event(&step), None);
    }
    let text = told(&figures);
    for wanted in [
        "muster_steps_total{role=\"worker\"} 8.0",
        "muster_tool_calls_total{tool=\"other\",status=\"refused\"} 2.0",
        "muster_tool_calls_total{tool=\"calculator\",status=\"success\"} 1.0",
        "muster_tool_calls_total{tool=\"calculator\",status=\"refused\"} 1.0",
        "muster_tool_call_duration_seconds_count{tool=\"calculator\"} 1",
        "muster_retrievals_total{result=\"hit\"} 1.0",
        "muster_retrievals_total{result=\"miss\"} 1.0",
        "muster_model_calls_total{provider=\"gcp.gemini\",model=\"flash\",result=\"answered\"} 1.0",
        "muster_model_calls_total{provider=\"gcp.gemini\",model=\"flash\",result=\"reused\"} 1.0",
        "muster_model_tokens_total{provider=\"gcp.gemini\",model=\"flash\",kind=\"input\"} 500.0",
        "muster_model_cost_dollars_total{provider=\"gcp.gemini\",model=\"flash\"} 2.0",
        "muster_context_window_used_ratio_bucket{role=\"worker\",le=\"0.5\"} 1",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!text.contains("erase"), "{text}");
    assert!(text.contains(&format!("# {{trace_id=\"{run}\"}}")), "{text}");
    let other = TraceContext(format!("00-{:032x}-{:016x}-01", 99, 5));
    figures.reported(run, &key(), &event(&acted("calculator", "success", "")), Some(&other));
    assert!(told(&figures).contains(&format!("# {{trace_id=\"{:032x}\"}}", 99)));
}

#[test]
fn runs_in_hand_are_summed_up_and_those_that_left_are_not() {
    let figures = Figures::new();
    let run = |n| RunId::from_uuid(Uuid::from_u128(n));
    let progress = RunProgress { done: 1, tasks: 4, questions: 2, cost_micros: 90, budget_micros: Some(100) };
    figures.progressed(run(1), progress);
    figures.progressed(run(2), RunProgress { budget_micros: None, ..progress });
    figures.progressed(run(3), progress);
    figures.left(run(3));
    let events = vec!["task_orphaned", "run_completed", "task_started"];
    figures.decided(run(1), &DecisionSeen { events, ends_run: true, offers: 2 });
    let text = told(&figures);
    for wanted in [
        "muster_runs_active 2.0",
        "muster_plan_tasks{state=\"open\"} 6.0",
        "muster_plan_progress_ratio 0.25",
        "muster_questions_waiting 4.0",
        "muster_run_budget_used_ratio 0.9",
        "muster_takeovers_total{cause=\"lost\"} 1.0",
        "muster_runs_ended_total{status=\"completed\"} 1.0",
        "muster_offers_total 2.0",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[test]
fn guards_and_servers_of_tools_tell_what_they_do_and_nothing_of_runs() {
    let figures = Figures::new();
    figures.judged(Hook::BeforeTool, Ruling::Refuse, Duration::from_millis(2));
    figures.judged(Hook::BeforeTool, Ruling::Allow, Duration::from_millis(2));
    figures.judged(Hook::BeforeReport, Ruling::Change, Duration::from_secs(60));
    figures.served("own.note", ServedStatus::Success, Duration::from_millis(20));
    figures.served("own.note", ServedStatus::Unavailable, Duration::from_millis(20));
    let verdicts = [
        "muster_guard_verdicts_total{hook=\"before_tool\",verdict=\"refuse\"} 1.0",
        "muster_guard_verdicts_total{hook=\"before_report\",verdict=\"change\"} 1.0",
        "muster_guard_verdict_duration_seconds_count{hook=\"before_tool\"} 2",
        "muster_guard_verdict_duration_seconds_bucket{hook=\"before_tool\",le=\"0.0025\"} 2",
    ];
    let calls = [
        "muster_served_calls_total{tool=\"own.note\",status=\"success\"} 1.0",
        "muster_served_calls_total{tool=\"own.note\",status=\"unavailable\"} 1.0",
        "muster_served_call_duration_seconds_count{tool=\"own.note\"} 2",
    ];
    for (role, is_guard, has_tools) in [
        (Role::Orchestrator, false, false),
        (Role::Agent, false, true),
        (Role::Guard, true, false),
        (Role::ToolServer, false, true),
    ] {
        let text = told_by(&figures, role);
        assert!(verdicts.iter().all(|line| text.contains(line) == is_guard), "{role:?}: {text}");
        assert!(calls.iter().all(|line| text.contains(line) == has_tools), "{role:?}: {text}");
        assert!(text.contains("process_resident_memory_bytes "), "{role:?}: {text}");
        assert_eq!(text.contains("muster_runs_active"), role == Role::Orchestrator, "{role:?}: {text}");
    }
}
