//! What every command has: settings, the folder it works in, the redactor, and the way to the bus.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use muster_bus::credentials::tls::{ca_file, client_files};
use muster_bus::credentials::{FleetKeys, operator_file, presence_file};
pub(crate) use muster_bus::now;
use muster_bus::server::{LocalServer, ServerError, keys_folder, keys_of_server};
use muster_bus::{Bus, BusError, BusSettings};
use muster_shared::ids::AgentId;
use muster_shared::secret::Redactor;
use uuid::Uuid;

use crate::args::Global;
use crate::exit::{Exit, Failure, usage};
use crate::fleet::own_keys;
use crate::fleet::state::FleetFolder;
use crate::render::paint::Paint;
use crate::settings::{self, Care, Inputs, Loaded, Settings};
use crate::trust::{self, Trust};
use crate::{redaction, secrets};

/// What every command has.
#[derive(Clone)]
pub(crate) struct App {
    /// Settings with their origins.
    pub(crate) loaded: Arc<Loaded>,
    /// Where the local fleet of this folder lives.
    pub(crate) fleet: FleetFolder,
    /// Takes secrets out of what is shown or logged.
    pub(crate) redactor: Arc<Redactor>,
    /// What flags set, for processes that are started: key, value, the flag's name.
    pub(crate) flags: Arc<Vec<(String, String, String)>>,
    /// What the user trusts.
    pub(crate) trust: Trust,
}

impl App {
    /// Reads the settings and finds the folder. `own` are assignments of the command's own flags.
    pub(crate) fn open(
        global: &Global,
        own: impl IntoIterator<Item = (String, String, String)>,
        care: Care,
    ) -> Result<Self, miette::Report> {
        let folder = current_folder()?;
        let variables = variables();
        let mut flags = settings::taken_over(&variables)?;
        flags.extend(self::flags(global).into_iter().chain(own));
        let inputs = Inputs { flags: flags.clone(), care, ..inputs(global, folder.clone(), variables) };
        let mut loaded = settings::load(&inputs)?;
        let redactor = Arc::new(secrets::redactor(&loaded.settings, &inputs.variables));
        redaction::keep(&redactor);
        let (fleet, not_ours) = FleetFolder::nearest(&folder);
        match (not_ours, care) {
            (None, _) => {}
            (Some(why), Care::Lenient | Care::Everything) => loaded.left_out.push(why),
            (Some(why), Care::Strict) if fleet.disbelief().is_some() => return Err(not_believed(&why).into()),
            // One above does not keep anybody from a fleet of his own here.
            (Some(why), Care::Strict) => loaded.warnings.push(why),
        }
        if let Some(why) = fleet.pretended() {
            match care {
                Care::Strict => loaded.warnings.push(why),
                Care::Lenient | Care::Everything => loaded.left_out.push(why),
            }
        }
        if care == Care::Strict {
            check_templates(&loaded, &inputs.trust)?;
        }
        let trust = inputs.trust;
        Ok(Self { loaded: Arc::new(loaded), fleet, redactor, flags: Arc::new(flags), trust })
    }

    /// What a process that is started is told of our settings file, where that was found: it trusts it no more than we do.
    pub(crate) fn found_file(&self) -> Option<(String, String)> {
        let file = self.loaded.file.as_ref().filter(|_| self.loaded.is_found)?;
        Some((trust::FOUND.to_owned(), trust::absolute(file).display().to_string()))
    }

    /// The settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.loaded.settings
    }

    /// A path of the settings: relative ones lie beside the fleet's folder, wherever a command is given.
    pub(crate) fn beside_fleet(&self, path: &Path) -> PathBuf {
        self.fleet.path().parent().map_or_else(|| path.to_owned(), |project| project.join(path))
    }

    /// Directory of the local server's store.
    pub(crate) fn store_dir(&self) -> PathBuf {
        self.beside_fleet(&self.settings().server.store_dir)
    }

    /// Directory of the cache, created if it is missing. Its name follows from the birth time of the directory that the
    /// settings name, which no copy shares: a cache that came with a project is not used.
    pub(crate) fn cache_dir(&self) -> PathBuf {
        let folder = self.beside_fleet(&self.settings().agent.cache_dir);
        if folder.starts_with(self.fleet.path()) {
            // The first process that makes it keeps other users out.
            let _ = self.fleet.make();
        }
        // An error shows when the cache is used.
        let born = fs::create_dir_all(&folder).and_then(|()| fs::metadata(&folder)?.created());
        folder.join(born.map(|at| trust::digest([format!("{at:?}").as_bytes()])).unwrap_or_default())
    }

    /// Directory of the keys of the local server.
    pub(crate) fn keys_folder(&self) -> Result<PathBuf, ServerError> {
        keys_folder(&self.store_dir())
    }

    /// Keys of the local server, if this folder has them.
    pub(crate) fn keys(&self) -> Option<FleetKeys> {
        FleetKeys::open(&self.keys_folder().ok()?).ok().flatten()
    }

    /// How to paint standard output.
    pub(crate) fn paint(&self) -> Paint {
        paint(std::io::stdout().is_terminal())
    }

    /// How to paint standard error.
    pub(crate) fn paint_notes(&self) -> Paint {
        paint(std::io::stderr().is_terminal())
    }

    /// The URL of a fleet that is up: from the settings, else the local fleet's. Whoever runs agents of one that is elsewhere here
    /// may not look at it.
    pub(crate) fn url(&self) -> Option<String> {
        let of_own = || self.fleet.live().filter(|state| state.host.is_none()).map(|state| state.url);
        self.settings().bus.url.clone().or_else(of_own)
    }

    /// Connects to a URL as a process of `role`, or in the name that its credentials bear.
    pub(crate) async fn connect_to(&self, url: &str, role: &str) -> Result<Bus, Failure> {
        self.connect_by(self.way_to(url), role).await
    }

    /// Connects to a server that this process has started, as its owner and with the system account.
    pub(crate) async fn connect_to_server(&self, server: &LocalServer, role: &str) -> Result<Bus, Failure> {
        let credentials = BusSettings::of_server(server).credentials;
        let system_credentials = Some(server.keys().presence_file());
        let own = BusSettings { credentials, system_credentials, ..self.settings().bus.clone() };
        self.connect_by(own.at(server), role).await
    }

    /// The same as [`Self::connect_to`], with the system account: the one that is set, else that of this folder's own server when the URL is
    /// its.
    pub(crate) async fn connect_with_system(&self, url: &str, role: &str) -> Result<Bus, Failure> {
        let mut settings = self.way_to(url);
        let is_set = settings.system_user.is_some() || settings.system_credentials.is_some();
        if !is_set && let Some(keys) = self.keys_of(url) {
            settings.system_credentials = Some(presence_file(&keys));
        }
        self.connect_by(settings, role).await
    }

    async fn connect_by(&self, settings: BusSettings, role: &str) -> Result<Bus, Failure> {
        let who = new_id(role);
        if let Some(path) = settings.credentials.as_deref().filter(|path| own_keys::is_open(path)) {
            tracing::warn!(
                "{} can be read by others, who are then whom it names: `chmod go= {0}`",
                path.display()
            );
        }
        // Large, and soon over: kept by itself, it does not stay on the stack.
        let connect = Box::pin(Bus::connect(&settings, &who, Arc::clone(&self.redactor)));
        Ok(connect.await?)
    }

    /// How a URL is connected to: as settings say, and where they say nothing of who we are, as the owner of this folder's
    /// own server when the URL is its.
    pub(crate) fn way_to(&self, url: &str) -> BusSettings {
        let mut settings = BusSettings { url: Some(url.to_owned()), ..self.settings().bus.clone() };
        let is_named = settings.user.is_some() || settings.token.is_some() || url.contains('@');
        let own = self.keys_of(url);
        if settings.credentials.is_none() && !is_named {
            settings.credentials = own.as_deref().map(operator_file);
        }
        // What is set is for servers elsewhere.
        if let Some(keys) = own {
            let client = client_files(&keys);
            let client = Some(client).filter(|client| client.certificate.exists());
            (settings.tls_cert, settings.tls_key) = client.map(|own| (own.certificate, own.key)).unzip();
            settings.tls_ca = url.starts_with("tls://").then(|| ca_file(&keys));
        }
        settings
    }

    /// The folder of the keys of the server at a URL, when it is this folder's own.
    fn keys_of(&self, url: &str) -> Option<PathBuf> {
        let at = url.strip_prefix("nats://").or_else(|| url.strip_prefix("tls://"))?;
        let (host, port) = at.rsplit_once(':')?;
        keys_of_server(&self.store_dir(), host, port.parse().ok()?)
    }

    /// Connects to the fleet that is up.
    pub(crate) async fn connect(&self, role: &str) -> Result<Bus, Failure> {
        match self.url() {
            Some(url) => self.connect_to(&url, role).await,
            None => Err(no_fleet()),
        }
    }
}

/// What settings are made from, but for flags.
pub(crate) fn inputs(global: &Global, folder: PathBuf, variables: Vec<(String, String)>) -> Inputs {
    let was_found = |file: &PathBuf| {
        variables.iter().any(|(name, value)| name == trust::FOUND && Path::new(value) == file.as_path())
    };
    let (found, file) = match global.config.clone() {
        Some(file) if was_found(&file) => (Some(file), None),
        file => (None, file),
    };
    Inputs {
        file,
        found,
        own: trust::own_folder(&variables).map(|folder| folder.join(settings::FILE_NAME)),
        trust: Trust::new(&variables),
        team: global.fleet.clone(),
        folder,
        variables,
        ..Inputs::default()
    }
}

/// The folder that the command works in.
pub(crate) fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|e| usage!("cannot find the current folder: {e}").help("change to a folder that exists"))
}

/// Refuses to believe what a folder of somebody else's says of a fleet.
pub(crate) fn not_believed(why: &str) -> Failure {
    Failure::usage(why).help(
        "work in a folder of your own; for a fleet that another user runs, set its address (--url, MUSTER_BUS_URL)",
    )
}

/// Refuses prompt templates that other users can change, and those of a project that the user has not trusted.
fn check_templates(loaded: &Loaded, trust: &Trust) -> Result<(), Failure> {
    let Some(folder) = &loaded.settings.agent.template_dir else { return Ok(()) };
    if let Some(folder) = loaded.templates_of_project() {
        let consent = trust.consent(folder, trust::template_items(folder));
        consent.map_err(Failure::usage)?;
    }
    match trust.fault_within(folder, ".j2") {
        None => Ok(()),
        Some(fault) => Err(usage!("prompt templates do not count: {fault}")
            .help(format!("{}; MUSTER_TRUST names folders that you trust as a whole", fault.mend()))),
    }
}

/// There is no fleet to talk to.
pub(crate) fn no_fleet() -> Failure {
    Failure::bus("no fleet is running here and no NATS server is configured").help(
        "start one with `muster up`, or set bus.url (MUSTER_BUS_URL, --url) to the server of a running fleet",
    )
}

/// A failure of the bus, with the exit code for it.
pub(crate) fn bus_failure(error: BusError) -> Failure {
    let exit = match &error {
        BusError::Settings { .. } | BusError::BadName { .. } => Exit::Usage,
        BusError::Unreadable { .. } | BusError::TooLarge { .. } | BusError::Codec { .. } => Exit::Failed,
        _ => Exit::BusUnreachable,
    };
    Failure::new(exit, error).help("`muster doctor` checks the connection to the bus")
}

impl From<BusError> for Failure {
    fn from(error: BusError) -> Self {
        bus_failure(error)
    }
}

/// A name for this process on the bus.
pub(crate) fn new_id(role: &str) -> AgentId {
    let (token, ..) = Uuid::new_v4().as_fields();
    AgentId::new(role, token)
}

/// How to paint what goes to a terminal, or elsewhere.
pub(crate) fn paint(is_terminal: bool) -> Paint {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if is_terminal && wanted { Paint::COLOUR } else { Paint::PLAIN }
}

/// The name of who is at this terminal, as the system says it; empty where it does not.
pub(crate) fn user() -> String {
    std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default()
}

pub(crate) fn variables() -> Vec<(String, String)> {
    // What is not text cannot be a setting.
    std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect()
}

fn flags(global: &Global) -> Vec<(String, String, String)> {
    let url = global.url.iter().map(|url| ("bus.url".to_owned(), url.clone(), "--url".to_owned()));
    let set = global.set.iter().map(|(key, value)| (key.clone(), value.clone(), "--set".to_owned()));
    url.chain(set).collect()
}
