//! Figures of the fleet as a whole, and where those of its processes are: what `muster up` and `muster metrics` tell.

use std::collections::BTreeMap;
use std::future::ready;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use muster_bus::{Bus, BusError};
use muster_shared::ids::Queue;
use muster_shared::wire::Profile;
use serde::Serialize;

use super::door::{accepted, told, unknown};
use super::metrics::{Fleet, Form, label};
use crate::app::App;
use crate::fleet::state::MemberState;

/// A process and where its figures are, as service discovery of Prometheus has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Target {
    targets: Vec<String>,
    labels: BTreeMap<&'static str, String>,
}

/// What is asked of the bus for figures.
struct Found {
    profiles: Vec<Profile>,
    waiting: BTreeMap<Queue, u64>,
    dead: Option<u64>,
    log_used: Option<f64>,
}

async fn find(bus: &Bus) -> Result<Found, BusError> {
    let profiles = bus.registry().list().await?;
    // Whoever may only look at the registry tells of that.
    let waiting = bus.tasks().waiting().await.unwrap_or_default();
    let dead = bus.dead().count().await.ok();
    let log_used = bus.record().fullness().await.ok();
    Ok(Found { profiles, waiting, dead, log_used })
}

/// Figures of the fleet as they are now.
pub(crate) async fn figures(bus: &Bus, members: &[MemberState], form: Form) -> String {
    let fleet = Fleet::new();
    match find(bus).await {
        Ok(found) => {
            fleet.up.set(&[], 1.0);
            count(&fleet, &found);
        }
        Err(error) => {
            tracing::debug!(%error, "the bus cannot be asked for figures");
            fleet.up.set(&[], 0.0);
        }
    }
    for member in members {
        fleet.restarts.add(&[label(&member.name)], f64::from(member.restarts), None);
        fleet.given_up.add(&[], if member.given_up { 1.0 } else { 0.0 }, None);
    }
    form.write(fleet.all())
}

fn count(fleet: &Fleet, found: &Found) {
    for profile in &found.profiles {
        let role = [label(&profile.role)];
        fleet.processes.add(&role, 1.0, None);
        fleet.slots.add(&role, f64::from(profile.slots), None);
        fleet.busy.add(&role, f64::from(profile.in_hand()), None);
        fleet.memory.add(&role, profile.resident_bytes as f64, None);
        // An empty queue is told too, so that it is seen to be empty.
        if profile.role != Profile::ORCHESTRATOR {
            fleet.queues.add(&role, 0.0, None);
        }
    }
    for (queue, waiting) in &found.waiting {
        let name = match queue {
            Queue::Role(role) => role.to_string(),
            Queue::Agent(_) => "agents".to_owned(),
        };
        fleet.queues.add(&[label(&name)], *waiting as f64, None);
    }
    if let Some(dead) = found.dead {
        fleet.dead.set(&[], dead as f64);
    }
    if let Some(used) = found.log_used {
        fleet.log_used.set(&[], used);
    }
}

/// Where the figures of each process are.
///
/// # Errors
/// When the bus fails.
pub(crate) async fn targets(bus: &Bus) -> Result<Vec<Target>, BusError> {
    let listed = bus.registry().list().await?;
    let target = |profile: &Profile| {
        let name = if profile.name.is_empty() { profile.agent.as_str() } else { &profile.name };
        let labels = [
            ("role", label(&profile.role).to_owned()),
            ("name", label(name).to_owned()),
            ("host", label(&profile.host).to_owned()),
        ];
        let address = address(&profile.metrics, &profile.host)?;
        Some(Target { targets: vec![address], labels: labels.into_iter().collect() })
    };
    Ok(listed.iter().filter_map(target).collect())
}

/// Where somebody is who says that he listens at an address. What others say of themselves is followed by a scraper: only an
/// address is one. Who listens at every address of his host is asked by its name.
fn address(said: &str, host: &str) -> Option<String> {
    let at: SocketAddr = said.parse().ok()?;
    if !at.ip().is_unspecified() {
        return Some(at.to_string());
    }
    let is_name =
        !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
    is_name.then(|| format!("{host}:{}", at.port()))
}

/// What is answered of the fleet, by path.
pub(crate) fn paths(app: App, bus: Bus) -> Router {
    Router::new()
        .route("/metrics", get(tell_figures))
        .route("/targets", get(tell_targets))
        .fallback(|| ready(unknown("/metrics and /targets")))
        .with_state((app, bus))
}

async fn tell_figures(State((app, bus)): State<(App, Bus)>, headers: HeaderMap) -> Response {
    let form = accepted(&headers);
    let members = app.fleet.live().map(|state| state.members).unwrap_or_default();
    told(form.name(), figures(&bus, &members, form).await)
}

async fn tell_targets(State((_, bus)): State<(App, Bus)>) -> Response {
    let listed = targets(&bus).await.unwrap_or_else(|error| {
        tracing::debug!(%error, "the registry cannot be asked");
        Vec::new()
    });
    told("application/json", serde_json::to_string(&listed).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_are_targets() {
        for (said, host, wanted) in [
            ("127.0.0.1:9464", "a", Some("127.0.0.1:9464")),
            ("0.0.0.0:9464", "worker-0", Some("worker-0:9464")),
            ("[::]:1", "a.example", Some("a.example:1")),
            ("0.0.0.0:9464", "a/b?c", None),
            ("0.0.0.0:9464", "", None),
            ("", "a", None),
            ("evil.example/x?", "a", None),
        ] {
            assert_eq!(address(said, host).as_deref(), wanted, "{said} {host}");
        }
    }
}
