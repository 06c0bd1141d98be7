//! `muster replay`: every decision of a run made again from its record, and compared.

use muster_shared::ids::RunId;
use muster_shared::run::Entry;
use serde_json::{Value, json};

use super::select;
use crate::app::App;
use crate::args::ReplayArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::render::figures;

/// Longest part of a difference that is shown to a person, in characters.
const SHOWN: usize = 1_200;

/// Decides everything again and says whether it came out the same.
pub(super) async fn replay(app: &App, args: &ReplayArgs) -> Result<Exit, Failure> {
    let (run, entries, missing) =
        select::reading(app, async |bus| select::wanted_whole(bus, &args.run).await).await?;
    if let Some(missing) = missing {
        return damaged(run, &missing, args);
    }
    let difference = match compare(run, &entries) {
        Ok(same) => {
            return output::json_or_line(args.json, || &same, || in_words(run, entries.len(), &same));
        }
        Err(difference) => difference,
    };
    let shown = |part: &str| figures::one_line(difference[part].as_str().unwrap_or_default(), SHOWN);
    let in_words = || {
        format!(
            "run {} comes out differently at entry {} ({})\n  the record holds: {}\n  decided now:      {}",
            run.short(),
            difference["seq"],
            difference["part"].as_str().unwrap_or_default(),
            shown("expected"),
            shown("came")
        )
    };
    output::json_or_line(args.json, || &difference, in_words)?;
    Ok(Exit::Failed)
}

/// Of a record that is not whole nothing is decided again: what came out the same would not be the run.
fn damaged(run: RunId, missing: &str, args: &ReplayArgs) -> Result<Exit, Failure> {
    output::json_or_line(
        args.json,
        || not_whole(run, missing),
        || format!("the record of run {} is damaged: {missing}", run.short()),
    )?;
    Ok(Exit::Failed)
}

/// What is said of a record that is not whole, as JSON.
pub(crate) fn not_whole(run: RunId, missing: &str) -> Value {
    json!({ "run": run, "same": false, "missing": missing })
}

/// Counts of what came out the same; else the first difference, whichever of both sides it is on.
pub(crate) fn compare(run: RunId, entries: &[Entry]) -> Result<Value, Value> {
    let orchestrators = muster_orchestrator::replay::replay(run, entries);
    let agents = muster_agents::react::replay::replay(entries);
    match (orchestrators, agents) {
        (Ok(decided), Ok(stepped)) => Ok(json!({
            "run": run, "same": true, "decisions": decided.decisions, "events": decided.events,
            "offers": decided.offers, "steps": stepped.steps, "answers": stepped.answers, "taken": stepped.taken,
        })),
        (Err(one), Err(other)) if other.seq < one.seq => Err(of_agent(run, &other)),
        (Err(one), _) => Err(json!({
            "run": run, "same": false, "seq": one.seq, "part": one.part,
            "expected": one.expected, "came": one.came,
        })),
        (Ok(_), Err(other)) => Err(of_agent(run, &other)),
    }
}

fn of_agent(run: RunId, difference: &muster_agents::react::replay::Divergence) -> Value {
    json!({
        "run": run, "same": false, "seq": difference.seq, "part": format!("task {}", difference.task),
        "expected": difference.expected, "came": difference.came,
    })
}

fn in_words(run: RunId, entries: usize, same: &Value) -> String {
    let count = |name: &str, what: &str| figures::plural(same[name].as_u64().unwrap_or(0), what);
    let mut text = format!(
        "run {} comes out the same: {}, {}, {} and {} decided again from {} entries",
        run.short(),
        count("decisions", "decision"),
        count("offers", "offer"),
        count("steps", "step"),
        count("answers", "model answer"),
        figures::count(entries as u64),
    );
    if same["taken"].as_u64().is_some_and(|taken| taken > 0) {
        text += &format!("; {} without a model answer taken as recorded", count("taken", "step"));
    }
    text
}
