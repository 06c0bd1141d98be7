//! What the host of a server gives it: whom to ask, where to keep what is pinned.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use muster_shared::flow::TaskRights;
use muster_shared::sync::lock;
use muster_tools::Asker;
use tokio::sync::watch;

use crate::definition::ListedTool;
use crate::pins::{Pins, Review, ReviewRules};

/// A call under way.
#[derive(Clone)]
pub(crate) struct CallPlace {
    /// What the task may use.
    pub(crate) rights: Arc<TaskRights>,
    /// Whom the call may ask something, if anybody.
    pub(crate) asker: Option<Arc<dyn Asker>>,
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
        lock(&self.pins).clone()
    }

    /// Told whenever they change: then they are to be saved.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Takes what was read anew, for one that another process wrote.
    pub fn replace(&self, with: Pins) {
        self.changing(|pins| *pins = with);
    }

    pub(crate) fn review(&self, server: &str, listed: &[ListedTool], rules: &ReviewRules) -> Review {
        self.changing(|pins| pins.review(server, listed, rules))
    }

    /// Keeps the reasons why the server, or a tool of it, is not used now.
    pub(crate) fn leave_out(&self, reasons: Vec<String>) {
        self.changing(|pins| pins.left_out = reasons);
    }

    fn changing<T>(&self, change: impl FnOnce(&mut Pins) -> T) -> T {
        let mut pins = lock(&self.pins);
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
    /// The server may send questions to a person; the caller of the tool forwards them.
    pub elicits: bool,
    /// The pins.
    pub pins: PinKeeper,
    /// The folder of tokens, [`authorize`](crate::authorize) writes them; none are used when absent.
    pub tokens: Option<PathBuf>,
    /// Check before each attempt to start it: returns the reason if the server may not be started.
    pub may_start: Option<Arc<dyn Fn() -> Result<(), String> + Send + Sync>>,
}
