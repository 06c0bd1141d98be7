//! `muster config`: the settings in force, where each comes from, and what each may be.

use serde_json::json;

use crate::app::App;
use crate::args::ConfigArgs;
use crate::exit::{Exit, Failure, usage};
use crate::settings::{Effective, example, explain, is_default, sections};
use crate::{output, render};

/// The settings that most people meet first.
const FIRST: [&str; 12] = [
    "agent.model",
    "agent.endpoint",
    "agent.key_file",
    "bus.url",
    "fleet.budget.cost",
    "limits.budget.cost",
    "limits.budget.model_calls",
    "limits.max_tasks",
    "limits.max_steps",
    "limits.run_deadline",
    "limits.people.review",
    "log.level",
];

/// Prints the settings.
pub(super) fn config(app: &App, args: &ConfigArgs) -> Result<Exit, Failure> {
    if args.example {
        output::line(example().trim_end())?;
        return Ok(Exit::Completed);
    }
    match &args.explain {
        Some(name) => explained(app, name, args.json),
        None => shown(app, args),
    }
}

fn explained(app: &App, name: &str, as_json: bool) -> Result<Exit, Failure> {
    let all = explain(&app.loaded, name).map_err(|advice| usage!("{name} is not a setting").help(advice))?;
    output::json_or_line(as_json, || &all, || render::settings::explained(&all))
}

fn shown(app: &App, args: &ConfigArgs) -> Result<Exit, Failure> {
    let prefix = args.prefix.as_deref().unwrap_or("");
    let chosen: Vec<_> =
        app.loaded.effective.iter().filter(|one| is_under(&one.key, prefix)).cloned().collect();
    if chosen.is_empty() {
        return Err(usage!("no setting begins with {prefix:?}")
            .help("`muster config --all` lists every setting there is"));
    }
    let file = app.loaded.file.as_ref().map(|file| file.display().to_string());
    if args.json {
        output::json(&json!({
            "file": file, "own_file": app.loaded.own, "settings": chosen, "warnings": app.loaded.warnings,
            "left_out": app.loaded.left_out,
        }))?;
        return Ok(Exit::Completed);
    }
    let is_brief = prefix.is_empty() && !args.all;
    let (now, later): (Vec<Effective>, Vec<Effective>) = chosen
        .into_iter()
        .partition(|one| !is_brief || FIRST.contains(&one.key.as_str()) || !is_default(one));
    output::line(&render::settings::table(&now))?;
    if is_brief {
        output::line(&render::settings::sections(&sections(), &later))?;
    }
    if let Some(own) = &app.loaded.own {
        output::note!("\nyour own settings file: {}", own.display());
    }
    output::note(&match file {
        Some(file) => format!("\nsettings file: {file}"),
        None => {
            format!("\nno {} here or above: all files of settings are optional", crate::settings::FILE_NAME)
        }
    });
    Ok(Exit::Completed)
}

fn is_under(key: &str, prefix: &str) -> bool {
    prefix.is_empty()
        || key
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_']) || prefix.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::FIRST;
    use crate::settings::{Inputs, load};

    #[test]
    fn what_comes_first_is_a_setting_of_its_own() {
        let loaded = load(&Inputs { folder: "/nowhere".into(), ..Inputs::default() });
        let keys: Vec<String> = loaded
            .map_or_else(|_| Vec::new(), |loaded| loaded.effective.into_iter().map(|one| one.key).collect());
        for key in FIRST {
            assert!(keys.iter().any(|known| known == key), "{key} is not a setting");
        }
    }
}
