//! How the screen stands.

use std::collections::BTreeMap;

use muster_shared::ids::{QuestionId, RunId, TaskId};
use muster_shared::run::RequestAction;
use muster_shared::time::Millis;
use uuid::Uuid;

use super::editor::Editor;
use super::list::List;
use super::rows;

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub(crate) enum View {
    /// The processes.
    Fleet,
    /// The runs.
    Runs,
    /// One run.
    Run,
    /// What passes.
    Traffic,
    /// What waits for a person.
    Questions,
}

impl View {
    /// All of them, in order.
    pub(super) const ALL: [Self; 5] = [Self::Fleet, Self::Runs, Self::Run, Self::Traffic, Self::Questions];

    /// The one that is so many further.
    pub(super) fn further(self, by: usize) -> Self {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

/// Where keys go.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Over {
    /// To the view.
    Nothing,
    /// The help, from this line on.
    Help(usize),
    /// A text, from this line on.
    Text {
        /// What it is.
        title: String,
        /// Its lines, harmless.
        text: String,
        /// The first line that is seen.
        from: usize,
    },
    /// A filter that is typed.
    Filter(Editor),
    /// A command that is typed.
    Command(Editor),
    /// Something to be done that is to be confirmed.
    Confirm(Order),
    /// A text that is typed for an order.
    Typing {
        /// What it is for, to be shown before it.
        what: String,
        /// For what.
        purpose: Purpose,
        /// The text.
        editor: Editor,
    },
}

/// For what a text is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The answer to a question.
    Answer(RunId, QuestionId),
    /// Why something is rejected.
    Reject(RunId, QuestionId),
}

/// Something to be asked of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Order {
    /// The run.
    pub(crate) run: RunId,
    /// What is asked of it.
    pub(crate) action: RequestAction,
    /// Why.
    pub(crate) reason: String,
    /// It in words: `cancel run 9f3c`.
    pub(crate) what: String,
}

/// Something that a person is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// What.
    pub(crate) text: String,
    /// Whether something went wrong.
    pub(crate) is_bad: bool,
}

/// Where keys go in the view of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    /// To the tree.
    Tree,
    /// To what a task does.
    Detail,
}

/// How the screen stands.
#[derive(Debug)]
pub(crate) struct Top {
    pub(super) view: View,
    pub(super) over: Over,
    pub(super) fleet: List<String>,
    pub(super) runs: List<RunId>,
    pub(super) tree: List<TaskId>,
    pub(super) traffic: List<u64>,
    pub(super) questions: List<(RunId, QuestionId)>,
    /// The run that is open.
    pub(super) open: Option<RunId>,
    pub(super) focus: Focus,
    /// How many lines of what a task does stand below those that are seen; 0 follows the newest.
    pub(super) back: usize,
    /// Whether it is watched what passes.
    pub(super) tapping: bool,
    pub(super) said: Option<Said>,
    /// What was asked of runs and is not decided upon.
    pub(super) asked: BTreeMap<Uuid, String>,
    pub(super) size: (u16, u16),
    pub(super) now: Millis,
    /// Whether the picture is not as things are.
    pub(super) is_stale: bool,
}

impl Top {
    /// A screen of this size, at this time; a run may be open from the beginning.
    pub(crate) fn new(view: View, size: (u16, u16), now: Millis) -> Self {
        Self {
            view,
            over: Over::Nothing,
            fleet: List::new(1, false, false),
            runs: List::new(2, true, false),
            tree: List::new(0, false, false),
            traffic: List::new(0, false, true),
            questions: List::new(3, false, false),
            open: None,
            focus: Focus::Tree,
            back: 0,
            tapping: false,
            said: None,
            asked: BTreeMap::new(),
            size,
            now,
            is_stale: true,
        }
    }

    /// Whether the picture is to be drawn anew.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// The picture was drawn.
    pub(crate) fn drawn(&mut self) {
        self.is_stale = false;
    }

    /// Rows of the screen that a list has.
    pub(super) fn page(&self) -> isize {
        self.size.1.saturating_sub(6).max(1) as isize
    }

    /// The filter of the list that is seen.
    pub(super) fn filter(&self) -> &str {
        match self.view {
            View::Fleet => &self.fleet.filter,
            View::Runs => &self.runs.filter,
            View::Run => &self.tree.filter,
            View::Traffic => &self.traffic.filter,
            View::Questions => &self.questions.filter,
        }
    }

    pub(super) fn set_filter(&mut self, text: &str) {
        let filter = match self.view {
            View::Fleet => &mut self.fleet.filter,
            View::Runs => &mut self.runs.filter,
            View::Run => &mut self.tree.filter,
            View::Traffic => &mut self.traffic.filter,
            View::Questions => &mut self.questions.filter,
        };
        text.clone_into(filter);
    }

    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.said = Some(Said { text: text.into(), is_bad: false });
    }

    pub(super) fn complain(&mut self, text: impl Into<String>) {
        self.said = Some(Said { text: text.into(), is_bad: true });
    }

    /// Sorts the list that is seen by what a key means in it, if it means something.
    pub(super) fn sort(&mut self, by: SortKey) {
        let column = match (self.view, by) {
            (View::Fleet, SortKey::Memory) => Some((rows::FLEET_BY_MEMORY, true)),
            (View::Fleet, SortKey::Time) => Some((rows::FLEET_BY_TIME, true)),
            (View::Fleet, SortKey::Work) => Some((rows::FLEET_BY_BUSY, true)),
            (View::Fleet, SortKey::Name) => Some((0, false)),
            (View::Runs, SortKey::Memory) => Some((rows::RUNS_BY_COST, true)),
            (View::Runs, SortKey::Time) => Some((rows::RUNS_BY_TIME, true)),
            (View::Runs, SortKey::Work) => Some((rows::RUNS_BY_CALLS, true)),
            (View::Runs, SortKey::Name) => Some((2, true)),
            (View::Questions, SortKey::Time) => Some((rows::QUESTIONS_BY_LEFT, false)),
            (View::Questions, SortKey::Name) => Some((0, false)),
            (View::Questions, SortKey::Memory | SortKey::Work) | (View::Run | View::Traffic, _) => None,
        };
        match (self.view, column) {
            (View::Fleet, Some((column, reversed))) => self.fleet.sort_by(column, reversed),
            (View::Runs, Some((column, reversed))) => self.runs.sort_by(column, reversed),
            (View::Questions, Some((column, reversed))) => self.questions.sort_by(column, reversed),
            (View::Run | View::Traffic, _) | (_, None) => self.complain("this is not sorted by that"),
        }
    }
}

/// By what a key sorts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SortKey {
    /// `M`: memory, or money.
    Memory,
    /// `T`: time.
    Time,
    /// `P`: what is in hand, or calls.
    Work,
    /// `N`: the name, or what is newest.
    Name,
}
