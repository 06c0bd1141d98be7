//! The doors of the program itself, fuzzed: settings, teams, the state of a fleet, plans in files, suites, grants, exported records.
//!
//! The targets are here because what they read is private to the program. `make fuzz` runs them with those of
//! `tests/fuzz`; the corpus and what was found stand there too.

use std::collections::BTreeMap;
use std::time::Duration;

use muster_fuzz::{Plan, Seen, Shape, Target, corpus, found, fuzz, keep, replay};
use muster_shared::flow::PlanDraft;

use crate::audit::signed::{AuditKeys, KeysOrigin};
use crate::audit::{Apart, Audit, AuditedRecord, file};
use crate::commands::plan_from_text;
use crate::eval::Suite;
use crate::fleet::state::FleetState;
use crate::settings;
use crate::trust::Grant;

const SETTINGS: Target =
    Target::new("settings", Shape::Toml, |input| refused(settings::read_settings_text(&text_of(input))))
        .with_fixtures(&["deploy/muster.example.toml"])
        .with_words(WORDS);

const TEAMS: Target =
    Target::new("teams", Shape::Toml, |input| refused(settings::read_team_text(&text_of(input))))
        .with_fixtures(&["deploy/examples/fleet.toml"])
        .with_words(WORDS);

const WORDS: &[&str] = &[
    "[members]",
    "server.binary",
    "= [",
    "= {",
    "'''",
    "\"\"\"",
    "1979-05-27T07:32:00Z",
    "inf",
    "nan",
    "0x_f",
    "1e400",
    "[[",
    "]]",
    "a.b.c.d",
    "\"\" = 1",
    "\"\\u0000\"",
    "\"\\U0010FFFF\"",
];

const FLEET_STATE: Target = Target::new("fleet_state", Shape::Json, |input| {
    let state: FleetState = match serde_json::from_slice(input) {
        Ok(state) => state,
        Err(error) => return Ok(Seen::at_door(error)),
    };
    let written = serde_json::to_vec_pretty(&state).map_err(|error| error.to_string())?;
    let again: FleetState =
        serde_json::from_slice(&written).map_err(|error| format!("not read again: {error}"))?;
    let _roles: Vec<&str> = state.members.iter().map(crate::fleet::state::MemberState::role).collect();
    // What a planted file names is looked at, and no more.
    let _ours = state.supervisor.is_ours();
    if again == state { Ok(Seen::Read) } else { Err("read again it is another".to_owned()) }
});

const PLAN_FILES: Target = Target::new("plan_files", Shape::Toml, |input| {
    let text = text_of(input);
    let mut reasons = Vec::new();
    for ending in ["json", "toml", "yaml"] {
        match plan_from_text::<PlanDraft>(&text, ending) {
            Ok(draft) => {
                let written = serde_json::to_string(&draft).map_err(|error| error.to_string())?;
                let again = plan_from_text::<PlanDraft>(&written, "json")
                    .map_err(|why| format!("not read again: {why}"))?;
                if again != draft {
                    return Err("read again it is another".to_owned());
                }
                return Ok(Seen::Read);
            }
            Err(reason) => reasons.push(reason),
        }
    }
    Ok(Seen::at_door(reasons.join("\n")))
})
.with_fixtures(&["tests/fuzz/corpus/plans"])
.with_words(&["- ", "&a", "*a", "<<: *a", "!!", "---", "...", "? ", ": ", "|"]);

const SUITES: Target =
    Target::new("suites", Shape::Toml, |input| refused(Suite::read(&text_of(input)).map(drop)))
        .with_fixtures(&["src/eval/suites/*.toml"])
        .with_words(&["settings", "(a+)+$", "completed"]);

const GRANTS: Target = Target::new("grants", Shape::Json, |input| {
    let grant: Grant = match serde_json::from_slice(input) {
        Ok(grant) => grant,
        Err(error) => return Ok(Seen::at_door(error)),
    };
    let written = serde_json::to_vec(&grant).map_err(|error| error.to_string())?;
    let again: Grant =
        serde_json::from_slice(&written).map_err(|error| format!("not read again: {error}"))?;
    if again == grant { Ok(Seen::Read) } else { Err("read again it is another".to_owned()) }
})
.with_words(&["bus"]);

const AUDIT_FILES: Target = Target::new("audit_files", Shape::Text, |input| {
    let text = text_of(input);
    let read = match file::read(&text) {
        Ok(read) => read,
        Err(error) => return Ok(Seen::at_door(error)),
    };
    let written =
        file::write(read.run, &read.messages, read.keys.clone()).map_err(|error| error.to_string())?;
    let again = file::read(&written).map_err(|error| format!("not read again: {error}"))?;
    if again != read {
        return Err("read again it is another".to_owned());
    }
    let keys = read.keys.clone().map(|trust| AuditKeys { trust, origin: KeysOrigin::Claimed });
    let record = AuditedRecord { messages: &read.messages, keys: keys.as_ref(), missing: None };
    let found = Audit::of(read.run, &record, Apart::default());
    let _shown = serde_json::to_string(&found).map_err(|error| error.to_string())?;
    Ok(if found.passes() { Seen::Read } else { Seen::Refused("it does not fit".to_owned()) })
});

const ALL: [&Target; 7] = [&SETTINGS, &TEAMS, &FLEET_STATE, &PLAN_FILES, &SUITES, &GRANTS, &AUDIT_FILES];

fn text_of(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

fn refused<T>(read: Result<T, impl std::fmt::Display>) -> Result<Seen, String> {
    Ok(read.map_or_else(|error| Seen::at_door(error), |_| Seen::Read))
}

/// How long each target is fuzzed, where `make fuzz` says so.
fn asked() -> Option<u64> {
    std::env::var("MUSTER_FUZZ_SECONDS").ok()?.parse().ok()
}

#[test]
fn the_doors_of_the_program_hold() {
    let seed = std::env::var("MUSTER_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let (time, executions) = match asked() {
        Some(seconds) => (Some(Duration::from_secs(seconds)), None),
        None => (None, Some(1_000)),
    };
    let mut wrong = BTreeMap::new();
    for target in ALL {
        let figures = fuzz(target, Plan { seed, executions, time, tried: None }).unwrap();
        if asked().is_some() {
            let rate = figures.executions.checked_div(asked().unwrap_or(1)).unwrap_or(0);
            let share = (figures.read * 100).checked_div(figures.executions).unwrap_or(0);
            crate::output::note(&format!(
                "{:<18} {:>12} {rate:>10} {share:>5} % {:>9} {:>6} ms  {}",
                target.name,
                figures.executions,
                figures.refusals,
                figures.slowest.as_millis(),
                figures.findings.len()
            ));
        }
        for finding in figures.findings {
            let place = keep(target.name, &finding.input).unwrap();
            wrong.insert(format!("{}: {:?} {}", target.name, finding.kind, finding.what), place);
        }
    }
    assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
}

#[test]
fn what_was_found_stays_mended() {
    for target in ALL {
        assert!(!corpus(target).unwrap().is_empty(), "{} has no corpus", target.name);
        let inputs: Vec<Vec<u8>> = found(target).unwrap().into_values().collect();
        let findings = replay(target, inputs).unwrap();
        assert!(findings.is_empty(), "{}: {findings:?}", target.name);
    }
}
