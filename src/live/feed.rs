//! Follows a fleet for a [`Model`](super::model::Model): connects, reads the newest runs, and gives all that happens from
//! then on as inputs, through one bounded channel. What is followed costs the fleet little: one consumer for the record of
//! all runs; what tasks say and what passes only for as long as somebody asked for it.

mod following;

use std::sync::Arc;

use muster_bus::Bus;
use muster_shared::ids::RunId;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use self::following::Following;
use super::model::Input;
use crate::app::{App, no_fleet};
use crate::exit::Failure;

/// Most inputs that wait to be taken. Beyond these, messages that pass are dropped, and all else waits.
const MOST_WAITING: usize = 1_024;

/// Most wishes that wait to be heard.
const MOST_WISHES: usize = 256;

/// What is to be followed beside what always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// All of a run, of which the record is read. As often as it is wished, it has to be taken back.
    Open(RunId),
    /// The same where all that was written so far is known: nothing is read.
    GoOn(RunId),
    /// Takes such a wish back.
    Close(RunId),
    /// What passes on the bus. As often as it is wished, it has to be taken back.
    Tap,
    /// Takes such a wish back.
    Untap,
}

/// A fleet that is followed. Dropped, it is not any more.
pub(crate) struct Feed {
    inputs: mpsc::Receiver<Input>,
    wishes: Wishes,
    following: AbortHandle,
}

/// Where to say what is to be followed, and to find the bus.
#[derive(Clone)]
pub(crate) struct Wishes {
    sender: mpsc::Sender<Wish>,
    bus: watch::Receiver<Arc<Bus>>,
}

impl Feed {
    /// Begins to follow the fleet that is up, as a process of `role` on the bus, with this many of its newest runs.
    ///
    /// # Errors
    /// When no fleet is up, or its bus cannot be reached.
    pub(crate) async fn begin(app: &App, role: &'static str, runs: usize) -> Result<Self, Failure> {
        let url = app.url().ok_or_else(no_fleet)?;
        let bus = Arc::new(app.connect_to(&url, role).await?);
        let (input_sender, inputs) = mpsc::channel(MOST_WAITING);
        let (sender, wish_receiver) = mpsc::channel(MOST_WISHES);
        let (bus_sender, bus) = watch::channel(bus);
        let following = Following::new(app, url, role, runs, input_sender, wish_receiver, bus_sender);
        let following = tokio::spawn(Box::pin(following.follow())).abort_handle();
        Ok(Self { inputs, wishes: Wishes { sender, bus }, following })
    }

    /// The next input; nothing when there will be no other.
    pub(crate) async fn next(&mut self) -> Option<Input> {
        self.inputs.recv().await
    }

    /// The next input, if one waits already.
    pub(crate) fn ready(&mut self) -> Option<Input> {
        self.inputs.try_recv().ok()
    }

    /// Where to say what is to be followed.
    pub(crate) fn wishes(&self) -> Wishes {
        self.wishes.clone()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.following.abort();
    }
}

impl Wishes {
    /// Says what is to be followed from now on. Never waits: what is said to nobody makes no difference, and one more
    /// than can wait is none.
    pub(crate) fn say(&self, wish: Wish) -> bool {
        self.sender.try_send(wish).is_ok()
    }

    /// The bus, at the address where the fleet was seen last.
    pub(crate) fn bus(&self) -> Arc<Bus> {
        Arc::clone(&self.bus.borrow())
    }
}
