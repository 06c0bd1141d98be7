//! `muster context`: what the tasks of a run know in common.

use std::collections::BTreeMap;

use muster_bus::Bus;
use muster_shared::flow::ContextEntry;
use muster_shared::run::RequestAction;
use serde_json::json;

use super::select;
use super::steer::Target;
use crate::app::App;
use crate::args::ContextArgs;
use crate::exit::{Exit, Failure, usage};
use crate::{output, render};

/// Shows values of the shared context, or writes one.
pub(super) async fn context(app: &App, args: &ContextArgs) -> Result<Exit, Failure> {
    let Some((key, mut value)) = args.write.clone() else {
        return select::reading(app, async |bus| show(bus, args).await).await;
    };
    app.redactor.redact_value(&mut value);
    let bus = app.connect("cli").await?;
    let target = Target::find(&bus, &args.order.run).await?;
    let action = RequestAction::SetContext { key, value, version: args.seen };
    target.ask(&args.order, action, args.order.reason.clone()).await?.tell(args.order.json)
}

async fn show(bus: &Bus, args: &ContextArgs) -> Result<Exit, Failure> {
    let state = select::wanted(bus, &args.order.run).await?;
    let run = state.id;
    let wanted = args.key.as_deref().unwrap_or("*");
    let (key, prefix) = wanted.strip_suffix('*').map_or((wanted, false), |beginning| (beginning, true));
    let found = state.peers.find(key, prefix);
    if found.is_empty() && !prefix {
        return Err(usage!("nothing is written under {key:?} in run {}", run.short())
            .help(format!("`muster context {}` lists what there is", run.short())));
    }
    output::json_or_line(args.order.json, || json!({ "run": run, "context": found }), || listed(&found))
}

fn listed(found: &BTreeMap<String, ContextEntry>) -> String {
    if found.is_empty() {
        return "Nothing is written yet.".to_owned();
    }
    let row = |(key, entry): (&String, &ContextEntry)| {
        let value = render::figures::one_line(&entry.text(), 200);
        let (version, by, at) = (entry.version, entry.by.to_string(), render::figures::clock(entry.at));
        vec![key.clone(), version.to_string(), by, at, value]
    };
    render::table::plain(&["key", "version", "by", "at", "value"], found.iter().map(row).collect(), &[1])
}
