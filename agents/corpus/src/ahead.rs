//! Work on several threads, of which what comes is handed on in order.

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, PoisonError},
};

use muster_shared::sync::lock;

/// How many pieces are begun before the first of them is handed on, at most, for each thread.
const AHEAD: usize = 2;

struct State<I, O> {
    todo: std::vec::IntoIter<I>,
    done: BTreeMap<usize, O>,
    /// How many were begun.
    begun: usize,
    /// How many were handed on.
    handed: usize,
    /// Nothing more is to be begun.
    ended: bool,
}

struct Shared<I, O> {
    state: Mutex<State<I, O>>,
    changed: Condvar,
    /// Most pieces that are begun and not handed on.
    ahead: usize,
}

impl<I, O> Shared<I, O> {
    fn end(&self) {
        lock(&self.state).ended = true;
        self.changed.notify_all();
    }

    /// The next piece of work and its number, once it may be begun; none when there is no more.
    fn take(&self) -> Option<(usize, I)> {
        let mut state = lock(&self.state);
        while !state.ended && state.begun >= state.handed + self.ahead {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.ended {
            return None;
        }
        let item = state.todo.next()?;
        state.begun += 1;
        Some((state.begun - 1, item))
    }

    fn put(&self, number: usize, result: O) {
        lock(&self.state).done.insert(number, result);
        self.changed.notify_all();
    }

    /// The result of that number; none when a thread was lost.
    fn wait_for(&self, number: usize) -> Option<O> {
        let mut state = lock(&self.state);
        loop {
            if let Some(result) = state.done.remove(&number) {
                state.handed = number + 1;
                self.changed.notify_all();
                return Some(result);
            }
            if state.ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Ends all work when whoever holds it is gone: a thread that is lost, or the one that hands on.
struct EndWith<'a, I, O> {
    shared: &'a Shared<I, O>,
    only_if_lost: bool,
}

impl<I, O> Drop for EndWith<'_, I, O> {
    fn drop(&mut self) {
        if !self.only_if_lost || std::thread::panicking() {
            self.shared.end();
        }
    }
}

/// Does `work` on so many threads and hands what comes of it to `each`, on this thread and in the order of the items. Few
/// results are held at a time. A panic in `work` goes on here.
///
/// # Errors
/// The first error of `each`: nothing more is begun then.
pub(super) fn in_order<I: Send, O: Send, E>(
    items: Vec<I>,
    threads: usize,
    work: impl Fn(I) -> O + Sync,
    mut each: impl FnMut(O) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.into_iter().try_for_each(|item| each(work(item)));
    }
    let total = items.len();
    let state = State { todo: items.into_iter(), done: BTreeMap::new(), begun: 0, handed: 0, ended: false };
    let shared = Shared { state: Mutex::new(state), changed: Condvar::new(), ahead: threads * AHEAD };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let _end = EndWith { shared: &shared, only_if_lost: true };
                while let Some((number, item)) = shared.take() {
                    shared.put(number, work(item));
                }
            });
        }
        let _end = EndWith { shared: &shared, only_if_lost: false };
        for number in 0..total {
            let Some(result) = shared.wait_for(number) else { break };
            each(result)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn results_come_in_order_and_few_wait() {
        for threads in [1, 2, 5] {
            let (begun, mut handed) = (AtomicUsize::new(0), Vec::new());
            let work = |item: usize| {
                begun.fetch_add(1, Ordering::SeqCst);
                if item.is_multiple_of(3) {
                    std::thread::yield_now();
                }
                item * 2
            };
            let most = threads * AHEAD + 1;
            let each = |result: usize| {
                handed.push(result);
                assert!(begun.load(Ordering::SeqCst) <= handed.len() + most);
                Ok::<(), ()>(())
            };
            in_order((0..200).collect(), threads, work, each).unwrap();
            assert_eq!(handed, (0..200).map(|item| item * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_or_a_lost_thread_ends_it() {
        let mut seen = 0;
        let until_three = |item: u32| {
            seen += 1;
            if item == 3 { Err(item) } else { Ok(()) }
        };
        assert_eq!(in_order((0..100).collect(), 3, |item| item, until_three), Err(3));
        assert_eq!(seen, 4);
        let lost = std::panic::catch_unwind(|| {
            let work = |item: u32| if item == 5 { panic!("lost") } else { item };
            in_order((0..100).collect(), 2, work, |_| Ok::<(), ()>(()))
        });
        assert!(lost.is_err());
    }
}
