//! Which rules hold, and what is told of it. Pure.
//!
//! A series that is above its threshold is pending until it has been so for as long as the rule says, then it fires; one that
//! fires is over when it has been below for as long as the rule says. So what goes up and down is told once, and is over once.
//! These times, and that until it is told again, are counted from look to look, and no look counts for more than [`longest`](Looks::longest): a clock that jumps,
//! or a time in which nobody looked, makes nothing fire and nothing end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use muster_shared::ids::RunId;
use muster_shared::time::Millis;

use super::notice::{Change, MOST_NAMED, Named, Notice};
use super::rule::Rule;
use super::state::{Phase, Series, Silences, State};

/// Most series of one rule that are followed, and of all rules: what is known is kept in one message. Of more, those that are
/// furthest above.
pub(crate) const MOST_SERIES: usize = 100;
pub(crate) const MOST_IN_ALL: usize = 500;

/// Most bytes of the name of a series, and of what there is to say of it.
pub(crate) const MOST_NAME: usize = 100;
pub(crate) const MOST_DETAIL: usize = 160;

/// What was measured of a series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    /// The tool, role, run or process.
    pub(crate) series: String,
    /// Percent, milliseconds, or a number.
    pub(crate) value: f64,
    /// The run, where it is about one.
    pub(crate) run: Option<RunId>,
    /// What there is to say of it.
    pub(crate) detail: String,
}

/// What was measured, by rule. Of a rule that is not in it nothing could be measured: it stays as it is.
pub(crate) type Readings = BTreeMap<String, Vec<Reading>>;

/// A look at what was measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looks {
    /// The time.
    pub(crate) now: Millis,
    /// The most time that counts since the look before.
    pub(crate) longest: Duration,
}

/// What is known after a look, and what is to be told.
pub(crate) fn evaluate(
    before: &State,
    rules: &[Rule],
    readings: &Readings,
    silences: &Silences,
    look: Looks,
) -> (State, Vec<Notice>) {
    let mut state = before.clone();
    // Nothing was looked at before the first look; a clock that was set back gives no time.
    let passed =
        if before.at == Millis(0) { Duration::ZERO } else { look.now.since(before.at).min(look.longest) };
    let step = Step { now: look.now, passed_ms: u64::try_from(passed.as_millis()).unwrap_or(u64::MAX) };
    state.at = look.now;
    let known: BTreeSet<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
    state.rules.retain(|name, _| known.contains(name.as_str()));
    let mut notices = Vec::new();
    for rule in rules {
        let followed: usize = state.rules.values().map(BTreeMap::len).sum();
        let all = state.rules.entry(rule.name.clone()).or_default();
        let room = MOST_SERIES.min(all.len() + MOST_IN_ALL.saturating_sub(followed));
        let over = match readings.get(&rule.name) {
            Some(readings) => step.advance(rule, all, readings, room),
            None => Vec::new(),
        };
        let is_silent = silences.get(&rule.name).is_some_and(|silence| silence.until > look.now);
        let told = step.tell(rule, all, is_silent);
        for (change, named) in [(Change::Fired, told.0), (Change::Repeated, told.1), (Change::Resolved, over)]
        {
            if let Some(notice) = grouped(rule, change, named, look.now, &mut state.told) {
                notices.push(notice);
            }
        }
    }
    state.rules.retain(|_, all| !all.is_empty());
    (state, notices)
}

#[derive(Clone, Copy)]
struct Step {
    now: Millis,
    passed_ms: u64,
}

impl Step {
    /// Takes note of what was measured, and gives what is over of what was told.
    fn advance(
        self,
        rule: &Rule,
        all: &mut BTreeMap<String, Series>,
        readings: &[Reading],
        room: usize,
    ) -> Vec<Named> {
        let mut above: Vec<&Reading> = readings.iter().filter(|one| one.value > rule.above).collect();
        above.sort_by(|one, other| other.value.total_cmp(&one.value));
        let mut seen = BTreeSet::new();
        for reading in above {
            let series = cut(&reading.series, MOST_NAME).to_owned();
            if !all.contains_key(&series) && all.len() >= room {
                continue;
            }
            // The look at which it begins counts for nothing: it may have begun just now.
            let passed_ms = if all.contains_key(&series) { self.passed_ms } else { 0 };
            let known = all.entry(series.clone()).or_insert_with(|| self.begun(reading));
            is_above(rule, known, reading, passed_ms);
            seen.insert(series);
        }
        let mut over = Vec::new();
        all.retain(|series, known| {
            let stays = seen.contains(series) || self.is_below(rule, known);
            if !stays && known.told.is_some() {
                over.push(named(series, known));
            }
            stays
        });
        over
    }

    fn begun(self, reading: &Reading) -> Series {
        Series {
            phase: Phase::Pending,
            since: self.now,
            held_ms: 0,
            told: None,
            told_ms: 0,
            value: reading.value,
            run: None,
            detail: String::new(),
        }
    }

    /// Whether it is followed on all the same.
    fn is_below(self, rule: &Rule, known: &mut Series) -> bool {
        match known.phase {
            Phase::Pending => return false,
            Phase::Firing => {
                known.phase = Phase::Clearing;
                known.held_ms = 0;
            }
            Phase::Clearing => known.held_ms = known.held_ms.saturating_add(self.passed_ms),
        }
        Duration::from_millis(known.held_ms) < rule.clear
    }

    /// What fires and was not told yet, and what is told again.
    fn tell(
        self,
        rule: &Rule,
        all: &mut BTreeMap<String, Series>,
        is_silent: bool,
    ) -> (Vec<Named>, Vec<Named>) {
        let (mut new, mut again) = (Vec::new(), Vec::new());
        for known in all.values_mut().filter(|known| known.told.is_some()) {
            known.told_ms = known.told_ms.saturating_add(self.passed_ms);
        }
        if is_silent {
            return (new, again);
        }
        for (series, known) in all.iter_mut().filter(|(_, known)| known.phase == Phase::Firing) {
            let told_ago = Duration::from_millis(known.told_ms);
            match known.told {
                None => new.push(named(series, known)),
                Some(_) if !rule.repeat.is_zero() && told_ago >= rule.repeat => {
                    again.push(named(series, known))
                }
                Some(_) => continue,
            }
            (known.told, known.told_ms) = (Some(self.now), 0);
        }
        (new, again)
    }
}

fn is_above(rule: &Rule, known: &mut Series, reading: &Reading, passed_ms: u64) {
    known.value = reading.value;
    known.run = reading.run;
    cut(&reading.detail, MOST_DETAIL).clone_into(&mut known.detail);
    match known.phase {
        Phase::Pending => {
            known.held_ms = known.held_ms.saturating_add(passed_ms);
            if Duration::from_millis(known.held_ms) >= rule.lasts {
                known.phase = Phase::Firing;
                known.held_ms = 0;
            }
        }
        Phase::Firing => {}
        Phase::Clearing => {
            known.phase = Phase::Firing;
            known.held_ms = 0;
        }
    }
}

/// The beginning of a text, of so many bytes at most.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn named(series: &str, known: &Series) -> Named {
    Named {
        series: series.to_owned(),
        value: known.value,
        since: known.since,
        run: known.run,
        detail: known.detail.clone(),
    }
}

/// One notice for all that changed alike; nothing where nothing did.
fn grouped(
    rule: &Rule,
    change: Change,
    mut named: Vec<Named>,
    now: Millis,
    told: &mut u64,
) -> Option<Notice> {
    if named.is_empty() {
        return None;
    }
    *told += 1;
    named.sort_by(|one, other| other.value.total_cmp(&one.value));
    let more = named.len().saturating_sub(MOST_NAMED);
    named.truncate(MOST_NAMED);
    Some(Notice {
        id: format!("{}-{told}", now.0),
        at: now,
        rule: rule.name.clone(),
        when: rule.when,
        severity: rule.severity,
        change,
        above: rule.above,
        series: named,
        more,
    })
}

#[cfg(test)]
pub(crate) mod tests;
