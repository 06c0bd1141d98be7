//! Settings from the environment: `MUSTER_LIMITS_MAX_STEPS` sets `limits.max_steps`.

use muster_shared::text::nearest_name;

use super::error::SettingsError;
use super::keys::{Keys, PREFIX};
use super::layer::{Layer, Origin};
use super::list;

/// Holds what flags set where a process of a fleet was started: in its arguments everybody could read it.
pub(crate) const HANDED_DOWN: &str = "MUSTER_SET";

/// Variables that are read elsewhere and are no settings by name.
const READ_ELSEWHERE: [&str; 12] = [
    HANDED_DOWN,
    crate::fleet::far::HOST,
    crate::commands::join::INVITATION,
    crate::trust::VARIABLE,
    crate::trust::FOUND,
    "MUSTER_FLEET",
    "MUSTER_CONFIG",
    "MUSTER_LOG",
    "MUSTER_NATS_SERVER",
    "MUSTER_NATS_RELEASES",
    "MUSTER_BIN_DIR",
    "MUSTER_INSTALL_TIME_LIMIT",
];

/// What the environment sets, and one warning for each variable that looks like ours and is not. Pure.
///
/// An unknown variable is no error, as an unknown key in a file is: environments are inherited, and a newer
/// program's variables must not stop an older one.
///
/// # Errors
/// When a list is not written as one.
pub(crate) fn layer(
    variables: &[(String, String)],
    keys: &Keys,
) -> Result<(Layer, Vec<String>), SettingsError> {
    let (mut layer, mut warnings) = (Layer::default(), Vec::new());
    for (name, value) in variables {
        if name == "MUSTER_LOG" {
            layer.set("log.level", value.as_str(), Origin::Variable(name.clone()));
        } else if let Some((key, known)) = keys.of_variable(name) {
            let origin = Origin::Variable(name.clone());
            layer.set(&key, list::value_of(value, &key, known, &origin)?, origin);
        } else if name.starts_with(PREFIX) && !READ_ELSEWHERE.contains(&name.as_str()) {
            warnings.push(format!("{name} is set but is no setting{}", nearest(name, keys)));
        }
    }
    Ok((layer, warnings))
}

/// A hint at the variable that may be meant. What all of them begin with says nothing of how near two are.
fn nearest(name: &str, keys: &Keys) -> String {
    let variables = keys.variables();
    let known = variables.keys().map(String::as_str).chain(READ_ELSEWHERE);
    let rest = known.filter_map(|known| known.strip_prefix(PREFIX));
    let best = nearest_name(name.strip_prefix(PREFIX).unwrap_or(name), rest);
    best.map_or_else(String::new, |rest| format!("; did you mean {PREFIX}{rest}?"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, dead_code)]
    use muster_shared::settings;

    use super::*;

    settings! {
        struct Sample {
            limits: Limits,
            log: Log,
        }
    }
    settings! {
        struct Limits {
            max_steps: u32 = 1 => whole(0, 9); Project Harmless,
            names: Vec<String> = Vec::new() => list(); Project Harmless,
        }
    }
    settings! {
        struct Log {
            level: String = String::new() => text(); Project Harmless,
        }
    }

    #[test]
    fn variables_set_keys_and_strangers_are_named() {
        let variables = [
            ("MUSTER_LIMITS_MAX_STEPS", "7"),
            ("MUSTER_LIMITS_MAX_STEP", "7"),
            ("MUSTER_REPO", "/src"),
            ("MUSTER_FLEE", "/srv"),
            ("MUSTER_LOG", "debug"),
            ("MUSTER_NATS_SERVER", "/bin/nats-server"),
            ("PATH", "/bin"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (layer, warnings) = layer(&variables, &Keys::of(Sample::SETTINGS)).unwrap();
        let set: Vec<String> = layer.origins().map(|(key, _)| key).collect();
        assert_eq!(set, ["limits.max_steps", "log.level"]);
        assert_eq!(
            warnings,
            [
                "MUSTER_LIMITS_MAX_STEP is set but is no setting; did you mean MUSTER_LIMITS_MAX_STEPS?",
                "MUSTER_REPO is set but is no setting",
                "MUSTER_FLEE is set but is no setting; did you mean MUSTER_FLEET?",
            ]
        );
    }
}
