//! `muster config`: the settings in force, and where each comes from.

use serde_json::json;

use crate::app::App;
use crate::args::ConfigArgs;
use crate::exit::{Exit, Failure};
use crate::{output, render};

/// Prints the settings.
pub(super) fn config(app: &App, args: &ConfigArgs) -> Result<Exit, Failure> {
    let prefix = args.prefix.as_deref().unwrap_or("");
    let chosen: Vec<_> =
        app.loaded.effective.iter().filter(|one| is_under(&one.key, prefix)).cloned().collect();
    if chosen.is_empty() {
        return Err(Failure::usage(format!("no setting begins with {prefix:?}"))
            .help("`muster config` lists every setting there is"));
    }
    let file = app.loaded.file.as_ref().map(|file| file.display().to_string());
    if args.json {
        output::json(&json!({ "file": file, "settings": chosen, "warnings": app.loaded.warnings }))?;
        return Ok(Exit::Completed);
    }
    output::line(&render::settings::table(&chosen))?;
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
