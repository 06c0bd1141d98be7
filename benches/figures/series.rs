//! A series of figures in ten minutes, beside the last one that was kept: `make figures`.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use muster_support::figures::{Comparison, Figure, Kept, Machine, Row, Series, Verdict};
use muster_support::figures::{append, better, compare, read};

use crate::{Measurement, census, delegation, documents, idle, print, takeover, up, workload};

/// What belongs to a series, the quick ones first.
const PARTS: [Measurement; 7] = [
    ("census", census::measure),
    ("up", up::measure),
    ("delegation", delegation::measure),
    ("idle", idle::measure),
    ("workload", workload::measure),
    ("documents", documents::measure),
    ("takeover", takeover::measure),
];

/// Measures the series (or those parts of it that are named), compares, and keeps it where that is wanted.
pub(crate) fn measure(only: &[String], keep: bool) -> ExitCode {
    let parts = PARTS.into_iter().filter(|(name, _)| only.is_empty() || only.iter().any(|one| one == name));
    let (machine, kept) = (Machine::this(), read(&history()).unwrap());
    let began = Instant::now();
    let mut figures = Vec::new();
    for (name, measure) in parts {
        println!("{:>4} s  {name}", began.elapsed().as_secs());
        let mut found = measure();
        // What disturbs a series makes it worse, never better: what looks worse is measured once more.
        if compare(&found, &machine, &kept).worse().next().is_some() {
            println!("{:>4} s  {name} once more, since something looks worse", began.elapsed().as_secs());
            found = found.into_iter().zip(measure()).map(|(one, other)| better(one, other)).collect();
        }
        figures.extend(found);
    }
    println!("{:>4} s  all measured\n", began.elapsed().as_secs());
    let compared = compare(&figures, &machine, &kept);
    show(&compared, &machine);
    if keep && cfg!(debug_assertions) {
        println!("not kept: the bare counterparts of an unoptimised build say nothing");
    } else if keep {
        let figures = figures.iter().map(|figure| (figure.what.clone(), Kept::of(figure))).collect();
        append(&history(), &Series { date: today(), commit: commit(), machine, figures }).unwrap();
        println!("kept in benches/history.jsonl");
    }
    if compared.worse().next().is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn show(compared: &Comparison, machine: &Machine) {
    let Machine { cpu, cores, kernel, memory_gib } = machine;
    println!("{cpu}, {cores} cores, Linux {kernel}, {memory_gib} GiB");
    match (&compared.of, compared.same_machine) {
        (None, _) => println!("no series is kept yet: nothing to compare with"),
        (Some((date, commit)), true) => println!("compared with the series of {date}, {commit}"),
        (Some((date, commit)), false) => println!(
            "no series of such a machine is kept: only what is counted is compared, with that of {date}, {commit}"
        ),
    }
    println!(
        "\n{:<62} {:>13}  {:<44} {:<24} change",
        "figure", "measured", "ratio to the bare counterpart", "kept"
    );
    compared.rows.iter().for_each(row);
    for row in compared.worse() {
        println!("\nWORSE by more than 10 %: {}", row.figure.what);
    }
}

fn row(row: &Row) {
    let Figure { what, measured, .. } = &row.figure;
    let before = row.before.map(|before| before.to_string()).unwrap_or_default();
    let ratio = row.ratio_before.map(|ratio| format!(" ({ratio:.2} x)")).unwrap_or_default();
    let change = match row.verdict {
        Verdict::Holds(change) => format!("{:+.1} %", (change - 1.0) * 100.0),
        Verdict::Worse(change) => format!("{:+.1} % WORSE", (change - 1.0) * 100.0),
        Verdict::Shown => "not compared".to_owned(),
        Verdict::New => "new".to_owned(),
    };
    let line = format!(
        "{what:<62} {measured:>13}  {:<44} {:<24} {change}",
        print::bare(&row.figure),
        before + &ratio
    );
    println!("{line}");
}

fn history() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/history.jsonl")
}

fn today() -> String {
    jiff::Zoned::now().date().to_string()
}

/// The commit that was measured: the one that `MUSTER_BENCHED_AS` names, for a program that was built elsewhere, or the
/// one that is checked out, with a `+` where files differ from it.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let checked_out = || {
        let changed = !git(&["status", "--porcelain", "--untracked-files=no"]).is_empty();
        format!("{}{}", git(&["rev-parse", "--short", "HEAD"]), if changed { "+" } else { "" })
    };
    match (std::env::var("MUSTER_BENCHED_AS"), std::env::var("MUSTER_BENCHED")) {
        (Ok(named), _) => named,
        (Err(_), Ok(_)) => "another build".to_owned(),
        (Err(_), Err(_)) => checked_out(),
    }
}
