//! The sandbox: takes programs, has stages run them, and keeps some stages ready.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use muster_tools::{Program, ProgramEnd, ProgramRunner, ToolFailure};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::call;
use crate::prepare;
use crate::start::{self, Stage};
use crate::wire::{Failure, Mode};
use muster_shared::sync::lock;
use muster_tools::settings::SandboxSettings;

/// Most programs at once in one process; more wait for their turn. Each may take a processor and its memory.
const PROGRAMS_AT_ONCE: u32 = 8;

/// Runs programs so that they reach nothing but what they are given. Cheap to clone; starts nothing until it is used.
#[derive(Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

struct Inner {
    settings: SandboxSettings,
    /// What is started as a stage.
    program: PathBuf,
    turns: Semaphore,
    /// Why there are no namespaces here, once that is known.
    without: OnceLock<String>,
    ready: Mutex<Vec<Ready>>,
}

/// A stage that waits for a program.
struct Ready {
    /// Tells it from the others.
    number: u64,
    stage: Stage,
}

impl Sandbox {
    /// A sandbox whose stages are our own program. Its `main` has to call [`child_main`](crate::child_main) first.
    #[must_use]
    pub fn new(settings: SandboxSettings) -> Self {
        Self::with_stage(settings, start::own_program())
    }

    /// A sandbox with another program for its stages, by its path.
    #[must_use]
    pub fn with_stage(settings: SandboxSettings, program: impl Into<PathBuf>) -> Self {
        let without = OnceLock::new();
        if !settings.namespaces {
            without
                .get_or_init(|| "namespaces are switched off by `namespaces` of [tool.sandbox]".to_owned());
        }
        let turns = Semaphore::new(PROGRAMS_AT_ONCE as usize);
        let inner = Inner { settings, program: program.into(), turns, without, ready: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &SandboxSettings {
        &self.inner.settings
    }

    /// How many stages wait for a program.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.inner.ready().len()
    }

    async fn run_now(
        &self,
        program: &Program,
        cancel: &CancellationToken,
    ) -> Result<ProgramEnd, ToolFailure> {
        let settings = &self.inner.settings;
        let prepared = prepare::prepare(program, settings).await?;
        let stage = self.inner.stage().await.map_err(|failure| self.inner.in_words(failure))?;
        self.refill();
        call::run(stage, prepared, program, cancel).await.map_err(|failure| self.inner.in_words(failure))
    }

    /// Has a stage started for the next program, which ends when none comes.
    fn refill(&self) {
        if self.waiting() >= self.inner.settings.pool as usize {
            return;
        }
        let (inner, idle) = (Arc::downgrade(&self.inner), self.inner.settings.pool_idle);
        tokio::spawn(keep_ready(inner, idle));
    }
}

/// Starts a stage and ends it when no program has come for it.
async fn keep_ready(sandbox: Weak<Inner>, idle: Duration) {
    let Some(inner) = sandbox.upgrade() else { return };
    let Ok(stage) = inner.start().await else { return };
    let number = {
        let mut ready = inner.ready();
        if ready.len() >= inner.settings.pool as usize {
            return;
        }
        let number = ready.last().map_or(0, |last| last.number + 1);
        ready.push(Ready { number, stage });
        number
    };
    drop(inner);
    tokio::time::sleep(idle).await;
    if let Some(inner) = sandbox.upgrade() {
        inner.ready().retain(|one| one.number != number);
    }
}

impl Inner {
    fn ready(&self) -> std::sync::MutexGuard<'_, Vec<Ready>> {
        lock(&self.ready)
    }

    /// A stage that waits for its job: one that was kept ready, or a new one.
    async fn stage(&self) -> Result<Stage, Failure> {
        loop {
            let Some(mut ready) = self.ready().pop() else { return self.start().await };
            // Somebody may have ended it in the meantime.
            if matches!(ready.stage.child.try_wait(), Ok(None)) {
                return Ok(ready.stage);
            }
        }
    }

    async fn start(&self) -> Result<Stage, Failure> {
        if self.without.get().is_none() {
            match Stage::start(&self.program, Mode::Namespaces).await {
                Err(Failure::NoNamespaces(why)) => {
                    tracing::info!(why, "programs are kept in without namespaces");
                    self.without.get_or_init(|| why);
                }
                started => return started,
            }
        }
        Stage::start(&self.program, Mode::Plain).await
    }

    /// What went wrong, for a model.
    fn in_words(&self, failure: Failure) -> ToolFailure {
        match failure {
            Failure::NoProgram(why) => ToolFailure::NotFound(why),
            Failure::Refused(why) => {
                let without = self.without.get().map(|why| format!(" (no namespaces: {why})"));
                ToolFailure::Refused(format!("{why}{}", without.unwrap_or_default()))
            }
            Failure::NoNamespaces(why) | Failure::Broken(why) => {
                ToolFailure::Unavailable(format!("the sandbox failed: {why}. Try again"))
            }
        }
    }
}

#[async_trait]
impl ProgramRunner for Sandbox {
    async fn run(&self, program: Program, cancel: &CancellationToken) -> Result<ProgramEnd, ToolFailure> {
        let stopped = || ToolFailure::Refused("the task was stopped".to_owned());
        let turn = tokio::select! {
            () = cancel.cancelled() => return Err(stopped()),
            turn = self.inner.turns.acquire() => turn,
        };
        let _turn = turn.map_err(|_| stopped())?;
        self.run_now(&program, cancel).await
    }
}
