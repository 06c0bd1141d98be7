//! `muster models`: what is known of a model, and twelve small questions to it.

use muster_agents::model::capability::Capabilities;
use muster_agents::model::chat::{ChatModel, ignore_deltas};
use muster_agents::model::provider::{Provider, ProviderClient};
use muster_agents::model::target::{ModelProvider, ModelTarget};
use muster_agents::model::trial::{ModelTrial, trials};
use serde::Serialize;
use serde_json::json;

use super::resolve;
use crate::app::App;
use crate::args::{ModelArgs, ModelsAction};
use crate::exit::{Exit, Failure, usage};
use crate::output;
use crate::render::checks::{Check, list};
use crate::render::figures;

/// Does what was asked.
pub(in crate::commands) async fn models(app: &App, action: &ModelsAction) -> Result<Exit, Failure> {
    match action {
        ModelsAction::Show(args) => show(app, args),
        ModelsAction::Test(args) => test(app, args).await,
    }
}

fn target(app: &App, args: &ModelArgs) -> Result<(ModelTarget, Capabilities), Failure> {
    let agent = &app.settings().agent;
    let spec = args.model.as_deref().or(agent.model.as_deref());
    let target = resolve(app, spec)
        .map_err(|error| Failure::usage(error).help("name a model as `provider/model`, and set its key"))?;
    let able = Capabilities::of(target.provider.name(), &target.model, &agent.capabilities);
    Ok((target, able))
}

/// What is known of a model hangs on its name alone: no key is needed.
fn known(app: &App, args: &ModelArgs) -> Result<(String, Capabilities), Failure> {
    let agent = &app.settings().agent;
    let named = args.model.as_deref().or(agent.model.as_deref()).and_then(|spec| spec.split_once('/'));
    match named {
        Some((provider, model)) => {
            let able = Capabilities::of(provider, model, &agent.capabilities);
            Ok((format!("{provider}/{model}"), able))
        }
        None => target(app, args).map(|(target, able)| (target.name(), able)),
    }
}

fn show(app: &App, args: &ModelArgs) -> Result<Exit, Failure> {
    let (name, able) = known(app, args)?;
    if args.json {
        output::json(&json!({ "model": name, "capabilities": able }))?;
        return Ok(Exit::Completed);
    }
    let yes = |holds: bool| if holds { "yes" } else { "no" };
    let context = able.context.map_or_else(
        || "not known".to_owned(),
        |tokens| format!("{} tokens", figures::count(u64::from(tokens))),
    );
    let tools = match able.tools {
        muster_agents::react::prompt::CallStyle::Native => "by the provider's calls",
        muster_agents::react::prompt::CallStyle::Text => "as JSON in text",
    };
    let effort = effort(app, able);
    let lines = [
        ("context", context.as_str()),
        ("tools", tools),
        ("several calls at once", yes(able.parallel)),
        ("answers by a schema", yes(able.structured)),
        ("temperature", yes(able.temperature)),
        ("reasons first", yes(able.reasoning)),
        ("reasoning effort", effort.as_str()),
        ("sees pictures", yes(able.sees)),
        ("weak: few tools, one at a time", yes(able.weak)),
    ];
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    output::line(&name)?;
    for (name, value) in lines {
        output::line!("  {name:<width$}  {value}")?;
    }
    output::line("Where this is wrong: agent.capabilities.\"NAME\" in the settings (docs/settings.md).")?;
    Ok(Exit::Completed)
}

/// How much the model is to reason, for all roles and for single ones.
fn effort(app: &App, able: Capabilities) -> String {
    let agent = &app.settings().agent;
    let of_roles =
        agent.reasoning_efforts.iter().map(|(role, effort)| format!("{role} {}", effort.as_word()));
    let of_all = agent.reasoning_effort.map(|effort| effort.as_word().to_owned());
    let told: Vec<String> = of_all.into_iter().chain(of_roles).collect();
    match (able.effort, told.is_empty()) {
        (false, _) => "cannot be told".to_owned(),
        (true, true) => "can be told: agent.reasoning_effort".to_owned(),
        (true, false) => told.join(", "),
    }
}

/// How one question went.
#[derive(Debug, Serialize)]
struct TrialEnd {
    name: &'static str,
    well: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
    millis: u64,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

async fn test(app: &App, args: &ModelArgs) -> Result<Exit, Failure> {
    let (target, _) = target(app, args)?;
    if target.provider == ModelProvider::Offline {
        return Err(
            usage!("the offline mode is no model that can be asked").help("name a model as `provider/model`")
        );
    }
    let name = target.model.clone();
    let asked = target.name();
    let model = Provider::new(target, app.settings().agent.calls, ProviderClient::default())
        .ok_or_else(|| usage!("this model cannot be asked"))?;
    let mut ends = Vec::new();
    for trial in trials() {
        let end = ask(app, &model, trial, &name).await;
        if !args.json {
            output::line(&list(&[check(&end)], app.paint()))?;
        }
        ends.push(end);
    }
    let well = ends.iter().filter(|end| end.well).count();
    let tokens: u64 = ends.iter().map(|end| end.tokens).sum();
    if args.json {
        output::json(
            &json!({ "model": asked, "passed": well, "of": ends.len(), "tokens": tokens, "trials": ends }),
        )?;
    } else {
        output::line!("{asked}: {well} of {} well, {} tokens", ends.len(), figures::count(tokens))?;
        for setting in settings_that_fit(&ends) {
            output::line!("  set {setting}")?;
        }
    }
    Ok(if well == ends.len() { Exit::Completed } else { Exit::Failed })
}

async fn ask(app: &App, model: &Provider, trial: ModelTrial, name: &str) -> TrialEnd {
    let mend = |well: bool| (!well).then(|| trial.mend.replace("MODEL", name));
    match model.ask(&trial.request, &mut ignore_deltas).await {
        Ok(answer) => {
            let judged = (trial.judge)(&answer);
            let (well, why) = (judged.is_ok(), judged.err().unwrap_or_default());
            let (millis, tokens) = (answer.millis, answer.usage.total());
            TrialEnd { name: trial.name, well, why, millis, tokens, mend: mend(well) }
        }
        Err(error) => {
            let why = app.redactor.redact(&error.to_string()).into_owned();
            TrialEnd { name: trial.name, well: false, why, millis: 0, tokens: 0, mend: mend(false) }
        }
    }
}

fn check(end: &TrialEnd) -> Check {
    match &end.mend {
        None => Check::ok(end.name, figures::millis(end.millis)),
        Some(mend) => Check::warn(end.name, end.why.clone(), mend.clone()),
    }
}

/// What to set, each once.
fn settings_that_fit(ends: &[TrialEnd]) -> Vec<String> {
    let mut settings: Vec<String> = ends.iter().filter_map(|end| end.mend.clone()).collect();
    settings.retain(|mend| mend.starts_with("agent."));
    settings.sort();
    settings.dedup();
    settings
}
