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
                            Value::String(text)
                                if is_assigned_secret(name, text) || is_credential(name, text) =>
                            {
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
    static USER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new("(?<before>://)(?:(?<user>[^/?#\\s,@:]*):)?(?<secret>[^/?#\\s,]*)@").ok()
    });
    // Few texts are addresses, and the pattern is made when the first one is.
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let Some(pattern) = USER.as_ref() else { return Cow::Borrowed(REDACTED) };
    let is_syntax = |found: &Captures<'_>| {
        // A form such as `https://…[@REVISION]`, or the user of `ssh://git@host`.
        found.name("user").is_none()
            && (&found["secret"] == "git" || !found["secret"].contains(|c: char| c.is_ascii_alphanumeric()))
    };
    if pattern.captures_iter(text).all(|found| is_syntax(&found)) {
        return Cow::Borrowed(text);
    }
    pattern.replace_all(text, |found: &Captures<'_>| match found.name("user") {
        _ if is_syntax(found) => found[0].to_owned(),
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

/// Forms of secrets, each with a check of the match.
const FORMS: [(&str, Judge); 20] = [
    // Muster: dashboard tokens and invitations, task tokens, session addresses and cookies.
    (r"(?-u:\b)muster(?:token_|[0-9]{1,5}\.)[A-Za-z0-9_-]{40,}", always),
    (r"(?-u:\b)mt[0-9]+-[0-9a-f]{16,}-[0-9a-f]{32}(?-u:\b)", always),
    (r"(?-u:\b)(?:token|muster_ui_[0-9]+)=(?<secret>[0-9a-f]{64})(?-u:\b)", always),
    // OpenAI, Anthropic and compatible providers; Google.
    (r"(?-u:\b)sk-[A-Za-z0-9_-]{16,}", has_digit),
    (
        r"(?-u:\b)(?:AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|1//0[A-Za-z0-9_-]{30,})",
        always,
    ),
    // Groq, Hugging Face, Replicate, xAI, Perplexity, NVIDIA, Tavily; Stripe, npm, PyPI, SendGrid, Twilio, Telegram.
    (
        r"(?-u:\b)(?:gsk_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,}|r8_[A-Za-z0-9]{30,}|xai-[A-Za-z0-9]{40,}|pplx-[A-Za-z0-9]{30,}|nvapi-[A-Za-z0-9_-]{30,}|tvly-[A-Za-z0-9-]{20,})",
        has_digit,
    ),
    (
        r"(?-u:\b)(?:[srp]k_(?:live|test)_[0-9A-Za-z]{16,}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|SK[0-9a-f]{32}|[0-9]{8,10}:AA[A-Za-z0-9_-]{33})(?-u:\b)",
        has_digit,
    ),
    // AWS key ids; an assignment contains the secret half.
    (r"(?-u:\b)(?:AKIA|ASIA)[A-Z0-9]{16}(?-u:\b)", always),
    // GitHub, GitLab, Slack, webhooks of Slack and Discord.
    (r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})", always),
    (r"(?-u:\b)gl(?:pat|dt|rt|cbt|ptt|ft|soat|oas|agent|ffct|imt)-[A-Za-z0-9_.-]{20,}", has_digit),
    (r"(?-u:\b)(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}", has_digit),
    (
        r"(?-u:\b)(?:hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/)(?<secret>[A-Za-z0-9/_-]{16,})",
        has_digit,
    ),
    // JSON Web Tokens; seeds of NATS nkeys.
    (r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", always),
    (r"(?-u:\b)S[ACFMNOUVX][A-Z2-7]{56}(?-u:\b)", always),
    // Private keys, also where the end was cut off.
    (
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:(?:[ \t\r\n]|\\n)*[A-Za-z0-9+/=]{16,})*)",
        always,
    ),
    // What is sent to log in.
    (
        r#"(?i-u:authorization)\\?["']?[ \t]*[:=][ \t]*\\?["']?(?i-u:bearer|basic|token|apikey|negotiate)[ \t]+(?<secret>[^ \t\r\n"'`,;\\]{8,})"#,
        no_placeholder,
    ),
    (r#"(?i-u:authorization)\\?["']?[ \t]*[:=][ \t]*\\?["']?(?<secret>[^ \t\r\n"'`,;\\]{16,})"#, |found| {
        has_digit(found) && is_value("token", &found["secret"], false)
    }),
    (r"(?i-u:\bbearer)[ \t]+(?<secret>[A-Za-z0-9._~+/=-]{16,})", has_digit),
    (
        r#"(?-u:\b)[A-Za-z][A-Za-z0-9+.-]*://(?:[^/ \t\r\n:@"'<>`]*:(?<secret>[^/ \t\r\n"'<>`,]+)@|[A-Za-z0-9_-]{16,}@)"#,
        is_password,
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
    // In MessagePack the header of a string separates the name of a field from its value.
    // Fields such as `key` and `secret` of this program's own messages must not match: each match is decoded.
    let packed = r"(?i:passw(?:or)?d|passphrase|(?:api|access|secret)_?key|credentials?|authorization|cookie)(?s:[\xa8-\xbf]|\xd9.|\xda..|\xdb....)";
    // Each count of repetitions is that many states. A lower one matches all that the higher one matches.
    let counts = Regex::new(r"\{[1-9][0-9],?\}").expect("a pattern");
    let forms = FORMS.iter().map(|(form, _)| counts.replace_all(form, "{8,}")).chain([packed.into()]);
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

fn is_password(found: &Captures<'_>) -> bool {
    // In `http://host:8080?to=a@b` a port follows the colon.
    let is_port = |secret: &str| {
        let digits = secret.trim_start_matches(|c: char| c.is_ascii_digit());
        digits.len() < secret.len() && digits.starts_with(['?', '#'])
    };
    no_placeholder(found) && !found.name("secret").is_some_and(|secret| is_port(secret.as_str()))
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

/// Returns true if a field is a header that authenticates its sender.
fn is_credential(name: &str, text: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let value = text.rsplit_once(' ').map_or(text, |(_, value)| value);
    (name.ends_with("authorization") || name == "cookie" || name == "set-cookie")
        && value.len() >= MIN_KNOWN_BYTES
        && value != REDACTED
        && !is_placeholder(value)
        && value.bytes().any(|byte| byte.is_ascii_digit())
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
#[path = "secret_tests.rs"]
mod tests;
