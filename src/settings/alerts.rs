//! Alerts: which rules there are, and who is told.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use muster_shared::setting::Secret;
use muster_shared::settings;
use muster_shared::text::nearest_name;
use serde::{Deserialize, Serialize};

use super::Effective;
use super::error::SettingsError;
use crate::alerts::rule::{Condition, Rule, Severity};
use crate::alerts::send::LOG;

/// The section.
pub(super) const SECTION: &str = "alerts";

/// Most rules, most destinations, and most of these that one rule names.
const MOST_RULES: usize = 64;
const MOST_DESTINATIONS: usize = 8;
/// Longest name of a rule or a destination.
const MOST_NAME: usize = 40;

settings! {
    /// Alerts. Without a destination nothing is looked at, and nothing costs anything.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub(crate) struct AlertSettings {
        /// Who is told of rules that name nobody themselves: names of alerts.destinations, or log. `muster up` starts a
        /// process that looks after alerts when anybody is told.
        pub(crate) to: Vec<String> = Vec::new() => list().at_most(MOST_DESTINATIONS).example("[\"ops\"]"),
        /// How often rules are looked at.
        #[serde(with = "muster_shared::span")]
        pub(crate) every: Duration = Duration::from_secs(15) => span(100, HOUR),
        /// Rules, by name: tool_failures, step_time, questions, budget, restarts, dead_letters, stalled, missing_role and
        /// record_full come with Muster, and are changed here; others say what they look at (`when`).
        pub(crate) rules: BTreeMap<String, RuleSettings> = BTreeMap::new()
            => named("tool_failures", &group(RuleSettings::SETTINGS)),
        /// Who is told, by name: a webhook (url) or a command.
        pub(crate) destinations: BTreeMap<String, DestinationSettings> = BTreeMap::new()
            => named("ops", &group(DestinationSettings::SETTINGS)),
    }
}

settings! {
    /// A rule.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub(crate) struct RuleSettings {
        /// Whether it is looked at.
        pub(crate) enabled: bool = true => flag(),
        /// What it looks at; as its name says where it is one of these words.
        pub(crate) when: Option<Condition> = None => words::<Condition>().example("\"tool_failures\""),
        /// It holds while what it measures is more than this: a share (20%), a span of time (30s) or a number, as what it looks
        /// at wants. What is usual when nothing is said.
        pub(crate) above: Option<String> = None => text().example("\"20%\""),
        /// How far back it looks: tool_failures, step_time, restarts.
        #[serde(with = "muster_shared::span")]
        pub(crate) window: Duration = Duration::from_secs(600) => span(SECOND, DAY),
        /// The fewest calls or steps that it judges by: tool_failures (5 when nothing is said), step_time (3).
        pub(crate) least: Option<u32> = None => whole(1, 1_000_000).example("5"),
        /// How long it must hold before it fires. 30s for missing_role, else 0s, when nothing is said.
        #[serde(with = "muster_shared::span::option")]
        pub(crate) lasts: Option<Duration> = None => span(0, DAY).example("\"1m\""),
        /// How long it must not hold before it is over: what goes up and down in between is told once.
        #[serde(with = "muster_shared::span")]
        pub(crate) clear: Duration = Duration::from_secs(30) => span(0, DAY),
        /// How often it is told again while it fires; 0s for never.
        #[serde(with = "muster_shared::span")]
        pub(crate) repeat: Duration = Duration::from_secs(4 * 3600) => span(SECOND, 30 * DAY).or_zero(),
        /// How much it matters: info, warning or critical. It is told, and makes no other difference.
        pub(crate) severity: Severity = Severity::Warning => words::<Severity>(),
        /// Who is told; those of alerts.to when empty.
        pub(crate) to: Vec<String> = Vec::new() => list().at_most(MOST_DESTINATIONS).example("[\"ops\", \"log\"]"),
    }
}

settings! {
    /// Who is told: a webhook (url) or a command.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub(crate) struct DestinationSettings {
        /// A webhook: the address that is sent a signed POST. https, unless it is private.
        pub(crate) url: Option<String> = None => text().example("\"https://hooks.example.org/muster\""),
        /// What requests are signed with, by the variable alone: MUSTER_ALERTS_DESTINATIONS_OPS_SECRET.
        pub(crate) secret: Option<Secret> = None => secret(),
        /// A file that holds it instead.
        pub(crate) secret_file: Option<PathBuf> = None => text().example("\"/run/secrets/muster-alerts\""),
        /// Whether the webhook may be at a private address, such as 127.0.0.1, and at http.
        pub(crate) private: bool = false => flag(),
        /// A command instead: a program and its words. It gets the notice as JSON on standard input, and no shell.
        pub(crate) command: Vec<String> = Vec::new() => list(),
        /// How long an answer, or the end of the command, is waited for.
        #[serde(with = "muster_shared::span")]
        pub(crate) timeout: Duration = Duration::from_secs(10) => span(100, 5 * MINUTE),
        /// How long a notice that is not taken is tried again, with growing waits of up to a minute.
        #[serde(with = "muster_shared::span")]
        pub(crate) retry_for: Duration = Duration::from_secs(3600) => span(0, 7 * DAY),
    }
}

/// What a destination is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DestinationKind<'a> {
    /// A webhook, by its URL.
    Webhook(&'a str),
    /// A command, by its words.
    Command(&'a [String]),
}

impl DestinationSettings {
    /// What it is; nothing where nothing is said.
    pub(crate) fn kind(&self) -> Option<DestinationKind<'_>> {
        let url = self.url.as_deref().map(DestinationKind::Webhook);
        url.or_else(|| (!self.command.is_empty()).then_some(DestinationKind::Command(&self.command)))
    }

    /// What is wrong with it: the part, and what it has to be.
    fn fault(&self, name: &str) -> Option<(&'static str, String)> {
        let has_secret = self.secret.is_some() || self.secret_file.is_some();
        match self.kind() {
            None => Some(("url", "say where it is: url for a webhook, or command".to_owned())),
            Some(DestinationKind::Webhook(_)) if !self.command.is_empty() => {
                Some(("command", "it has a url: it is either a webhook or a command".to_owned()))
            }
            Some(DestinationKind::Webhook(url)) => match wrong_url(url, self.private) {
                Some(why) => Some(("url", why)),
                None if !has_secret => {
                    let variable = super::keys::variable(&format!("{SECTION}.destinations.{name}.secret"));
                    Some((
                        "secret_file",
                        format!("requests are signed: name a file with the secret, or set {variable}"),
                    ))
                }
                None => None,
            },
            Some(DestinationKind::Command(words)) if words[0].trim().is_empty() => {
                Some(("command", "its first word must be a program".to_owned()))
            }
            Some(DestinationKind::Command(_)) => None,
        }
    }
}

fn wrong_url(text: &str, private: bool) -> Option<String> {
    let url = match url::Url::parse(text) {
        Ok(url) => url,
        Err(error) => {
            return Some(format!("it must be an address such as https://hooks.example.org/muster ({error})"));
        }
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Some("it must not hold a user name or a password".to_owned());
    }
    match (url.scheme(), private) {
        _ if url.host_str().is_none() => Some("it must name a host".to_owned()),
        ("https", _) | ("http", true) => None,
        ("http", false) => {
            Some("it must be https; http goes to private addresses alone (private = true)".to_owned())
        }
        _ => Some("it must be https".to_owned()),
    }
}

/// The rules that are looked at, whoever is told of them.
///
/// # Errors
/// Names the setting that cannot work, and what it has to be.
pub(super) fn rules(settings: &AlertSettings, effective: &[Effective]) -> Result<Vec<Rule>, SettingsError> {
    let own = Condition::ALL.map(Condition::as_str).into_iter();
    let more = settings.rules.keys().map(String::as_str).filter(|name| Condition::named(name).is_none());
    let names: Vec<&str> = own.chain(more).collect();
    let at = Place(effective);
    if names.len() > MOST_RULES {
        let value = format!("{} rules", names.len());
        return Err(at.wrong(
            format!("{SECTION}.rules"),
            Some(value),
            format!("there may be {MOST_RULES} at most"),
        ));
    }
    if settings.destinations.len() > MOST_DESTINATIONS {
        let (key, value) =
            (format!("{SECTION}.destinations"), format!("{} of them", settings.destinations.len()));
        return Err(at.wrong(key, Some(value), format!("there may be {MOST_DESTINATIONS} at most")));
    }
    known(settings, &settings.to).map_err(|why| at.wrong(format!("{SECTION}.to"), None, why))?;
    let mut rules = Vec::new();
    for name in names {
        let written = settings.rules.get(name).cloned().unwrap_or_default();
        let wrong = |(part, why): (&str, String)| {
            at.wrong(format!("{SECTION}.rules.{}.{part}", super::keys::written(name)), None, why)
        };
        if written.enabled {
            rules.push(rule(name, &written, settings).map_err(wrong)?);
        }
    }
    let used = |name: &String| settings.to.contains(name) || rules.iter().any(|rule| rule.to.contains(name));
    for (name, destination) in &settings.destinations {
        // One of which only a secret is in the environment, or that stands in an example, is nobody's.
        let fault = destination.fault(name).filter(|_| used(name) || destination.kind().is_some());
        if let Some((part, why)) = fault {
            let key = format!("{SECTION}.destinations.{}.{part}", super::keys::written(name));
            return Err(at.wrong(key, None, why));
        }
    }
    Ok(rules)
}

fn rule(
    name: &str,
    written: &RuleSettings,
    settings: &AlertSettings,
) -> Result<Rule, (&'static str, String)> {
    if !is_name(name) {
        return Err(("enabled", NAME_RULE.to_owned()));
    }
    let when = written.when.or_else(|| Condition::named(name)).ok_or_else(|| {
        let words = Condition::ALL.map(Condition::as_str).join(", ");
        ("when", format!("say what this rule looks at: {words}"))
    })?;
    let above = match &written.above {
        Some(text) => when.unit().read(text).map_err(|why| ("above", format!("{why}, for {when}")))?,
        None => when.usual(),
    };
    let to = if written.to.is_empty() { &settings.to } else { &written.to };
    known(settings, to).map_err(|why| ("to", why))?;
    Ok(Rule {
        name: name.to_owned(),
        when,
        above,
        window: written.window,
        least: written.least.unwrap_or_else(|| when.usual_least()),
        lasts: written.lasts.unwrap_or_else(|| when.usual_lasts()),
        clear: written.clear,
        repeat: written.repeat,
        severity: written.severity,
        to: to.clone(),
    })
}

/// Whether all of these are destinations.
fn known(settings: &AlertSettings, to: &[String]) -> Result<(), String> {
    let is_known = |name: &&String| *name == LOG || settings.destinations.contains_key(*name);
    let Some(unknown) = to.iter().find(|name| !is_known(name)) else {
        let wrong = to.iter().find(|name| !is_name(name));
        return wrong.map_or(Ok(()), |_| Err(NAME_RULE.to_owned()));
    };
    let names = settings.destinations.keys().map(String::as_str).chain([LOG]);
    let near = nearest_name(unknown, names).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    Err(format!(
        "there is no destination {unknown}: it must be log, or stand in [{SECTION}.destinations.{unknown}]{near}"
    ))
}

const NAME_RULE: &str = "a name of a rule or a destination is lower-case letters, digits and _, 40 at most";

fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=MOST_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

/// Where values come from.
struct Place<'a>(&'a [Effective]);

impl Place<'_> {
    /// That a key cannot work, with its value and where that, or another of the same group, comes from.
    fn wrong(&self, key: String, value: Option<String>, rule: String) -> SettingsError {
        let group = key.rsplit_once('.').map_or("", |(group, _)| group);
        let is_set = |one: &&Effective| !super::is_default(one);
        let own = self.0.iter().filter(is_set).find(|one| one.key == key);
        let near = || self.0.iter().filter(is_set).find(|one| one.key.starts_with(group));
        let origin = own.or_else(near).map_or_else(String::new, |one| one.origin.clone());
        let said = |one: &Effective| one.value.as_str().map_or_else(|| one.value.to_string(), str::to_owned);
        let value = value.or_else(|| own.map(said)).unwrap_or_else(|| "nothing".to_owned());
        SettingsError::OutOfRange { key, value, origin, rule }
    }
}

/// Files that the user's own settings name lie beside these.
pub(super) fn beside_own(
    settings: &mut AlertSettings,
    own: Option<&std::path::Path>,
    is_own: impl Fn(&str) -> bool,
) {
    let Some(folder) = own.and_then(std::path::Path::parent) else { return };
    for (name, destination) in &mut settings.destinations {
        let key = format!("{SECTION}.destinations.{}.secret_file", super::keys::written(name));
        if let Some(file) = destination.secret_file.as_mut().filter(|_| is_own(&key)) {
            *file = folder.join(&*file);
        }
    }
}

#[cfg(test)]
mod tests;
