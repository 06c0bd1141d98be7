//! Keeps all pages up to date: one task follows the fleet, folds what happens into one model, and tells each page what changed
//! of what it shows. What changes within a moment is told together; where nobody looks nothing is made of it.

mod dirty;
mod shown;
mod telling;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use muster_bus::Bus;
use muster_shared::ids::RunId;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use self::dirty::Dirty;
use self::shown::Shown;
use self::waiting::all_waiting;
use super::watcher::{Line, Told, Watcher};
use crate::app::App;
use crate::live::feed::{Feed, Wish, Wishes};
use crate::live::model::{Change, Input, Link, Model, Most};

/// How long changes are gathered before they are told. Those of the record come together already: with that and the way to the
/// page it stays well below a tenth of a second.
const GATHER: Duration = Duration::from_millis(10);
/// How often at most the fleet is told.
const FLEET_EVERY: Duration = Duration::from_millis(100);
/// How often a page is told that the line stands.
const PING: Duration = Duration::from_secs(15);
/// Pause before a fleet that is not up is looked for again.
const AGAIN: Duration = Duration::from_millis(500);
/// Most lines of traffic that are told at once.
const MOST_LINES: usize = 500;
/// Runs that are kept up to date.
const RUNS: usize = 100;
/// Questions to the hub that wait.
const MOST_ASKS: usize = 64;

/// How the way to the fleet stands.
#[derive(Clone)]
pub(crate) enum Way {
    /// It is there.
    Open(Arc<Bus>),
    /// It is not, and why.
    Closed(String),
}

/// What is asked of the hub.
enum Ask {
    /// To keep a page up to date.
    Watch(Watcher),
    /// The fleet as it is.
    Fleet(oneshot::Sender<Value>),
    /// What waits for a person.
    Questions(oneshot::Sender<Option<Value>>),
}

/// The way to the hub.
#[derive(Clone)]
pub(crate) struct Hub {
    asks: mpsc::Sender<Ask>,
    way: watch::Receiver<Way>,
}

impl Hub {
    /// Begins to follow the fleet of this folder or of the settings, whenever it is there. Ends when nobody can ask any more.
    pub(crate) fn begin(app: &App) -> Self {
        let (asks, asked) = mpsc::channel(MOST_ASKS);
        let (way_sender, way) = watch::channel(Way::Closed("the fleet is being looked for".to_owned()));
        tokio::spawn(Box::pin(Following::new(app.clone(), asked, way_sender).follow()));
        Self { asks, way }
    }

    /// How the way to the fleet stands.
    pub(crate) fn way(&self) -> Way {
        self.way.borrow().clone()
    }

    /// Waits until it is known whether there is a fleet, for so long at most.
    pub(crate) async fn settled(&self, limit: Duration) {
        let mut way = self.way.clone();
        let _ = tokio::time::timeout(limit, way.wait_for(|way| matches!(way, Way::Open(_)))).await;
    }

    /// Keeps a page up to date from now on; it is told everything first.
    pub(crate) async fn watch(&self, watcher: Watcher) -> bool {
        self.asks.send(Ask::Watch(watcher)).await.is_ok()
    }

    /// The fleet as it is, as pages are told.
    pub(crate) async fn fleet(&self) -> Option<Value> {
        let (sender, fleet) = oneshot::channel();
        self.asks.send(Ask::Fleet(sender)).await.ok()?;
        fleet.await.ok()
    }

    /// The questions that wait, as pages are told; nothing while it is not known whether there are more.
    pub(crate) async fn questions(&self) -> Option<Value> {
        let (sender, questions) = oneshot::channel();
        self.asks.send(Ask::Questions(sender)).await.ok()?;
        questions.await.ok()?
    }
}

struct Following {
    app: App,
    asked: mpsc::Receiver<Ask>,
    way: watch::Sender<Way>,
    model: Model,
    watchers: Vec<Watcher>,
    dirty: Dirty,
    /// When what changed is told.
    due: Option<Instant>,
    fleet_told: Option<Instant>,
    /// What was told last of runs that pages show.
    shown: BTreeMap<RunId, Shown>,
}

/// What comes next.
enum Next {
    Asked(Option<Ask>),
    Came(Option<Box<Input>>),
    Due,
    Ping,
}

impl Following {
    fn new(app: App, asked: mpsc::Receiver<Ask>, way: watch::Sender<Way>) -> Self {
        Self {
            app,
            asked,
            way,
            model: Model::new(Most { runs: RUNS, ..Most::default() }),
            watchers: Vec::new(),
            dirty: Dirty::default(),
            due: None,
            fleet_told: None,
            shown: BTreeMap::new(),
        }
    }

    /// Follows until nobody asks any more.
    async fn follow(mut self) {
        while let Some(feed) = self.find().await {
            if !self.follow_one(feed).await {
                return;
            }
        }
    }

    /// Waits for a fleet; nothing when nobody asks any more. Pages are answered meanwhile.
    async fn find(&mut self) -> Option<Feed> {
        let mut ping = pings();
        loop {
            match Feed::begin(&self.app, "dashboard", RUNS).await {
                Ok(feed) => return Some(feed),
                Err(failure) => self.closed(failure.to_string()),
            }
            let again = tokio::time::sleep(AGAIN);
            tokio::pin!(again);
            loop {
                tokio::select! {
                    () = &mut again => break,
                    ask = self.asked.recv() => self.take(ask?, None),
                    _ = ping.tick() => self.tell_all(&Told::new("ping", &json!({}))),
                }
            }
        }
    }

    /// Follows a fleet; `false` when nobody asks any more.
    async fn follow_one(&mut self, mut feed: Feed) -> bool {
        let wishes = feed.wishes();
        for watcher in &self.watchers {
            wish(&wishes, watcher, Wish::Open, Wish::Tap);
        }
        let mut ping = pings();
        loop {
            let due = self.due;
            let next = tokio::select! {
                biased;
                () = at(due) => Next::Due,
                ask = self.asked.recv() => Next::Asked(ask),
                input = feed.next() => Next::Came(input.map(Box::new)),
                _ = ping.tick() => Next::Ping,
            };
            match next {
                Next::Due => self.flush(&wishes),
                Next::Asked(None) => return false,
                Next::Asked(Some(ask)) => self.take(ask, Some(&wishes)),
                Next::Came(None) => {
                    self.closed("the fleet is not followed any more".to_owned());
                    return true;
                }
                Next::Came(Some(input)) => {
                    self.learn(*input, &wishes);
                    while let Some(input) = feed.ready() {
                        self.learn(input, &wishes);
                        if self.due.is_some_and(|due| due <= Instant::now()) {
                            break;
                        }
                    }
                }
                Next::Ping => {
                    self.tell_all(&Told::new("ping", &json!({})));
                    self.let_go(Some(&wishes));
                }
            }
        }
    }

    fn take(&mut self, ask: Ask, wishes: Option<&Wishes>) {
        match ask {
            Ask::Fleet(sender) => drop(sender.send(self.fleet())),
            Ask::Questions(sender) => drop(sender.send(all_waiting(&self.model))),
            Ask::Watch(watcher) => {
                if let Some(wishes) = wishes {
                    let is_known = watcher.run.is_some_and(|run| self.keep(run));
                    wish(wishes, &watcher, if is_known { Wish::GoOn } else { Wish::Open }, Wish::Tap);
                }
                let is_told = self.everything(&watcher).iter().all(|told| watcher.tell(told));
                self.watchers.push(watcher);
                if !is_told {
                    self.let_go(wishes);
                }
            }
        }
    }

    /// Keeps a run that a page is to show, if all that was written of it so far is known: says whether it is.
    fn keep(&mut self, run: RunId) -> bool {
        let known = self.model.run(run).filter(|known| known.damaged().is_none());
        let is_known = known.is_some_and(|known| known.state().is_some());
        if is_known {
            self.model.take(Input::Opened(run));
        }
        is_known
    }

    fn learn(&mut self, input: Input, wishes: &Wishes) {
        if let Input::Closed(run) = &input
            && self.watchers.iter().any(|watcher| watcher.run == Some(*run))
        {
            // Somebody else came to look at it meanwhile.
            return;
        }
        for change in self.model.take(input) {
            match change {
                Change::Link => {
                    match self.model.link() {
                        Link::Up(_) | Link::Anew(_) => drop(self.way.send_replace(Way::Open(wishes.bus()))),
                        Link::Away(why) => drop(self.way.send_replace(Way::Closed(why.clone()))),
                        Link::Connecting => {}
                    }
                    self.dirty.link = true;
                }
                Change::Fleet => self.dirty.fleet = true,
                Change::Questions => self.dirty.questions = true,
                Change::Brief(run) => drop(self.dirty.briefs.insert(run)),
                Change::Gone(run) => {
                    self.dirty.briefs.remove(&run);
                    self.shown.remove(&run);
                }
                Change::Run(change) => {
                    let dirty = self.dirty.runs.entry(change.run).or_default();
                    dirty.removed.extend(change.removed);
                    dirty.tasks.extend(change.tasks);
                    dirty.entries.extend(change.entries);
                }
                Change::Doing { run, task } => drop(self.dirty.doing.insert((run, task))),
                Change::Tapped(passed) => {
                    if self.dirty.lines.len() < MOST_LINES {
                        self.dirty.lines.push(Line::of(&passed.tapped));
                    } else {
                        self.dirty.lines_left_out += 1;
                    }
                }
                Change::TapEnded | Change::Request { .. } => {}
            }
        }
        if !self.dirty.is_empty() {
            let soon = Instant::now() + GATHER;
            let turn = match (self.dirty.is_only_fleet(), self.fleet_told) {
                (true, Some(told)) => soon.max(told + FLEET_EVERY),
                (true, None) | (false, _) => soon,
            };
            // Whatever else changed does not wait for the fleet's turn.
            self.due = Some(self.due.map_or(turn, |due| due.min(turn)));
        }
    }

    /// Forgets pages that are gone, or do not keep up: theirs are closed, and they come again.
    fn let_go(&mut self, wishes: Option<&Wishes>) {
        self.watchers.retain(|watcher| {
            let stays = !watcher.tells.is_closed() && watcher.tells.capacity() > 0;
            if let Some(wishes) = wishes.filter(|_| !stays) {
                wish(wishes, watcher, Wish::Close, Wish::Untap);
            }
            stays
        });
        let watched: BTreeSet<RunId> = self.watchers.iter().filter_map(|watcher| watcher.run).collect();
        self.shown.retain(|run, _| watched.contains(run));
    }

    fn closed(&mut self, why: String) {
        let is_news = !matches!(&*self.way.borrow(), Way::Closed(before) if *before == why);
        if is_news {
            let told = Told::new("away", &json!({ "reason": why }));
            self.way.send_replace(Way::Closed(why));
            self.tell_all(&told);
        }
    }
}

/// Says what a page wants to see, or wants no more.
fn wish(wishes: &Wishes, watcher: &Watcher, of_run: fn(RunId) -> Wish, of_traffic: Wish) {
    if let Some(run) = watcher.run {
        wishes.say(of_run(run));
    }
    if watcher.tap.is_some() {
        wishes.say(of_traffic);
    }
}

fn pings() -> tokio::time::Interval {
    let mut ping = interval(PING);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping
}

/// Waits for a time; for ever where there is none.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
