//! What an agent tells the registry: who it is when it comes, and how it is with every heartbeat.

use muster_shared::flow::Presence;
use muster_shared::ids::Role;
use muster_shared::run::EVENT_VERSION;
use muster_shared::wire::Profile;

use super::context::AgentContext;
use crate::model::pricing::Pricing;

/// Who the agent is.
pub(super) fn profile(context: &AgentContext) -> Profile {
    let model = context.model_name();
    let prices = prices(context, &model);
    Profile {
        agent: context.bus().who().clone(),
        role: context.role().to_string(),
        pid: std::process::id(),
        host: context.host().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        event_version: EVENT_VERSION,
        slots: context.slots(),
        busy: 0,
        model,
        tools: context.told_tools(),
        started_at: muster_bus::now().0,
        resident_bytes: 0,
        specialist: context.definition().map(|definition| Box::new(definition.advertised())),
        name: context.settings().name.clone(),
        quiet_ms: context.settings().longest_silence_ms(),
        set_aside: Vec::new(),
        by_gateway: false,
        times_set_aside: 0,
        excluded: Vec::new(),
        metrics: String::new(),
        presence: Presence {
            capabilities: capabilities(context),
            input_price_micros: prices.map(|(input, _)| input),
            output_price_micros: prices.map(|(_, output)| output),
            ..Presence::default()
        },
    }
}

/// How the agent is: what its slots do, and what tasks have taken of late.
pub(super) fn presence(context: &AgentContext, presence: &mut Presence) {
    presence.states = context.states().at_work();
    let of_late = context.experience().of_late();
    (presence.task_ms, presence.task_cost_micros) = of_late.unzip();
}

/// What the role can do.
fn capabilities(context: &AgentContext) -> Vec<String> {
    let built_in: &[&str] = match context.role() {
        Role::Planner => &["planning"],
        Role::Researcher => &["searching documents", "reading", "citing"],
        Role::Worker => &["reasoning", "calculation", "writing files"],
        Role::Reflector => &["reflection"],
        Role::Refiner => &["replanning"],
        Role::Writer => &["writing reports"],
        Role::Specialist(_) => {
            return context.definition().map(|own| own.capabilities.clone()).unwrap_or_default();
        }
    };
    built_in.iter().map(|&can| can.to_owned()).collect()
}

/// What a million tokens of the model cost, sent and answered, in millionths of a US dollar.
fn prices(context: &AgentContext, model: &str) -> Option<(u64, u64)> {
    let (provider, name) = model.split_once('/').unwrap_or((model, ""));
    let price = Pricing::with_overrides(context.settings().prices.clone()).price(provider, name)?;
    Some((micros(price.input), micros(price.output)))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float cast saturates")]
fn micros(dollars: f64) -> u64 {
    (dollars * 1_000_000.0).round() as u64
}
