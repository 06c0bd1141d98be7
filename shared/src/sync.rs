//! Access to state that threads share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose value is valid after every statement of its users: a panic elsewhere does not spoil it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
