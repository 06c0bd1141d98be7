use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use muster_shared::flow::rights::Allowed;
use muster_shared::flow::{Artifact, Grantor, Rights, TaskRights};
use muster_tools::settings::{HttpSettings, SearchSettings, WebSettings};
use muster_tools::workspace::{Workspace, WorkspaceError, WorkspacePath};
use muster_tools::{DocumentReader, Permission, Tool, ToolContext, ToolFailure, ToolOutput};
use muster_web::{Resolver, WebTools};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// An address that is public as far as the guard knows.
pub(crate) const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 215, 14));

/// What a site does with a request.
pub(crate) enum Reply {
    /// Sends this and closes.
    Whole(Vec<u8>),
    /// Sends the first, then the second again and again, with a pause.
    Endless(Vec<u8>, Vec<u8>, Duration),
    /// Says nothing.
    Silence,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    }
}

/// A site on the loopback that counts who connects.
pub(crate) struct Site {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<Request>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Site {
    pub(crate) async fn start(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (counted, seen, reply) = (Arc::clone(&connections), Arc::clone(&requests), Arc::new(reply));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let (seen, reply) = (Arc::clone(&seen), Arc::clone(&reply));
                tokio::spawn(async move {
                    let _ = serve(stream, &seen, &*reply).await;
                });
            }
        });
        Self { port, connections, requests, task }
    }

    /// One that answers everything with this page.
    pub(crate) async fn of(media_type: &'static str, body: &'static str) -> Self {
        Self::start(move |_| page(200, &[("content-type", media_type)], body.as_bytes())).await
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://site.org:{}{path}", self.port)
    }
}

async fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Request>>,
    reply: &(dyn Fn(&Request) -> Reply + Sync),
) -> io::Result<()> {
    let mut bytes = Vec::new();
    let end = loop {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&buffer[..read]);
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut request = Request { head, body: String::new() };
    let length =
        request.header("content-length").and_then(|length| length.parse::<usize>().ok()).unwrap_or(0);
    while bytes.len() < end + 4 + length {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await?;
        bytes.extend_from_slice(&buffer[..read]);
    }
    request.body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
    seen.lock().unwrap().push(request.clone());
    match reply(&request) {
        Reply::Whole(bytes) => stream.write_all(&bytes).await?,
        Reply::Endless(first, again, pause) => {
            stream.write_all(&first).await?;
            loop {
                stream.write_all(&again).await?;
                tokio::time::sleep(pause).await;
            }
        }
        Reply::Silence => std::future::pending().await,
    }
    stream.shutdown().await
}

/// An answer with its length.
pub(crate) fn page(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let mut bytes = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        bytes.push_str(&format!("{name}: {value}\r\n"));
    }
    bytes.push_str("\r\n");
    Reply::Whole([bytes.as_bytes(), body].concat())
}

pub(crate) fn redirect(to: &str) -> Reply {
    page(302, &[("location", to)], b"")
}

/// A resolver with answers by turns; the last one stays.
#[derive(Default)]
pub(crate) struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    lookups: AtomicUsize,
}

impl Names {
    pub(crate) fn with(self, name: &str, answers: &[&[&str]]) -> Self {
        let parsed =
            answers.iter().map(|answer| answer.iter().map(|address| address.parse().unwrap()).collect());
        self.answers.lock().unwrap().insert(name.to_owned(), parsed.collect());
        self
    }

    pub(crate) fn lookups(&self) -> usize {
        self.lookups.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Resolver for Names {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        match answers.get_mut(name) {
            Some(turns) if turns.len() > 1 => Ok(turns.remove(0)),
            Some(turns) => Ok(turns.first().cloned().unwrap_or_default()),
            None if name.ends_with(".org") => Ok(vec![PUBLIC]),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
        }
    }

    fn reached_at(&self, _: IpAddr) -> IpAddr {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    }
}

/// Settings under which sites at these ports are reached, quickly and without robots.txt.
pub(crate) fn settings(ports: &[u16]) -> WebSettings {
    WebSettings {
        ports: ports.to_vec(),
        robots: false,
        pause: Duration::ZERO,
        cache: 0,
        idle: Duration::from_secs(2),
        total: Duration::from_secs(5),
        ..WebSettings::default()
    }
}

/// The tools with a place for what they keep.
pub(crate) struct Tools {
    pub(crate) names: Arc<Names>,
    tools: Vec<Arc<dyn Tool>>,
    pub(crate) folder: tempfile::TempDir,
}

/// What the tools are made of, besides settings of the web.
#[derive(Default)]
pub(crate) struct Extra {
    pub(crate) search: SearchSettings,
    pub(crate) http: HttpSettings,
    pub(crate) reader: Option<Arc<dyn DocumentReader>>,
}

impl Tools {
    pub(crate) fn new(web: WebSettings) -> Self {
        Self::with(web, Names::default(), Extra::default())
    }

    pub(crate) fn with(web: WebSettings, names: Names, extra: Extra) -> Self {
        let (names, folder) = (Arc::new(names), tempfile::tempdir().unwrap());
        let tools = tools(web, extra, folder.path(), &names);
        Self { names, tools, folder }
    }

    /// Others on the same host, which share what is kept.
    pub(crate) fn beside(&self, web: WebSettings) -> Vec<Arc<dyn Tool>> {
        tools(web, Extra::default(), self.folder.path(), &self.names)
    }

    pub(crate) async fn call(
        &self,
        ctx: &ToolContext,
        name: &str,
        arguments: Value,
    ) -> Result<ToolOutput, ToolFailure> {
        call(&self.tools, ctx, name, arguments).await
    }

    pub(crate) async fn fetch(&self, url: &str) -> Result<String, ToolFailure> {
        self.call(&context(), "fetch", json!({ "url": url })).await.map(|output| output.content)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.tools.iter().map(|tool| tool.spec().name).collect()
    }
}

fn tools(web: WebSettings, extra: Extra, folder: &std::path::Path, names: &Arc<Names>) -> Vec<Arc<dyn Tool>> {
    let Extra { search, http, reader } = extra;
    let resolver = Arc::clone(names) as Arc<dyn Resolver>;
    muster_web::tools(WebTools { web, search, http, cache_dir: folder.to_owned(), reader, resolver })
}

pub(crate) async fn call(
    tools: &[Arc<dyn Tool>],
    ctx: &ToolContext,
    name: &str,
    arguments: Value,
) -> Result<ToolOutput, ToolFailure> {
    let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap_or_else(|| panic!("no tool {name}"));
    tool.call(ctx, arguments).await
}

pub(crate) fn context() -> ToolContext {
    ToolContext::new("run", "task").granting([Permission::Network])
}

/// A task that may reach these hosts and no others.
pub(crate) fn restricted(hosts: &[&str]) -> ToolContext {
    let rights = Rights { hosts: Allowed::read(hosts).unwrap(), ..Rights::default() };
    context().within(Arc::new(TaskRights::default().narrowed_by(Grantor::Goal, &rights)))
}

/// A workspace in memory.
#[derive(Default)]
pub(crate) struct Files(pub(crate) Mutex<HashMap<String, Bytes>>);

#[async_trait]
impl Workspace for Files {
    async fn read(&self, path: &WorkspacePath) -> Result<String, WorkspaceError> {
        Ok(String::from_utf8_lossy(&self.read_bytes(path).await?).into_owned())
    }

    async fn read_bytes(&self, path: &WorkspacePath) -> Result<Bytes, WorkspaceError> {
        let files = self.0.lock().unwrap();
        files.get(path.as_str()).cloned().ok_or_else(|| WorkspaceError::NotFound(path.to_string()))
    }

    async fn write_bytes(&self, path: &WorkspacePath, bytes: Bytes) -> Result<(), WorkspaceError> {
        self.0.lock().unwrap().insert(path.to_string(), bytes);
        Ok(())
    }

    async fn write(&self, path: &WorkspacePath, text: &str) -> Result<(), WorkspaceError> {
        self.write_bytes(path, Bytes::copy_from_slice(text.as_bytes())).await
    }

    async fn replace(&self, path: &WorkspacePath, text: &str, _: &str) -> Result<(), WorkspaceError> {
        self.write(path, text).await
    }

    async fn append(&self, path: &WorkspacePath, text: &str) -> Result<u64, WorkspaceError> {
        self.write(path, text).await.map(|()| text.len() as u64)
    }

    async fn list(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        Ok(Vec::new())
    }

    async fn glance(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        Ok(Vec::new())
    }
}
