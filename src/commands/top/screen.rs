//! The terminal: taken over, and given back as it was whatever happens.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, raise};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::crossterm::{execute, queue};
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal};

use crate::exit::{Failure, failed};

/// Whether the terminal is taken over at this moment.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// A size where the terminal tells none.
const USUAL: (u16, u16) = (80, 24);

/// A terminal that is taken over. Dropped, it is given back.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    /// Takes the terminal over.
    pub(super) fn enter() -> Result<Self, Failure> {
        give_back_on_panic();
        take_over().map_err(failed)?;
        let backend = CrosstermBackend::new(BufWriter::new(io::stdout()));
        match Terminal::new(backend) {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                give_back();
                Err(failed(error))
            }
        }
    }

    /// Its columns and rows.
    pub(super) fn size(&self) -> (u16, u16) {
        size().unwrap_or(USUAL)
    }

    /// Draws a picture: of it, what is other than in the last one is written.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<(), Failure> {
        self.terminal.draw(draw).map(|_| ()).map_err(failed)
    }

    /// Gives the terminal back for a while.
    pub(super) fn leave(&mut self) {
        give_back();
    }

    /// Takes it over again, and draws everything anew: others may have written there.
    pub(super) fn again(&mut self) -> Result<(), Failure> {
        give_back();
        take_over().map_err(failed)?;
        let (width, height) = self.size();
        // To clear it, ratatui would ask where the cursor stands, and the answer would come amid the keys.
        self.terminal.resize(Rect::new(0, 0, width, height)).map_err(failed)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Stops this process until somebody has it go on.
pub(super) fn stop_here() -> Result<(), Failure> {
    raise(Signal::SIGSTOP).map_err(|error| failed!("cannot stop here: {error}"))
}

fn take_over() -> io::Result<()> {
    enable_raw_mode()?;
    IS_TAKEN.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)
}

/// Gives the terminal back as it was, if it is taken over. A terminal that is gone wants nothing back.
fn give_back() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let _ = queue!(out, DisableBracketedPaste, LeaveAlternateScreen, Show).and_then(|()| out.flush());
        let _ = disable_raw_mode();
    }
}

/// A panic is told on a terminal that was given back: else nobody could read it.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
}

fn failed(error: impl std::fmt::Display) -> Failure {
    failed!("the terminal cannot be used: {error}")
        .help("`muster ps`, `muster runs` and `muster show` print and end, and need no more of a terminal")
}
