//! What the host of a server gives it: whom to ask, where to keep what is pinned.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use muster_shared::flow::TaskRights;
use serde_json::Value;
use tokio::sync::watch;

use crate::by_caller::Caller;
use crate::definition::ListedTool;
use crate::pins::{Pins, Review, ReviewRules};

/// A call under way.
#[derive(Debug, Clone)]
pub struct CallPlace {
    /// The run.
    pub run: String,
    /// The task.
    pub task: String,
    /// The tool as it is named here.
    pub tool: String,
    /// What names the call, where it has effects.
    pub key: Option<String>,
    /// What the task may use.
    pub rights: Arc<TaskRights>,
    /// Whom the call may ask something, if anybody.
    pub caller: Option<Caller>,
}

/// A question of a server to a person (elicitation).
#[derive(Debug, Clone)]
pub struct PersonQuestion {
    /// The server's name.
    pub server: String,
    /// The calls in which it may stand: exactly one where the protocol says which, else all that are under way and may ask a
    /// person. Never empty.
    pub during: Vec<CallPlace>,
    /// The question, in the server's words, with nothing in it that hides.
    pub message: String,
    /// What is asked for.
    pub wants: Wanted,
}

/// What a server asks a person for.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// Values that fit a JSON Schema: an object of plain values.
    Form(Value),
    /// That the person opens this address, and says when it is done. Nothing comes back through us.
    Visit(String),
}

/// What a person answers.
#[derive(Debug, Clone, PartialEq)]
pub enum PersonAnswer {
    /// Yes; with the values of a form.
    Accept(Value),
    /// No.
    Decline,
    /// Nothing was decided: the question was put away, or its time was up.
    Cancel,
}

/// Asks a person.
#[async_trait]
pub trait AskPerson: Send + Sync + 'static {
    /// The answer. Dropped when the server takes its question back, or the call ends.
    async fn ask(&self, question: PersonQuestion) -> PersonAnswer;
}

/// A question of a server to a model (sampling).
#[derive(Debug, Clone)]
pub struct ModelQuestion {
    /// The server's name.
    pub server: String,
    /// The calls in which it may stand, as in [`PersonQuestion::during`].
    pub during: Vec<CallPlace>,
    /// What the model is to be.
    pub system: Option<String>,
    /// The conversation, the oldest turn first.
    pub turns: Vec<Turn>,
    /// Most tokens of the answer.
    pub max_tokens: u32,
    /// How varied the answer is to be.
    pub temperature: Option<f32>,
    /// Texts at which the answer ends.
    pub stop: Vec<String>,
}

/// A turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Whether the model said it.
    pub by_model: bool,
    /// What was said.
    pub text: String,
}

/// What a model answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The text.
    pub text: String,
    /// Which model.
    pub model: String,
    /// Whether the answer was cut at its limit.
    pub cut: bool,
}

/// Asks a model, within our budget.
#[async_trait]
pub trait AskModel: Send + Sync + 'static {
    /// The answer.
    ///
    /// # Errors
    /// Why there is none, in a sentence that the server is told.
    async fn ask(&self, question: ModelQuestion) -> Result<ModelAnswer, String>;
}

/// Hears how calls are getting on.
pub trait HearProgress: Send + Sync + 'static {
    /// The newest line of a call. Must return at once.
    fn heard(&self, call: &CallPlace, line: &str);
}

/// The pins of all servers of this process, which may be accepted at any time.
#[derive(Clone)]
pub struct PinKeeper {
    pins: Arc<Mutex<Pins>>,
    version: watch::Sender<u64>,
}

impl Default for PinKeeper {
    fn default() -> Self {
        Self::new(Pins::default())
    }
}

impl PinKeeper {
    /// A keeper of these pins.
    #[must_use]
    pub fn new(pins: Pins) -> Self {
        Self { pins: Arc::new(Mutex::new(pins)), version: watch::Sender::new(0) }
    }

    /// The pins as they are now.
    #[must_use]
    pub fn pins(&self) -> Pins {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Told whenever they change: then they are to be saved.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Accepts what a server now says of a tool. Whether there was anything to accept.
    pub fn accept(&self, server: &str, tool: &str) -> bool {
        self.changing(|pins| pins.accept(server, tool))
    }

    /// Takes what was read anew, for one that another process wrote.
    pub fn replace(&self, with: Pins) {
        self.changing(|pins| *pins = with);
    }

    pub(crate) fn review(&self, server: &str, listed: &[ListedTool], rules: &ReviewRules) -> Review {
        self.changing(|pins| pins.review(server, listed, rules))
    }

    fn changing<T>(&self, change: impl FnOnce(&mut Pins) -> T) -> T {
        let mut pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        let before = pins.clone();
        let done = change(&mut pins);
        if *pins != before {
            self.version.send_modify(|version| *version += 1);
        }
        done
    }
}

/// What the host gives its servers. What is not given is declined to them.
#[derive(Clone, Default)]
pub struct Callbacks {
    /// Asks people.
    pub person: Option<Arc<dyn AskPerson>>,
    /// Asks models.
    pub model: Option<Arc<dyn AskModel>>,
    /// Hears of progress.
    pub progress: Option<Arc<dyn HearProgress>>,
    /// The pins.
    pub pins: PinKeeper,
    /// The folder of tokens, [`authorize`](crate::authorize) writes them; none are used when absent.
    pub tokens: Option<PathBuf>,
}
