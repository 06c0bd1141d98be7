//! What is said between a sandbox and its stage while a program runs.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener as StdTcpListener;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::output::Flood;
use crate::prepare::Prepared;
use crate::proxy;
use crate::wire::{self, Ending, Excess, Failure, FileHead, Order, Word};

/// Most things that a stage may tell to be kept back; it tells fewer.
const MOST_KEPT: usize = 64;

/// What a stage told.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) ending: Option<Ending>,
    pub(crate) files: Vec<(String, Bytes)>,
    pub(crate) kept: Vec<String>,
}

/// What a program is watched by from outside.
pub(crate) struct Watched<'a> {
    pub(crate) flood: &'a Flood,
    pub(crate) cancel: &'a CancellationToken,
    /// Hosts that were refused are added to it.
    pub(crate) refused: &'a Arc<Mutex<Vec<String>>>,
}

/// Gives a stage its job and hears it out.
pub(crate) async fn talk(
    control: UnixStream,
    input: &Bytes,
    prepared: &Prepared,
    watched: &Watched<'_>,
) -> Result<Told, Failure> {
    let (from, mut to) = control.into_split();
    // A stage that cannot do its job says so and hangs up before it has heard everything: what it says tells more.
    let _told_below = hand_over(&mut to, input, prepared).await;
    let (found, listener) = oneshot::channel();
    let mut words = pin!(hear(from, prepared, found));
    let mut serving = pin!(serve(listener, prepared, watched));
    let mut is_stopped = false;
    loop {
        let order = tokio::select! {
            told = &mut words => return told,
            () = &mut serving => continue,
            () = watched.cancel.cancelled(), if !is_stopped => Order::Stop(Ending::Cancelled),
            () = watched.flood.noticed(), if !is_stopped => Order::Stop(Ending::Exceeded(Excess::Output)),
        };
        is_stopped = true;
        // When it does not hear us it has ended already, and says that.
        let _ended_already = wire::send_to(&mut to, &order).await;
    }
}

async fn hand_over(to: &mut OwnedWriteHalf, input: &Bytes, prepared: &Prepared) -> io::Result<()> {
    wire::send_to(to, &prepared.job).await?;
    to.write_all(input).await?;
    for (path, bytes) in &prepared.files {
        wire::send_to(to, &FileHead { path: path.clone(), bytes: bytes.len() as u64 }).await?;
        to.write_all(bytes).await?;
    }
    to.flush().await
}

/// Serves hosts once there is a way to us. Never done.
async fn serve(listener: oneshot::Receiver<TcpListener>, prepared: &Prepared, watched: &Watched<'_>) {
    if let (Ok(listener), Some(rules)) = (listener.await, &prepared.rules) {
        proxy::serve(listener, rules.clone(), Arc::clone(watched.refused)).await;
    }
    std::future::pending().await
}

/// Hears a stage out. What it tells is held against what was agreed: behind it runs what we do not trust.
async fn hear(
    mut from: OwnedReadHalf,
    prepared: &Prepared,
    found: oneshot::Sender<TcpListener>,
) -> Result<Told, Failure> {
    let failed = Failure::at("listening to the sandbox");
    let mut found = Some(found);
    let mut told = Told::default();
    let mut files = prepared.job.most_files;
    let mut bytes = prepared.job.limits.disk.saturating_add(prepared.job.laid);
    loop {
        match wire::receive_from::<Word>(&mut from).await.map_err(&failed)? {
            Word::Done => return Ok(told),
            Word::Failed(failure) => return Err(failure),
            Word::Ended(ending) => told.ending = Some(ending),
            Word::Ready | Word::Started(_) => {}
            Word::Listening => {
                let listener = take_listener(from.as_ref()).await.map_err(&failed)?;
                let _only_once = found.take().map(|found| found.send(listener));
            }
            Word::Kept { path, why } if told.kept.len() < MOST_KEPT => {
                told.kept.push(format!("`{path}` was not kept: {why}"));
            }
            Word::Kept { .. } => {}
            Word::File(file) => {
                let left = bytes.checked_sub(file.bytes).filter(|_| files > 0);
                bytes =
                    left.ok_or_else(|| Failure::Broken("it gave more back than was agreed".to_owned()))?;
                files -= 1;
                let mut content = vec![0; usize::try_from(file.bytes).unwrap_or(usize::MAX)];
                from.read_exact(&mut content).await.map_err(&failed)?;
                told.files.push((file.path, content.into()));
            }
        }
    }
}

/// Takes the socket that listens inside of the program's network.
async fn take_listener(control: &UnixStream) -> io::Result<TcpListener> {
    let socket = control.async_io(Interest::READABLE, || receive_socket(control)).await?;
    let listener = StdTcpListener::from(socket);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

fn receive_socket(control: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    rustix::net::recvmsg(control, &mut [IoSliceMut::new(&mut byte)], &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    let sockets = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
        _ => None,
    });
    sockets.flatten().next().ok_or_else(|| io::Error::other("no socket came"))
}
