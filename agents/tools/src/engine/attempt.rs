//! One try of a call: whatever the tool does, it costs its caller no more than the time limit.
//!
//! Our own tools run in a task on the caller's thread: a panic stays in it, and it is dropped when its time is up. Tools that
//! others registered may also block their thread. Each call of one has a thread of its own, so that only that one stands
//! still; it is left behind when its time is up, and so many may be at the most.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use muster_shared::text::beginning;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinError;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::ending::Ending;
use crate::registry::Registered;
use crate::spec::{ToolContext, ToolFailure, ToolOutput};

/// Most threads of tools at once, those that were left behind among them.
const MOST_THREADS: usize = 64;

type Ended = Result<ToolOutput, ToolFailure>;

/// The threads of tools that are running or were left behind.
#[derive(Debug, Default)]
pub(super) struct Threads(Arc<AtomicUsize>);

/// A thread of a tool that is running.
struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Threads {
    fn begin(&self) -> Option<Running> {
        let running = Running(Arc::clone(&self.0));
        let before = self.0.fetch_add(1, Ordering::AcqRel);
        (before < MOST_THREADS).then_some(running)
    }
}

/// Tries a call once, for `limit` at the most.
pub(super) async fn attempt(
    registered: &Registered,
    args: Value,
    ctx: &ToolContext,
    limit: Duration,
    threads: &Threads,
) -> Ending {
    let name = &registered.spec().name;
    let working = async {
        if registered.is_own() {
            in_a_task(registered, args, ctx).await
        } else {
            on_a_thread(registered, args, ctx, threads).await
        }
    };
    tokio::select! {
        biased;
        () = ctx.cancel.cancelled() => Ending::refused(format!("`{name}` was given up because the task was stopped.")),
        ended = working => ended,
        () = tokio::time::sleep(limit) => Ending::timed_out(name, limit),
    }
}

async fn in_a_task(registered: &Registered, args: Value, ctx: &ToolContext) -> Ending {
    let (tool, own) = (Arc::clone(registered.tool()), ctx.clone());
    let mut work = AbortOnDrop(tokio::spawn(async move { tool.call(&own, args).await }));
    match (&mut work.0).await {
        Ok(ended) => Ending::of(ended),
        Err(broken) => Ending::broken(&registered.spec().name, &why_broken(broken)),
    }
}

async fn on_a_thread(registered: &Registered, args: Value, ctx: &ToolContext, threads: &Threads) -> Ending {
    let name = &registered.spec().name;
    let Some(running) = threads.begin() else {
        return Ending::unavailable(format!(
            "`{name}` was not called: {MOST_THREADS} calls of tools run or hang already. Use another way."
        ));
    };
    // Held until the call has ended or is given up: then what waits within is dropped.
    let (_given_up, ended) = match begin(registered, args, ctx, running) {
        Ok(begun) => begun,
        Err(error) => return Ending::unavailable(format!("`{name}` was not called: {error}")),
    };
    match ended.await {
        Ok(Ok(ended)) => Ending::of(ended),
        Ok(Err(panic)) => Ending::broken(name, &in_words(&*panic)),
        Err(_) => Ending::broken(name, "it ended without an answer"),
    }
}

type Answer = oneshot::Receiver<Result<Ended, Box<dyn Any + Send>>>;

fn begin(
    registered: &Registered,
    args: Value,
    ctx: &ToolContext,
    running: Running,
) -> std::io::Result<(DropGuard, Answer)> {
    let (tool, own) = (Arc::clone(registered.tool()), ctx.clone());
    let (tell, told) = oneshot::channel();
    let (given_up, runtime) = (CancellationToken::new(), tokio::runtime::Handle::current());
    let guard = given_up.clone().drop_guard();
    std::thread::Builder::new().name("tool".to_owned()).spawn(move || {
        let _running = running;
        let work = AssertUnwindSafe(async move { tool.call(&own, args).await }).catch_unwind();
        let ended = runtime.block_on(given_up.run_until_cancelled(work));
        // Nobody listens where it was given up.
        let _ = ended.map(|ended| tell.send(ended));
    })?;
    Ok((guard, told))
}

/// Stops the call when the engine stops waiting for it, also when the engine's own future is dropped.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The reason why a task of the runtime has no result: the text of its panic, in at most 300 characters, or that it was stopped.
#[must_use]
pub fn why_broken(broken: JoinError) -> String {
    match broken.try_into_panic() {
        Ok(panic) => in_words(&*panic),
        Err(_) => "it was stopped".to_owned(),
    }
}

fn in_words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    beginning(&text.unwrap_or_else(|| "it panicked".to_owned()), 300)
}
