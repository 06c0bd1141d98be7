//! The broker alone: what one durable task costs without any of our code.

use std::time::{Duration, Instant};

use async_nats::jetstream::{self, consumer, stream};
use futures::StreamExt;

/// Anything the client reports.
pub type BrokerError = Box<dyn std::error::Error + Send + Sync>;

/// Times `rounds` bare JetStream task round trips, one at a time: publish to a work queue with
/// acknowledgement, pull it, publish a result to another stream with acknowledgement, double-ack the task.
///
/// # Errors
/// When the broker refuses anything.
pub async fn task_round_trips(url: &str, rounds: usize) -> Result<Vec<Duration>, BrokerError> {
    let context = jetstream::new(crate::way::client(url).await?);
    let queue = create(&context, "BARE_TASKS", "own.bare.task.>", stream::RetentionPolicy::WorkQueue).await?;
    create(&context, "BARE_RESULTS", "own.bare.result.>", stream::RetentionPolicy::Limits).await?;
    let config = consumer::pull::Config { durable_name: Some("bare".to_owned()), ..Default::default() };
    let consumer: consumer::PullConsumer = queue.create_consumer(config).await?;

    let mut taken = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        // The pull is waiting before the task arrives, as it is for an idle agent.
        let mut batch = consumer.batch().max_messages(1).expires(Duration::from_secs(5)).messages().await?;
        let began = Instant::now();
        context.publish("own.bare.task.worker", "task".into()).await?.await?;
        let message = batch.next().await.ok_or("no task arrived")??;
        context.publish("own.bare.result.worker", "result".into()).await?.await?;
        message.double_ack().await?;
        taken.push(began.elapsed());
    }
    context.delete_stream("BARE_TASKS").await?;
    context.delete_stream("BARE_RESULTS").await?;
    Ok(taken)
}

/// Times `rounds` bare publishes with acknowledgement to a file stream, one at a time.
///
/// # Errors
/// When the broker refuses anything.
pub async fn durable_publishes(url: &str, rounds: usize) -> Result<Vec<Duration>, BrokerError> {
    let context = jetstream::new(crate::way::client(url).await?);
    create(&context, "BARE_WRITES", "own.bare.write.>", stream::RetentionPolicy::Limits).await?;
    let mut taken = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let began = Instant::now();
        context.publish("own.bare.write.x", vec![b'x'; 512].into()).await?.await?;
        taken.push(began.elapsed());
    }
    context.delete_stream("BARE_WRITES").await?;
    Ok(taken)
}

/// Writers, and what they write.
#[derive(Debug, Clone, Copy)]
pub struct Writing {
    /// How many write at once, each of them one after the other and with acknowledgement.
    pub writers: usize,
    /// Bytes of a write.
    pub bytes: usize,
    /// Streams over which they are spread.
    pub streams: usize,
}

/// How many writes so many writers make in a time.
///
/// # Errors
/// When the broker refuses anything.
pub async fn writes_of_many(
    url: &str,
    Writing { writers, bytes, streams }: Writing,
    time: Duration,
) -> Result<usize, BrokerError> {
    let context = jetstream::new(crate::way::client(url).await?);
    for at in 0..streams {
        let (name, subjects) = (format!("BARE_WRITES_{at}"), format!("own.bare.write.{at}.>"));
        create(&context, &name, &subjects, stream::RetentionPolicy::Limits).await?;
    }
    let until = Instant::now() + time;
    let write = async |writer: usize| {
        let mut written = 0;
        while Instant::now() < until {
            let subject = format!("own.bare.write.{}.{writer}", writer % streams);
            let answer = context.publish(subject, vec![b'x'; bytes].into()).await?;
            answer.await?;
            written += 1;
        }
        Ok::<usize, BrokerError>(written)
    };
    let written = futures::future::try_join_all((0..writers).map(write)).await?;
    for at in 0..streams {
        context.delete_stream(format!("BARE_WRITES_{at}")).await?;
    }
    Ok(written.into_iter().sum())
}

/// How many messages these streams hold.
///
/// # Errors
/// When one of them is not there.
pub async fn messages(url: &str, streams: impl Iterator<Item = String>) -> Result<Vec<u64>, BrokerError> {
    let context = jetstream::new(crate::way::client(url).await?);
    let mut held = Vec::new();
    for stream in streams {
        held.push(context.get_stream(stream).await?.cached_info().state.messages);
    }
    Ok(held)
}

async fn create(
    context: &jetstream::Context,
    name: &str,
    subjects: &str,
    retention: stream::RetentionPolicy,
) -> Result<stream::Stream, BrokerError> {
    let config = stream::Config {
        name: name.to_owned(),
        subjects: vec![subjects.to_owned()],
        retention,
        storage: stream::StorageType::File,
        ..Default::default()
    };
    Ok(context.create_stream(config).await?)
}
