//! To which class a message on the wire belongs: its subject without what names a run, a process or a consumer.

use std::fmt;

use serde_json::Value;

/// Words of the JetStream API. The word after them names a stream.
const API_WORDS: [&str; 17] = [
    "STREAM", "CONSUMER", "MSG", "GET", "NEXT", "CREATE", "DURABLE", "UPDATE", "DELETE", "PURGE", "INFO",
    "NAMES", "LIST", "DIRECT", "LAST", "EVENT", "ADVISORY",
];
/// Buckets that are written by the clock, whether or not anything is done.
const BEATEN: [&str; 2] = ["AGENTS", "LEASE"];
/// Statuses by which the server ends a pull that got nothing, and says that it is still there.
const WAITED_IN_VAIN: [u16; 3] = [100, 404, 408];

/// What is seen of a message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen<'a> {
    pub(super) subject: &'a str,
    /// Where an answer is wanted.
    pub(super) reply: Option<&'a str>,
    /// What the server says in place of a message.
    pub(super) status: Option<u16>,
    /// The stream that a value was read from directly.
    pub(super) stream: Option<&'a str>,
    pub(super) payload: &'a [u8],
}

/// Why a message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Because a run goes on.
    Work,
    /// Because time passes.
    Clock,
    /// Because the observer listens: the server tells of what it did only where somebody listens.
    Observer,
}

/// A class of messages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    /// Why it is sent.
    pub cause: Cause,
    /// Its subject in general, and what it is.
    pub name: String,
}

impl Class {
    /// Whether the server sends it.
    #[must_use]
    pub fn is_of_server(&self) -> bool {
        self.name.ends_with(GIVEN_OUT)
            || ["_INBOX: ", "$JS.EVENT."].iter().any(|of| self.name.starts_with(of))
    }
}

/// How the name of a class ends whose messages a stream gives out.
const GIVEN_OUT: &str = ", given out";

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The class of a message.
pub(super) fn class(seen: &Seen<'_>) -> Class {
    // The server gives out what is stored under the subject that it was stored under, with a place to acknowledge it.
    let given_out = seen.reply.is_some_and(|reply| reply.starts_with("$JS.ACK."));
    let name = name(seen);
    let name = if given_out { format!("{name}{GIVEN_OUT}") } else { name };
    Class { cause: cause(seen), name }
}

fn name(seen: &Seen<'_>) -> String {
    let tokens: Vec<&str> = seen.subject.split('.').collect();
    match tokens.as_slice() {
        ["run", _, kind, ..] => format!("run.*.{kind}"),
        ["evt", _, .., kind] => format!("evt.*.{kind}"),
        ["cmd", _, name] => format!("cmd.*.{name}"),
        ["timer", what, ..] => format!("timer.{what}.*"),
        ["$JS", "API", rest @ ..] => format!("$JS.API.{}", api(rest)),
        ["$JS", "EVENT", "ADVISORY", rest @ ..] => format!("$JS.EVENT.ADVISORY.{}", api(rest)),
        ["$JS", "ACK", ..] => {
            let word = String::from_utf8_lossy(seen.payload);
            let word = word.split_whitespace().next().unwrap_or("");
            format!("$JS.ACK.{} {word}", acknowledged(&tokens)).trim_end().to_owned()
        }
        ["$KV", bucket, ..] => format!("$KV.{bucket}"),
        ["$O", bucket, part, ..] => format!("$O.{bucket}.{part}"),
        ["_INBOX", ..] => format!("_INBOX: {}", answer(seen)),
        [first, _, ..] => format!("{first}.*"),
        _ => seen.subject.to_owned(),
    }
}

/// An API subject up to the stream that it is about.
fn api(tokens: &[&str]) -> String {
    let words = tokens.iter().take_while(|token| API_WORDS.contains(token)).count();
    tokens[..tokens.len().min(words + 1)].join(".")
}

/// The stream of an acknowledgement: newer servers name domain and account before it.
fn acknowledged<'a>(tokens: &[&'a str]) -> &'a str {
    tokens.get(if tokens.len() > 10 { 4 } else { 2 }).copied().unwrap_or("")
}

/// What a message to an inbox answers.
fn answer(seen: &Seen<'_>) -> String {
    if let Some(status) = seen.status {
        return format!("status {status}");
    }
    if let Some(stream) = seen.stream {
        return format!("value of {stream}");
    }
    if seen.payload.is_empty() {
        return "acknowledgement confirmed".to_owned();
    }
    let Ok(Value::Object(said)) = serde_json::from_slice(seen.payload) else { return "answer".to_owned() };
    let text = |name: &str| said.get(name).and_then(Value::as_str);
    match (text("type"), text("stream")) {
        (Some(kind), _) => kind.rsplit('.').next().unwrap_or(kind).to_owned(),
        (None, Some(stream)) => format!("stored in {stream}"),
        (None, None) if said.contains_key("error") => "a write refused".to_owned(),
        (None, None) => "answer".to_owned(),
    }
}

fn cause(seen: &Seen<'_>) -> Cause {
    let tokens: Vec<&str> = seen.subject.split('.').collect();
    let beaten = |stream: &str| stream.strip_prefix("KV_").is_some_and(|bucket| BEATEN.contains(&bucket));
    let by_clock = match tokens.as_slice() {
        // Those about consumers are kept in a stream, which listens whether or not the observer does.
        ["$JS", "EVENT", "ADVISORY", about, ..] if *about != "CONSUMER" => return Cause::Observer,
        ["hb", ..] => true,
        ["$KV", bucket, ..] => BEATEN.contains(bucket),
        ["_INBOX", ..] => {
            seen.status.is_some_and(|status| WAITED_IN_VAIN.contains(&status))
                || serde_json::from_slice::<Value>(seen.payload)
                    .is_ok_and(|said| said.get("stream").and_then(Value::as_str).is_some_and(beaten))
        }
        ["$JS", "ACK", ..] => seen.payload.starts_with(b"+WPI"),
        _ => false,
    };
    if by_clock { Cause::Clock } else { Cause::Work }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(subject: &str, reply: Option<&str>, payload: &str) -> String {
        class(&Seen { subject, reply, payload: payload.as_bytes(), ..Seen::default() }).name
    }

    #[test]
    fn a_class_names_no_run_process_or_consumer() {
        let inbox = Some("_INBOX.abc");
        for (subject, reply, payload, expected) in [
            ("run.0190.decided", inbox, "x", "run.*.decided"),
            ("run.0190.task.worker.1-1", inbox, "x", "run.*.task"),
            ("evt.0190.worker.worker-ab.1-1.1.step", inbox, "x", "evt.*.step"),
            ("task.worker.0190.1-1", Some("$JS.ACK.TASKS.worker.1.2.3.4.5"), "x", "task.*, given out"),
            (
                "evt.0190.worker.worker-ab.1-1.1.step",
                Some("$JS.ACK.RUNS.c.1.2.3.4.5"),
                "x",
                "evt.*.step, given out",
            ),
            ("$JS.API.STREAM.MSG.GET.KV_FILES", inbox, "{}", "$JS.API.STREAM.MSG.GET.KV_FILES"),
            ("$JS.API.CONSUMER.MSG.NEXT.TASKS.worker", inbox, "{}", "$JS.API.CONSUMER.MSG.NEXT.TASKS"),
            ("$JS.API.DIRECT.GET.KV_A.$KV.A.x", inbox, "", "$JS.API.DIRECT.GET.KV_A"),
            ("$JS.API.CONSUMER.CREATE.RUNS.name.run.x", inbox, "{}", "$JS.API.CONSUMER.CREATE.RUNS"),
            ("$JS.EVENT.ADVISORY.API", None, "{}", "$JS.EVENT.ADVISORY.API"),
            ("$JS.ACK.TASKS.worker.1.2.3.4.5", inbox, "+ACK", "$JS.ACK.TASKS +ACK"),
            ("$JS.ACK._.hash.TASKS.worker.1.2.3.4.5.x", None, "+ACK", "$JS.ACK.TASKS +ACK"),
            ("_INBOX.a.b", None, r#"{"stream":"RUNS","seq":3}"#, "_INBOX: stored in RUNS"),
            ("_INBOX.a.b", None, r#"{"type":"io.nats.jetstream.api.v1.x_response"}"#, "_INBOX: x_response"),
            ("_INBOX.a.b", None, r#"{"error":{"code":400}}"#, "_INBOX: a write refused"),
            ("_INBOX.a.b", None, "", "_INBOX: acknowledgement confirmed"),
            ("live.0190.worker.worker-ab.1-1", None, "x", "live.*"),
            ("$KV.FILES.0190", inbox, "x", "$KV.FILES"),
        ] {
            assert_eq!(named(subject, reply, payload), expected);
        }
    }

    #[test]
    fn what_time_alone_brings_is_told_from_work() {
        let cause = |subject: &str, payload: &str, status: Option<u16>| {
            class(&Seen { subject, payload: payload.as_bytes(), status, ..Seen::default() }).cause
        };
        assert_eq!(cause("hb.worker.worker-ab", "x", None), Cause::Clock);
        assert_eq!(cause("$KV.LEASE.orchestrator-ab", "x", None), Cause::Clock);
        assert_eq!(cause("_INBOX.a.b", r#"{"stream":"KV_LEASE","seq":1}"#, None), Cause::Clock);
        assert_eq!(cause("_INBOX.a.b", "", Some(408)), Cause::Clock);
        assert_eq!(cause("$JS.EVENT.ADVISORY.API", "{}", None), Cause::Observer);
        assert_eq!(cause("$JS.EVENT.ADVISORY.CONSUMER.CREATED.RUNS.x", "{}", None), Cause::Work);
        assert_eq!(cause("$KV.FILES.0190", "x", None), Cause::Work);
        assert_eq!(cause("_INBOX.a.b", r#"{"stream":"RUNS","seq":1}"#, None), Cause::Work);
        assert_eq!(cause("evt.0190.worker.worker-ab.1-1.1.step", "x", None), Cause::Work);
    }
}
