//! The fleet that works on a run: one that is up, or one that is brought up for it and stays as long as a run uses it.

use muster_bus::Bus;

use super::screen::Screen;
use crate::app::App;
use crate::exit::{Failure, failed};
use crate::fleet::background;
use crate::fleet::lifeline::{Lifeline, News};
use crate::fleet::process::ProcessRef;
use crate::fleet::state::FleetFolder;
use crate::fleet::users::{self, Using};

/// A fleet to ask.
pub(super) struct RunFleet {
    url: String,
    folder: FleetFolder,
    lifeline: Lifeline,
    /// Our place among its users; nothing for a bus elsewhere, or where we may not write.
    using: Option<Using>,
    /// Who watches over it, if it ends when no run uses it any more.
    ends_with_us: Option<ProcessRef>,
    limit: std::time::Duration,
}

impl RunFleet {
    /// Finds the fleet that is up, else brings one up. Of several that ask at the same moment, one brings it up and the
    /// others find it.
    pub(super) async fn find_or_start(app: &App, screen: &Screen) -> Result<Self, Failure> {
        let settings = app.settings();
        let limit = crate::settings::STOP_TIMEOUT * 2;
        let fleet = |url: String, using, ends_with_us| Self {
            lifeline: Lifeline::new(app, &url),
            folder: app.fleet.clone(),
            url,
            using,
            ends_with_us,
            limit,
        };
        if let Some(url) = &settings.bus.url {
            return Ok(fleet(url.clone(), None, None));
        }
        // Whoever brings one up, or ends one, has the gate meanwhile.
        let Ok(gate) = users::pass(&app.fleet, limit + settings.fleet.start_limit).await else {
            // It may not be ours to write to; what is up can be used all the same.
            let state = app.fleet.live().ok_or_else(|| cannot_write(app))?;
            return Ok(fleet(state.url, None, None));
        };
        let Some(gate) = gate else { return Err(nobody_lets_us(app)) };
        let using = users::enter(&app.fleet, &gate).ok();
        let state = match app.fleet.live() {
            Some(state) => state,
            None => {
                screen.say("bringing up a fleet for this run …");
                let words = ["up", "--in-background", "--while-used"].map(str::to_owned);
                match (background::start(app, &words, |_| true, |_| {}).await, app.fleet.live()) {
                    (Ok(state), _) => state,
                    // `muster up` was faster.
                    (Err(_), Some(state)) => state,
                    (Err(failure), None) => return Err(failure),
                }
            }
        };
        let ends_with_us = state.for_runs.then_some(state.supervisor);
        Ok(fleet(state.url, using, ends_with_us))
    }

    /// Where its bus listens.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Whether it goes on when this process ends.
    pub(super) fn stays(&self) -> bool {
        let others = |me| users::anybody_besides(&self.folder, me);
        self.ends_with_us.is_none() || self.using.as_ref().is_some_and(others)
    }

    /// Whether it was brought up for runs alone: nobody else looks after it.
    pub(super) const fn is_for_runs(&self) -> bool {
        self.ends_with_us.is_some()
    }

    /// The next news of it.
    pub(super) async fn news(&mut self, bus: &Bus) -> News {
        self.lifeline.next(bus).await
    }

    /// It was found at another address: who watches over it there may be another one too.
    pub(super) fn follow(&mut self, url: &str) {
        url.clone_into(&mut self.url);
        self.lifeline.follow(url);
        self.ends_with_us = self.folder.live().filter(|state| state.for_runs).map(|state| state.supervisor);
    }

    /// Leaves it. One that nobody else uses ends, and that is waited for.
    pub(super) async fn leave(self) {
        let Self { folder, using, ends_with_us, limit, .. } = self;
        let is_last = using.as_ref().is_some_and(|me| !users::anybody_besides(&folder, me));
        drop(using);
        let Some(supervisor) = ends_with_us.filter(|_| is_last) else { return };
        supervisor.signal(users::NUDGE);
        if !gone(&folder, &supervisor, limit).await {
            tracing::warn!(pid = supervisor.pid, "the fleet of this run has not ended yet");
        }
    }
}

/// Waits until the fleet has ended, or somebody else uses it after all.
async fn gone(folder: &FleetFolder, supervisor: &ProcessRef, limit: std::time::Duration) -> bool {
    const LOOK: std::time::Duration = std::time::Duration::from_millis(50);
    let until = tokio::time::Instant::now() + limit;
    while tokio::time::Instant::now() < until {
        if supervisor.gone_within(LOOK).await || users::anybody_at_all(folder) {
            return true;
        }
    }
    false
}

fn cannot_write(app: &App) -> Failure {
    failed!("cannot write to {}", app.fleet.path().display())
        .help("change to a writable folder: the local fleet keeps its data there")
}

fn nobody_lets_us(app: &App) -> Failure {
    failed!(
        "another muster has been starting or stopping a fleet in {} for too long",
        app.fleet.path().display()
    )
    .help("see .muster/log/supervisor.log, and try again")
}
