//! `muster alerts`, and the line about alerts in `muster ps`.

use muster_shared::ids::AgentId;
use muster_shared::text::counted;
use muster_shared::time::Millis;
use serde_json::{Value, json};

use super::{figures, table};
use crate::alerts::rule::Rule;
use crate::alerts::state::{Phase, Series, Silence, Silences, State};

/// Most characters of what there is to say of a series.
const DETAIL: usize = 100;
/// Most series that the line of `muster ps` names.
const MOST_NAMED: usize = 4;

/// What is shown of alerts.
pub(crate) struct Shown<'a> {
    /// The rules of the settings here.
    pub(crate) rules: &'a [Rule],
    /// What is known on the bus; nothing where there is none.
    pub(crate) state: Option<&'a State>,
    /// Which rules are silenced.
    pub(crate) silences: &'a Silences,
    /// Who looks after alerts.
    pub(crate) holder: Option<&'a AgentId>,
    /// The time.
    pub(crate) now: Millis,
}

/// Rules, then what fires, then what waits to be told.
pub(crate) fn list(shown: &Shown<'_>) -> String {
    let rows = shown.rules.iter().map(|rule| row(rule, shown)).collect();
    let mut text = table::plain(&["RULE", "LOOKS AT", "ABOVE", "STATE", "TOLD"], rows, &[], None);
    let mut lines: Vec<String> = Vec::new();
    for (rule, series, one) in shown.state.into_iter().flat_map(State::firing) {
        lines.push(firing(rule, series, one, shown));
    }
    for (rule, silence) in shown.silences.iter().filter(|(_, silence)| silence.until > shown.now) {
        lines.push(silenced(rule, silence, shown.now));
    }
    for (to, count, why) in shown.state.into_iter().flat_map(|state| state.outbox.waiting()) {
        let why =
            if why.is_empty() { String::new() } else { format!(": {}", figures::one_line(why, DETAIL)) };
        lines.push(format!(
            "{} to {to}{why}",
            counted(count, "notice waits to be told", "notices wait to be told")
        ));
    }
    let is_told = shown.rules.iter().any(|rule| !rule.to.is_empty());
    match (shown.state, shown.holder) {
        _ if !is_told => {
            lines.push("nobody is told: alerts.to names destinations, or log (docs/alerts.md)".to_owned())
        }
        (Some(_), None) => {
            lines.push(
                "nobody looks after alerts: `muster up` starts who does, or `muster alerts watch`".to_owned(),
            );
        }
        (Some(_), Some(_)) | (None, _) => {}
    }
    if !lines.is_empty() {
        text.push('\n');
        text.push_str(&lines.join("\n"));
    }
    text
}

fn row(rule: &Rule, shown: &Shown<'_>) -> Vec<String> {
    let all = shown.state.and_then(|state| state.rules.get(&rule.name));
    let count = |fires: bool| {
        all.map_or(0, |all| all.values().filter(|one| fires == (one.phase != Phase::Pending)).count())
    };
    let is_silent = shown.silences.get(&rule.name).is_some_and(|silence| silence.until > shown.now);
    let state = match (count(true), count(false)) {
        (0, 0) => "-".to_owned(),
        (0, pending) => format!("{pending} pending"),
        (firing, _) => format!("{firing} firing"),
    };
    let state = if is_silent { format!("{state}, silenced") } else { state };
    let told = if rule.to.is_empty() { "nobody".to_owned() } else { rule.to.join(", ") };
    vec![rule.name.clone(), rule.when.to_string(), rule.threshold(), state, told]
}

fn firing(rule: &str, series: &str, one: &Series, shown: &Shown<'_>) -> String {
    let known = shown.rules.iter().find(|known| known.name == rule);
    let value = known.map_or_else(String::new, |known| {
        format!(": {} {}", known.when.what(), known.when.unit().shown(one.value))
    });
    let since = figures::span(shown.now.since(one.since));
    let detail = match one.detail.as_str() {
        "" => String::new(),
        detail => format!(" ({})", figures::one_line(detail, DETAIL)),
    };
    format!(
        "{rule} fires for {} since {} UTC ({since}){value}{detail}",
        figures::one_line(series, 80),
        figures::date(one.since)
    )
}

fn silenced(rule: &str, silence: &Silence, now: Millis) -> String {
    let left = figures::span(silence.until.since(now));
    let by = if silence.by.is_empty() {
        String::new()
    } else {
        format!(" by {}", figures::one_line(&silence.by, 60))
    };
    let because = match silence.because.as_str() {
        "" => String::new(),
        why => format!(": {}", figures::one_line(why, DETAIL)),
    };
    format!("{rule} is silenced{by} for {left} more{because}")
}

/// The same for programs.
pub(crate) fn json(shown: &Shown<'_>) -> Value {
    let rule = |rule: &Rule| {
        let mut value = json!(rule);
        let all = shown.state.and_then(|state| state.rules.get(&rule.name));
        let series = all.into_iter().flatten().map(|(series, one)| {
            json!({
                "name": series, "phase": one.phase, "since": one.since, "told": one.told, "value": one.value,
                "shown": rule.when.unit().shown(one.value), "run": one.run, "detail": one.detail,
            })
        });
        value["threshold"] = json!(rule.threshold());
        value["series"] = series.collect();
        value["silenced"] = json!(shown.silences.get(&rule.name).filter(|silence| silence.until > shown.now));
        value
    };
    let waiting = shown.state.into_iter().flat_map(|state| state.outbox.waiting());
    let waiting = waiting.map(|(to, count, why)| json!({ "to": to, "count": count, "why": why }));
    json!({
        "rules": shown.rules.iter().map(rule).collect::<Vec<_>>(), "holder": shown.holder,
        "looked_at": shown.state.map(|state| state.at), "waiting": waiting.collect::<Vec<_>>(),
    })
}

/// What fires, in a line; nothing where nothing does.
pub(crate) fn line(state: &State) -> Option<String> {
    let all: Vec<(&str, &str, &Series)> = state.firing().collect();
    if all.is_empty() {
        return None;
    }
    let named: Vec<String> = all
        .iter()
        .take(MOST_NAMED)
        .map(|(rule, series, _)| format!("{rule} ({})", figures::one_line(series, 60)))
        .collect();
    let more = match all.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("alerts fire: {}{more}; `muster alerts` says more", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::evaluate::tests::rule;

    fn series(phase: Phase) -> Series {
        Series {
            phase,
            since: Millis(1_700_000_000_000),
            held_ms: 0,
            told: None,
            told_ms: 0,
            value: 12.0,
            run: None,
            detail: "says \u{1b}[31mred".to_owned(),
        }
    }

    #[test]
    fn what_fires_is_told_in_words_that_steer_no_terminal() {
        let mut state = State::default();
        assert_eq!(line(&state), None);
        let all = [("a", Phase::Firing), ("b\u{1b}", Phase::Clearing), ("c", Phase::Pending)];
        let all = all.map(|(name, phase)| (name.to_owned(), series(phase)));
        state.rules.insert("restarts".to_owned(), all.into_iter().collect());
        let said = line(&state).unwrap_or_default();
        assert!(
            said.starts_with("alerts fire: restarts (a), restarts (b") && !said.contains('\u{1b}'),
            "{said}"
        );
        let silence =
            Silence { until: Millis(1_700_000_600_000), by: "ann".into(), because: "we know".into() };
        let silences = Silences::from([("restarts".to_owned(), silence)]);
        let rules = [rule("restarts"), crate::alerts::rule::Rule { to: Vec::new(), ..rule("other") }];
        let now = Millis(1_700_000_060_000);
        let shown = Shown { rules: &rules, state: Some(&state), silences: &silences, holder: None, now };
        let text = list(&shown);
        for words in [
            "2 firing, silenced",
            "since 2023-11-14",
            "silenced by ann",
            "we know",
            "nobody looks after alerts",
            "nobody",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        let value = json(&shown);
        assert_eq!(value["rules"][0]["series"].as_array().map(Vec::len), Some(3));
        assert_eq!(value["rules"][0]["silenced"]["by"], "ann");
    }
}
