//! SIGINT and SIGTERM: the request to end in good order.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::{Failure, failed};

fn listen(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|e| failed!("cannot listen for signals: {e}"))
}

/// Listens from the moment it is made: a signal that comes before it is waited for is not lost.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Begins to listen.
    pub(crate) fn listen() -> Result<Self, Failure> {
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Waits for the next of them.
    pub(crate) async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// A token that is cancelled by the first of them.
    pub(crate) fn into_token(mut self) -> CancellationToken {
        let token = CancellationToken::new();
        let cancelled = token.clone();
        tokio::spawn(async move {
            self.wait().await;
            cancelled.cancel();
        });
        token
    }
}

/// Signals of a terminal: to end, to stand still for a while, and to go on.
pub(crate) struct TerminalSignals {
    stop: StopSignals,
    hang_up: Signal,
    suspend: Signal,
    resumed: Signal,
}

impl TerminalSignals {
    /// Begins to listen.
    pub(crate) fn listen() -> Result<Self, Failure> {
        Ok(Self {
            stop: StopSignals::listen()?,
            hang_up: listen(SignalKind::hangup())?,
            suspend: listen(SignalKind::from_raw(nix::sys::signal::Signal::SIGTSTP as i32))?,
            resumed: listen(SignalKind::from_raw(nix::sys::signal::Signal::SIGCONT as i32))?,
        })
    }

    /// The next of them.
    pub(crate) async fn next(&mut self) -> TerminalSignal {
        tokio::select! {
            () = self.stop.wait() => TerminalSignal::Stop,
            _ = self.hang_up.recv() => TerminalSignal::Stop,
            _ = self.suspend.recv() => TerminalSignal::Suspend,
            _ = self.resumed.recv() => TerminalSignal::Resumed,
        }
    }
}

/// What a terminal, or whoever else may, wants of a program on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalSignal {
    /// To end.
    Stop,
    /// To stand still.
    Suspend,
    /// It stood still, and goes on.
    Resumed,
}
