//! One step of a task: what is still to be computed, looked up or written, else the result.

use serde_json::Value;

use super::answers::{Answer, Call};
use super::request::Seen;
use super::result::Gathered;
use super::{facts, words};

/// Most calls in one answer.
const AT_ONCE: usize = 12;
/// Passages asked for where one answer is wanted, and for each document where several are compared.
const PASSAGES: usize = 5;
/// Lines read around what was found and does not say all.
const AROUND: u32 = 12;

/// The next step of a task.
pub(super) fn step(seen: &Seen) -> Answer {
    let gathered = Gathered::from(seen);
    let mut calls = if seen.is_last { Vec::new() } else { calls(seen, &gathered) };
    if calls.is_empty() {
        return gathered.submitted(seen);
    }
    calls.truncate(if seen.parallel { AT_ONCE } else { 1 });
    let first = calls.first().map(|call| call.tool.clone()).unwrap_or_default();
    Answer::calls(format!("{} of what is asked is not known yet; `{first}` is next.", calls.len()), calls)
}

/// Everything that can be done now and does not need each other.
fn calls(seen: &Seen, gathered: &Gathered) -> Vec<Call> {
    let mut calls = computing(seen, gathered);
    calls.extend(looking_up(seen, gathered));
    if calls.is_empty() {
        calls = writing(seen, gathered);
    }
    calls
}

fn computing(seen: &Seen, gathered: &Gathered) -> Vec<Call> {
    let Some(calculator) = seen.tools.calculator() else { return Vec::new() };
    let open = gathered.sums.iter().map(|sum| calculator.computing(&sum.sum.expression));
    let open = open.filter(|arguments| !seen.was_called(&calculator.name, arguments));
    open.map(|arguments| Call::of(calculator, arguments)).collect()
}

/// First each aspect by itself, then what is missing, then around what was found.
fn looking_up(seen: &Seen, gathered: &Gathered) -> Vec<Call> {
    if !gathered.looks_up {
        return Vec::new();
    }
    let Some(search) = seen.tools.search() else { return reading_all(seen) };
    let documents = seen.documents();
    let most = if gathered.asked.of_each { PASSAGES + documents.len() } else { PASSAGES };
    let new =
        |arguments: Value| (!seen.was_called(&search.name, &arguments)).then(|| Call::of(search, arguments));
    let first: Vec<Call> = gathered
        .asked
        .aspects
        .iter()
        .filter(|aspect| !was_searched(seen, &words::query(aspect)))
        .filter_map(|aspect| new(search.searching(&words::query(aspect), most, None)))
        .collect();
    if !first.is_empty() {
        return first;
    }
    let mut second = Vec::new();
    for cell in gathered.cells.iter().filter(|cell| cell.line.is_none()) {
        let words = words::query(&cell.aspect);
        let (words, path) = match &cell.path {
            Some(path) if search.takes("path") || search.takes("paths") => (words, Some(path.as_str())),
            Some(path) => (format!("{words} {}", name_of(path)), None),
            None => (longest(&cell.aspect), None),
        };
        second.extend(new(search.searching(&words, PASSAGES, path)));
    }
    if second.is_empty() { reading_around(seen, gathered) } else { second }
}

/// Whether these words were searched for, however many passages were asked for.
fn was_searched(seen: &Seen, words: &str) -> bool {
    seen.observed.iter().any(|one| {
        one.arguments.as_object().is_some_and(|fields| fields.values().any(|value| value == words))
    })
}

/// Without a search, documents that are listed are read from the front.
fn reading_all(seen: &Seen) -> Vec<Call> {
    let Some(read) = seen.tools.read() else { return Vec::new() };
    let calls = seen.documents().into_iter().map(|path| read.reading(&path, 1, 400));
    calls
        .filter(|arguments| !seen.was_called(&read.name, arguments))
        .map(|arguments| Call::of(read, arguments))
        .collect()
}

/// A question of which the best line does not say all: what stands around it is read, once.
fn reading_around(seen: &Seen, gathered: &Gathered) -> Vec<Call> {
    let Some(read) = seen.tools.read().filter(|_| !gathered.asked.of_each) else { return Vec::new() };
    let was_read = seen.observed.iter().any(|one| one.tool == read.name);
    let unsure = gathered.cells.iter().filter(|cell| !cell.is_whole);
    let near = unsure.filter_map(|cell| facts::best(&gathered.lines, &longest(&cell.aspect), None));
    let calls = near.map(|(line, _)| {
        read.reading(&line.path, line.number.saturating_sub(AROUND).max(1), line.number + AROUND)
    });
    if was_read { Vec::new() } else { calls.map(|arguments| Call::of(read, arguments)).collect() }
}

fn writing(seen: &Seen, gathered: &Gathered) -> Vec<Call> {
    let Some(write) = seen.tools.write() else { return Vec::new() };
    let wanted = gathered.files.iter().map(|name| write.writing(name, &gathered.content(name)));
    wanted
        .filter(|arguments| !seen.was_called(&write.name, arguments))
        .map(|arguments| Call::of(write, arguments))
        .collect()
}

/// The words of a file's name.
fn name_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.rsplit_once('.').map_or(name, |(name, _)| name);
    name.replace(['-', '_'], " ")
}

/// The longest words of a question: the rarest, most likely.
fn longest(text: &str) -> String {
    let query = words::query(text);
    let mut words: Vec<&str> = query.split(' ').collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.truncate(3);
    words.join(" ")
}
