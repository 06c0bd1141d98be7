//! `muster eval`: runs a suite of goals, each as an ordinary run, and checks what comes of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use muster_shared::flow::Usage;
use muster_shared::ids::RunId;
use muster_shared::time::{Millis, millis};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::app::{App, now};
use crate::args::EvalArgs;
use crate::eval::check::{Documents, Given, check};
use crate::eval::suite::{RunWith, Setting, run_with};
use crate::eval::{EvalGoal, Row, Suite, results, shipped, summaries};
use crate::exit::{Exit, Failure, failed, usage};
use crate::fleet::process::own_program;
use crate::fleet::supervisor::global_words;
use crate::render::{eval as render, figures};
use crate::signals::StopSignals;
use crate::{output, settings};

/// Most bytes of a document that are read to look citations up.
const MAX_DOCUMENT: u64 = 16 * 1024 * 1024;
/// Most documents that are read for that.
const MOST_DOCUMENTS: usize = 20_000;

/// Runs a suite.
pub(super) async fn eval(app: &App, args: &EvalArgs) -> Result<Exit, Failure> {
    let Some(wanted) = &args.suite else { return list() };
    let found = FoundSuite::find(wanted)?;
    let goals: Vec<&EvalGoal> = found
        .suite
        .goals
        .iter()
        .filter(|goal| args.only.is_empty() || args.only.iter().any(|part| goal.name.contains(part.as_str())))
        .collect();
    if goals.is_empty() {
        return Err(usage!("no goal of the suite {} is named so", found.suite.name));
    }
    // Read before anything is written: it may be the last one that is asked for.
    let before = earlier(app, args, &found.suite)?;
    let output = place_for_results(app, args, &found.suite)?;
    let mut stop = StopSignals::listen()?;
    let settings = if args.compare.is_empty() { vec![Setting::default()] } else { args.compare.clone() };
    let of = goals.len() * settings.len() * args.repeat as usize;
    let mut rows: Vec<Row> = Vec::new();
    let mut stopped = false;
    'all: for repeat in 1..=args.repeat {
        for goal in &goals {
            for setting in &settings {
                let trial = Trial { app, found: &found, goal, setting, repeat, model: args.model.as_deref() };
                let mut running = std::pin::pin!(trial.run());
                let row = tokio::select! {
                    row = &mut running => row?,
                    () = stop.wait() => {
                        stopped = true;
                        // It was told as well, and cancels its run before it ends; a second signal leaves it to that.
                        tokio::select! {
                            _ = &mut running => {}
                            () = stop.wait() => {}
                        }
                        break 'all;
                    }
                };
                if !args.quiet && !args.json {
                    output::note(&render::told(&row, rows.len() + 1, of));
                }
                rows.push(row);
                keep(&output, &rows)?;
            }
        }
    }
    tell(args, &found.suite, &rows, before.as_deref(), &output)?;
    Ok(match (stopped, rows.iter().all(Row::passed)) {
        (true, _) => Exit::Stopped,
        (false, true) => Exit::Completed,
        (false, false) => Exit::Unmet,
    })
}

/// Lists the suites that come with Muster.
fn list() -> Result<Exit, Failure> {
    let mut suites = Vec::new();
    for (name, text) in shipped::SUITES {
        let suite = Suite::read(text).map_err(|error| failed!("the suite {name}: {error}"))?;
        suites.push((suite.name, suite.goals.len(), suite.about));
    }
    output::line(&render::suites(&suites))?;
    Ok(Exit::Completed)
}

/// A suite, and where its documents lie.
struct FoundSuite {
    suite: Suite,
    folder: PathBuf,
    /// Holds the documents of a suite that comes with Muster.
    _documents: Option<TempDir>,
}

impl FoundSuite {
    fn find(wanted: &str) -> Result<Self, Failure> {
        let wrong = |error: String| usage!("the suite {wanted} cannot be used: {error}");
        if let Some(text) = shipped::find(wanted) {
            let folder = tempfile::tempdir().map_err(|error| wrong(error.to_string()))?;
            shipped::write_documents(folder.path()).map_err(|error| wrong(error.to_string()))?;
            let suite = Suite::read(text).map_err(wrong)?;
            return Ok(Self { suite, folder: folder.path().to_owned(), _documents: Some(folder) });
        }
        let names = figures::list(shipped::SUITES.iter().map(|(name, _)| name));
        let file = Path::new(wanted);
        let text = std::fs::read_to_string(file).map_err(|error| {
            wrong(error.to_string()).help(format!("name a TOML file, or one that comes with Muster: {names}"))
        })?;
        let suite = Suite::read(&text).map_err(wrong)?;
        Ok(Self { suite, folder: file.parent().unwrap_or(Path::new("")).to_owned(), _documents: None })
    }

    fn documents_of(&self, goal: &EvalGoal) -> Vec<PathBuf> {
        goal.docs.as_ref().unwrap_or(&self.suite.docs).iter().map(|path| self.folder.join(path)).collect()
    }
}

/// One run of one goal with one setting.
struct Trial<'a> {
    app: &'a App,
    found: &'a FoundSuite,
    goal: &'a EvalGoal,
    setting: &'a Setting,
    repeat: u32,
    model: Option<&'a str>,
}

impl Trial<'_> {
    async fn run(&self) -> Result<Row, Failure> {
        let cannot = |error: std::io::Error| failed!("cannot run the goal {}: {error}", self.goal.name);
        let files = tempfile::tempdir().map_err(cannot)?;
        let documents = self.found.documents_of(self.goal);
        let with = run_with(&self.found.suite, self.goal, self.setting, self.model);
        let begun = Instant::now();
        let ended =
            self.command(&with, &documents, files.path()).map_err(cannot)?.output().await.map_err(cannot)?;
        let took = begun.elapsed();
        let summary: Value = serde_json::from_slice(&ended.stdout).unwrap_or_default();
        let usage: Usage = serde_json::from_value(summary["usage"].clone()).unwrap_or_default();
        let said = String::from_utf8_lossy(&ended.stderr);
        let given = Given {
            exit: ended.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
            said: summary["reason"].as_str().map_or_else(|| figures::one_line(&said, 300), str::to_owned),
            report: summary["report"]["body"].as_str().unwrap_or_default().to_owned(),
            files: texts(files.path()),
            calls: usage.calls(),
            prompt_tokens: usage.input_tokens,
            cost_micros: usage.cost_micros,
            took: between(&summary).unwrap_or(took),
        };
        let known: Documents = documents.iter().flat_map(|folder| texts(folder)).collect();
        Ok(Row {
            suite: self.found.suite.name.clone(),
            goal: self.goal.name.clone(),
            setting: self.setting.name.clone(),
            repeat: self.repeat,
            run: serde_json::from_value::<RunId>(summary["run"].clone()).ok(),
            at: now(),
            exit: given.exit,
            calls: given.calls,
            tool_calls: usage.tool_calls,
            prompt_tokens: given.prompt_tokens,
            output_tokens: usage.output_tokens,
            cost_micros: given.cost_micros,
            millis: millis(given.took),
            checks: check(self.goal, &given, &known),
        })
    }

    /// `muster run` with this goal: an ordinary run, by the fleet that is up or one of its own.
    fn command(&self, with: &RunWith, documents: &[PathBuf], files: &Path) -> std::io::Result<Command> {
        let mut command = Command::new(own_program()?);
        command
            .args(global_words(self.app))
            .envs(self.app.found_file())
            .arg("run")
            .arg(&self.goal.goal)
            .args(["--json", "--out"])
            .arg(files);
        for folder in documents {
            command.arg("--docs").arg(folder);
        }
        for (name, value) in &with.options {
            command.arg(format!("--{name}={value}"));
        }
        let mut flags = (*self.app.flags).clone();
        flags.extend(
            with.settings.iter().map(|(key, value)| (key.clone(), value.clone(), "--set".to_owned())),
        );
        // Not as arguments, which can be read by everybody.
        command.envs(settings::handed_down(&flags));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }
}

/// How long the run itself took, without the fleet around it.
fn between(summary: &Value) -> Option<std::time::Duration> {
    let at = |name: &str| serde_json::from_value::<Millis>(summary[name].clone()).ok();
    Some(at("ended_at")?.since(at("created_at")?))
}

/// The text files below a folder, by their path in it.
fn texts(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in
        ignore::WalkBuilder::new(folder).standard_filters(false).build().flatten().take(MOST_DOCUMENTS)
    {
        let small = entry.metadata().is_ok_and(|known| known.is_file() && known.len() <= MAX_DOCUMENT);
        if !small {
            continue;
        }
        let path = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        let name = if path.as_os_str().is_empty() {
            entry.path().file_name().map(PathBuf::from).unwrap_or_default()
        } else {
            path.to_owned()
        };
        if let Ok(text) = std::fs::read_to_string(entry.path()) {
            found.insert(name.display().to_string(), text);
        }
    }
    found
}

/// Where results of a folder are kept.
fn folder_of_results(app: &App) -> PathBuf {
    app.fleet.path().join("eval")
}

fn place_for_results(app: &App, args: &EvalArgs, suite: &Suite) -> Result<PathBuf, Failure> {
    if let Some(file) = &args.output {
        return Ok(file.clone());
    }
    let folder = folder_of_results(app);
    app.fleet.make().map_err(|error| cannot_keep(&folder, &error))?;
    std::fs::create_dir_all(&folder).map_err(|error| cannot_keep(&folder, &error))?;
    Ok(folder.join(format!("{}-{}.jsonl", suite.name, now().0)))
}

/// Kept after each run: what was paid for is not lost with the next one.
fn keep(file: &Path, rows: &[Row]) -> Result<(), Failure> {
    let text = results::written(rows).map_err(|error| failed!("cannot write results: {error}"))?;
    std::fs::write(file, text).map_err(|error| cannot_keep(file, &error))
}

fn cannot_keep(place: &Path, error: &std::io::Error) -> Failure {
    failed!("cannot write results to {}: {error}", place.display()).help("give another file with -o")
}

/// The earlier results that these are to be compared with.
fn earlier(app: &App, args: &EvalArgs, suite: &Suite) -> Result<Option<Vec<Row>>, Failure> {
    let file = match (&args.against, args.last) {
        (Some(file), _) => file.clone(),
        (None, true) => newest(app, suite).ok_or_else(|| {
            usage!("there are no earlier results of the suite {}", suite.name)
                .help("run it once without --last")
        })?,
        (None, false) => return Ok(None),
    };
    let wrong = |error: String| usage!("the results in {} cannot be read: {error}", file.display());
    let text = std::fs::read_to_string(&file).map_err(|error| wrong(error.to_string()))?;
    results::read(&text).map(Some).map_err(wrong)
}

/// The newest results of a suite: the time stands in the name.
fn newest(app: &App, suite: &Suite) -> Option<PathBuf> {
    let begins = format!("{}-", suite.name);
    let files = std::fs::read_dir(folder_of_results(app)).ok()?.flatten();
    let timed = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        let at: u64 = name.strip_prefix(&begins)?.strip_suffix(".jsonl")?.parse().ok()?;
        Some((at, file.path()))
    });
    timed.max().map(|(_, path)| path)
}

fn tell(
    args: &EvalArgs,
    suite: &Suite,
    rows: &[Row],
    before: Option<&[Row]>,
    file: &Path,
) -> Result<(), Failure> {
    let now = summaries(rows);
    if args.json {
        return output::json(&json!({
            "suite": suite.name,
            "passed": rows.iter().all(Row::passed),
            "results": file,
            "summary": now,
            "before": before.map(summaries),
            "rows": rows,
        }));
    }
    output::line(&render::results(&now, rows))?;
    if let Some(before) = before {
        let when = before.first().map_or(Millis(0), |row| row.at);
        output::line!("\n{}", render::beside(&now, &summaries(before), when))?;
    }
    output::note!("results: {}", file.display());
    Ok(())
}
