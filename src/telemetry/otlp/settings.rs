//! OpenTelemetry variables for the receiver of spans. A collector adds compression, sampling, and certificates. Pure.
//!
//! <https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>. As there, what cannot be read counts
//! as not set, and a word is said about it.

use std::time::Duration;

use percent_encoding::percent_decode_str;

/// How spans are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtlpSettings {
    /// Where to: the whole address.
    pub(crate) endpoint: String,
    /// Further headers, which may hold secrets.
    pub(crate) headers: Vec<(String, String)>,
    /// Who sends.
    pub(crate) resource: Vec<(String, String)>,
    /// Whether what people, models and tools said is sent too.
    pub(crate) content: bool,
    /// How long spans wait for others to be sent with.
    pub(crate) delay: Duration,
}

/// Longest delay, in milliseconds.
const MAX_DELAY: u64 = 600_000;

/// Default of OTEL_BSP_SCHEDULE_DELAY.
const DEFAULT_DELAY: Duration = Duration::from_secs(5);

/// What the variables say: where one of them is on, and what looks wrong.
struct Variables<'a> {
    all: &'a [(String, String)],
    wrong: Vec<String>,
}

impl<'a> Variables<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        let found = self.all.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// Of a variable for all signals and one for traces, the latter counts.
    fn of_traces(&self, rest: &str) -> Option<&'a str> {
        let own = format!("OTEL_EXPORTER_OTLP_TRACES_{rest}");
        self.text(&own).or_else(|| self.text(&format!("OTEL_EXPORTER_OTLP_{rest}")))
    }

    fn delay(&mut self) -> Duration {
        let Some(text) = self.text("OTEL_BSP_SCHEDULE_DELAY") else { return DEFAULT_DELAY };
        let millis = text.parse::<u64>().ok().filter(|millis| (1..=MAX_DELAY).contains(millis));
        millis.map_or_else(
            || {
                self.wrong.push(format!(
                    "OTEL_BSP_SCHEDULE_DELAY = {text:?} is not a whole number from 1 to {MAX_DELAY}; using 5000"
                ));
                DEFAULT_DELAY
            },
            Duration::from_millis,
        )
    }

    /// `key=value,key2=value2`, percent-encoded.
    fn pairs(&mut self, name: &str, text: Option<&str>) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        for pair in text.unwrap_or_default().split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let read =
                |text: &str| percent_decode_str(text.trim()).decode_utf8().map(std::borrow::Cow::into_owned);
            match pair.split_once('=').map(|(key, value)| (read(key), read(value))) {
                Some((Ok(key), Ok(value))) if !key.is_empty() => pairs.push((key, value)),
                // Its value may be a secret.
                _ => self
                    .wrong
                    .push(format!("{name} has something in it that is no key=value; it is left out")),
            }
        }
        pairs
    }
}

/// Whether spans are sent while runs go on: a receiver is named, and nobody switched it off.
pub(crate) fn is_on(variables: &[(String, String)]) -> bool {
    let known = Variables { all: variables, wrong: Vec::new() };
    let is_off = known.text("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let by_otlp =
        known.text("OTEL_TRACES_EXPORTER").is_none_or(|all| all.split(',').any(|one| one.trim() == "otlp"));
    let is_named = known
        .text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        .or_else(|| known.text("OTEL_EXPORTER_OTLP_ENDPOINT"));
    !is_off && by_otlp && is_named.is_some()
}

/// What the variables say, and what looks wrong in them; nothing where no receiver is named, by `given` or by them.
///
/// # Errors
/// When spans would have to be sent in a way that is not spoken here.
pub(crate) fn read(
    variables: &[(String, String)],
    given: Option<&str>,
) -> Result<Option<(OtlpSettings, Vec<String>)>, String> {
    let mut known = Variables { all: variables, wrong: Vec::new() };
    let Some(endpoint) = given.map(below).or_else(|| endpoint(&known)) else { return Ok(None) };
    check(&endpoint)?;
    if let Some(other) = known.of_traces("PROTOCOL").filter(|name| *name != "http/protobuf") {
        return Err(format!(
            "OTEL_EXPORTER_OTLP_PROTOCOL = {other:?} is not supported: use http/protobuf, on port 4318 of the receiver"
        ));
    }
    let headers = known.pairs("OTEL_EXPORTER_OTLP_HEADERS", known.of_traces("HEADERS"));
    let content = known.text("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT").is_some_and(|word| {
        ["true", "span_only", "span_and_event"].iter().any(|yes| word.eq_ignore_ascii_case(yes))
    });
    let settings =
        OtlpSettings { endpoint, headers, resource: resource_of(&mut known), content, delay: known.delay() };
    Ok(Some((settings, known.wrong)))
}

/// Who sends, by the variables.
pub(crate) fn resource(variables: &[(String, String)]) -> Vec<(String, String)> {
    resource_of(&mut Variables { all: variables, wrong: Vec::new() })
}

fn resource_of(known: &mut Variables<'_>) -> Vec<(String, String)> {
    let given = known.pairs("OTEL_RESOURCE_ATTRIBUTES", known.text("OTEL_RESOURCE_ATTRIBUTES"));
    let named = given.iter().find(|(key, _)| key == "service.name").map(|(_, name)| name.clone());
    let name =
        known.text("OTEL_SERVICE_NAME").map(str::to_owned).or(named).unwrap_or_else(|| "muster".to_owned());
    let ours = [("service.name", name), ("service.version", env!("CARGO_PKG_VERSION").to_owned())];
    let ours: Vec<_> = ours.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let others = given.into_iter().filter(|(key, _)| ours.iter().all(|(own, _)| own != key));
    let others: Vec<_> = others.collect();
    ours.into_iter().chain(others).collect()
}

/// The address for traces: as it is where it is one for them, else that for all signals with a path below it.
fn endpoint(known: &Variables<'_>) -> Option<String> {
    let own = known.text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").map(str::to_owned);
    own.or_else(|| known.text("OTEL_EXPORTER_OTLP_ENDPOINT").map(below))
}

/// The path for traces below an address for all signals.
fn below(base: &str) -> String {
    let base = base.trim_end_matches('/');
    if base.ends_with("/v1/traces") { base.to_owned() } else { format!("{base}/v1/traces") }
}

fn check(endpoint: &str) -> Result<(), String> {
    let shown = muster_shared::secret::without_passwords(endpoint);
    let url = reqwest::Url::parse(endpoint)
        .map_err(|why| format!("{shown:?} is no address of a receiver of OTLP: {why}"))?;
    let fits = matches!(url.scheme(), "http" | "https") && url.has_host();
    fits.then_some(()).ok_or_else(|| {
        format!("{shown:?} is no address of a receiver of OTLP: it begins with http:// or https://")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_path_for_traces_stands_below_an_address_for_all_and_not_below_one_for_traces() {
        for (given, wanted) in [
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318")][..], "http://a:4318/v1/traces"),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318/base/")], "http://a:4318/base/v1/traces"),
            (&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a:4318/")], "http://a:4318/"),
            (
                &[
                    ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1"),
                    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://b/x"),
                ],
                "https://b/x",
            ),
        ] {
            let (read, wrong) = read(&variables(given), None).unwrap().unwrap();
            assert_eq!((read.endpoint.as_str(), wrong.len()), (wanted, 0), "{given:?}");
        }
        assert_eq!(read(&[], None).unwrap(), None);
        let given = read(&[], Some("http://c:4318")).unwrap().unwrap().0;
        assert_eq!(given.endpoint, "http://c:4318/v1/traces");
    }

    #[test]
    fn what_is_off_is_off() {
        let named = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318");
        for (given, on) in [
            (&[][..], false),
            (&[named], true),
            (&[named, ("OTEL_SDK_DISABLED", "TRUE")], false),
            (&[named, ("OTEL_TRACES_EXPORTER", "none")], false),
            (&[named, ("OTEL_TRACES_EXPORTER", "console, otlp")], true),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], false),
        ] {
            assert_eq!(is_on(&variables(given)), on, "{given:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_counts_as_not_set_and_is_told() {
        let (settings, wrong) = read(
            &variables(&[
                ("OTEL_BSP_SCHEDULE_DELAY", "soon"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, broken,x=y"),
                ("OTEL_RESOURCE_ATTRIBUTES", "service.name=shop,deployment.environment.name=test"),
            ]),
            Some("http://a"),
        )
        .unwrap()
        .unwrap();
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong.iter().all(|said| !said.contains("broken")), "a value may be a secret: {wrong:?}");
        assert_eq!(settings.delay, DEFAULT_DELAY);
        assert_eq!(settings.headers, [("api-key".into(), "a b".into()), ("x".into(), "y".into())]);
        assert!(settings.resource.contains(&("service.name".into(), "shop".into())));
        assert!(settings.resource.contains(&("deployment.environment.name".into(), "test".into())));
        for bad in ["ftp://a", "a:4318", "not an address"] {
            assert!(read(&[], Some(bad)).is_err(), "{bad}");
        }
        let grpc = variables(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        assert!(read(&grpc, Some("http://a:4317")).unwrap_err().contains("4318"));
    }
}
