//! Variables of the environment in values of `mcp.json`.

use muster_shared::text::quoted;

/// Puts the environment's values in place of `${NAME}` and `${env:NAME}`; `${NAME:-default}` has a value of its own where
/// there is none.
///
/// # Errors
/// When a variable is not set, or a `${` names something else; in words for people. Values are not in it.
pub(super) fn expand(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        filled.push_str(before);
        let (inside, behind) = after.split_once('}').ok_or("a `${` without its `}`")?;
        let inside = inside.strip_prefix("env:").unwrap_or(inside);
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!("`${{{}}}` names no variable of the environment", quoted(inside, 60)));
        }
        match environment(name).or_else(|| default.map(str::to_owned)) {
            Some(value) => filled.push_str(&value),
            None => return Err(format!("the variable `{name}` is not set; set it, or write the value")),
        }
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}
