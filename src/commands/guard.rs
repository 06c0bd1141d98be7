//! `muster guard`: be one of the guards that come with Muster.

use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;
use muster_bus::{Bus, OpenRequest};
use muster_shared::flow::guard::is_guard_name;
use muster_shared::flow::{GuardFailure, GuardReply, GuardRequest, GuardRule, OnFailure};
use muster_shared::wire::Profile;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::args::{GuardArgs, GuardChoice};
use crate::commands::bystander::profile;
use crate::exit::{Exit, Failure, usage};
use crate::guard::allow_list::AllowList;
use crate::guard::secrets;
use crate::output;
use crate::settings::GuardKind;
use crate::signals::StopSignals;
use crate::telemetry::Role;
use crate::trust::absolute;

/// Largest list that is read, in bytes.
const MOST_LIST: u64 = 1024 * 1024;

/// Requests that are looked at side by side.
const AT_ONCE: usize = 8;

/// How a guard comes to its verdict.
type Judge = Arc<dyn Fn(&GuardRequest) -> GuardReply + Send + Sync>;

/// Answers requests until told to stop.
pub(super) async fn guard(app: &App, args: GuardArgs) -> Result<Exit, Failure> {
    let (name, judge): (String, Judge) = match args.kind {
        GuardChoice::Secrets { name } => (name, Arc::new(secrets::verdict)),
        GuardChoice::AllowList { file, name, check } => {
            let list = read(app, &file)?;
            if check {
                output::line!("{}: in order", file.display())?;
                return Ok(Exit::Completed);
            }
            (name, Arc::new(move |request: &GuardRequest| list.verdict(request)))
        }
    };
    if !is_guard_name(&name) {
        return Err(usage!("{name:?} cannot be the name of a guard")
            .help("use lower-case letters, digits, - and _, 48 at most"));
    }
    let stop = StopSignals::listen()?.into_token();
    let role = role_of(&name);
    super::rejoin::connect_and_work(app, &role, Role::Guard, &stop.clone(), async |bus, url| {
        tracing::info!("guarding at {url} on guard.{name}; Ctrl-C or SIGTERM ends it");
        let own = profile(app, bus, role.clone(), Vec::new());
        serve(bus, &name, own, judge, stop).await
    })
    .await
}

/// Under which role the guard of a name is in the registry: none that a task can have.
pub(crate) fn role_of(name: &str) -> String {
    format!("guard-{name}")
}

/// What is wrong with the guards that runs are guarded by, in a sentence for each: those that give no verdict.
pub(super) async fn silent(app: &App, bus: &Bus) -> Vec<String> {
    let rules = &app.settings().limits.guards;
    let door = bus.guards();
    let probed = rules.iter().map(|rule| {
        let door = door.clone();
        async move { door.probe(rule).await.err().map(|failure| (rule, failure)) }
    });
    let silent = futures::future::join_all(probed).await.into_iter().flatten();
    let told = silent.filter(|(_, failure)| match failure {
        GuardFailure::Gone | GuardFailure::Hung | GuardFailure::Garbage(_) => true,
        // Whoever looks may not ask: that says nothing of the guard.
        GuardFailure::NotAsked(_) => false,
    });
    let in_words = |(rule, failure): (&GuardRule, GuardFailure)| {
        let then = match rule.on_failure {
            OnFailure::Refuse => "what it is asked about is refused meanwhile",
            OnFailure::Allow => "what it is asked about goes on unguarded meanwhile",
        };
        format!("{} ({then})", failure.about(rule))
    };
    told.map(in_words).collect()
}

/// Refuses to begin with an allow-list that cannot be used: its guard would die, and all calls be refused.
pub(crate) fn check_lists(app: &App) -> Result<(), Failure> {
    for (name, guard) in app.settings().guards.iter().filter(|(_, guard)| guard.enabled) {
        match (guard.kind(name), &guard.file) {
            (GuardKind::AllowList, Some(file)) => drop(read(app, &app.beside_fleet(file))?),
            (GuardKind::AllowList | GuardKind::Secrets | GuardKind::Program, _) => {}
        }
    }
    Ok(())
}

/// Reads an allow-list.
fn read(app: &App, file: &Path) -> Result<AllowList, Failure> {
    let wrong = |why: String| {
        usage!("the allow-list {} cannot be used: {why}", file.display()).help(
            "docs/guards.md says how a list is written; `muster guard allow-list FILE --check` looks at one",
        )
    };
    let text = muster_agents::input::text(file, MOST_LIST).map_err(|reason| wrong(reason.to_string()))?;
    // A file of the project, and a link there, came with it.
    let base = absolute(&app.beside_fleet(Path::new("")));
    let fault = if absolute(file).starts_with(&base) {
        app.trust.fault_of_found(file, &base, &text)
    } else {
        app.trust.fault_of_named(file, &text)
    };
    if let Some(fault) = fault {
        return Err(usage!("the allow-list cannot be used: {}", fault.about(file))
            .help(format!("{}, or `muster trust` lets it be read as it is now", fault.mend())));
    }
    AllowList::read(&text).map_err(wrong)
}

async fn serve(
    bus: &Bus,
    name: &str,
    own: Profile,
    judge: Judge,
    stop: CancellationToken,
) -> Result<(), Failure> {
    // Whoever sees it in the registry may count on it.
    let requests = bus.guards().serve(name).await?;
    bus.provision().await?;
    let announced = bus.registry().announce(own).await?;
    let answering = requests.for_each_concurrent(AT_ONCE, |asked| answer(Arc::clone(&judge), asked));
    tokio::select! {
        () = answering => {}
        () = stop.cancelled() => {}
    }
    Ok(announced.leave().await?)
}

async fn answer(judge: Judge, asked: OpenRequest) {
    let request = match &asked.asked {
        Ok(request) => request.clone(),
        Err(why) => {
            let reply = GuardReply::refuse(format!("the request cannot be read: {why}"));
            return tell(&asked, &reply).await;
        }
    };
    // Long texts take their time: others are heard meanwhile.
    let judged = tokio::task::spawn_blocking(move || judge(&request)).await;
    let reply = judged.unwrap_or_else(|error| GuardReply::refuse(format!("the guard broke: {error}")));
    tell(&asked, &reply).await;
}

async fn tell(asked: &OpenRequest, reply: &GuardReply) {
    if let Err(error) = asked.answer(reply).await {
        tracing::warn!(%error, "a verdict could not be told");
    }
}
