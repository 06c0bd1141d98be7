//! `muster blueprint list`.

use muster_agents::library::Listed;

use super::{figures, table};

/// Blueprints as a table.
pub(crate) fn table(listed: &[Listed]) -> String {
    let rows = listed.iter().map(row).collect();
    table::plain(&["NAME", "VERSION", "FROM", "PARAMETERS", "WHAT FOR"], rows, &[])
}

fn row(listed: &Listed) -> Vec<String> {
    let from = listed.file.as_ref().map_or_else(|| "muster".to_owned(), |file| file.display().to_string());
    let (version, params, what) = match &listed.blueprint {
        Ok(found) => {
            let mark = |needed: bool| if needed { "" } else { "?" };
            let params = found
                .params
                .iter()
                .map(|(name, param)| format!("{name}{}", mark(param.required && param.default.is_none())));
            let params: Vec<String> = params.collect();
            (found.version.clone(), params.join(" "), figures::one_line(&found.description, 70))
        }
        Err(wrong) => ("-".to_owned(), "-".to_owned(), figures::one_line(&wrong.to_string(), 100)),
    };
    vec![listed.name.clone(), version, from, params, what]
}
