//! What the tools of a server share: its connection as it is now, turns, and what is served.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use muster_tools::{Tool, ToolFailure};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::callbacks::Callbacks;
use crate::config::ServerConfig;
use crate::connect::{Connection, bytes};
use crate::definition::DefinitionLimits;
use crate::doing::Doing;
use crate::result::ResultLimits;
use muster_tools::settings::McpSettings;

/// Longest description of a tool, in bytes; a longer one is cut. 4 KiB: a model reads it with every prompt.
const MAX_DESCRIPTION: u64 = 4 * 1024;

/// Largest schema of a tool's arguments, in bytes of JSON; a tool with a larger one is refused. 64 KiB: a model
/// reads it with every prompt.
const MAX_SCHEMA: u64 = 64 * 1024;

/// Longest text of one result, in bytes; the rest is cut. 256 KiB: more than a model reads.
const MAX_TEXT: u64 = 256 * 1024;

/// Largest picture, sound or other file in a result, in bytes; a larger one is left out. 1 MiB.
const MAX_FILE: u64 = 1024 * 1024;

/// Most files of one result. Each becomes a file of the run.
const MAX_FILES: u32 = 16;

/// How a server is reached now.
#[derive(Clone)]
pub(crate) enum Link {
    /// It is there.
    Up(Arc<Connection>),
    /// It is being started again.
    Down,
    /// It is not started again: it died too often.
    GivenUp(String),
    /// It was stopped.
    Stopped,
}

/// What is served.
#[derive(Clone, Default)]
pub(crate) struct Shelf {
    /// The tools.
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// What is accepted of the server's own, by their names there.
    pub(crate) accepted: BTreeMap<String, String>,
}

/// What the tools of a server share.
pub(crate) struct Host {
    pub(crate) config: ServerConfig,
    pub(crate) settings: McpSettings,
    pub(crate) callbacks: Callbacks,
    pub(crate) link: watch::Sender<Link>,
    pub(crate) shelf: watch::Sender<Arc<Shelf>>,
    turns: Arc<Semaphore>,
    waiting: AtomicU32,
}

impl Host {
    pub(crate) fn new(config: ServerConfig, settings: McpSettings, callbacks: Callbacks) -> Self {
        let turns = usize::try_from(settings.calls_at_once).unwrap_or(1);
        Self {
            config,
            settings,
            callbacks,
            link: watch::Sender::new(Link::Down),
            shelf: watch::Sender::new(Arc::default()),
            turns: Arc::new(Semaphore::new(turns)),
            waiting: AtomicU32::new(0),
        }
    }

    pub(crate) fn definition_limits(&self) -> DefinitionLimits {
        DefinitionLimits { description: bytes(MAX_DESCRIPTION), schema: bytes(MAX_SCHEMA) }
    }

    pub(crate) fn result_limits(&self) -> ResultLimits {
        ResultLimits {
            text: bytes(MAX_TEXT),
            file: bytes(MAX_FILE),
            files: usize::try_from(MAX_FILES).unwrap_or(usize::MAX),
        }
    }

    /// Waits for a turn: a server works on so many calls at once and no more.
    pub(crate) async fn turn(
        &self,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<OwnedSemaphorePermit, ToolFailure> {
        if let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() {
            return Ok(turn);
        }
        let busy = || {
            let server = &self.config.name;
            ToolFailure::Unavailable(format!(
                "The MCP server `{server}` has too much to do. Try again later."
            ))
        };
        let _place = Place::take(&self.waiting, self.settings.calls_waiting).ok_or_else(busy)?;
        tokio::select! {
            () = cancel.cancelled() => Err(self.stopped()),
            turn = Arc::clone(&self.turns).acquire_owned() => turn.map_err(|_| busy()),
            () = tokio::time::sleep_until(deadline) => Err(busy()),
        }
    }

    /// The connection; waits while the server is being started again.
    pub(crate) async fn connection(
        &self,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Arc<Connection>, ToolFailure> {
        let mut link = self.link.subscribe();
        let server = &self.config.name;
        let unavailable = |why: &str| {
            ToolFailure::Unavailable(format!("The MCP server `{server}` {why}. Go on without it."))
        };
        loop {
            let now = link.borrow_and_update().clone();
            match now {
                Link::Up(connection) if !connection.closed().is_cancelled() => return Ok(connection),
                Link::Up(_) | Link::Down => {}
                Link::GivenUp(why) => return Err(unavailable(&format!("is not started again: {why}"))),
                Link::Stopped => return Err(unavailable("was stopped")),
            }
            tokio::select! {
                () = cancel.cancelled() => return Err(self.stopped()),
                () = tokio::time::sleep_until(deadline) => {
                    return Err(unavailable("died and did not come back in time"));
                }
                changed = link.changed() => {
                    if changed.is_err() {
                        return Err(unavailable("was stopped"));
                    }
                }
            }
        }
    }

    /// Whether this may still be called: a tool that its server now describes otherwise waits for a person.
    pub(crate) fn still_serves(&self, doing: &Doing) -> Result<(), ToolFailure> {
        let Doing::Call { tool, digest } = doing else { return Ok(()) };
        if self.shelf.borrow().accepted.get(tool) == Some(digest) {
            return Ok(());
        }
        Err(ToolFailure::Refused(format!(
            "The MCP server `{}` changed this tool or took it away; a changed one waits until a person accepts it. Go \
             on without it.",
            self.config.name
        )))
    }

    fn stopped(&self) -> ToolFailure {
        ToolFailure::Refused(format!(
            "The call of `{}` was given up because the task was stopped.",
            self.config.namespace
        ))
    }
}

/// A place among those that wait.
struct Place<'a>(&'a AtomicU32);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicU32, most: u32) -> Option<Self> {
        let taken =
            waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| (now < most).then_some(now + 1));
        taken.ok().map(|_| Self(waiting))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
