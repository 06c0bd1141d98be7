//! The fleet that works on a run: one that is up, or one of the run's own.

use std::collections::BTreeMap;

use super::screen::Screen;
use crate::app::App;
use crate::exit::Failure;
use crate::fleet::member::{Change, Changed};
use crate::fleet::supervisor::Fleet;

/// A fleet to ask.
pub(super) enum RunFleet {
    /// It was up already, and stays.
    Found {
        /// Where its bus listens.
        url: String,
    },
    /// Brought up for this run.
    Own(Box<Fleet>),
}

impl RunFleet {
    /// Finds the fleet that is up, else brings one up.
    pub(super) async fn find_or_start(app: &App, screen: &Screen) -> Result<Self, Failure> {
        if let Some(url) = app.url() {
            return Ok(Self::Found { url });
        }
        screen.say("bringing up a fleet for this run …");
        let fleet = Fleet::start(app, &BTreeMap::new()).await?;
        Ok(Self::Own(Box::new(fleet)))
    }

    /// Where its bus listens.
    pub(super) fn url(&self) -> &str {
        match self {
            Self::Found { url } => url,
            Self::Own(fleet) => fleet.url(),
        }
    }

    /// Whether it goes on when this process ends.
    pub(super) const fn stays(&self) -> bool {
        matches!(self, Self::Found { .. })
    }

    /// The next change of a process of ours; of a fleet that is not ours nothing is heard.
    pub(super) async fn change(&mut self) -> Option<Changed> {
        match self {
            Self::Found { .. } => std::future::pending().await,
            Self::Own(fleet) => fleet.change().await,
        }
    }

    /// Takes an own fleet down.
    pub(super) async fn leave(self) {
        match self {
            Self::Found { .. } => {}
            Self::Own(fleet) => fleet.stop().await,
        }
    }
}

/// What a person is told of a change; nothing of what is as it should be.
pub(super) fn news((name, change): &Changed) -> Option<String> {
    match change {
        Change::Started(_) | Change::Stopped => None,
        Change::Died { how, .. } => Some(format!("{name} {how}; it is started again")),
        Change::GivenUp { how } => Some(format!("{name} {how}, and too often: it is not started again")),
        Change::Refused { reason } => Some(format!("an agent file is left out: {reason}")),
    }
}
