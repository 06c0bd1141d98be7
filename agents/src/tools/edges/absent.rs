//! Counterparts of the optional crates, for builds without them.

/// The error of a call that needs a feature which this build lacks.
#[cfg(any(not(feature = "web"), not(feature = "sandbox")))]
fn missing(feature: &str) -> String {
    format!(
        "this muster binary was built without the capability `{feature}`; `make build` builds muster with all capabilities"
    )
}

#[cfg(not(feature = "web"))]
pub(super) mod web {
    use std::sync::Arc;

    use async_trait::async_trait;
    use muster_tool_server::file::http::{HttpAnswer, HttpCaller, HttpFailure, HttpRequest};
    use muster_tools::settings::WebSettings;
    use muster_tools::{DocumentReader, Tool};

    use crate::AgentSettings;

    pub(crate) fn tools(_: &AgentSettings, _: Option<Arc<dyn DocumentReader>>) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Returns an HTTP client that refuses every request.
    #[must_use]
    pub fn http_caller(_: &WebSettings) -> Arc<dyn HttpCaller> {
        Arc::new(Absent)
    }

    struct Absent;

    #[async_trait]
    impl HttpCaller for Absent {
        async fn call(&self, _: HttpRequest) -> Result<HttpAnswer, HttpFailure> {
            Err(HttpFailure::Refused(super::missing("web")))
        }
    }
}

#[cfg(not(feature = "sandbox"))]
pub(super) mod sandbox {
    use std::sync::Arc;

    use async_trait::async_trait;
    use muster_tools::{Program, ProgramEnd, ProgramRunner, Tool, ToolFailure};
    use tokio_util::sync::CancellationToken;

    use crate::AgentSettings;

    pub(crate) fn tools(_: &AgentSettings) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Returns a runner that refuses every program.
    #[must_use]
    pub fn program_runner(_: &AgentSettings) -> Arc<dyn ProgramRunner> {
        Arc::new(Absent)
    }

    struct Absent;

    #[async_trait]
    impl ProgramRunner for Absent {
        async fn run(&self, _: Program, _: &CancellationToken) -> Result<ProgramEnd, ToolFailure> {
            Err(ToolFailure::Refused(super::missing("sandbox")))
        }
    }
}

#[cfg(not(feature = "data"))]
pub(super) mod data {
    use std::sync::Arc;

    use muster_tools::{DocumentReader, Tool};

    use crate::AgentSettings;

    pub(crate) fn tools(_: &AgentSettings, _: Option<Arc<dyn DocumentReader>>) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }
}

#[cfg(not(feature = "readers"))]
pub(super) mod readers {
    use std::sync::Arc;

    use muster_corpus::Extractor;
    use muster_tools::DocumentReader;
    use muster_tools::settings::DocumentSettings;

    /// Returns no reader.
    #[must_use]
    pub fn document_reader(_: &DocumentSettings) -> Option<Arc<dyn DocumentReader>> {
        None
    }

    /// Returns no reader.
    #[must_use]
    pub fn document_extractor(_: &DocumentSettings) -> Option<Arc<dyn Extractor>> {
        None
    }
}
