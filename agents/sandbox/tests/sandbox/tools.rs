//! The tools that run code, by the engine that agents call them with; and what a call costs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_sandbox::{CodeTool, Language, Sandbox, find_program};
use muster_shared::flow::{Grantor, Rights, TaskRights};
use muster_tools::settings::SandboxSettings;
use muster_tools::{
    EngineRules, Permission, ProgramRunner, ToolContext, ToolEngine, ToolPatterns, ToolRegistry, ToolStatus,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::help::{Files, How, STAGE, program, settings, text, until};

fn engine(own: &SandboxSettings) -> ToolEngine {
    let sandbox = Arc::new(Sandbox::with_stage(own.clone(), STAGE));
    let registry = ToolRegistry::new();
    for language in Language::ALL {
        registry.register(Arc::new(CodeTool::new(language, sandbox.clone(), own.clone()))).unwrap();
    }
    // Some are off until settings allow them.
    let allow = ToolPatterns::new(vec!["*".to_owned()]);
    ToolEngine::with_rules(Arc::new(registry), EngineRules { allow, ..EngineRules::default() })
}

fn context(files: &Arc<Files>) -> ToolContext {
    ToolContext::new("run", "1").with_workspace(files.clone()).granting([Permission::Execute])
}

#[tokio::test]
async fn code_in_each_language_runs_over_the_files_of_the_workspace() {
    let engine = engine(&settings(How::Whole));
    let table = [
        ("shell", "read line; echo \"$line $(cat a.txt)\"; echo \"$line\" > shell.txt", "bash"),
        (
            "python",
            "import sys\nline = sys.stdin.read()\nprint(line, open('a.txt').read())\nopen('python.txt', 'w').write(line)",
            "python3",
        ),
        (
            "javascript",
            "const fs = require('fs'); const line = fs.readFileSync(0, 'utf8');\nconsole.log(line, fs.readFileSync('a.txt', 'utf8')); fs.writeFileSync('javascript.txt', line)",
            "node",
        ),
    ];
    for (tool, code, interpreter) in table {
        let files = Files::with(&[("a.txt", "text")]);
        let result = engine.call(tool, json!({"code": code, "input": "said"}), &context(&files)).await;
        if find_program(interpreter).is_none() {
            assert!(result.content.contains("go on without"), "{result:?}");
            continue;
        }
        assert_eq!(result.status, ToolStatus::Success, "{result:?}");
        assert!(result.content.starts_with("Exit status 0.\nOutput:\nsaid text"), "{result:?}");
        assert_eq!(result.data.unwrap()["written"], json!([format!("{tool}.txt")]));
        assert!(files.get(&format!("{tool}.txt")).unwrap().starts_with(b"said"));
    }
}

#[tokio::test]
async fn code_is_run_only_for_who_may_and_writes_only_for_who_may() {
    let engine = engine(&settings(How::Whole));
    let files = Files::with(&[]);
    let call = json!({"code": "echo x > x.txt"});
    let without = ToolContext::new("run", "1").with_workspace(files.clone());
    assert_eq!(engine.call("shell", call.clone(), &without).await.status, ToolStatus::Refused);
    let only_reads = Rights { write_files: false, ..Rights::default() };
    let narrow = Arc::new(TaskRights::default().narrowed_by(Grantor::Goal, &only_reads));
    let result = engine.call("shell", call, &context(&files).within(narrow)).await;
    assert!(result.content.contains("no right to write files"), "{result:?}");
    assert_eq!(files.names(), Vec::<String>::new());
}

/// The middle of the times that something takes, in milliseconds.
fn middle(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

/// Run with `--ignored --nocapture`, in an optimised build.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures, and needs a machine that does nothing else"]
async fn a_warm_call_costs_little_more_than_the_bare_program() {
    const TIMES: usize = 30;
    let own = SandboxSettings { pool: 1, ..settings(How::Whole) };
    for command in [["/bin/sh", "-c", "echo"], ["/usr/bin/python3", "-c", "print(1)"]] {
        let warm = Sandbox::with_stage(own.clone(), STAGE);
        let cold = Sandbox::with_stage(settings(How::Whole), STAGE);
        let (mut bare, mut warm_times, mut cold_times) = (Vec::new(), Vec::new(), Vec::new());
        warm.run(program(&command), &CancellationToken::new()).await.unwrap();
        for _ in 0..TIMES {
            until("one is ready", || warm.waiting() == 1).await;
            // What was started is ready before it is quiet.
            tokio::time::sleep(Duration::from_millis(50)).await;
            let begun = Instant::now();
            let output = std::process::Command::new(command[0]).args(&command[1..]).output().unwrap();
            bare.push(begun.elapsed());
            let begun = Instant::now();
            let end = warm.run(program(&command), &CancellationToken::new()).await.unwrap();
            warm_times.push(begun.elapsed());
            assert_eq!(text(&end.output).as_bytes(), output.stdout);
            let begun = Instant::now();
            cold.run(program(&command), &CancellationToken::new()).await.unwrap();
            cold_times.push(begun.elapsed());
        }
        let (bare, warm, cold) = (middle(bare), middle(warm_times), middle(cold_times));
        println!("{}: bare {bare:.1} ms, warm {warm:.1} ms, cold {cold:.1} ms", command[0]);
        assert!(warm - bare <= 30.0, "a warm call costs {:.1} ms more", warm - bare);
    }
}
