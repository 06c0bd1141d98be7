//! What the bus promises, checked on a real server and in memory alike.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod allowances;
mod bad_input;
mod chain;
mod coordination;
mod credentials;
mod fixture;
mod kept;
mod machines;
mod parts;
mod presence;
mod queues;
mod record;
mod reflected;
mod secrets;
mod server;
mod stores;
mod tls;
mod vouched;

/// Makes two tests of each function: one in memory, one on a server of its own.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod in_memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::fixture::in_memory()).await;
            })*
        }
        mod on_nats {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::fixture::on_nats().await).await;
            })*
        }
    };
}
pub(crate) use on_both;

/// The same, and two more with the record in four parts.
macro_rules! whatever_the_parts {
    ($($name:ident),* $(,)?) => {
        crate::on_both!($($name),*);
        mod in_four_parts_in_memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::fixture::in_memory_of(4)).await;
            })*
        }
        mod in_four_parts_on_nats {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::fixture::on_nats_of(4).await).await;
            })*
        }
    };
}
pub(crate) use whatever_the_parts;
