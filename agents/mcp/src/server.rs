//! A server: started, supervised, its tools kept up to date, stopped.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use muster_tools::Tool;
use rmcp::model::{ServerCapabilities, SubscriptionFilter};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::callbacks::Callbacks;
use crate::config::ServerConfig;
use crate::connect::{Connecting, Connection};
use crate::desk::Desk;
use crate::error::McpError;
use crate::host::{Host, Link, Shelf};
use crate::listing::{self, Listed};
use crate::pins::{ReviewRules, ToolNews};
use crate::plain::visible;
use crate::request::{NoAnswer, for_itself};
use crate::restart::{Deaths, Restart, RestartRules};
use crate::tool::McpTool;
use muster_shared::sync::lock;
use muster_tools::settings::McpSettings;

/// Window in which restarts are counted. A server that runs for ten minutes is in no crash loop.
const RESTART_WINDOW: Duration = Duration::from_secs(600);

/// The least time between two looks at a server's tools: a server can say ever so often that they changed.
const LIST_PAUSE: Duration = Duration::from_millis(500);
/// The wait before a server is asked once more to tell of changes, where it stopped.
const LISTEN_PAUSE: Duration = Duration::from_secs(5);

/// A server that runs. Dropped, it ends.
pub struct McpServer {
    host: Arc<Host>,
    news: watch::Receiver<Arc<Vec<ToolNews>>>,
    stop: CancellationToken,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

/// How a server is getting on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// It is there.
    Up {
        /// The protocol that is spoken.
        protocol: String,
        /// Its process, where it has one.
        process: Option<u32>,
    },
    /// It is being started again.
    Down,
    /// It is not started again.
    GivenUp(String),
    /// It was stopped.
    Stopped,
}

impl McpServer {
    /// Starts a server, or connects to it, and asks what it has. From then on it is supervised: started again when it dies,
    /// until it has died too often.
    ///
    /// # Errors
    /// When it cannot be started, does not answer within its time, or does not say what it has.
    pub async fn start(
        config: ServerConfig,
        settings: &McpSettings,
        callbacks: &Callbacks,
    ) -> Result<Self, McpError> {
        let host = Arc::new(Host::new(config, settings.clone(), callbacks.clone()));
        let stop = CancellationToken::new();
        let news = watch::Sender::new(Arc::default());
        let heard = news.subscribe();
        let mut supervisor =
            Supervisor { host: Arc::clone(&host), stop: stop.clone(), news, changed: Arc::default() };
        let listed = supervisor.bring_up().await;
        let listed = listed.inspect_err(|error| host.callbacks.pins.leave_out(vec![error.to_string()]))?;
        let supervisor = tokio::spawn(async move { supervisor.run(listed).await });
        Ok(Self { host, news: heard, stop, supervisor: Mutex::new(Some(supervisor)) })
    }

    /// The server's name in the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.host.config.name
    }

    /// The tools that may be called now.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.host.shelf.borrow().tools.clone()
    }

    /// Told whenever the tools changed.
    #[must_use]
    pub fn changes(&self) -> ToolChanges {
        ToolChanges(self.host.shelf.subscribe())
    }

    /// What a person should hear of: which tools wait or are refused now, and which were new at any time.
    #[must_use]
    pub fn news(&self) -> watch::Receiver<Arc<Vec<ToolNews>>> {
        self.news.clone()
    }

    /// How it is getting on.
    #[must_use]
    pub fn state(&self) -> ServerState {
        match &*self.host.link.borrow() {
            Link::Up(connection) => ServerState::Up {
                protocol: connection.info.protocol_version.to_string(),
                process: connection.process,
            },
            Link::Down => ServerState::Down,
            Link::GivenUp(why) => ServerState::GivenUp(why.clone()),
            Link::Stopped => ServerState::Stopped,
        }
    }

    /// Ends it with all its processes, and waits until they are gone.
    pub async fn stop(&self) {
        self.stop.cancel();
        let supervisor = lock(&self.supervisor).take();
        if let Some(supervisor) = supervisor {
            let _done = supervisor.await;
        }
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Tells when the tools of a server changed.
pub struct ToolChanges(watch::Receiver<Arc<Shelf>>);

impl ToolChanges {
    /// Waits until the tools changed since the last time that this was asked; false when the server is gone for good.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// Keeps a server going.
struct Supervisor {
    host: Arc<Host>,
    stop: CancellationToken,
    news: watch::Sender<Arc<Vec<ToolNews>>>,
    changed: Arc<Notify>,
}

/// Why a connection is attended to no more.
enum Over {
    Stopped,
    Died,
}

impl Supervisor {
    async fn run(&mut self, listed: Listed) {
        let begun = Instant::now();
        let mut deaths = Deaths::default();
        let mut listed = Some(listed);
        loop {
            if let Some(listed) = listed.take()
                && matches!(self.attend(listed).await, Over::Stopped)
            {
                break;
            }
            match deaths.died(begun.elapsed(), &self.rules()) {
                Restart::After(pause) => {
                    self.host.link.send_replace(Link::Down);
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = self.stop.cancelled() => break,
                    }
                }
                Restart::GiveUp => {
                    self.give_up().await;
                    return;
                }
            }
            let stop = self.stop.clone();
            tokio::select! {
                up = self.bring_up() => match up {
                    Ok(again) => listed = Some(again),
                    Err(error) => tracing::warn!(%error, "an MCP server did not come back"),
                },
                () = stop.cancelled() => break,
            }
        }
        self.end(Link::Stopped).await;
    }

    fn rules(&self) -> RestartRules {
        let settings = &self.host.settings;
        RestartRules { most: settings.restarts, window: RESTART_WINDOW, pause: settings.restart_pause }
    }

    /// Connects, asks what the server has, and lets calls in.
    async fn bring_up(&mut self) -> Result<Listed, McpError> {
        let host = Arc::clone(&self.host);
        let changed = Arc::clone(&self.changed);
        let desk = Arc::new(Desk::new(&host.config.name, host.callbacks.elicits, changed));
        let (config, settings, callbacks) = (&host.config, &host.settings, &host.callbacks);
        let connecting = Connecting { config, settings, callbacks, desk };
        let connection = Box::pin(connecting.connect()).await?;
        let listed = match self.list(&connection).await {
            Ok(listed) => listed,
            Err(why) => {
                connection.end().await;
                let server = host.config.name.clone();
                return Err(McpError::NoList { server, reason: reason_of(why) });
            }
        };
        self.put_out(&listed);
        host.link.send_replace(Link::Up(connection));
        Ok(listed)
    }

    async fn list(&self, connection: &Arc<Connection>) -> Result<Listed, NoAnswer> {
        let settings = &self.host.settings;
        let asking = for_itself(connection, settings.start_limit, &self.stop);
        let most = usize::try_from(settings.max_tools).unwrap_or(usize::MAX);
        listing::all(&asking, &connection.info.capabilities, most).await
    }

    /// Looks at what the server has, and serves what is accepted.
    fn put_out(&self, listed: &Listed) {
        let host = &self.host;
        let rules = ReviewRules {
            namespace: host.config.namespace.clone(),
            limits: host.definition_limits(),
            hold_new: host.settings.hold_new_tools,
        };
        let mut review = host.callbacks.pins.review(&host.config.name, &listed.tools, &rules);
        review.news.extend(listed.refused.iter().cloned());
        let refusal = |news: &ToolNews| match news {
            ToolNews::Refused { tool, reason } => Some(format!("the tool {tool}: {reason}")),
            ToolNews::New { .. } | ToolNews::Changed { .. } => None,
        };
        host.callbacks.pins.leave_out(review.news.iter().filter_map(refusal).collect());
        let own = review.served.iter().map(|served| Arc::new(McpTool::of(host, served)) as Arc<dyn Tool>);
        let beside =
            listed.beside.iter().map(|doing| Arc::new(McpTool::beside(host, doing.clone())) as Arc<dyn Tool>);
        let tools = own.chain(beside).collect();
        let accepted = review.served.iter().map(|served| (served.tool.clone(), served.digest.clone()));
        let shelf = Shelf { tools, accepted: accepted.collect() };
        host.shelf.send_if_modified(|now| {
            let names = |shelf: &Shelf| shelf.tools.iter().map(|tool| tool.spec().name).collect::<Vec<_>>();
            let is_new = now.accepted != shelf.accepted || names(now) != names(&shelf);
            if is_new {
                *now = Arc::new(shelf);
            }
            is_new
        });
        self.tell(review.news);
    }

    /// Tells what waits for a person now, and what was new at any time.
    fn tell(&self, mut news: Vec<ToolNews>) {
        let before = Arc::clone(&self.news.borrow());
        for item in news.iter().filter(|item| !before.contains(item)) {
            tracing::warn!(server = %visible(&self.host.config.name), news = ?item, "tools of an MCP server");
        }
        let most = usize::try_from(self.host.settings.max_tools).unwrap_or(usize::MAX);
        let was_new = before.iter().filter(|item| matches!(item, ToolNews::New { held: false, .. }));
        let kept: Vec<ToolNews> = was_new.filter(|item| !news.contains(item)).take(most).cloned().collect();
        news.extend(kept);
        self.news.send_if_modified(|now| {
            let is_new = **now != news;
            if is_new {
                *now = Arc::new(news);
            }
            is_new
        });
    }

    /// Looks again whenever the server, or a person who accepts something, says so; until the server is gone.
    async fn attend(&self, mut listed: Listed) -> Over {
        let Link::Up(connection) = self.host.link.borrow().clone() else { return Over::Died };
        let mut accepted = self.host.callbacks.pins.changes();
        let listening = listen(&connection, &self.changed);
        tokio::pin!(listening);
        let mut not_before = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Over::Stopped,
                () = connection.closed().cancelled() => {
                    let server = visible(&self.host.config.name);
                    tracing::warn!(server, "an MCP server died{}", connection.last_words());
                    connection.end().await;
                    return Over::Died;
                }
                () = &mut listening => {}
                changed = accepted.changed() => {
                    if changed.is_ok() {
                        self.put_out(&listed);
                    }
                }
                () = self.told_of_change(not_before) => {
                    match self.list(&connection).await {
                        Ok(new) => {
                            listed = new;
                            self.put_out(&listed);
                        }
                        Err(why) => {
                            let server = visible(&self.host.config.name);
                            tracing::warn!(server, reason = reason_of(why), "an MCP server does not list its tools");
                        }
                    }
                    not_before = Instant::now() + LIST_PAUSE;
                }
            }
        }
    }

    /// Waits for the server's word that something changed, heard no sooner than then.
    async fn told_of_change(&self, not_before: Instant) {
        tokio::time::sleep_until(not_before).await;
        self.changed.notified().await;
    }

    async fn give_up(&self) {
        let most = self.host.settings.restarts;
        let window = RESTART_WINDOW.as_secs();
        let last = match &*self.host.link.borrow() {
            Link::Up(connection) => connection.last_words(),
            Link::Down | Link::GivenUp(_) | Link::Stopped => String::new(),
        };
        let why = format!("it died more than {most} times within {window} s{last}");
        self.host.callbacks.pins.leave_out(vec![why.clone()]);
        tracing::error!(server = %visible(&self.host.config.name), why, "an MCP server is given up");
        self.end(Link::GivenUp(why)).await;
    }

    async fn end(&self, with: Link) {
        let before = self.host.link.send_replace(with);
        if let Link::Up(connection) = before {
            connection.end().await;
        }
    }
}

/// Has a server of the newest protocol tell when its lists change; older ones do so by themselves. Never ends.
async fn listen(connection: &Connection, changed: &Notify) {
    let filter = told_of(&connection.info.capabilities);
    if connection.info.protocol_version.has_initialize() || filter == SubscriptionFilter::default() {
        return std::future::pending().await;
    }
    loop {
        match connection.peer.listen(filter.clone()).await {
            Ok(mut subscription) => {
                while let Ok(Some(news)) = subscription.next().await {
                    tracing::debug!(?news, "an MCP server tells of a change");
                    changed.notify_one();
                }
            }
            Err(error) => tracing::debug!(%error, "an MCP server does not tell of changes"),
        }
        tokio::time::sleep(LISTEN_PAUSE).await;
        // What changed meanwhile was not told.
        changed.notify_one();
    }
}

/// The changes of which a server says that it tells.
fn told_of(capabilities: &ServerCapabilities) -> SubscriptionFilter {
    let mut filter = SubscriptionFilter::default();
    let tools = capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
    let resources = capabilities.resources.as_ref().and_then(|resources| resources.list_changed);
    let prompts = capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed);
    filter.tools_list_changed = tools.filter(|told| *told);
    filter.resources_list_changed = resources.filter(|told| *told);
    filter.prompts_list_changed = prompts.filter(|told| *told);
    filter
}

fn reason_of(why: NoAnswer) -> String {
    match why {
        NoAnswer::Refused(error) => visible(&error.message),
        NoAnswer::Died => "it died".to_owned(),
        NoAnswer::Lost(reason) | NoAnswer::NotSent(reason) | NoAnswer::Odd(reason) => reason,
        NoAnswer::Stopped => "it was stopped".to_owned(),
        NoAnswer::TimedOut => "it did not answer in time".to_owned(),
        NoAnswer::NeedsAuthorization => "it wants an authorization".to_owned(),
    }
}
