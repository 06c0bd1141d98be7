//! The secrets this process can reach, so that none of them is logged, shown or recorded.

use std::path::Path;

use muster_agents::input;
use muster_shared::secret::Redactor;
use percent_encoding::percent_decode_str;
use secrecy::SecretString;

use crate::settings::Settings;

/// The largest file that is read for a key, in bytes.
const MAX_KEY_FILE: u64 = 64 * 1024;

/// Endings of variables that hold secrets by convention.
const ENDINGS: [&str; 7] =
    ["_API_KEY", "_TOKEN", "_SECRET", "_SECRET_KEY", "_PASSWORD", "_ACCESS_KEY", "MUSTER_INVITATION"];

/// A redactor that knows every secret of the settings and the environment.
pub(crate) fn redactor(settings: &Settings, variables: &[(String, String)]) -> Redactor {
    let of_environment = variables.iter().filter_map(|(name, value)| secret_in(name, value));
    let of_headers = variables.iter().flat_map(|(name, value)| in_headers(name, value));
    let bus = &settings.bus;
    let of_settings = [&bus.password, &bus.token, &bus.system_password, &settings.ui.proxy.secret]
        .into_iter()
        .flatten()
        .map(|secret| (**secret).clone());
    let urls = bus.url.iter().chain(&settings.agent.endpoint);
    let of_url = urls.flat_map(|urls| urls.split(',')).filter_map(password_in).map(SecretString::from);
    let of_file = settings.agent.key_file.as_deref().and_then(|path| read(path).ok()).map(SecretString::from);
    let of_alerts = settings.alerts.url().ok().flatten();
    let of_all = of_environment.chain(of_headers).chain(of_settings).chain(of_url).chain(of_file);
    Redactor::new(of_all.chain(of_alerts))
}

fn secret_in(name: &str, value: &str) -> Option<SecretString> {
    if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        return Some(SecretString::from(value));
    }
    let named_file =
        name.strip_suffix("_FILE").is_some_and(|name| ENDINGS.iter().any(|ending| name.ends_with(ending)));
    named_file.then(|| read(value).ok()).flatten().map(SecretString::from)
}

/// What is sent to a receiver of spans beside them: keys, by convention.
fn in_headers(name: &str, value: &str) -> Vec<SecretString> {
    if !(name.starts_with("OTEL_EXPORTER_OTLP_") && name.ends_with("HEADERS")) {
        return Vec::new();
    }
    let values = value.split(',').filter_map(|pair| Some(pair.split_once('=')?.1.trim()));
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    values.flat_map(|text| [text.to_owned(), decoded(text)]).map(SecretString::from).collect()
}

/// The password in a URL such as `nats://user:password@host`.
fn password_in(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let (user, _) = rest.rsplit_once('@')?;
    Some(user.split_once(':').map_or(user, |(_, password)| password).to_owned())
}

/// Reads a small file that holds a key.
pub(crate) fn read(path: &str) -> Result<String, String> {
    let text = input::text(Path::new(path), MAX_KEY_FILE).map_err(|why| format!("cannot be used: {why}"))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_environment_of_files_and_of_urls_are_redacted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        std::fs::write(&file, "file-held-value-77\n").unwrap();
        let mut settings = Settings::default();
        settings.bus.url =
            Some("nats://me:url-held-value-55@host:4222,nats://url-held-token-66@other".into());
        settings.agent.endpoint = Some("https://me:url-held-value-88@host/v1".into());
        let variables = [
            ("HOUSE_API_KEY".to_owned(), "plain-held-value-33".to_owned()),
            ("OTEL_EXPORTER_OTLP_HEADERS".to_owned(), "x-key=header%2Dheld-value-22".to_owned()),
            ("OPENAI_API_KEY_FILE".to_owned(), file.display().to_string()),
        ];
        let redactor = redactor(&settings, &variables);
        for secret in [
            "plain-held-value-33",
            "header-held-value-22",
            "file-held-value-77",
            "url-held-value-55",
            "url-held-token-66",
            "url-held-value-88",
        ] {
            assert!(!redactor.redact(&format!("see {secret} here")).contains(secret), "{secret}");
        }
    }

    #[test]
    fn passwords_are_found_in_urls() {
        for (url, wanted) in [
            ("nats://a:b@h", Some("b")),
            ("nats://token@h", Some("token")),
            ("nats://h:4222", None),
            ("h", None),
        ] {
            assert_eq!(password_in(url).as_deref(), wanted, "{url}");
        }
    }
}
