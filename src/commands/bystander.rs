//! How a process that takes no tasks stands in the registry: a guard, or a server of tools.

use muster_bus::Bus;
use muster_shared::wire::Profile;

use crate::app::{App, now};

/// Who it is, and which tools it has.
pub(super) fn profile(app: &App, bus: &Bus, role: String, tools: Vec<String>) -> Profile {
    Profile {
        agent: bus.who().clone(),
        role,
        pid: std::process::id(),
        host: muster_bus::host_name().unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").into(),
        event_version: 1,
        slots: 1,
        busy: 0,
        model: String::new(),
        tools,
        started_at: now().0,
        resident_bytes: 0,
        specialist: None,
        name: app.settings().agent.name.clone(),
        quiet_ms: 0,
        set_aside: Vec::new(),
        by_gateway: false,
        times_set_aside: 0,
        excluded: Vec::new(),
        metrics: String::new(),
        presence: muster_shared::flow::Presence::default(),
    }
}
