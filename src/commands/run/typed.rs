//! Answers that a person types where the run is watched. Only on a terminal, and only once something is asked: until then
//! nothing is taken from standard input.

use std::io::{BufRead, IsTerminal};

use muster_shared::flow::question::MAX_QUESTION_BYTES;
use muster_shared::ids::QuestionId;
use muster_shared::run::{QuestionState, Request, RequestAction, RunState};
use tokio::sync::mpsc;

use crate::app::user;

/// Most lines that wait to be looked at.
const MOST_WAITING: usize = 16;

/// What a person types.
pub(super) struct Typed {
    /// Whether there is a terminal to type on.
    is_open: bool,
    lines: Option<mpsc::Receiver<String>>,
}

impl Typed {
    /// Nothing is read yet. `is_shown` says whether the person sees what is asked.
    pub(super) fn new(is_shown: bool) -> Self {
        Self { is_open: is_shown && std::io::stdin().is_terminal(), lines: None }
    }

    /// Begins to listen, since something is asked. Says whether anybody can answer here.
    pub(super) fn listen(&mut self) -> bool {
        if self.is_open && self.lines.is_none() {
            let (sender, lines) = mpsc::channel(MOST_WAITING);
            // A thread of its own, which ends with the process: a read from a terminal cannot be called off.
            let begun = std::thread::Builder::new().name("typed".to_owned()).spawn(move || {
                for line in std::io::stdin().lock().lines() {
                    let Ok(line) = line else { break };
                    if sender.blocking_send(line).is_err() {
                        break;
                    }
                }
            });
            self.is_open = begun.is_ok();
            self.lines = begun.is_ok().then_some(lines);
        }
        self.is_open
    }

    /// Whether somebody may be typing an answer to one of these runs.
    pub(super) fn is_awaited<'a>(&self, mut runs: impl Iterator<Item = &'a RunState>) -> bool {
        self.lines.is_some() && runs.any(|run| run.open_questions().next().is_some())
    }

    /// The next line; never, when nobody types.
    pub(super) async fn next(&mut self) -> String {
        if let Some(lines) = &mut self.lines {
            if let Some(line) = lines.recv().await {
                return line;
            }
            self.lines = None;
            self.is_open = false;
        }
        std::future::pending().await
    }
}

/// What is said below a question that can be answered here.
pub(super) fn hint(asked: &QuestionState) -> String {
    let choices: Vec<String> =
        (1..).zip(&asked.question.choices).map(|(number, choice)| format!("{number} {choice}")).collect();
    let choices = if choices.is_empty() { String::new() } else { format!(" ({})", choices.join(", ")) };
    let feedback = if asked.about.is_approved() { "; any other text is feedback" } else { "" };
    format!("  type the answer{choices} and press Enter{feedback}; whichever answer comes first counts")
}

/// What follows from a line.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// It answers this question.
    Answer(QuestionId, Request),
    /// It answers nothing; what to say.
    Nothing(&'static str),
}

/// Takes a line for the answer to the oldest question that is open, of the run or of those within it.
pub(super) fn understand<'a>(runs: impl Iterator<Item = &'a RunState>, line: &str) -> Said {
    let text = line.trim().to_owned();
    let open = runs.flat_map(|run| run.open_questions().map(move |(id, asked)| (asked.asked_at, run.id, id)));
    let Some((_, run, question)) = open.min() else {
        return Said::Nothing("nothing is asked at present");
    };
    if text.is_empty() {
        return Said::Nothing("that is no answer: type one, or leave it to `muster answer`");
    }
    if text.len() > MAX_QUESTION_BYTES {
        return Said::Nothing("that is longer than an answer may be, and was not sent");
    }
    let answer = Request::new(run, RequestAction::Answer { question, text });
    Said::Answer(question, Request { by: user(), ..answer })
}
