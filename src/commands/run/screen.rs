//! What a person sees while a run goes on: a tree that is redrawn, or plain lines where there is no terminal.

use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use muster_shared::flow::Step;
use muster_shared::ids::TaskId;
use muster_shared::run::RunState;
use muster_shared::time::Millis;

use crate::render::doing;
use crate::render::figures;
use crate::render::live::Frame;
use crate::render::paint::Paint;
use crate::render::progress::{self, Doing, Told};
use crate::render::safe;
use crate::{logging, output};

/// The screen of one run. Everything goes to standard error.
pub(crate) struct Screen {
    kind: ScreenKind,
    paint: Paint,
    /// What the run lacks, below its tree.
    waits: RefCell<Vec<String>>,
    /// What it was expected to use.
    estimate: RefCell<Option<String>>,
}

enum ScreenKind {
    Quiet,
    Plain(RefCell<Lines>),
    Terminal(RefCell<Live>),
}

impl Screen {
    /// The screen that fits where standard error goes.
    pub(in crate::commands) fn new(paint: Paint, quiet: bool) -> Self {
        let kind = if quiet {
            ScreenKind::Quiet
        } else if std::io::stderr().is_terminal() {
            ScreenKind::Terminal(RefCell::new(Live::default()))
        } else {
            ScreenKind::Plain(RefCell::default())
        };
        Self { kind, paint, waits: RefCell::default(), estimate: RefCell::default() }
    }

    /// Whether a tree is redrawn in place.
    pub(super) const fn is_live(&self) -> bool {
        matches!(self.kind, ScreenKind::Terminal(_))
    }

    /// Shows the run as it stands.
    pub(super) fn show(&self, state: &RunState, doing: &Doing, now: Millis) {
        let state = &*state.as_seen();
        match &self.kind {
            ScreenKind::Quiet => {}
            ScreenKind::Plain(lines) => {
                let mut lines = lines.borrow_mut();
                for line in lines.told.changes(state) {
                    lines.say(state, now, &line);
                }
            }
            ScreenKind::Terminal(live) => {
                let (columns, rows) = size();
                // One column stays free: some terminals wrap a full line.
                let mut tree = progress::tree(state, doing, now, columns - 1, self.paint);
                for line in self.waits.borrow().iter() {
                    let line = figures::cut(&format!("waiting for {line}"), columns - 1);
                    tree = format!("{tree}\n{}", self.paint.warn(&line));
                }
                live.borrow_mut().put("", tree, columns, rows);
            }
        }
    }

    /// Tells a step that was taken, where no tree shows what is being done.
    pub(super) fn step(&self, state: &RunState, task: &TaskId, step: &Step, now: Millis) {
        if let ScreenKind::Plain(lines) = &self.kind {
            lines.borrow_mut().say(state, now, &doing::step(task, step));
        }
    }

    /// Tells what is being done, where nothing was told for a while and no tree shows it.
    pub(super) fn still(&self, state: &RunState, doing: &Doing, now: Millis) {
        if let ScreenKind::Plain(lines) = &self.kind {
            let mut lines = lines.borrow_mut();
            if lines.last.is_none_or(|last| last.elapsed() >= SILENCE) {
                lines.say(state, now, &progress::still(&state.as_seen(), doing));
            }
        }
    }

    /// Says what the run is expected to use, and keeps it for its end.
    pub(super) fn estimate(&self, text: &str) {
        self.say(&format!("estimated: {text}"));
        self.estimate.replace(Some(text.to_owned()));
    }

    /// What the run was expected to use, where that was said.
    pub(super) fn estimated(&self) -> Option<String> {
        self.estimate.borrow().clone()
    }

    /// Whether nothing is shown.
    pub(super) const fn is_quiet(&self) -> bool {
        matches!(self.kind, ScreenKind::Quiet)
    }

    /// Shows what is being done before there is a run. On a terminal, the next one takes its place.
    pub(super) fn stage(&self, text: &str) {
        if let ScreenKind::Terminal(live) = &self.kind {
            let (columns, rows) = size();
            live.borrow_mut().put("", figures::cut(text, columns - 1), columns, rows);
        }
    }

    /// Says a line that stays.
    pub(super) fn say(&self, text: &str) {
        match &self.kind {
            ScreenKind::Quiet => {}
            ScreenKind::Plain(_) => output::note(text),
            ScreenKind::Terminal(live) => live.borrow_mut().say(text),
        }
    }

    /// Says what has to be known also where no progress is shown.
    pub(super) fn warn(&self, text: &str) {
        match &self.kind {
            ScreenKind::Quiet => output::note(text),
            ScreenKind::Plain(_) | ScreenKind::Terminal(_) => self.say(text),
        }
    }

    /// What is lacking is shown below the tree.
    pub(super) fn waits(&self, lines: &[String]) {
        if *self.waits.borrow() != lines {
            self.waits.replace(lines.to_vec());
        }
    }

    /// Leaves what is shown as it is.
    pub(super) fn end(&self) {
        if let ScreenKind::Terminal(live) = &self.kind {
            live.borrow_mut().end();
        }
    }
}

/// Longest time in which nothing is told.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

/// Lines for a log: what changed, and when something was told last.
#[derive(Default)]
struct Lines {
    told: Told,
    last: Option<Instant>,
}

impl Lines {
    fn say(&mut self, state: &RunState, now: Millis, line: &str) {
        self.last = Some(Instant::now());
        output::note!("{:>7}  {line}", figures::span(now.since(state.created_at)));
    }
}

/// What is shown on a terminal, and redrawn in place.
#[derive(Default)]
struct Live {
    frame: Frame,
    tree: String,
}

impl Live {
    fn put(&mut self, said: &str, tree: String, columns: usize, rows: usize) {
        logging::hold();
        let said = format!("{}{}", logging::take_held(), safe::painted(said));
        if !said.is_empty() || tree != self.tree {
            write(&self.frame.next(&said, &safe::painted(&tree), columns, rows));
            self.tree = tree;
        }
    }

    fn say(&mut self, text: &str) {
        let (columns, rows) = size();
        let tree = std::mem::take(&mut self.tree);
        self.put(text, tree, columns, rows);
    }

    fn end(&mut self) {
        if !self.tree.is_empty() {
            // In full, whatever scrolls away: it is not redrawn any more.
            write(&self.frame.next("", &safe::painted(&self.tree), size().0, usize::MAX));
        }
        write(self.frame.end());
        self.tree.clear();
        logging::release();
    }
}

/// In one piece, so that no half of a frame is seen. Nobody is there to be told of a terminal that is gone.
fn write(text: &str) {
    let mut terminal = std::io::stderr().lock();
    let _ = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}

/// Columns and rows of the terminal.
fn size() -> (usize, usize) {
    (output::columns(), output::rows())
}
