//! The tools of other crates: the web, programs, data. What they need is made when they are first called.

use std::sync::Arc;

use muster_data::DataParts;
use muster_readers::{DocumentSettings, Readers};
use muster_sandbox::{CodeTool, Language, Sandbox};
use muster_tools::{DocumentReader, ProgramRunner, Tool};
use muster_web::{SystemResolver, WebTools};

use crate::AgentSettings;

/// These tools, as settings have them. What cannot be made on this machine is left out, and that is told.
pub(super) fn further_tools(settings: &AgentSettings) -> Vec<Arc<dyn Tool>> {
    let tool = &settings.tool;
    let reader = document_reader(&settings.documents);
    let sandbox = program_runner(settings);
    let web = WebTools {
        web: tool.web.clone(),
        search: tool.search.clone(),
        http: tool.http.clone(),
        cache_dir: settings.cache_dir.clone(),
        reader: reader.clone(),
        resolver: Arc::new(SystemResolver),
    };
    let data = DataParts { sql: tool.sql.clone(), reader };
    let code = Language::ALL.map(|language| {
        Arc::new(CodeTool::new(language, Arc::clone(&sandbox), tool.sandbox.clone())) as Arc<dyn Tool>
    });
    muster_web::tools(web).into_iter().chain(code).chain(muster_data::tools(data)).collect()
}

/// What runs programs for tools.
#[must_use]
pub fn program_runner(settings: &AgentSettings) -> Arc<dyn ProgramRunner> {
    Arc::new(Sandbox::new(settings.tool.sandbox.clone()))
}

/// What reads documents that are no text, where that can be done here.
#[must_use]
pub fn document_reader(settings: &DocumentSettings) -> Option<Arc<dyn DocumentReader>> {
    match Readers::of_this_program(settings.clone()) {
        Ok(readers) => Some(Arc::new(readers)),
        Err(error) => {
            tracing::error!(%error, "documents that are no text cannot be read");
            None
        }
    }
}
