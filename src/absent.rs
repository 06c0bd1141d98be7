//! Counterparts of the optional capabilities, for builds without them. Each reports the missing capability and the remedy.

use std::path::Path;

use muster_agents::tools::edges::absent_feature;

use crate::app::App;
use crate::exit::{Failure, usage};
use crate::mcp_file;

/// The error of a request for a capability that this build lacks.
pub(crate) fn missing(capability: &str) -> Failure {
    usage!("this muster binary was built without the capability `{capability}`")
        .help("`make build` builds muster with all capabilities: target/release/muster")
}

/// Checks that this build has every capability that the settings and files of a fleet ask for.
///
/// # Errors
/// Names the first missing capability.
pub(crate) fn check(app: &App) -> Result<(), Failure> {
    let settings = app.settings();
    if let Some(capability) = settings.tool.allow.iter().find_map(|pattern| absent_feature(pattern)) {
        return Err(missing(capability));
    }
    if !cfg!(feature = "telemetry") && settings.metrics.listen.is_some() {
        return Err(missing("telemetry"));
    }
    if !cfg!(feature = "mcp") && mcp_file::path_of(app).exists() {
        return Err(missing("mcp"));
    }
    Ok(())
}

/// Checks that this build can read a file that is given as a document.
///
/// # Errors
/// Names the capability that reads such files.
pub(crate) fn check_document(path: &Path) -> Result<(), Failure> {
    /// File name extensions of the formats that `readers` reads and that are not text.
    const FORMATS: [&str; 18] = [
        "pdf", "docx", "docm", "odt", "pptx", "pptm", "odp", "xlsx", "xlsm", "xlsb", "xls", "ods", "epub",
        "ipynb", "eml", "mbox", "zip", "tar",
    ];
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    match extension {
        Some(extension) if !cfg!(feature = "readers") && FORMATS.contains(&extension.as_str()) => {
            Err(missing("readers"))
        }
        _ => Ok(()),
    }
}

#[cfg(not(feature = "dashboard"))]
pub(crate) mod ui {
    use super::{App, Failure, missing};
    use crate::args::UiArgs;
    use crate::exit::Exit;

    pub(crate) async fn ui(_: &App, _: &UiArgs) -> Result<Exit, Failure> {
        Err(missing("dashboard"))
    }
}

#[cfg(not(feature = "top"))]
pub(crate) mod top {
    use super::{App, Failure, missing};
    use crate::args::TopArgs;
    use crate::exit::Exit;

    pub(crate) async fn top(_: &App, _: &TopArgs) -> Result<Exit, Failure> {
        Err(missing("top"))
    }
}

#[cfg(not(feature = "mcp"))]
pub(crate) mod mcp {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use muster_agents::tools::Tool;

    use super::{App, Failure, mcp_file, missing};
    use crate::args::{AgentArgs, McpAction, ToolsAcceptArgs};
    use crate::exit::Exit;

    pub(crate) async fn mcp(_: &App, _: &McpAction) -> Result<Exit, Failure> {
        Err(missing("mcp"))
    }

    pub(crate) async fn serve(_: &App, _: &AgentArgs) -> Result<Exit, Failure> {
        Err(missing("mcp"))
    }

    pub(crate) fn named(_: &App) -> BTreeMap<String, String> {
        tracing::warn!("{}", missing("mcp"));
        BTreeMap::new()
    }

    pub(crate) fn left_out(_: &App) -> Vec<String> {
        Vec::new()
    }

    pub(crate) fn accept(_: &App, _: &ToolsAcceptArgs) -> Result<Exit, Failure> {
        Err(missing("mcp"))
    }

    pub(crate) struct StartedServers;

    impl StartedServers {
        pub(crate) async fn start(_: &App, _: Option<&str>) -> Self {
            Self
        }

        pub(crate) fn tools(&self) -> Vec<Arc<dyn Tool>> {
            Vec::new()
        }

        pub(crate) fn held(&self) -> Vec<mcp_file::HeldTool> {
            Vec::new()
        }

        pub(crate) async fn stop(self) {}
    }
}

#[cfg(not(feature = "web"))]
pub(crate) mod fetched {
    use std::path::PathBuf;

    use muster_shared::flow::FetchedDocuments;

    use super::{App, Failure, missing};
    use crate::commands::run::Screen;

    pub(crate) struct Brought {
        pub(crate) folders: Vec<PathBuf>,
        pub(crate) fetched: Vec<FetchedDocuments>,
    }

    pub(crate) fn here(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
        let is_remote = |path: &PathBuf| path.to_string_lossy().contains("://") && !path.exists();
        if given.iter().any(is_remote) { Err(missing("web")) } else { Ok(given.to_vec()) }
    }

    pub(crate) async fn bring(_: &App, given: &[PathBuf], _: &Screen) -> Result<Brought, Failure> {
        Ok(Brought { folders: here(given)?, fetched: Vec::new() })
    }
}

#[cfg(not(feature = "telemetry"))]
pub(crate) mod metrics {
    use std::net::SocketAddr;

    use muster_bus::Bus;
    use tokio::task::JoinHandle;
    use tokio_util::sync::CancellationToken;

    use super::{App, Failure, missing};
    use crate::args::MetricsArgs;
    use crate::exit::Exit;

    pub(crate) async fn metrics(_: &App, _: &MetricsArgs) -> Result<Exit, Failure> {
        Err(missing("telemetry"))
    }

    pub(crate) enum Door {}

    impl Door {
        pub(crate) async fn open(_: SocketAddr) -> Result<Self, Failure> {
            Err(missing("telemetry"))
        }

        pub(crate) const fn at(&self) -> SocketAddr {
            match *self {}
        }

        pub(crate) fn serve(self, _: App, _: Bus, _: CancellationToken) -> JoinHandle<()> {
            match self {}
        }
    }
}

#[cfg(not(feature = "telemetry"))]
pub(crate) mod spans {
    use super::{App, Failure, missing};
    use crate::args::TraceArgs;
    use crate::exit::Exit;

    pub(crate) async fn send(_: &App, _: &TraceArgs, _: &str) -> Result<Exit, Failure> {
        Err(missing("telemetry"))
    }
}

#[cfg(not(feature = "telemetry"))]
pub(crate) mod telemetry {
    use muster_bus::Bus;

    use super::{App, Failure};

    #[derive(Clone, Copy)]
    pub(crate) enum Role {
        Orchestrator,
        Agent,
        Guard,
        ToolServer,
    }

    pub(crate) struct Telemetry;

    impl Telemetry {
        pub(crate) async fn begin(_: &App, bus: Bus, _: Role) -> Result<(Bus, Self), Failure> {
            if std::env::var_os("OTEL_EXPORTER_OTLP_ENDPOINT").is_some() {
                tracing::warn!(
                    "this muster binary was built without the capability `telemetry`; no spans are sent"
                );
            }
            Ok((bus, Self))
        }

        pub(crate) async fn end(self) {}
    }
}

#[cfg(not(feature = "sandbox"))]
pub(crate) mod sandbox {
    use super::App;
    use crate::render::checks::Check;

    pub(crate) fn check(_: &App) -> Check {
        Check::ok("sandbox", "not in this build: tools that run programs are refused")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_the_missing_capability_and_the_remedy() {
        let error = missing("top");
        assert_eq!(error.to_string(), "this muster binary was built without the capability `top`");
        assert!(
            miette::Diagnostic::help(&error)
                .is_some_and(|help| help.to_string().starts_with("`make build` builds muster"))
        );
    }

    #[test]
    fn document_needs_readers_unless_it_is_text() {
        assert!(check_document(Path::new("notes.md")).is_ok());
        assert_eq!(check_document(Path::new("Report.PDF")).is_ok(), cfg!(feature = "readers"));
    }
}
