//! The commands: one file each, and one for those that steer a run.

pub(crate) mod agent;
pub(crate) mod artifacts;
mod audit;
#[cfg(feature = "bench")]
mod bench;
mod blueprint;
mod bystander;
mod check_agent;
mod compare;
mod completions;
mod config;
mod context;
pub(crate) mod dead;
mod doctor;
mod down;
mod eval;
pub(crate) mod explain;
pub(crate) mod fork;
mod graph;
pub(crate) mod guard;
mod integrity;
mod invite;
pub(crate) mod join;
pub(crate) mod keep;
mod keys;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "telemetry")]
mod metrics;
pub(crate) mod models;
mod orchestrator;
pub(crate) mod plan_file;
pub(crate) mod prompt;
pub(crate) mod ps;
pub(crate) mod questions;
mod refused;
mod rejoin;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod runs;
mod scale;
mod schema;
pub(crate) mod select;
pub(crate) mod show;
pub(crate) mod steer;
pub(crate) mod tap;
pub(crate) mod tools;
#[cfg(feature = "top")]
mod top;
pub(crate) mod trace;
mod trials;
mod trust;
#[cfg(feature = "dashboard")]
mod ui;
mod up;
pub(crate) mod within;

#[cfg(test)]
pub(crate) use plan_file::parse as plan_from_text;
pub(crate) use ps::{Around, FleetShown};
pub(crate) use select::choose as choose_run;

#[cfg(not(feature = "mcp"))]
use crate::absent::mcp;
#[cfg(not(feature = "telemetry"))]
pub(crate) use crate::absent::metrics;
#[cfg(not(feature = "top"))]
use crate::absent::top;
#[cfg(not(feature = "dashboard"))]
use crate::absent::ui;
use crate::app::App;
use crate::args::Command;
use crate::exit::Exit;
use crate::logging::Speaker;
use crate::settings::Care;

/// Does what a command says. What needs no settings is done without them.
pub(crate) async fn perform(command: Command, global: crate::args::Global) -> miette::Result<Exit> {
    let command = match command {
        Command::Completions { shell } => return Ok(completions::print(shell)?),
        Command::Schema(args) => return Ok(schema::print(&args)?),
        Command::Trust(args) => return trust::trust(&global, &args),
        other => other,
    };
    let app = App::open(&global, own_settings(&command), care(&command))?;
    let speaker = speaker(&command);
    crate::logging::begin(&app.settings().log, std::sync::Arc::clone(&app.redactor), speaker)?;
    if speaker == Speaker::Process {
        // What reading the command line and the settings took is not kept for the buffers that come next.
        muster_bus::memory::give_back();
    }
    if speaker == Speaker::Process || matches!(command, Command::Run(_)) {
        crate::absent::check(&app)?;
    }
    for warning in &app.loaded.warnings {
        tracing::warn!("{warning}");
    }
    if !matches!(command, Command::Doctor(_)) {
        app.loaded.left_out.iter().for_each(|left_out| crate::output::note(left_out));
    }
    // What stays, or is large, has a place of its own.
    let performed = match command {
        Command::Run(args) => Box::pin(run::run(&app, *args)).await,
        Command::Up(args) => Box::pin(up::up(&app, args)).await,
        Command::Down(args) => down::down(&app, &args).await,
        Command::Scale(args) => scale::scale(&app, &args).await,
        Command::Ui(args) => Box::pin(ui::ui(&app, &args)).await,
        Command::Ps(args) => ps::ps(&app, &args).await,
        Command::Metrics(args) => Box::pin(metrics::metrics(&app, &args)).await,
        Command::Runs(args) => runs::runs(&app, &args).await,
        Command::Gc(args) => keep::gc(&app, &args).await,
        Command::Show(args) => show::show(&app, &args).await,
        Command::Trace(args) => trace::trace(&app, &args).await,
        Command::Explain(args) => explain::explain(&app, &args).await,
        Command::Prompt(args) => prompt::prompt(&app, &args).await,
        Command::Fork(args) => fork::fork(&app, args).await,
        Command::Artifacts(args) => artifacts::artifacts(&app, &args).await,
        Command::Graph(args) => graph::graph(&app, &args).await,
        Command::Replay(args) => replay::replay(&app, &args).await,
        Command::Audit(args) => audit::audit(&app, &args).await,
        Command::Tap(args) => tap::tap(&app, &args).await,
        Command::Top(args) => Box::pin(top::top(&app, &args)).await,
        Command::Questions(args) => questions::questions(&app, &args).await,
        Command::Context(args) => context::context(&app, &args).await,
        Command::Steer(command) => steer::steer(&app, &command).await,
        Command::Dead(args) => dead::dead(&app, &args.action).await,
        Command::Blueprint(args) => blueprint::blueprint(&app, &args.action).await,
        Command::Eval(args) => Box::pin(eval::eval(&app, &args)).await,
        Command::Trials(args) => trials::perform(&app, &args).await,
        Command::Compare(args) => compare::perform(&app, &args).await,
        Command::Agent(args) => return Box::pin(agent::agent(&app, args)).await,
        Command::Guard(args) => Box::pin(guard::guard(&app, args)).await,
        Command::Orchestrator => Box::pin(orchestrator::orchestrator(&app)).await,
        #[cfg(feature = "bench")]
        Command::Bench(args) => bench::bench(&app, &args).await,
        Command::Doctor(args) => doctor::doctor(&app, &args).await,
        Command::Models(args) => models::models(&app, &args.action).await,
        Command::Tools(args) => Box::pin(tools::tools(&app, &args.action)).await,
        Command::Mcp(args) => Box::pin(mcp::mcp(&app, &args.action)).await,
        Command::Config(args) => config::config(&app, &args),
        Command::CheckAgent(args) => Box::pin(check_agent::check_agent(&app, &args)).await,
        Command::Keys(args) => Box::pin(keys::keys(&app, &args)).await,
        Command::Invite(args) => invite::invite(&app, &args),
        Command::Join(args) => Box::pin(join::join(&app, args)).await,
        Command::Completions { .. } | Command::Schema(_) | Command::Trust(_) => Ok(Exit::Completed),
    };
    Ok(performed?)
}

/// What flags of the command itself set.
fn own_settings(command: &Command) -> Vec<(String, String, String)> {
    let set = |key: &str, value: String, flag: &str| (key.to_owned(), value, flag.to_owned());
    if let Command::Run(args) = command {
        let effort = args.effort.map(|effort| effort.as_str().to_owned());
        return effort.map(|effort| set(crate::settings::EFFORT, effort, "--effort")).into_iter().collect();
    }
    let Command::Up(args) = command else { return Vec::new() };
    let tls = args.tls.then(|| set("server.tls", true.to_string(), "--tls"));
    let listen = args.listen.as_ref().map(|listen| set("server.listen", listen.to_string(), "--listen"));
    tls.into_iter().chain(listen).collect()
}

/// Care about files that are not trusted or not valid. Commands that show settings or stop a fleet report what was left out.
const fn care(command: &Command) -> Care {
    match command {
        Command::Config(_) | Command::Doctor(_) | Command::Down(_) => Care::Lenient,
        _ => Care::Strict,
    }
}

/// Writer of the log: a process of the fleet, or a command at a terminal.
const fn speaker(command: &Command) -> Speaker {
    match command {
        Command::Up(_) | Command::Join(_) | Command::Agent(_) | Command::Guard(_) | Command::Orchestrator => {
            Speaker::Process
        }
        _ => Speaker::Command,
    }
}
