//! Tools that run programs in the sandbox.

use std::sync::Arc;

use muster_sandbox::{CodeTool, Language, Sandbox};
use muster_tools::{ProgramRunner, Tool};

use crate::AgentSettings;

pub(crate) fn tools(settings: &AgentSettings) -> Vec<Arc<dyn Tool>> {
    let runner = program_runner(settings);
    let tool = |language| {
        Arc::new(CodeTool::new(language, Arc::clone(&runner), settings.tool.sandbox.clone())) as Arc<dyn Tool>
    };
    Language::ALL.map(tool).to_vec()
}

/// Returns the runner of programs for tools.
#[must_use]
pub fn program_runner(settings: &AgentSettings) -> Arc<dyn ProgramRunner> {
    Arc::new(Sandbox::new(settings.tool.sandbox.clone()))
}
