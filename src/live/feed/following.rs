//! The task that follows a fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, SelectAll};
use muster_bus::subject::Subject;
use muster_bus::{Bus, BusError, NewestRuns, Places, RecordFilter, RegistryChange, Tapped, Unreadable};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::Entry;
use muster_shared::wire::Live;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::super::model::{Happened, Input, Link, begins};
use super::Wish;
use crate::app::{App, now};
use crate::commands::Around;
use crate::fleet::lifeline::{Lifeline, News};

/// How often it is looked at what processes do not say of themselves: as often as they say that they live.
const LOOK: Duration = Duration::from_secs(5);

/// How long what is written after an entry may take to come: together, it costs the server much less.
const GATHER: Duration = Duration::from_millis(40);

/// How many records are read at the same time.
const AT_ONCE: usize = 8;

/// Pause before a bus that could not be used is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Most runs of which it is remembered that they were given.
const MOST_KNOWN: usize = 10_000;

/// How following one connection ended.
enum Ended {
    /// The receiver of the inputs was dropped.
    Unheard,
    /// The fleet is to be followed there.
    At(String),
    /// The bus cannot be used as it is.
    Failed(BusError),
}

/// Follows a fleet for as long as anybody takes what it gives.
pub(super) struct Following {
    app: App,
    url: String,
    role: &'static str,
    runs: usize,
    inputs: mpsc::Sender<Input>,
    wishes: mpsc::Receiver<Wish>,
    bus: watch::Sender<Arc<Bus>>,
    lifeline: Lifeline,
    /// How often which run is wished for.
    open: BTreeMap<RunId, usize>,
    /// How often it is wished to see what passes.
    taps: usize,
    dropped: u64,
}

impl From<BusError> for Ended {
    fn from(error: BusError) -> Self {
        Self::Failed(error)
    }
}

/// What one connection gives.
struct Sources {
    registry: BoxStream<'static, RegistryChange>,
    newest: BoxStream<'static, (RunId, Result<Vec<Entry>, BusError>)>,
    is_caught_up: bool,
    record: BoxStream<'static, Result<Entry, Unreadable>>,
    live: SelectAll<BoxStream<'static, Live>>,
    /// What ends the live stream of a run when it is dropped.
    speaking: BTreeMap<RunId, oneshot::Sender<()>>,
    tap: Option<BoxStream<'static, Tapped>>,
    /// Runs of which the beginning was given.
    known: BTreeSet<RunId>,
    look: Interval,
    looking: Option<BoxFuture<'static, Around>>,
}

impl Following {
    pub(super) fn new(
        app: &App,
        url: String,
        role: &'static str,
        runs: usize,
        inputs: mpsc::Sender<Input>,
        wishes: mpsc::Receiver<Wish>,
        bus: watch::Sender<Arc<Bus>>,
    ) -> Self {
        let lifeline = Lifeline::new(app, &url);
        Self {
            app: app.clone(),
            url,
            role,
            runs,
            inputs,
            wishes,
            bus,
            lifeline,
            open: BTreeMap::new(),
            taps: 0,
            dropped: 0,
        }
    }

    /// Follows until nobody takes what it gives any more.
    pub(super) async fn follow(mut self) {
        loop {
            let bus = Arc::clone(&self.bus.borrow());
            let Err(ended) = self.follow_one(&bus).await;
            if self.find_again(&bus, ended).await.is_err() {
                return;
            }
        }
    }

    /// Connects anew, however long that takes.
    async fn find_again(&mut self, bus: &Bus, ended: Ended) -> Result<(), Ended> {
        match ended {
            Ended::Unheard => return Err(ended),
            Ended::At(url) => self.url = url,
            Ended::Failed(error) => self.away(error.to_string()).await?,
        }
        loop {
            self.lifeline.follow(&self.url);
            match self.app.connect_to(&self.url, self.role).await {
                Ok(found) => {
                    // Who reads the old one may do so to the end.
                    self.bus.send_replace(Arc::new(found));
                    return Ok(());
                }
                Err(failure) => self.away(failure.to_string()).await?,
            }
            // It may be up elsewhere by now.
            tokio::select! {
                news = self.lifeline.next(bus) => if let News::Moved(url) = news {
                    self.url = url;
                },
                () = tokio::time::sleep(AGAIN) => {}
            }
        }
    }

    /// What there is at first, and where it goes on.
    async fn begin(&mut self, bus: &Arc<Bus>) -> Result<Sources, Ended> {
        self.say(Input::Link(Link::Anew(self.url.clone()))).await?;
        let mut sources = self.sources(bus).await?;
        for run in self.open.keys().copied().collect::<Vec<_>>() {
            self.open_run(bus, &mut sources, run, true).await?;
        }
        if self.taps > 0 {
            sources.tap = Some(bus.tap().watch(None).await?);
        }
        Ok(sources)
    }

    async fn sources(&self, bus: &Arc<Bus>) -> Result<Sources, BusError> {
        let registry = bus.registry().watch().await?;
        // What is written while the newest runs are read is not missed: it is given twice, and taken once.
        let from: Places = bus.record().newest().await?;
        let record = bus.record().look_on(&RecordFilter::Everything, from, GATHER).await?;
        let NewestRuns { runs, fragments: _ } = bus.record().newest_runs(self.runs).await?;
        let reader = bus.record();
        let newest = stream::iter(runs).map(move |run| {
            let reader = reader.clone();
            async move { (run, reader.read(&RecordFilter::Run(run), Seq(0)).await) }
        });
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Sources {
            registry,
            newest: newest.buffered(AT_ONCE).boxed(),
            is_caught_up: false,
            record,
            live: SelectAll::new(),
            speaking: BTreeMap::new(),
            tap: None,
            known: BTreeSet::new(),
            look,
            looking: None,
        })
    }

    /// Follows one connection as long as it is of use.
    async fn follow_one(&mut self, bus: &Arc<Bus>) -> Result<Infallible, Ended> {
        let mut from = self.begin(bus).await?;
        loop {
            tokio::select! {
                wish = self.wishes.recv() => self.heed(bus, &mut from, wish.ok_or(Ended::Unheard)?).await?,
                Some(entry) = from.record.next() => self.give_entry(bus, &mut from, entry).await?,
                found = from.newest.next(), if !from.is_caught_up => match found {
                    Some((run, read)) => self.give_record(&mut from, run, read).await?,
                    None => {
                        from.is_caught_up = true;
                        self.say(Input::CaughtUp).await?;
                    }
                },
                Some(change) = from.registry.next() => {
                    self.say(Input::Processes { change: Box::new(change), at: now() }).await?;
                }
                Some(live) = from.live.next() => self.say(Input::Live(live)).await?,
                Some(tapped) = next(&mut from.tap) => self.pass(tapped)?,
                _ = from.look.tick(), if from.looking.is_none() => {
                    let (app, bus) = (self.app.clone(), Arc::clone(bus));
                    from.looking = Some(Box::pin(async move { Around::look(&app, &bus).await }));
                }
                around = looked(&mut from.looking) => {
                    from.looking = None;
                    self.say(Input::Around(Box::new(around))).await?;
                }
                news = self.lifeline.next(bus) => self.hear(news).await?,
                error = bus.failed() => return Err(error.into()),
            }
        }
    }

    /// Tells what became of the fleet. Ends if it is elsewhere now.
    async fn hear(&mut self, news: News) -> Result<(), Ended> {
        match news {
            News::Moved(url) => return Err(Ended::At(url)),
            News::Said(text) => self.say(Input::Happened(Happened { at: now(), text })).await?,
            // Lost or not, it is waited for: whoever looks on leaves when he likes.
            News::Warned(text) | News::Lost(text) if self.lifeline.is_away() => self.away(text).await?,
            News::Warned(_) | News::Lost(_) => {
                self.say(Input::Link(Link::Up(self.url.clone()))).await?;
            }
            News::Crippled { name, how } => {
                let text = format!("{name} {how} too often: no run can go on without one");
                self.say(Input::Happened(Happened { at: now(), text })).await?;
            }
        }
        Ok(())
    }

    async fn away(&self, why: String) -> Result<(), Ended> {
        self.say(Input::Link(Link::Away(why))).await
    }

    async fn heed(&mut self, bus: &Arc<Bus>, from: &mut Sources, wish: Wish) -> Result<(), Ended> {
        match wish {
            Wish::Open(run) | Wish::GoOn(run) => {
                let times = self.open.entry(run).or_default();
                *times += 1;
                if *times == 1 {
                    return self.open_run(bus, from, run, wish == Wish::Open(run)).await;
                }
            }
            Wish::Close(run) => {
                let left = self.open.get(&run).map_or(0, |times| times.saturating_sub(1));
                if left == 0 && self.open.remove(&run).is_some() {
                    from.speaking.remove(&run);
                    self.say(Input::Closed(run)).await?;
                } else if left > 0 {
                    self.open.insert(run, left);
                }
            }
            Wish::Tap => {
                self.taps += 1;
                if self.taps == 1 {
                    from.tap = Some(bus.tap().watch(None).await?);
                }
            }
            Wish::Untap => {
                self.taps = self.taps.saturating_sub(1);
                if self.taps == 0 && from.tap.take().is_some() {
                    self.say(Input::TapEnded).await?;
                }
            }
        }
        Ok(())
    }

    /// Gives what the tasks of a run say from now on, and before that all of it, unless that is known.
    async fn open_run(
        &mut self,
        bus: &Arc<Bus>,
        from: &mut Sources,
        run: RunId,
        is_read: bool,
    ) -> Result<(), Ended> {
        self.say(Input::Opened(run)).await?;
        let live = bus.live().watch(Some(run)).await?;
        let (ends, ended) = oneshot::channel::<()>();
        from.speaking.insert(run, ends);
        from.live.push(live.take_until(ended).boxed());
        if !is_read {
            return Ok(());
        }
        let read = bus.record().read(&RecordFilter::Run(run), Seq(0)).await;
        self.give_record(from, run, read).await
    }

    async fn give_record(
        &self,
        from: &mut Sources,
        run: RunId,
        read: Result<Vec<Entry>, BusError>,
    ) -> Result<(), Ended> {
        if from.known.len() >= MOST_KNOWN {
            from.known.clear();
        }
        match read {
            Ok(entries) => {
                from.known.insert(run);
                let entries = entries.into_iter().map(Arc::new).collect();
                self.say(Input::Record { run, entries }).await
            }
            Err(error) => {
                // What cannot be read now cannot be read later; what could not be reached may.
                if matches!(error, BusError::Unreadable { .. }) {
                    from.known.insert(run);
                }
                self.say(Input::Damaged { run, why: error.to_string() }).await
            }
        }
    }

    async fn give_entry(
        &self,
        bus: &Bus,
        from: &mut Sources,
        entry: Result<Entry, Unreadable>,
    ) -> Result<(), Ended> {
        let entry = match entry {
            Ok(entry) => entry,
            Err(stray) if stray.of_nobody => return Ok(()),
            Err(stray) => {
                let run = Subject::parse(&stray.subject).ok().and_then(|subject| subject.run());
                return match run {
                    Some(run) => self.say(Input::Damaged { run, why: stray.to_string() }).await,
                    None => Ok(()),
                };
            }
        };
        if begins(&entry) {
            from.known.insert(entry.run);
        } else if !from.known.contains(&entry.run) {
            // An old run that goes on: it is read from its beginning, this entry included.
            let read = bus.record().read(&RecordFilter::Run(entry.run), Seq(0)).await;
            self.give_record(from, entry.run, read).await?;
        }
        self.say(Input::Entry(Arc::new(entry))).await
    }

    /// Gives a message that passed, unless too much waits already.
    fn pass(&mut self, tapped: Tapped) -> Result<(), Ended> {
        match self.inputs.try_send(Input::Tapped { tapped: Box::new(tapped), dropped: self.dropped }) {
            Ok(()) => {
                self.dropped = 0;
                Ok(())
            }
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.dropped += 1;
                Ok(())
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Ended::Unheard),
        }
    }

    async fn say(&self, input: Input) -> Result<(), Ended> {
        self.inputs.send(input).await.map_err(|_| Ended::Unheard)
    }
}

/// The next message that passes; never, where nobody wants to see any.
async fn next(tap: &mut Option<BoxStream<'static, Tapped>>) -> Option<Tapped> {
    match tap {
        Some(tap) => tap.next().await,
        None => std::future::pending().await,
    }
}

/// What was found, once it is; never, where nobody looks.
async fn looked(looking: &mut Option<BoxFuture<'static, Around>>) -> Around {
    match looking {
        Some(looking) => looking.await,
        None => std::future::pending().await,
    }
}
