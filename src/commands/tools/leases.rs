//! `muster tools leases` and `muster tools revoke`: what agents have lent to others, as the lenders themselves say.

use futures::{StreamExt, stream};
use muster_bus::Bus;
use muster_bus::tool_servers::{Lender, ToolServerDoor, ToolServerFailure};
use muster_shared::ids::{AgentId, Role};
use muster_shared::text::counted;
use muster_shared::wire::lending::{Revocation, ToolLease, ToolLeases, lender_name, own_name};
use serde_json::json;

use crate::app::App;
use crate::args::{JsonArgs, ToolsRevokeArgs};
use crate::exit::{Exit, Failure, usage};
use crate::output;
use crate::render::leases::table;

/// How many lenders are asked at the same time.
const AT_ONCE: usize = 32;

/// What all lenders of a fleet said.
#[derive(Default)]
struct Said {
    leases: Vec<ToolLease>,
    /// Who gave no answer, and why.
    silent: Vec<String>,
}

/// Prints which tools are lent to whom.
pub(super) async fn leases(app: &App, args: &JsonArgs) -> Result<Exit, Failure> {
    let bus = app.connect("reader").await?;
    let said = of_all(&bus, None).await?;
    let in_words =
        || if said.leases.is_empty() { "No tool is lent now.".to_owned() } else { table(&said.leases) };
    output::json_or_line(args.json, || json!({ "leases": said.leases, "silent": said.silent }), in_words)?;
    Ok(ended(&said))
}

/// Ends leases.
pub(super) async fn revoke(app: &App, args: &ToolsRevokeArgs) -> Result<Exit, Failure> {
    let which = wanted(args)?;
    let bus = app.connect("reader").await?;
    let said = of_all(&bus, Some(&which)).await?;
    if args.json {
        output::json(&json!({ "revoked": said.leases, "silent": said.silent }))?;
    } else {
        if !said.leases.is_empty() {
            output::line(&table(&said.leases))?;
        }
        output::note(&counted(said.leases.len(), "lease revoked", "leases revoked"));
    }
    if let (Some(lease), true) = (&which.lease, said.leases.is_empty() && said.silent.is_empty()) {
        return Err(usage!("there is no lease {lease:?}").help("`muster tools leases` shows those there are"));
    }
    Ok(ended(&said))
}

fn ended(said: &Said) -> Exit {
    for line in &said.silent {
        output::note(line);
    }
    if said.silent.is_empty() { Exit::Completed } else { Exit::Failed }
}

/// What is to be revoked, with the tool as its owner calls it.
fn wanted(args: &ToolsRevokeArgs) -> Result<Revocation, Failure> {
    let agent: Option<AgentId> = match &args.agent {
        Some(agent) => Some(
            agent
                .parse()
                .map_err(|_| usage!("{agent:?} is no name of an agent").help("`muster ps` shows them"))?,
        ),
        None => None,
    };
    let tool = args.tool.as_deref().map(|tool| own_name(tool).unwrap_or(tool).to_owned());
    Ok(Revocation { lease: args.lease.clone(), tool, agent })
}

/// Asks every agent of the fleet. One that lends nothing is not listening, which the bus says at once.
async fn of_all(bus: &Bus, which: Option<&Revocation>) -> Result<Said, Failure> {
    let (door, mut said) = (bus.tool_servers(), Said::default());
    let profiles = bus.registry().list().await?;
    let agents =
        profiles.into_iter().filter_map(|profile| Some((profile.role.parse::<Role>().ok()?, profile.agent)));
    let answers = stream::iter(agents)
        .map(|(role, process)| {
            let door = door.clone();
            async move { (ask(&door, &role, &process, which).await, process) }
        })
        .buffered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    for (answer, process) in answers {
        match answer {
            Ok(ToolLeases { leases }) => said.leases.extend(leases),
            Err(ToolServerFailure::Nobody(_)) => {}
            Err(failure) => said.silent.push(format!("{process}: {failure}")),
        }
    }
    Ok(said)
}

async fn ask(
    door: &ToolServerDoor,
    role: &Role,
    process: &AgentId,
    which: Option<&Revocation>,
) -> Result<ToolLeases, ToolServerFailure> {
    let server = lender_name(role);
    let of = Lender { server: &server, process };
    match which {
        Some(which) => door.revoke(of, which).await,
        None => door.leases(of).await,
    }
}
