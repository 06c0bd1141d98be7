//! What came of an ordeal, for people.

use muster_support::chaos::{ChaosResult, Spread};
use muster_support::growth::Growth;

use super::figures;
use super::table;

/// The figures of an ordeal, and what is wrong.
pub(crate) fn report(verdict: &ChaosResult) -> String {
    let faults = verdict.faults;
    let rows = [
        ("runs", verdict.runs.to_string()),
        ("reports, one each", verdict.reported.to_string()),
        ("agents killed", faults.agents_killed.to_string()),
        ("orchestrators killed", faults.orchestrators_killed.to_string()),
        ("nats-server killed", faults.servers_killed.to_string()),
        ("processes frozen and woken", faults.frozen.to_string()),
        ("shapes of fleets", verdict.shapes.len().to_string()),
        ("runs over ten times the median of their shape", verdict.slow.len().to_string()),
        (
            "longest time without an entry",
            format!("{} after entry {}", figures::millis(verdict.longest_pause.0), verdict.longest_pause.1),
        ),
        ("entries of the record", verdict.entries.to_string()),
        ("entries lost", verdict.lost.to_string()),
        ("outcomes or ends doubled", verdict.doubled.to_string()),
        (
            "model calls",
            format!(
                "{} made, {} in the record, {} needed without faults",
                verdict.calls, verdict.calls_in_record, verdict.calls_needed
            ),
        ),
        ("finished model calls repeated", verdict.repeated_calls.to_string()),
        ("calls sent when woken in the middle", verdict.calls_on_waking.to_string()),
        ("agent killed, its task runs elsewhere", spread(verdict.recovery.agent)),
        ("agent killed, what was only offered runs", spread(verdict.recovery.offer)),
        ("orchestrator killed, its runs go on", spread(verdict.recovery.orchestrator)),
        ("nats-server killed, the next entry", spread(verdict.recovery.server)),
    ];
    let rows = rows.into_iter().map(|(what, figure)| vec![what.to_owned(), figure]).collect();
    let mut text = table::plain(&["WHAT", "FIGURE"], rows, &[]);
    if verdict.shapes.len() > 1 {
        let shapes = verdict.shapes.iter().map(|one| {
            vec![
                one.shape.clone(),
                one.took.count.to_string(),
                figures::millis(one.took.p50_ms),
                figures::millis(one.took.max_ms),
                one.slow.to_string(),
            ]
        });
        let heading = ["SHAPE OF THE FLEET", "RUNS", "P50", "MAX", "OVER 10 x P50"];
        text += "\n\n";
        text += &table::plain(&heading, shapes.collect(), &[1, 2, 3, 4]);
    }
    for slow in &verdict.slow {
        text += &format!("\n- {slow}");
    }
    for wrong in &verdict.wrong {
        text += &format!("\n! {wrong}");
    }
    for folder in &verdict.kept {
        text += &format!("\nkept: {}", folder.display());
    }
    text
}

/// The table of `muster bench steps`.
pub(crate) fn growth(grown: &Growth) -> String {
    let ms = |time: f64| format!("{time:.1} ms");
    let bytes = |size: usize| format!("{size} bytes");
    let row = |what: &str, first: String, last: String, ratio: f64| {
        vec![what.to_owned(), first, last, format!("{ratio:.2}")]
    };
    let rows = vec![
        row("own time of a step, journaled", ms(grown.own_first_ms), ms(grown.own_last_ms), grown.of_time()),
        row("a step in the record", bytes(grown.bytes_first), bytes(grown.bytes_last), grown.of_size()),
    ];
    let heading = ["WHAT", "FIRST 100", "LAST 100", "RATIO"];
    let mut text = table::plain(&heading, rows, &[1, 2, 3]);
    text += &format!("\n{} steps; the last request told the model {} bytes", grown.steps, grown.last_request);
    text
}

/// The table of `muster bench recovery`.
pub(crate) fn recovery_table(rows: &[(&str, Spread, ChaosResult)]) -> String {
    let lines = rows.iter().map(|(what, times, verdict)| {
        let reports = format!("{} of {}", verdict.reported, verdict.runs);
        vec![
            (*what).to_owned(),
            times.count.to_string(),
            figures::millis(times.p50_ms),
            figures::millis(times.p99_ms),
            figures::millis(times.max_ms),
            verdict.repeated_calls.to_string(),
            reports,
        ]
    });
    let heading = ["WHAT", "TIMES", "P50", "P99", "MAX", "CALLS REPEATED", "REPORTS"];
    let mut text = table::plain(&heading, lines.collect(), &[1, 2, 3, 4, 5, 6]);
    for wrong in rows.iter().flat_map(|(_, _, verdict)| &verdict.wrong) {
        text += &format!("\n! {wrong}");
    }
    text
}

fn spread(times: Spread) -> String {
    if times.count == 0 {
        return "not seen".to_owned();
    }
    format!(
        "p50 {}, max {} ({} times)",
        figures::millis(times.p50_ms),
        figures::millis(times.max_ms),
        times.count
    )
}
