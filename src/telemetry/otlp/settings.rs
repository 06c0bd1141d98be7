//! The usual variables of OpenTelemetry, as far as they make sense here. Pure.
//!
//! <https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>. As there, what cannot be read counts
//! as not set, and a word is said about it.

use std::path::PathBuf;
use std::time::Duration;

use muster_shared::traces::TraceId;
use percent_encoding::percent_decode_str;

/// How spans are sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OtlpSettings {
    /// Where to: the whole address.
    pub(crate) endpoint: String,
    /// Further headers, which may hold secrets.
    pub(crate) headers: Vec<(String, String)>,
    /// How long a request may take.
    pub(crate) timeout: Duration,
    /// Whether JSON is sent, and no protobuf.
    pub(crate) is_json: bool,
    /// Whether what is sent is compressed.
    pub(crate) is_gzip: bool,
    /// Certificates of authorities that are trusted besides, as PEM.
    pub(crate) authorities: Option<PathBuf>,
    /// Who sends.
    pub(crate) resource: Vec<(String, String)>,
    /// Whether what people, models and tools said is sent too.
    pub(crate) content: bool,
    /// Which traces are sent while their runs go on.
    pub(crate) sampler: Sampler,
    /// Most spans that wait.
    pub(crate) most_waiting: usize,
    /// Most spans of one request.
    pub(crate) batch: usize,
    /// How long spans wait for others to be sent with.
    pub(crate) delay: Duration,
}

/// Which traces are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampler {
    /// Whether it is as whoever asked for the run says, where he says something.
    pub(crate) follows_parent: bool,
    /// The part of the others that is sent, from 0 to 1.
    pub(crate) ratio: f64,
}

impl Sampler {
    /// Whether a trace is sent. All processes of all fleets say the same of one.
    pub(crate) fn keeps(self, trace: TraceId, above: Option<bool>) -> bool {
        if let Some(sampled) = above.filter(|_| self.follows_parent) {
            return sampled;
        }
        // The lower half of an id is random.
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "a share need not be exact"
        )]
        let place = (trace.0 as u64 >> 1) as f64 / (u64::MAX >> 1) as f64;
        self.ratio >= 1.0 || place < self.ratio
    }
}

/// Longest wait, and longest time-out, in milliseconds.
const LONGEST: u64 = 600_000;

/// Most spans that wait, or are sent at once, whatever is set.
const MOST: u64 = 100_000;

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

    fn number(&mut self, name: &str, text: Option<&str>, usual: u64, most: u64) -> u64 {
        match text.map(|text| (text.parse::<u64>(), text)) {
            None => usual,
            Some((Ok(number), _)) if (1..=most).contains(&number) => number,
            Some((_, text)) => {
                self.wrong
                    .push(format!("{name} = {text:?} is no whole number from 1 to {most}; {usual} holds"));
                usual
            }
        }
    }

    fn millis(&mut self, name: &str, usual: u64) -> Duration {
        Duration::from_millis(self.number(name, self.text(name), usual, LONGEST))
    }

    fn count(&mut self, name: &str, usual: u64) -> usize {
        usize::try_from(self.number(name, self.text(name), usual, MOST)).unwrap_or(usize::MAX)
    }

    fn sampler(&mut self) -> Sampler {
        let argument = self.text("OTEL_TRACES_SAMPLER_ARG");
        let ratio = argument.and_then(|text| text.parse().ok()).filter(|ratio| (0.0..=1.0).contains(ratio));
        let ratio_of = |wrong: &mut Vec<String>| {
            ratio.unwrap_or_else(|| {
                wrong
                    .push("OTEL_TRACES_SAMPLER_ARG is no number from 0 to 1; all traces are sent".to_owned());
                1.0
            })
        };
        let named = self.text("OTEL_TRACES_SAMPLER").unwrap_or("parentbased_always_on");
        let (follows_parent, ratio) = match named {
            "always_on" => (false, 1.0),
            "always_off" => (false, 0.0),
            "traceidratio" => (false, ratio_of(&mut self.wrong)),
            "parentbased_always_on" => (true, 1.0),
            "parentbased_always_off" => (true, 0.0),
            "parentbased_traceidratio" => (true, ratio_of(&mut self.wrong)),
            other => {
                self.wrong.push(format!(
                    "OTEL_TRACES_SAMPLER = {other:?} is not known here; parentbased_always_on holds"
                ));
                (true, 1.0)
            }
        };
        Sampler { follows_parent, ratio }
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
                Some(_) | None => self
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
    let is_json = match known.of_traces("PROTOCOL") {
        None | Some("http/protobuf") => false,
        Some("http/json") => true,
        Some(other) => {
            return Err(format!(
                "OTEL_EXPORTER_OTLP_PROTOCOL = {other:?}: spans are sent by http/protobuf or http/json; receivers listen \
                 for these on port 4318"
            ));
        }
    };
    let is_gzip = match known.of_traces("COMPRESSION") {
        None | Some("none") => false,
        Some("gzip") => true,
        Some(other) => {
            let said = format!(
                "OTEL_EXPORTER_OTLP_COMPRESSION = {other:?} is not known here; nothing is compressed"
            );
            known.wrong.push(said);
            false
        }
    };
    let headers = known.pairs("OTEL_EXPORTER_OTLP_HEADERS", known.of_traces("HEADERS"));
    let timeout = known.of_traces("TIMEOUT");
    let timeout = Duration::from_millis(known.number("OTEL_EXPORTER_OTLP_TIMEOUT", timeout, 10_000, LONGEST));
    let authorities = known.of_traces("CERTIFICATE").map(PathBuf::from);
    let content = known.text("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT").is_some_and(|word| {
        ["true", "span_only", "span_and_event"].iter().any(|yes| word.eq_ignore_ascii_case(yes))
    });
    let sampler = known.sampler();
    let most_waiting = known.count("OTEL_BSP_MAX_QUEUE_SIZE", 2048);
    let settings = OtlpSettings {
        endpoint,
        headers,
        timeout,
        is_json,
        is_gzip,
        authorities,
        resource: resource_of(&mut known),
        content,
        sampler,
        most_waiting,
        batch: known.count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512).min(most_waiting),
        delay: known.millis("OTEL_BSP_SCHEDULE_DELAY", 5_000),
    };
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
    #![allow(clippy::unwrap_used)]
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
                ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
                ("OTEL_BSP_MAX_QUEUE_SIZE", "100"),
                ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5000"),
                ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, broken,x=y"),
                ("OTEL_RESOURCE_ATTRIBUTES", "service.name=shop,deployment.environment.name=test"),
            ]),
            Some("http://a"),
        )
        .unwrap()
        .unwrap();
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert!(wrong.iter().all(|said| !said.contains("broken")), "a value may be a secret: {wrong:?}");
        assert_eq!(settings.timeout, Duration::from_secs(10));
        assert_eq!((settings.most_waiting, settings.batch), (100, 100));
        assert_eq!(settings.headers, [("api-key".into(), "a b".into()), ("x".into(), "y".into())]);
        assert!(settings.resource.contains(&("service.name".into(), "shop".into())));
        assert!(settings.resource.contains(&("deployment.environment.name".into(), "test".into())));
        for bad in ["ftp://a", "a:4318", "not an address"] {
            assert!(read(&[], Some(bad)).is_err(), "{bad}");
        }
        let grpc = variables(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        assert!(read(&grpc, Some("http://a:4317")).unwrap_err().contains("4318"));
    }

    #[test]
    fn samplers_keep_the_same_part_everywhere_and_follow_whoever_asked() {
        let half = Sampler { follows_parent: true, ratio: 0.5 };
        let ids = (0..1000u64).map(|n| TraceId(u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))));
        let kept = ids.filter(|id| half.keeps(*id, None)).count();
        assert!((400..600).contains(&kept), "{kept}");
        let (low, high) = (TraceId(1), TraceId(u128::from(u64::MAX)));
        assert!(half.keeps(low, None) && !half.keeps(high, None));
        assert!(half.keeps(high, Some(true)) && !half.keeps(low, Some(false)));
        let never = Sampler { follows_parent: false, ratio: 0.0 };
        assert!(!never.keeps(low, Some(true)));
        let always = Sampler { follows_parent: false, ratio: 1.0 };
        assert!(always.keeps(high, Some(false)));
    }
}
