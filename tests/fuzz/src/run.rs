//! Running a target: inputs one after the other on a thread with a stack as others have, watched by another.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use crate::mutate::Mutator;
use crate::{Seen, Target, corpus};

/// The stack of the thread: what the threads of our processes have.
const STACK: usize = 2 * 1024 * 1024;
/// The longest that an input may take; shorter where this file itself is tested.
const SLOW: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 2_000 });
/// After this time nobody waits for it any more.
const HANGS: Duration = Duration::from_secs(20);
/// How often is looked whether it hangs.
const LOOK: Duration = Duration::from_millis(100);
/// Most inputs that mutations are made of.
const POOL: usize = 2_000;
/// Most findings of one run.
const MOST_FINDINGS: usize = 10;
/// Longest text by which a refusal says why.
const MOST_SAID: usize = 4 * crate::MAX_INPUT;

/// How long and by which seed.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The same seed makes the same inputs.
    pub seed: u64,
    /// How many inputs, if it ends with their number.
    pub executions: Option<u64>,
    /// How long, if it ends with the time.
    pub time: Option<Duration>,
    /// Where each input is written before it is tried, to be found there if the process dies of it.
    pub tried: Option<PathBuf>,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Something that must hold does not.
    Broken,
    /// It panicked.
    Panicked,
    /// It took too long.
    Slow,
    /// It never came back.
    Hangs,
    /// The process died: its stack overflowed, or its memory was used up.
    Died,
}

/// An input for which something is wrong.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The kind of it.
    pub kind: Kind,
    /// In words.
    pub what: String,
    /// The input.
    pub input: Vec<u8>,
}

impl Finding {
    /// What tells it from others: its words without what they quote and count.
    #[must_use]
    pub fn sort(&self) -> String {
        format!("{:?} {}", self.kind, words_of(&self.what))
    }
}

/// What came of a run.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Inputs that were tried.
    pub executions: u64,
    /// Those of them that were read.
    pub read: u64,
    /// Different refusals.
    pub refusals: usize,
    /// The longest that one took.
    pub slowest: Duration,
    /// What was found, one of each sort.
    pub findings: Vec<Finding>,
}

/// Runs a target: first what there is, then what mutations make of it.
///
/// # Errors
/// When the corpus cannot be read, or no thread started.
pub fn fuzz(target: &'static Target, plan: Plan) -> io::Result<Figures> {
    let mut pool: Vec<Vec<u8>> = corpus(target)?.into_values().collect();
    pool.extend(corpus::found(target)?.into_values());
    if pool.is_empty() {
        return Err(io::Error::other(format!("{} has no corpus", target.name)));
    }
    guarded(move |watch| work(target, &plan, pool, watch))
}

/// Tries inputs one after the other: what is wrong, if anything is.
///
/// # Errors
/// When no thread could be started.
pub fn replay(target: &'static Target, inputs: Vec<Vec<u8>>) -> io::Result<Vec<Finding>> {
    let figures = guarded(move |watch| {
        let mut figures = Figures::default();
        for input in inputs {
            watch.begins(&input);
            figures.executions += 1;
            if let Err(finding) = tried(target, &input) {
                figures.findings.push(finding);
            }
        }
        figures
    })?;
    Ok(figures.findings)
}

/// Tries one input, on a thread of its own.
///
/// # Errors
/// When no thread could be started.
pub fn try_one(target: &'static Target, input: Vec<u8>) -> io::Result<Option<Finding>> {
    Ok(replay(target, vec![input])?.pop())
}

/// What is being tried, and since when.
#[derive(Debug, Default)]
struct Watch(Mutex<Option<Trying>>);

#[derive(Debug)]
struct Trying {
    since: Instant,
    input: Vec<u8>,
}

impl Watch {
    fn held(&self) -> MutexGuard<'_, Option<Trying>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begins(&self, input: &[u8]) {
        let mut held = self.held();
        let trying = held.get_or_insert_with(|| Trying { since: Instant::now(), input: Vec::new() });
        trying.since = Instant::now();
        trying.input.clear();
        trying.input.extend_from_slice(input);
    }

    /// The input that does not come back.
    fn hangs(&self) -> Option<Vec<u8>> {
        self.held()
            .as_ref()
            .filter(|trying| trying.since.elapsed() > HANGS)
            .map(|trying| trying.input.clone())
    }
}

/// Does the work on a thread with a normal stack. A thread that hangs is left behind: the process is to end soon.
fn guarded(work: impl FnOnce(&Watch) -> Figures + Send + 'static) -> io::Result<Figures> {
    listen_for_panics();
    let (watch, (done, result)) = (Arc::new(Watch::default()), mpsc::channel());
    let watched = Arc::clone(&watch);
    thread::Builder::new().name("fuzz".to_owned()).stack_size(STACK).spawn(move || {
        // Whoever waits may have left.
        let _ = done.send(work(&watched));
    })?;
    loop {
        match result.recv_timeout(LOOK) {
            Ok(figures) => return Ok(figures),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("the thread that fuzzes has ended"));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if let Some(input) = watch.hangs() {
                    let what = format!("it has not come back for {} s", HANGS.as_secs());
                    let finding = Finding { kind: Kind::Hangs, what, input };
                    return Ok(Figures { findings: vec![finding], ..Figures::default() });
                }
            }
        }
    }
}

fn work(target: &'static Target, plan: &Plan, mut pool: Vec<Vec<u8>>, watch: &Watch) -> Figures {
    let begun = Instant::now();
    let mut mutator = Mutator::new(plan.seed, target.shape, target.words, &pool);
    let (mut figures, mut refusals, mut sorts) = (Figures::default(), BTreeSet::new(), BTreeSet::new());
    let corpus = pool.len();
    let mut first: Vec<Vec<u8>> = pool.iter().rev().cloned().collect();
    loop {
        let over = plan.executions.is_some_and(|most| figures.executions >= most)
            || plan.time.is_some_and(|most| begun.elapsed() >= most)
            || figures.findings.len() >= MOST_FINDINGS;
        if over {
            figures.refusals = refusals.len();
            return figures;
        }
        let input = first.pop().unwrap_or_else(|| mutator.next(&pool, corpus));
        if let Some(path) = &plan.tried {
            // What cannot be written is not found after a death: the run says so by finding nothing.
            let _ = std::fs::write(path, &input);
        }
        watch.begins(&input);
        let since = Instant::now();
        let seen = tried(target, &input);
        figures.slowest = figures.slowest.max(since.elapsed());
        figures.executions += 1;
        figures.read += u64::from(matches!(seen, Ok(Seen::Read | Seen::Partly(_))));
        match seen {
            Ok(Seen::Read) => {}
            Ok(Seen::Partly(why) | Seen::Refused(why)) => {
                // A refusal that nothing was refused with before comes from a place where nothing was before.
                if refusals.insert(words_of(&why)) && pool.len() < POOL {
                    pool.push(input);
                }
            }
            Err(finding) => {
                if sorts.insert(finding.sort()) {
                    figures.findings.push(finding);
                }
            }
        }
    }
}

/// Tries an input. One that seems slow is tried twice more: something else may have been at work.
fn tried(target: &Target, input: &[u8]) -> Result<Seen, Finding> {
    let mut seen = None;
    let mut least = Duration::MAX;
    for _ in 0..3 {
        let (begun, before) = (Instant::now(), worked());
        seen = Some(checked(target, input)?);
        // Beside others a process waits: what it worked itself counts.
        let own = worked().zip(before).map(|(now, before)| now.saturating_sub(before));
        least = least.min(own.unwrap_or(Duration::MAX)).min(begun.elapsed());
        if least < SLOW {
            break;
        }
    }
    if least >= SLOW {
        let what = format!("it takes {:.1} s", least.as_secs_f64());
        return Err(Finding { kind: Kind::Slow, what, input: input.to_vec() });
    }
    Ok(seen.unwrap_or(Seen::Read))
}

/// How long this process has worked, where the system counts it.
fn worked() -> Option<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    u64::try_from(micros).ok().map(Duration::from_micros)
}

fn checked(target: &Target, input: &[u8]) -> Result<Seen, Finding> {
    let finding = |kind, what| Finding { kind, what, input: input.to_vec() };
    PANIC.with_borrow_mut(|panic| *panic = Some(String::new()));
    let seen = panic::catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
    let panicked = PANIC.take().unwrap_or_default();
    let seen = seen
        .map_err(|_| finding(Kind::Panicked, panicked))?
        .map_err(|broken| finding(Kind::Broken, broken))?;
    if let Seen::Partly(why) | Seen::Refused(why) = &seen {
        if why.trim().is_empty() {
            return Err(finding(Kind::Broken, "it is refused without a word".to_owned()));
        }
        if let Some(raw) = why.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
            return Err(finding(Kind::Broken, format!("{raw:?} stands raw in a refusal: {why:?}")));
        }
        if why.len() > MOST_SAID {
            let what = format!("a refusal is {} bytes long", why.len());
            return Err(finding(Kind::Broken, what));
        }
    }
    Ok(seen)
}

thread_local! {
    /// What a panic said, on a thread that fuzzes.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Panics of threads that fuzz are kept in place of being printed.
fn listen_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let kept = PANIC.with_borrow_mut(|panic| panic.as_mut().map(|panic| *panic = info.to_string()));
            if kept.is_none() {
                usual(info);
            }
        }));
    });
}

/// The first words of a text, without what it quotes and counts.
fn words_of(text: &str) -> String {
    let mut quoted = None;
    let mut words = String::new();
    for c in text.chars().take(400) {
        match quoted {
            Some(mark) if c == mark => quoted = None,
            Some(_) => {}
            None if matches!(c, '"' | '`') => quoted = Some(c),
            None if c.is_ascii_alphabetic() || c == ' ' => words.push(c),
            None => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    fn target(check: fn(&[u8]) -> Result<Seen, String>) -> &'static Target {
        Box::leak(Box::new(Target::new("none", Shape::Text, check)))
    }

    fn kind_of(check: fn(&[u8]) -> Result<Seen, String>) -> Option<Kind> {
        try_one(target(check), b"input".to_vec()).ok()?.map(|finding| finding.kind)
    }

    #[test]
    #[allow(clippy::panic)]
    fn what_is_wrong_is_noticed() {
        assert_eq!(kind_of(|_| Ok(Seen::Read)), None);
        assert_eq!(kind_of(|_| Ok(Seen::Refused("no".to_owned()))), None);
        assert_eq!(kind_of(|_| Err("no".to_owned())), Some(Kind::Broken));
        assert_eq!(kind_of(|_| Ok(Seen::Refused("\u{1b}[31m".to_owned()))), Some(Kind::Broken));
        assert_eq!(kind_of(|_| Ok(Seen::Refused(String::new()))), Some(Kind::Broken));
        assert_eq!(kind_of(|_| panic!("no")), Some(Kind::Panicked));
        let slow = |_: &[u8]| {
            let (begun, limit) = (Instant::now(), 100 * SLOW); // Other tests leave it little of a processor.
            let before = worked();
            while begun.elapsed() < limit
                && worked().zip(before).is_none_or(|(now, before)| now < before + SLOW)
            {}
            Ok(Seen::Read)
        };
        assert_eq!(kind_of(slow), Some(Kind::Slow));
    }

    #[test]
    fn one_finding_of_each_sort_is_told() {
        let pool = vec![b"seed".to_vec()];
        let check: fn(&[u8]) -> Result<Seen, String> =
            |input| Err(format!("{} bytes are wrong", input.len()));
        let plan = Plan { executions: Some(100), ..Plan::default() };
        let figures = work(target(check), &plan, pool, &Watch::default());
        assert_eq!((figures.executions, figures.findings.len()), (100, 1));
    }
}
