//! With a runner that keeps nothing in: what keeps programs in is tested where it is. The program is that of
//! `MUSTER_DUCKDB`, else `duckdb` on the path; where there is none, the tests that need it say so and pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

use std::sync::Mutex;

use muster_tools::{ToolEngine, ToolResult, ToolStatus};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::DataParts;
use crate::sql::{Queries, sql_tools};
use crate::testing::{Held, context, engine};

const SALES: &[u8] = b"region,year,amount\nnorth,2025,10.5\nsouth,2025,20\nnorth,2026,\n";

/// Runs the program in a folder with the files, and nothing around it.
struct Plain;

#[async_trait]
impl ProgramRunner for Plain {
    async fn run(&self, program: Program, _: &CancellationToken) -> Result<ProgramEnd, ToolFailure> {
        let folder = tempfile::tempdir().unwrap();
        let workspace = program.workspace.unwrap();
        for file in workspace.list().await.unwrap() {
            let path = folder.path().join(&file.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let bytes = workspace.read_bytes(&WorkspacePath::parse(&file.path).unwrap()).await.unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let (name, rest) = program.command.split_first().unwrap();
        let mut command = std::process::Command::new(name);
        command.args(rest).current_dir(folder.path()).env("HOME", folder.path());
        let done = command.output().map_err(|error| ToolFailure::NotFound(error.to_string()))?;
        Ok(ended(done.status.code().unwrap_or(-1), &done.stdout, &done.stderr))
    }
}

/// Says what it is told to, and keeps what it was asked.
struct Told {
    end: Result<ProgramEnd, ToolFailure>,
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl ProgramRunner for Told {
    async fn run(&self, program: Program, _: &CancellationToken) -> Result<ProgramEnd, ToolFailure> {
        let refused =
            program.workspace.as_ref().unwrap().write(&WorkspacePath::parse("sales.csv").unwrap(), "x").await;
        assert!(refused.is_err(), "the files of a query are only read");
        self.asked.lock().unwrap().extend(program.command);
        self.end.clone()
    }
}

fn ended(code: i32, output: &[u8], errors: &[u8]) -> ProgramEnd {
    ProgramEnd {
        status: ProgramStatus::Exited(code),
        output: Bytes::copy_from_slice(output),
        errors: Bytes::copy_from_slice(errors),
        cut: false,
        written: Vec::new(),
        refused: Vec::new(),
    }
}

fn tools(runner: Arc<dyn ProgramRunner>, program: &str) -> ToolEngine {
    let sql = SqlSettings { duckdb: true, duckdb_program: program.to_owned(), ..SqlSettings::default() };
    engine(sql_tools(&Arc::new(Queries::new(DataParts {
        sql,
        runner: Some(runner),
        ..DataParts::default()
    }))))
}

async fn ask(engine: &ToolEngine, query: &str) -> ToolResult {
    let held = Held::with(&[
        ("notes/sales.csv", SALES),
        ("people.json", br#"[{"name":"Anna"}]"#),
        ("shop.db", b"x"),
    ]);
    engine.call("sql", json!({"query": query, "engine": "duckdb"}), &context(&held)).await
}

#[tokio::test]
async fn the_program_is_told_of_the_files_and_its_answer_is_read() {
    let told = Arc::new(Told {
        end: Ok(ended(0, b"region,n,code\nnorth,2,007\n\\N,1.5,8\n", b"")),
        asked: Mutex::default(),
    });
    let result = ask(&tools(Arc::<Told>::clone(&told), "duckdb"), "SELECT * FROM sales;").await;
    assert_eq!(result.status, ToolStatus::Success, "{}", result.content);
    let rows = result.data.unwrap()["rows"].clone();
    assert_eq!(
        rows,
        json!([{"region": "north", "n": 2.0, "code": "007"}, {"region": null, "n": 1.5, "code": "8"}])
    );
    assert!(result.content.contains("From notes/sales.csv.\nNot read: `shop.db`"), "{}", result.content);
    let asked = told.asked.lock().unwrap().join("\n");
    assert!(asked.contains("CREATE VIEW \"sales\" AS SELECT * FROM read_csv('notes/sales.csv')"), "{asked}");
    assert!(asked.contains("enable_external_access=false") && !asked.contains("people"), "{asked}");
}

#[tokio::test]
async fn what_is_missing_or_wrong_is_told() {
    let say = |end| tools(Arc::new(Told { end, asked: Mutex::default() }), "duckdb");
    let status = |status| Ok(ProgramEnd { status, ..ended(0, b"", b"") });
    for (end, said) in [
        (
            Err(ToolFailure::NotFound("no".to_owned())),
            "DuckDB is not on this machine: there is no program `duckdb`. Use SQLite.",
        ),
        (Err(ToolFailure::Refused("no sandbox here".to_owned())), "no sandbox here"),
        (Ok(ended(1, b"", b"Parser Error: x")), "DuckDB says: Parser Error: x"),
        (status(ProgramStatus::TimedOut), "stopped after 10000 ms"),
        (status(ProgramStatus::Signalled(9)), "signal 9"),
        (status(ProgramStatus::Exceeded("memory")), "too much memory"),
        (Ok(ProgramEnd { cut: true, ..ended(0, b"a\n1\n", b"") }), "too large"),
    ] {
        let result = ask(&say(end), "SELECT 1 FROM sales").await;
        assert!(!result.is_success() && result.content.contains(said), "{said}: {}", result.content);
    }
    let dotted = ask(&say(Ok(ended(0, b"", b""))), "SELECT 1\n.shell id").await;
    assert!(dotted.content.contains("begins with a dot"), "{}", dotted.content);
    let sql = Arc::new(Queries::new(DataParts::default()));
    let refused = engine(sql_tools(&sql))
        .call("sql", json!({"query": "SELECT 1", "engine": "duckdb"}), &context(&Held::with(&[])))
        .await;
    assert_eq!(
        refused.status,
        ToolStatus::Refused,
        "the schema has no engine where none is allowed: {refused:?}"
    );
}

#[tokio::test]
async fn the_real_program_answers_and_reads_nothing_else() {
    let program = std::env::var("MUSTER_DUCKDB").unwrap_or_else(|_| "duckdb".to_owned());
    if std::process::Command::new(&program).arg("--version").output().is_err() {
        eprintln!("passed over: there is no duckdb here (a `duckdb` on the path, or MUSTER_DUCKDB)");
        return;
    }
    let engine = tools(Arc::new(Plain), &program);
    let result = ask(&engine, "SELECT s.region, sum(amount) AS total, any_value(p.name) AS name FROM sales s, people p GROUP BY 1 ORDER BY 1;").await;
    assert_eq!(result.status, ToolStatus::Success, "{}", result.content);
    assert_eq!(
        result.data.unwrap()["rows"],
        json!([{"region": "north", "total": 10.5, "name": "Anna"}, {"region": "south", "total": 20.0, "name": "Anna"}])
    );
    let by_path = ask(&engine, "SELECT count(*) AS n FROM 'notes/sales.csv'").await;
    assert!(by_path.content.contains("| 3 |"), "{}", by_path.content);
    for query in [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '../../../../etc/passwd.csv'",
        "SELECT * FROM glob('/etc/*')",
        "COPY (SELECT 1) TO '/tmp/muster-never.csv'",
        "INSTALL httpfs",
        "SELECT getenv('HOME')",
        "SELECT 1) ; SET enable_external_access=true; SELECT (1",
        "SELECT regoin FROM sales",
    ] {
        let result = ask(&engine, query).await;
        assert!(!result.is_success(), "{query}: {}", result.content);
    }
    let wrong = ask(&engine, "SELECT regoin FROM sales").await;
    assert!(wrong.content.contains("region"), "{}", wrong.content);
    let cut = ask(&engine, "SELECT * FROM range(1000)").await;
    assert!(cut.content.contains("more than 50"), "{}", cut.content);
}
