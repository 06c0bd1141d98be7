//! What tasks used goes back to the system when an agent comes to rest: the allocator keeps it for the next task, and most
//! agents of a fleet wait most of the time.

use std::time::Duration;

use muster_bus::{Bus, memory};
use tokio::sync::watch;
use tokio::sync::watch::error::RecvError;
use tokio::time::timeout;

use super::lead::Seats;

/// How long nothing is in hand before. A task that comes sooner would only have to ask for the memory again.
const REST: Duration = Duration::from_millis(500);

/// Gives memory back whenever the agent has come to rest, first from its start, until its host is gone. What comes again from
/// the program's file goes later than what is free.
pub(super) async fn give_back(bus: Bus, mut seats: watch::Receiver<Seats>) {
    let _gone = rest_whenever(&bus, &mut seats).await;
}

async fn rest_whenever(bus: &Bus, seats: &mut watch::Receiver<Seats>) -> Result<(), RecvError> {
    loop {
        seats.wait_for(|seats| seats.free == seats.all).await?;
        if is_taken_within(REST, seats).await? {
            continue;
        }
        bus.rest();
        if is_taken_within(memory::LONG, seats).await? {
            continue;
        }
        memory::rest();
        seats.wait_for(|seats| seats.free != seats.all).await?;
    }
}

/// Whether a task comes within this time.
async fn is_taken_within(time: Duration, seats: &mut watch::Receiver<Seats>) -> Result<bool, RecvError> {
    match timeout(time, seats.wait_for(|seats| seats.free != seats.all)).await {
        Ok(taken) => taken.map(|_| true),
        Err(_) => Ok(false),
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Bytes of this process that are in memory and of no file.
    fn own_bytes() -> usize {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_task_used_is_given_back_once_nothing_is_in_hand() {
        const USED: usize = 32 * 1024 * 1024;
        let (sender, seats) = watch::channel(Seats { free: 1, all: 2 });
        let giving = tokio::spawn(give_back(Bus::in_memory(&"worker-1".parse().unwrap()), seats));
        // Pieces that the allocator takes from its heap, and one after them that keeps the heap from shrinking by itself.
        let pieces: Vec<Vec<u8>> = (0..USED / 1024).map(|_| vec![1; 1024]).collect();
        let last = vec![1_u8; 1024];
        let before = own_bytes();
        drop(pieces);
        tokio::time::sleep(REST * 2).await;
        assert!(own_bytes() + USED / 2 > before, "a task is in hand: nothing is given back");
        sender.send_replace(Seats { free: 2, all: 2 });
        tokio::time::sleep(REST * 2).await;
        let after = own_bytes();
        assert!(after + USED / 2 < before, "{before} bytes before and {after} after");
        drop((last, sender));
        giving.await.unwrap();
    }
}
