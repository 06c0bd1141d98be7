//! Tools of the web, and the HTTP client of tool files.

use std::sync::Arc;

use muster_tool_server::GuardedCaller;
use muster_tool_server::file::http::HttpCaller;
use muster_tools::settings::WebSettings;
use muster_tools::{DocumentReader, Tool};
use muster_web::{SystemResolver, WebTools};

use crate::AgentSettings;

pub(crate) fn tools(settings: &AgentSettings, reader: Option<Arc<dyn DocumentReader>>) -> Vec<Arc<dyn Tool>> {
    let tool = &settings.tool;
    muster_web::tools(WebTools {
        web: tool.web.clone(),
        search: tool.search.clone(),
        http: tool.http.clone(),
        cache_dir: settings.cache_dir.clone(),
        reader,
        resolver: Arc::new(SystemResolver),
    })
}

/// Returns the HTTP client of tool files and alerts.
#[must_use]
pub fn http_caller(settings: &WebSettings) -> Arc<dyn HttpCaller> {
    Arc::new(GuardedCaller::new(settings.clone()))
}
