//! A suite asked of the good model, by a fleet of real processes in a folder of its own.

use std::collections::BTreeMap;
use std::io;
use std::process::ExitStatus;

use serde_json::Value;

use super::{GoodModel, Mistake, Temper};
use crate::fleet::{EFFORT, Folder, both};
use crate::model_server::ModelServer;

/// What its requests are priced as.
pub const PRICED_AS: &str = "openai/gpt-4.1-mini";

/// What is measured.
#[derive(Debug, Clone)]
pub struct Measure {
    /// The `muster` binary.
    pub program: String,
    /// Its nats-server; what is found when absent.
    pub server: Option<String>,
    /// A suite's name, or its file.
    pub suite: String,
    /// What else `muster eval` is told.
    pub arguments: Vec<String>,
    /// How the model is.
    pub temper: Temper,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Measured {
    /// How `muster eval` ended.
    pub status: ExitStatus,
    /// What it printed as JSON.
    pub results: Value,
    /// The mistakes that the model made, by kind.
    pub made: BTreeMap<Mistake, usize>,
    /// Broken rules of the protocol.
    pub violations: Vec<String>,
}

/// Runs a suite.
///
/// # Errors
/// When it cannot be started, or prints no results.
pub fn measure(what: &Measure) -> io::Result<Measured> {
    let model = GoodModel::new(what.temper);
    let server = ModelServer::start(model.script().keeping(0))?;
    let folder = Folder::new(&what.program)?
        // What goals cost is told of what people get who say nothing.
        .with(EFFORT, "standard")
        .with("OPENAI_API_KEY", "sk-good")
        .with("OPENAI_BASE_URL", server.openai_url());
    let folder = match &what.server {
        Some(nats) => folder.with("MUSTER_NATS_SERVER", nats),
        None => folder,
    };
    let mut arguments = vec!["eval", &what.suite, "--json", "--model", PRICED_AS];
    arguments.extend(what.arguments.iter().map(String::as_str));
    let ended = folder.run(&arguments)?;
    let results = serde_json::from_slice(&ended.stdout)
        .map_err(|error| io::Error::other(format!("{error} in:\n{}", both(&ended))))?;
    Ok(Measured { status: ended.status, results, made: model.made(), violations: server.violations() })
}
