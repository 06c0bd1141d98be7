//! Keeping secrets out of what is recorded, logged, shown or put in a prompt.
//!
//! Two things count as a secret: a value that this process was given as one, wherever it stands and however
//! it is escaped; and what has the form of a well-known kind of key, or stands where a password is assigned.
//! The second is a guess, made so that prose and code about secrets stay as they are.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use regex::{Captures, Regex};
use secrecy::{ExposeSecret, SecretString};

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Shorter values are not looked for: they would turn up in ordinary words.
pub const MIN_KNOWN_BYTES: usize = 8;

/// Replaces secrets in text: known values (keys that this process holds) and what looks like a secret.
#[derive(Default)]
pub struct Redactor {
    known: Option<AhoCorasick>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forms = self.known.as_ref().map_or(0, AhoCorasick::patterns_len);
        f.debug_struct("Redactor").field("known_forms", &forms).finish()
    }
}

impl Redactor {
    /// A redactor that knows these values. Those below [`MIN_KNOWN_BYTES`] are left to the patterns.
    #[must_use]
    pub fn new(known: impl IntoIterator<Item = SecretString>) -> Self {
        let forms: BTreeSet<String> = known
            .into_iter()
            .flat_map(|value| forms_of(value.expose_secret().trim()))
            .filter(|form| form.len() >= MIN_KNOWN_BYTES && !REDACTED.contains(form.as_str()))
            .collect();
        // Only too many states can make this fail; then the values are as good as unknown, which must not be.
        #[expect(
            clippy::expect_used,
            reason = "a few keys of some kilobytes are far below the limit of 2^31"
        )]
        let known = (!forms.is_empty()).then(|| AhoCorasick::new(&forms).expect("few and short patterns"));
        Self { known }
    }

    /// Whether [`redact`](Self::redact) could change anything in these bytes, whichever encoding they have.
    /// Cheap, and wrong in one direction only: it may say yes where nothing is redacted.
    #[must_use]
    pub fn hits(&self, bytes: &[u8]) -> bool {
        self.known.as_ref().is_some_and(|known| known.is_match(bytes)) || PATTERNS_IN_BYTES.is_match(bytes)
    }

    /// The text with every secret replaced by [`REDACTED`]; line count is unchanged. Doing it again changes
    /// nothing.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // What is left may read as a secret only now that its neighbour is gone. Every round leaves more
        // markers, and two or three rounds are all that was ever seen.
        const MOST_ROUNDS: usize = 16;
        let mut current = Cow::Borrowed(text);
        for _ in 0..MOST_ROUNDS {
            let secrets = self.secrets(&current);
            if secrets.is_empty() {
                break;
            }
            current = Cow::Owned(replace(&current, &secrets));
        }
        current
    }

    /// Redacts every string of a JSON value, names of fields included. A string under a name such as
    /// `api_key` is judged as an assignment.
    pub fn redact_value(&self, value: &mut serde_json::Value) {
        use serde_json::Value;
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match value {
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
                Value::String(text) => self.redact_in_place(text),
                Value::Array(items) => open.extend(items),
                Value::Object(fields) => {
                    if fields.keys().any(|name| matches!(self.redact(name), Cow::Owned(_))) {
                        let old = std::mem::take(fields);
                        fields.extend(
                            old.into_iter().map(|(name, value)| (self.redact(&name).into_owned(), value)),
                        );
                    }
                    for (name, value) in fields {
                        match value {
                            Value::String(text) if is_assigned_secret(name, text) => {
                                *text = replace(text, &[Range { start: 0, end: text.len() }]);
                            }
                            other => open.push(other),
                        }
                    }
                }
            }
        }
    }

    fn redact_in_place(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redact(text) {
            *text = redacted;
        }
    }

    /// Where secrets stand: in order, not touching each other.
    fn secrets(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        if let Some(known) = &self.known {
            found.extend(known.find_overlapping_iter(text).map(|found| found.range()));
        }
        if PATTERNS_IN_BYTES.is_match(text.as_bytes()) {
            found.extend(PATTERNS.iter().flat_map(|pattern| pattern.find(text)));
        }
        found.retain(|range| &text[range.clone()] != REDACTED);
        found.sort_by_key(|range| (range.start, range.end));
        found.dedup_by(|next, last| {
            let overlap = next.start <= last.end;
            if overlap {
                last.end = last.end.max(next.end);
            }
            overlap
        });
        found
    }
}

/// Addresses such as `nats://user:password@host` without the passwords in them; what stands alone before the `@` counts
/// as one, as a token is written. Whatever the password is made of: it was set as one.
#[must_use]
pub fn without_passwords(text: &str) -> Cow<'_, str> {
    static USER: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new("(?<before>://)(?:(?<user>[^/?#\\s,@:]*):)?[^/?#\\s,]*@").ok());
    // Few texts are addresses, and the pattern is made when the first one is.
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let Some(pattern) = USER.as_ref() else { return Cow::Borrowed(REDACTED) };
    pattern.replace_all(text, |found: &Captures<'_>| match found.name("user") {
        Some(user) => format!("{}{}:{REDACTED}@", &found["before"], user.as_str()),
        None => format!("{}{REDACTED}@", &found["before"]),
    })
}

/// A value as it is, and as it reads when it is escaped in a URL or in JSON, or lies within base64.
fn forms_of(value: &str) -> Vec<String> {
    const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    if value.len() < MIN_KNOWN_BYTES {
        return Vec::new();
    }
    let url = utf8_percent_encode(value, UNRESERVED).to_string();
    let json = serde_json::Value::from(value).to_string();
    let mut forms = vec![value.to_owned(), url.to_lowercase(), url, json.trim_matches('"').to_owned()];
    for engine in [STANDARD, URL_SAFE] {
        forms.extend((0..3).map(|offset| within_base64(&engine, value.as_bytes(), offset)));
    }
    forms
}

/// The characters of base64 that depend on the value alone when it begins `offset` bytes into a group.
fn within_base64(engine: &impl base64::Engine, value: &[u8], offset: usize) -> String {
    let padded: Vec<u8> = std::iter::repeat_n(0, offset).chain(value.iter().copied()).collect();
    let encoded = engine.encode(&padded);
    let from = [0, 2, 3][offset % 3];
    let to = padded.len() * 8 / 6;
    encoded.get(from..to).unwrap_or_default().to_owned()
}

fn replace(text: &str, secrets: &[Range<usize>]) -> String {
    let (mut result, mut from) = (String::with_capacity(text.len()), 0);
    for range in secrets {
        result.push_str(&text[from..range.start]);
        result.push_str(REDACTED);
        result.extend(text[range.clone()].chars().filter(|c| *c == '\n'));
        from = range.end;
    }
    result.push_str(&text[from..]);
    result
}

/// Whether a match is a secret.
type Judge = fn(&Captures<'_>) -> bool;

/// A form that secrets have.
struct SecretPattern {
    regex: Regex,
    is_secret: Judge,
}

impl SecretPattern {
    /// The secrets of this form: the group `secret`, or all that matched.
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let matches = self.regex.captures_iter(text).filter(|found| (self.is_secret)(found));
        matches.map(|found| found.name("secret").unwrap_or_else(|| found.get_match()).range()).collect()
    }
}

/// The forms, and what else must hold of a match.
const FORMS: [(&str, Judge); 12] = [
    // Keys of model providers: OpenAI, Anthropic and those that follow them; Google.
    (r"(?-u:\b)sk-[A-Za-z0-9_-]{16,}", has_digit),
    (r"(?-u:\b)AIza[A-Za-z0-9_-]{30,}", always),
    // AWS key ids. The secret half is found as an assignment.
    (r"(?-u:\b)(?:AKIA|ASIA)[A-Z0-9]{16}(?-u:\b)", always),
    // GitHub, Slack.
    (r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})", always),
    (r"(?-u:\b)xox[abeoprs]-[A-Za-z0-9-]{10,}", has_digit),
    // JSON Web Tokens; seeds of NATS nkeys.
    (r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", always),
    (r"(?-u:\b)S[ACFNOUX][A-Z2-7]{56}(?-u:\b)", always),
    // Private keys, also where the end was cut off.
    (
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?:(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY-----|(?:(?:[ \t\r\n]|\\n)*[A-Za-z0-9+/=]{16,})*)",
        always,
    ),
    // What is sent to log in.
    (
        r#"(?i-u:authorization)["']?[ \t]*[:=][ \t]*["']?(?i-u:bearer|basic|token)[ \t]+(?<secret>[^ \t\r\n"'`,;]{8,})"#,
        no_placeholder,
    ),
    (r"(?i-u:\bbearer)[ \t]+(?<secret>[A-Za-z0-9._~+/=-]{16,})", has_digit),
    (
        r#"(?-u:\b)[A-Za-z][A-Za-z0-9+.-]*://(?:[^/ \t\r\n:@"'<>`]*:(?<secret>[^/ \t\r\n@"'<>`]+)@|[A-Za-z0-9_-]{16,}@)"#,
        no_placeholder,
    ),
    // Assignments, in code, settings, JSON and URLs.
    (
        r#"(?<key>(?i-u:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|credentials?))(?<between>\\?["']?[ \t]*(?:=>|[:=])[ \t]*)(?:\\?(?<quote>["'`]))?(?<secret>[^ \t\r\n"'`,;&\\]{8,})"#,
        is_assignment,
    ),
];

#[expect(clippy::expect_used, reason = "constant patterns, used by tests")]
static PATTERNS: LazyLock<Vec<SecretPattern>> = LazyLock::new(|| {
    let pattern = |(form, is_secret): &(&str, Judge)| SecretPattern {
        regex: Regex::new(form).expect("a pattern"),
        is_secret: *is_secret,
    };
    FORMS.iter().map(pattern).collect()
});

/// Finds out whether any of them matches. What is no ASCII counts by its bytes here: that is never less than its letters, so
/// nothing is missed, and takes a fraction of the memory, in every process.
#[expect(clippy::expect_used, reason = "constant patterns, used by tests")]
static PATTERNS_IN_BYTES: LazyLock<regex::bytes::RegexSet> = LazyLock::new(|| {
    let forms = FORMS.iter().map(|(form, _)| form);
    regex::bytes::RegexSetBuilder::new(forms).unicode(false).build().expect("patterns")
});

fn always(_: &Captures<'_>) -> bool {
    true
}

fn has_digit(found: &Captures<'_>) -> bool {
    found[0].bytes().any(|byte| byte.is_ascii_digit())
}

fn no_placeholder(found: &Captures<'_>) -> bool {
    let value = found.name("secret").unwrap_or_else(|| found.get_match());
    !is_placeholder(value.as_str())
}

fn is_assignment(found: &Captures<'_>) -> bool {
    let value = &found["secret"];
    // A run's own secret has its place in the record: the compact JSON field that this program writes.
    let own = &found["key"] == "secret" && &found["between"] == "\":" && is_run_secret(value);
    !own && is_value(&found["key"], value, found.name("quote").is_some())
}

/// Whether a field of a JSON object holds a secret.
fn is_assigned_secret(name: &str, text: &str) -> bool {
    static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            "(?i)(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|credentials?)$",
        )
        .ok()
    });
    let named = NAME.as_ref().is_some_and(|pattern| pattern.is_match(name));
    let own = name == "secret" && is_run_secret(text);
    named && !own && text.len() >= MIN_KNOWN_BYTES && text != REDACTED && is_value(name, text, true)
}

fn is_run_secret(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Tells a secret from an expression, a type, a placeholder or a word. A quoted password may be words.
fn is_value(key: &str, value: &str, quoted: bool) -> bool {
    let is_code = ["(", ")", "<", ">", "{", "}", "::", "[", "]"].iter().any(|part| value.contains(part));
    let looks_random =
        value.bytes().any(|b| b.is_ascii_digit()) && value.bytes().any(|b| b.is_ascii_alphabetic());
    let is_password = key.to_ascii_lowercase().starts_with('p');
    let is_words = value.contains(char::is_whitespace);
    if is_placeholder(value) || value.contains(REDACTED) && value.trim_matches(['[', ']']) == "redacted" {
        return false;
    }
    match quoted {
        true if is_password => !is_words && !value.bytes().all(|b| b.is_ascii_lowercase()),
        true => looks_random && !is_words,
        false => looks_random && (!is_code || value.contains(REDACTED)),
    }
}

fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let shaped = value.starts_with(['$', '<', '{', '%', '&', '*']) || value == REDACTED;
    shaped
        || ["your", "example", "placeholder", "changeme", "xxxx", "...", "****"]
            .iter()
            .any(|part| lower.contains(part))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use base64::Engine as _;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What looks first at bytes must never hide a text from those that look at letters.
        #[test]
        fn no_secret_is_missed_for_being_looked_for_in_bytes(
            before in ".{0,8}",
            form in proptest::sample::select(vec![
                "password: ", "Authorization: Bearer ", "bearer ", "nats://", "api_key=\"", "sk-", "AIza", "eyJ",
                "-----BEGIN PRIVATE KEY-----", "token => '",
            ]),
            value in "[a-zA-Z0-9äß中é:@/._ -]{0,48}",
            after in ".{0,8}",
        ) {
            let text = format!("{before}{form}{value}{after}");
            let found = PATTERNS.iter().any(|pattern| pattern.regex.is_match(&text));
            prop_assert!(!found || PATTERNS_IN_BYTES.is_match(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn addresses_are_shown_without_their_passwords() {
        for (text, wanted) in [
            ("nats://me:pw@h:4222", "nats://me:[redacted]@h:4222"),
            ("nats://:p@h", "nats://:[redacted]@h"),
            ("nats://tok@h", "nats://[redacted]@h"),
            ("nats://a:p@w:x@h1,tls://b:q@h2:1", "nats://a:[redacted]@h1,tls://b:[redacted]@h2:1"),
            ("https://h/path@2?to=a@b", "https://h/path@2?to=a@b"),
            ("nats://127.0.0.1:4222", "nats://127.0.0.1:4222"),
            ("ann@example.org", "ann@example.org"),
        ] {
            assert_eq!(without_passwords(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_secret_is_redacted() {
        let seed = format!("SU{}", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".repeat(2).split_at(56).0);
        let cases = [
            ("key sk-proj-abcdEFGH12345678ijkl end", "key [redacted] end"),
            ("sk-ant-api03-abcdEFGH12345678", "[redacted]"),
            ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "[redacted]"),
            ("id AKIAIOSFODNN7EXAMPLE.", "id [redacted]."),
            (
                "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzKEYzz",
                "aws_secret_access_key = [redacted]",
            ),
            ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "[redacted]"),
            ("github_pat_11ABCDEFG0abcdefghijkl_mnop", "[redacted]"),
            ("xoxb-123456789012-abcdef", "[redacted]"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_def", "[redacted]"),
            ("Authorization: Bearer abcdefgh", "Authorization: Bearer [redacted]"),
            (r#""authorization": "Basic dXNlcjpwYXNz""#, r#""authorization": "Basic [redacted]""#),
            ("curl -H bearer a1b2c3d4e5f6g7h8", "curl -H bearer [redacted]"),
            ("password=hunter2hunter2&x=1", "password=[redacted]&x=1"),
            (r#"password: "Correct-Horse""#, r#"password: "[redacted]""#),
            ("OPENAI_API_KEY=abc123def456", "OPENAI_API_KEY=[redacted]"),
            (r#"{"api_key":"abc123def456","x":1}"#, r#"{"api_key":"[redacted]","x":1}"#),
            (r#"{\"token\":\"abc123def456\"}"#, r#"{\"token\":\"[redacted]\"}"#),
            ("nats://bob:tr0ub4dor@host:4222", "nats://bob:[redacted]@host:4222"),
            (&seed, "[redacted]"),
        ];
        for (text, wanted) in cases {
            assert_eq!(Redactor::default().redact(text), wanted);
            assert!(Redactor::default().hits(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn prose_and_code_stay() {
        let cases = [
            "password: String",
            "pub password: SecretString,",
            "let token = next();",
            "token = self.next_token2()",
            "let secret: [u8; 32] = rng.random();",
            "api_key: Option<SecretString>",
            "api_key = std::env::var(\"OPENAI_API_KEY\")?",
            "The secret of a good plan: small tasks.",
            "the password is asked for at the prompt",
            "max_tokens: 128000000, input_tokens = 12345678",
            "if token == other_token2 { return; }",
            "task-something-with-a-long-name-1234567",
            "sk-learn-based-classification",
            "Authorization: Bearer $TOKEN_VALUE",
            "Authorization: Bearer <your-token>",
            "the bearer of responsibilities",
            "https://example.org/path:1@2 and mailto:a@b.example",
            "nats://${USER}:${PASSWORD}@host",
            "SUBJECTS AND STREAMS",
            "eyJ is how a token begins",
            "password=<password>",
            "token: CancellationToken",
            r#""secret": "required""#,
        ];
        for text in cases {
            assert_eq!(Redactor::default().redact(text), text);
        }
    }

    #[test]
    fn a_private_key_goes_and_its_lines_stay() {
        let text = "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA1234\nabcd\n-----END RSA PRIVATE KEY-----\nb";
        assert_eq!(Redactor::default().redact(text), "a\n[redacted]\n\n\n\nb");
        assert_eq!(Redactor::default().redact(text).lines().count(), text.lines().count());
        let cut = "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA1234\nMIIEpAIBAAKCAQEA1234";
        assert_eq!(Redactor::default().redact(cut), "[redacted]\n\n");
    }

    #[test]
    fn the_secret_of_a_run_stays_in_its_record() {
        let secret = "0123456789abcdef".repeat(4);
        let json = format!(r#"{{"secret":"{secret}"}}"#);
        assert_eq!(Redactor::default().redact(&json), json);
        let mut value = serde_json::json!({ "secret": secret.clone() });
        Redactor::default().redact_value(&mut value);
        assert_eq!(value["secret"], secret);
        assert_ne!(Redactor::default().redact(&format!("secret = {secret}")), format!("secret = {secret}"));
    }

    #[test]
    fn known_values_go_in_every_form() {
        let value = "pa/ss \"wörd\"+12";
        let redactor = Redactor::new([SecretString::from(value)]);
        let auth = STANDARD.encode(format!("user:{value}"));
        let forms = [
            value.to_owned(),
            serde_json::json!({ "x": value }).to_string(),
            utf8_percent_encode(value, NON_ALPHANUMERIC).to_string().replace("%2D", "-"),
            STANDARD.encode(value),
            URL_SAFE.encode(value),
            auth,
        ];
        for form in forms {
            assert!(redactor.hits(form.as_bytes()), "{form}");
            assert!(redactor.redact(&form).contains(REDACTED), "{form}");
        }
        assert_eq!(Redactor::new([SecretString::from("short")]).redact("a short one"), "a short one");
        assert!(!format!("{redactor:?}").contains("ss"));
    }

    #[test]
    fn values_are_redacted_at_any_depth() {
        let mut value =
            serde_json::json!({ "a": [{ "api_key": "abc123def456", "n": 1 }, "sk-abcdefgh12345678" ] });
        Redactor::default().redact_value(&mut value);
        assert_eq!(value, serde_json::json!({ "a": [{ "api_key": REDACTED, "n": 1 }, REDACTED] }));
    }

    proptest! {
        #[test]
        fn redacting_twice_changes_nothing(
            parts in prop::collection::vec(prop_oneof![
                prop::sample::select(vec![
                    "password=", "token: ", "\"", "sk-", "[redacted]", "Bearer ", "://", ":", "@", "abc123def456",
                    "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "\n", "eyJ", ".", "hunter2", "known-value",
                ]).prop_map(str::to_owned),
                "[a-zA-Z0-9 =\"\\[\\]-]{0,20}",
            ], 0..12),
        ) {
            let redactor = Redactor::new([SecretString::from("known-value")]);
            let text = parts.concat();
            let once = redactor.redact(&text);
            prop_assert_eq!(redactor.redact(&once), once.as_ref());
            prop_assert_eq!(once.matches('\n').count(), text.matches('\n').count());
            prop_assert!(!once.contains("known-value"));
            if once != text {
                prop_assert!(redactor.hits(text.as_bytes()));
            }
        }

        #[test]
        fn a_known_value_never_survives(value in "\\PC{8,40}", before in "\\PC{0,20}", after in "\\PC{0,20}") {
            let known = value.trim();
            prop_assume!(known.len() >= MIN_KNOWN_BYTES && !REDACTED.contains(known));
            let redactor = Redactor::new([SecretString::from(known)]);
            let redacted = redactor.redact(&format!("{before}{value}{after}{value}{value}")).into_owned();
            prop_assert!(!redacted.contains(known), "{}", redacted);
        }
    }

    #[test]
    #[ignore = "prints a figure; run it with --release --no-capture"]
    fn looking_for_secrets_is_fast() {
        let redactor = Redactor::new([SecretString::from("a-known-value-of-a-process")]);
        let text = "The orchestrator keeps a lease on each run; its token count, like any key, is bounded.\n"
            .repeat(200_000);
        let started = std::time::Instant::now();
        assert!(!redactor.hits(text.as_bytes()));
        #[expect(clippy::cast_precision_loss, reason = "a figure to look at")]
        let rate = text.len() as f64 / 1e6 / started.elapsed().as_secs_f64();
        assert!(rate > 200.0, "{rate:.0} MB/s");
    }
}
