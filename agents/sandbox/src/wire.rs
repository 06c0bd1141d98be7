//! What is said between a sandbox and its stage: a length in four bytes, a message as JSON, and after some of them as many
//! bytes as they tell.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::report::Mechanisms;
use muster_tools::settings::Part;

/// Longest message, in bytes. What a program is started with may be large: its code is among its arguments.
pub(crate) const LONGEST: usize = 4 * 1024 * 1024;

/// How a stage keeps a program in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// In namespaces of its own, and all that is there without.
    Namespaces,
    /// By what is there without namespaces.
    Plain,
}

impl Mode {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Plain => "plain",
        }
    }
}

/// What is to be run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The program by its absolute path, and its arguments.
    pub(crate) command: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    /// How many bytes of input follow.
    pub(crate) input: u64,
    /// How many files follow that, and how many bytes they have together.
    pub(crate) files: u32,
    pub(crate) laid: u64,
    pub(crate) reads: Vec<PathBuf>,
    /// Where the folder is made, where it is not in memory.
    pub(crate) folder: PathBuf,
    /// Whether a way to a proxy is wanted.
    pub(crate) proxied: bool,
    pub(crate) limits: Limits,
    pub(crate) require: Vec<Part>,
    /// Most files that are given back.
    pub(crate) most_files: u32,
}

/// What a program may use: times in milliseconds, sizes in bytes.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Limits {
    pub(crate) time: u64,
    pub(crate) cpu: u64,
    pub(crate) memory: u64,
    pub(crate) processes: u32,
    pub(crate) disk: u64,
}

/// A file; its bytes follow.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FileHead {
    pub(crate) path: String,
    pub(crate) bytes: u64,
}

/// What is said to a stage once its program runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// It is to be ended: nobody waits for it, or it printed too much.
    Stop(Ending),
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    Exceeded(Excess),
    Cancelled,
}

/// What was used too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Excess {
    Cpu,
    Memory,
    Processes,
    Disk,
    Output,
}

impl Excess {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "time of the processors",
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::Disk => "disk",
            Self::Output => "output",
        }
    }
}

/// What a stage says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// It waits for its job.
    Ready,
    /// A socket for the proxy follows, beside one byte.
    Listening,
    /// The program runs, kept in by these.
    Started(Mechanisms),
    /// The program and all that it started are gone.
    Ended(Ending),
    /// A file that it made or changed; its bytes follow.
    File(FileHead),
    /// Something that it made and that is not given back.
    Kept { path: String, why: String },
    /// That is all.
    Done,
    /// Nothing came of it.
    Failed(Failure),
}

/// Why a stage cannot do its job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Failure {
    /// There are no namespaces to be had.
    #[error("no namespaces of one's own: {0}")]
    NoNamespaces(String),
    /// The program is not there or cannot be run.
    #[error("{0}")]
    NoProgram(String),
    /// A promise that is required does not hold.
    #[error("{0}")]
    Refused(String),
    /// Anything else.
    #[error("{0}")]
    Broken(String),
}

impl Failure {
    /// Something of the system failed.
    pub(crate) fn at(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Broken(format!("{what}: {error}"))
    }

    /// The same of a call of the kernel.
    pub(crate) fn of(what: &'static str) -> impl Fn(nix::Error) -> Self {
        move |error| Self::Broken(format!("{what}: {error}"))
    }
}

fn encode<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= LONGEST);
    let length = length.ok_or_else(|| io::Error::other("a message is too long"))?;
    let mut frame = length.to_le_bytes().to_vec();
    frame.extend(body);
    Ok(frame)
}

fn checked(length: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(length) as usize;
    if length <= LONGEST { Ok(length) } else { Err(io::Error::other("a message is too long")) }
}

/// Writes a message.
pub(crate) fn send<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    to.write_all(&encode(message)?)
}

/// Reads a message; nothing where the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut body = vec![0; checked(length)?];
    from.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

/// Writes a message.
pub(crate) async fn send_to<T: Serialize>(
    to: &mut (impl AsyncWriteExt + Unpin),
    message: &T,
) -> io::Result<()> {
    to.write_all(&encode(message)?).await
}

/// Reads a message, and not a byte more: a socket may come beside the next one.
pub(crate) async fn receive_from<T: DeserializeOwned>(
    from: &mut (impl AsyncReadExt + Unpin),
) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length).await?;
    let mut body = vec![0; checked(length)?];
    from.read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body)?)
}
