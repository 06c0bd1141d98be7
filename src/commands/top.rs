//! `muster top`: the fleet in a terminal. Here are the effects; what is shown and what keys do is in [`crate::top`].

mod ask;
mod keyboard;
mod screen;

use std::io::IsTerminal;
use std::time::Duration;

use muster_shared::ids::RunId;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use uuid::Uuid;

use self::keyboard::Pressed;
use self::screen::Screen;
use super::select;
use crate::app::{App, now};
use crate::args::TopArgs;
use crate::exit::{Exit, Failure, failed, usage};
use crate::live::feed::{Feed, Wishes};
use crate::live::model::{Model, Most};
use crate::logging;
use crate::render::paint::Paint;
use crate::signals::{TerminalSignal, TerminalSignals};
use crate::top::{Effect, Event, Look, Top, View, update};

/// Least time between two pictures.
const FRAME: Duration = Duration::from_millis(33);

/// How often clocks on the screen go on.
const SECOND: Duration = Duration::from_secs(1);

/// Most inputs that are taken in before it is looked for keys again.
const AT_ONCE: usize = 256;

/// Most answers about what was asked that wait to be told.
const MOST_ANSWERS: usize = 64;

/// Shows the fleet until the person leaves.
pub(super) async fn top(app: &App, args: &TopArgs) -> Result<Exit, Failure> {
    check_terminal()?;
    let feed = Feed::begin(app, "top", args.limit.into()).await?;
    let run = match &args.run {
        Some(wanted) => Some(select::run(&feed.wishes().bus(), wanted).await?),
        None => None,
    };
    // What is logged would stand amid the picture.
    logging::hold();
    let shown = show(app, args, feed, run).await;
    logging::release();
    shown
}

fn check_terminal() -> Result<(), Failure> {
    let why = if !std::io::stdout().is_terminal() {
        "standard output is no terminal"
    } else if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        "the terminal says that it can do nothing (TERM=dumb)"
    } else {
        return Ok(());
    };
    Err(usage!("`muster top` draws on a terminal, and {why}").help(
        "`muster ps --json`, `muster runs --json`, `muster show RUN --json`, `muster questions --json` and `muster tap --json` \
         tell programs the same",
    ))
}

async fn show(app: &App, args: &TopArgs, mut feed: Feed, run: Option<RunId>) -> Result<Exit, Failure> {
    let mut signals = TerminalSignals::listen()?;
    let look = Look::new(crate::app::paint(true) == Paint::COLOUR);
    let mut watch = Watch::begin(app, args, feed.wishes(), look)?;
    let mut keys = keyboard::listen()?;
    let mut clock = interval(SECOND);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    if let Some(run) = run {
        watch.happens(Event::Show(run))?;
    }
    while !watch.is_over {
        let draws = watch.top.is_stale();
        tokio::select! {
            biased;
            signal = signals.next() => match signal {
                TerminalSignal::Stop => return Ok(Exit::Completed),
                TerminalSignal::Suspend => watch.suspend()?,
                TerminalSignal::Resumed => watch.again()?,
            },
            pressed = keys.recv() => match pressed {
                Some(Pressed::Event(event)) => watch.happens(event)?,
                Some(Pressed::Failed(why)) => return Err(no_keys(&why)),
                None => return Err(no_keys("it ended")),
            },
            () = tokio::time::sleep_until(watch.drawn + FRAME), if draws => watch.draw()?,
            Some(event) = watch.answers.recv() => watch.happens(event)?,
            input = feed.next() => {
                let Some(input) = input else { return Err(failed!("the fleet is not followed any more")) };
                watch.take(input)?;
                for _ in 0..AT_ONCE {
                    let Some(input) = feed.ready() else { break };
                    watch.take(input)?;
                }
            }
            _ = clock.tick() => watch.happens(Event::Tick(now()))?,
        }
    }
    Ok(Exit::Completed)
}

fn no_keys(why: &str) -> Failure {
    failed!("no keys can be read from the terminal: {why}")
        .help("`muster top` is used at a terminal; `muster ps` and `muster runs` print and end")
}

/// What is shown, and what it is made of.
struct Watch<'a> {
    app: &'a App,
    model: Model,
    top: Top,
    look: Look,
    screen: Screen,
    wishes: Wishes,
    /// When the last picture was drawn.
    drawn: Instant,
    tell: mpsc::Sender<Event>,
    answers: mpsc::Receiver<Event>,
    is_over: bool,
}

impl<'a> Watch<'a> {
    fn begin(app: &'a App, args: &TopArgs, wishes: Wishes, look: Look) -> Result<Self, Failure> {
        let model = Model::new(Most { runs: args.limit.into(), ..Most::default() });
        let screen = Screen::enter()?;
        let top = Top::new(View::Runs, screen.size(), now());
        let (tell, answers) = mpsc::channel(MOST_ANSWERS);
        let drawn = Instant::now();
        Ok(Self { app, model, top, look, screen, wishes, drawn, tell, answers, is_over: false })
    }

    fn take(&mut self, input: crate::live::model::Input) -> Result<(), Failure> {
        for change in self.model.take(input) {
            self.happens(Event::Changed(change))?;
        }
        Ok(())
    }

    /// Takes in what happens, and does what follows.
    fn happens(&mut self, event: Event) -> Result<(), Failure> {
        for effect in update(&mut self.top, &self.model, event) {
            self.perform(effect)?;
        }
        Ok(())
    }

    fn perform(&mut self, effect: Effect) -> Result<(), Failure> {
        match effect {
            Effect::Quit => self.is_over = true,
            Effect::Suspend => self.suspend()?,
            Effect::Redraw => self.again()?,
            Effect::Wish(wish) => {
                // Not heard, it is no harm: what is seen then is what is known.
                let _ = self.wishes.say(wish);
            }
            Effect::Ask(order) => {
                let id = Uuid::now_v7();
                let what = order.what.clone();
                tokio::spawn(Box::pin(ask::ask(self.app.clone(), order, id, self.tell.clone())));
                return self.happens(Event::Asked { id, what });
            }
        }
        Ok(())
    }

    /// Stands still until somebody goes on.
    fn suspend(&mut self) -> Result<(), Failure> {
        self.screen.leave();
        screen::stop_here()?;
        self.again()
    }

    /// Draws everything anew on a terminal on which others may have written.
    fn again(&mut self) -> Result<(), Failure> {
        self.screen.again()?;
        let (width, height) = self.screen.size();
        self.happens(Event::Resize(width, height))
    }

    fn draw(&mut self) -> Result<(), Failure> {
        self.happens(Event::Tick(now()))?;
        self.screen.draw(|frame| crate::top::draw(frame, &self.top, &self.model, self.look))?;
        self.top.drawn();
        self.drawn = Instant::now();
        Ok(())
    }
}
