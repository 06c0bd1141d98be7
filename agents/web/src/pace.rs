//! How fast hosts are asked: so many at once, and not one right after the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use muster_shared::sync::lock;
use muster_tools::settings::WebSettings;

/// Most hosts that are remembered. Beyond, those that nobody waits for are forgotten.
const MOST_HOSTS: usize = 256;

pub(crate) struct Pace {
    all: Arc<Semaphore>,
    hosts: Mutex<HashMap<String, HostPace>>,
    per_host: usize,
    pause: Duration,
}

struct HostPace {
    places: Arc<Semaphore>,
    next: Instant,
}

/// A turn to ask. The next one gets it when this is dropped.
pub(crate) struct Turn {
    _place: OwnedSemaphorePermit,
    _of_host: OwnedSemaphorePermit,
}

impl Pace {
    pub(crate) fn new(settings: &WebSettings) -> Self {
        Self {
            all: Arc::new(Semaphore::new(settings.at_once.max(1) as usize)),
            hosts: Mutex::default(),
            per_host: settings.at_once_per_host.max(1) as usize,
            pause: settings.pause,
        }
    }

    /// Waits until this host may be asked. None only when the pace is closed, which it never is.
    pub(crate) async fn turn(&self, host: &str) -> Option<Turn> {
        // The place at the host first: who waits for a slow host takes nothing from others.
        let of_host = self.places(host).acquire_owned().await.ok()?;
        let place = Arc::clone(&self.all).acquire_owned().await.ok()?;
        tokio::time::sleep_until(self.start(host)).await;
        Some(Turn { _place: place, _of_host: of_host })
    }

    fn places(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = lock(&self.hosts);
        if hosts.len() >= MOST_HOSTS {
            let (now, all) = (Instant::now(), self.per_host);
            hosts.retain(|_, host| host.next > now || host.places.available_permits() < all);
        }
        let new = || HostPace { places: Arc::new(Semaphore::new(self.per_host)), next: Instant::now() };
        Arc::clone(&hosts.entry(host.to_owned()).or_insert_with(new).places)
    }

    /// When the next request to this host may begin; the one after it waits for the pause.
    fn start(&self, host: &str) -> Instant {
        let now = Instant::now();
        let mut hosts = lock(&self.hosts);
        let Some(host) = hosts.get_mut(host) else { return now };
        let start = host.next.max(now);
        host.next = start + self.pause;
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(at_once_per_host: u32, pause: u64) -> Pace {
        let pause = Duration::from_millis(pause);
        Pace::new(&WebSettings { at_once: 3, at_once_per_host, pause, ..WebSettings::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_is_asked_again_after_the_pause_and_another_at_once() {
        let pace = pace(4, 250);
        let begun = Instant::now();
        drop(pace.turn("a:80").await.unwrap());
        drop(pace.turn("b:80").await.unwrap());
        assert_eq!(begun.elapsed(), Duration::ZERO);
        drop(pace.turn("a:80").await.unwrap());
        assert!(begun.elapsed() >= Duration::from_millis(250), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_so_many_ask_a_host_or_all_hosts_at_once() {
        let pace = pace(1, 0);
        let first = pace.turn("a:80").await.unwrap();
        let waits = |host: &'static str| tokio::time::timeout(Duration::from_secs(9), pace.turn(host));
        assert!(waits("a:80").await.is_err());
        let (second, third) = (pace.turn("b:80").await.unwrap(), pace.turn("c:80").await.unwrap());
        assert!(waits("d:80").await.is_err());
        drop((first, second));
        assert!(waits("a:80").await.is_ok() && waits("d:80").await.is_ok());
        drop(third);
    }
}
