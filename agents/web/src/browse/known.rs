//! What sites say to programs, as far as this process has asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::robots::Rules;
use muster_shared::sync::lock;

/// How long it counts. RFC 9309 lets it be a day.
const COUNTS_FOR: Duration = Duration::from_secs(3600);

/// How long it counts that a site failed to say anything.
const CLOSED_FOR: Duration = Duration::from_secs(60);

/// Most sites that are remembered.
const MOST_SITES: usize = 64;

/// Rules with the time until which they count, by origin.
#[derive(Default)]
pub(super) struct KnownRobots {
    sites: Mutex<HashMap<String, (Arc<Rules>, Instant)>>,
}

impl KnownRobots {
    pub(super) fn of(&self, origin: &str) -> Option<Arc<Rules>> {
        let sites = lock(&self.sites);
        sites.get(origin).filter(|(_, until)| *until > Instant::now()).map(|(rules, _)| Arc::clone(rules))
    }

    pub(super) fn learnt(&self, origin: &str, rules: Rules) -> Arc<Rules> {
        let counts_for = if rules == Rules::closed() { CLOSED_FOR } else { COUNTS_FOR };
        let rules = Arc::new(rules);
        let mut sites = lock(&self.sites);
        if sites.len() >= MOST_SITES {
            let oldest = sites.iter().min_by_key(|(_, (_, until))| *until).map(|(origin, _)| origin.clone());
            oldest.and_then(|oldest| sites.remove(&oldest));
        }
        sites.insert(origin.to_owned(), (Arc::clone(&rules), Instant::now() + counts_for));
        rules
    }
}
