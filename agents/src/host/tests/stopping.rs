//! An agent that is told to stop in the moment in which it takes a task.

use super::*;
use crate::host::lead::Arrived;

/// A host, what it says of its slots, and what stops it.
struct Stage {
    context: Arc<AgentContext>,
    host: actix::Addr<Host>,
    seats: watch::Receiver<Seats>,
    stop: CancellationToken,
}

impl Ground {
    async fn stage(&self) -> Stage {
        let context = Arc::new(self.chat_kit(Role::Worker, &Scripted::new(|_, _| submits("never"))));
        let announced = self.bus.registry().announce(profile::profile(&context)).await.unwrap();
        let (told, mut seats) = watch::channel(Seats { free: 0, all: 0 });
        let stop = CancellationToken::new();
        let host = Host::new(Arc::clone(&context), told, Arc::new(announced), stop.clone()).start();
        seats.wait_for(|seats| seats.all > 0).await.unwrap();
        Stage { context, host, seats, stop }
    }
}

#[test]
fn a_task_that_comes_after_the_stop_goes_back_and_takes_no_slot() {
    on_ground(async |ground: Ground| {
        let Stage { context, host, seats, stop } = ground.stage().await;
        let queue = ground.bus.tasks().join(&Queue::Role(Role::Worker)).await.unwrap();
        stop.cancel();
        for alone in [false, true] {
            let offer = TaskOffered { alone, ..leaf(Role::Worker) };
            ground.offer(&offer).await;
            let task = queue.take(LIMIT).await.unwrap().unwrap();
            host.send(Arrived(task)).await.unwrap();
            let Seats { free, all } = *seats.borrow();
            assert_eq!((free, all), (context.slots(), context.slots()), "alone: {alone}");
            let again = queue.take(LIMIT).await.unwrap().unwrap();
            assert_eq!(again.delivered, 2, "alone: {alone}");
            again.done().await.unwrap();
        }
    });
}

/// The host runs on this thread, so that it hears of nothing while the thread is busy.
#[test]
fn a_task_that_the_host_has_not_seen_yet_is_not_lost() {
    on_ground(async |ground: Ground| {
        let Stage { host, seats, stop, .. } = ground.stage().await;
        let queue = ground.bus.tasks().join(&Queue::Role(Role::Worker)).await.unwrap();
        let feeder = tokio::spawn(feed::feed(queue.clone(), seats, host, LIMIT, stop.clone()));
        let offer = leaf(Role::Worker);
        ground.offer(&offer).await;
        while !ground.bus.tasks().waiting().await.unwrap().values().all(|waiting| *waiting == 0) {
            std::thread::sleep(Duration::from_millis(1));
        }
        stop.cancel();
        // Time for the feeder to do the wrong thing.
        let until = Instant::now() + Duration::from_millis(100);
        while !feeder.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        feeder.await.unwrap().unwrap();
        let again = queue.take(LIMIT / 2).await.unwrap().expect("it is given out again at once");
        assert_eq!(again.delivered, 2);
    });
}
