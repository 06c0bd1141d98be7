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
        (
            "folders, https://… and git+https://…[@REVISION][#PATH]",
            "folders, https://… and git+https://…[@REVISION][#PATH]",
        ),
        ("ssh://git@h/r, https://a:b@h", "ssh://git@h/r, https://a:[redacted]@h"),
        ("ann@example.org", "ann@example.org"),
    ] {
        assert_eq!(without_passwords(text), wanted, "{text}");
    }
}

#[test]
fn what_looks_like_a_secret_is_redacted() {
    let stripe = ["sk", "live", "0123456789abcdef"].join("_");
    let session = format!("http://127.0.0.1:7177/#token={}", "0a".repeat(32));
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
        ("Pwd=tr0ub4dor2;", "Pwd=[redacted];"),
        (r#"password: "Correct-Horse""#, r#"password: "[redacted]""#),
        ("OPENAI_API_KEY=abc123def456", "OPENAI_API_KEY=[redacted]"),
        (r#"{"api_key":"abc123def456","x":1}"#, r#"{"api_key":"[redacted]","x":1}"#),
        (r#"{\"token\":\"abc123def456\"}"#, r#"{\"token\":\"[redacted]\"}"#),
        ("nats://bob:tr0ub4dor@host:4222", "nats://bob:[redacted]@host:4222"),
        (&seed, "[redacted]"),
        ("postgres://u:p@ss!w0rd@db/x", "postgres://u:[redacted]@db/x"),
        ("authorization: ApiKey abcdefgh", "authorization: ApiKey [redacted]"),
        (r#"{\"Authorization\":\"Bearer abcdefgh\"}"#, r#"{\"Authorization\":\"Bearer [redacted]\"}"#),
        ("Authorization: 0123456789abcdef", "Authorization: [redacted]"),
        ("glpat-ABCDEFabcdef1234567890", "[redacted]"),
        ("xapp-1-A0123-4567-abc", "[redacted]"),
        ("ya29.A0ARrdaM1234567890abcdef", "[redacted]"),
        ("GOCSPX-1234567890abcdefghij", "[redacted]"),
        ("gsk_0123456789abcdefghijABCDEFGHIJ", "[redacted]"),
        ("hf_0123456789abcdefghijABCDEFGHIJ", "[redacted]"),
        (&stripe, "[redacted]"),
        (
            "https://hooks.slack.com/services/T01/B02/abcdef0123",
            "https://hooks.slack.com/services/[redacted]",
        ),
        ("http://127.0.0.1:7177/#token=", "http://127.0.0.1:7177/#token="),
        (&session, "http://127.0.0.1:7177/#token=[redacted]"),
        (
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nabc\n-----END PGP PRIVATE KEY BLOCK-----",
            "[redacted]\n\n\n",
        ),
    ];
    // Rate of secrets that pass: 0 of these.
    for (text, wanted) in cases {
        assert_eq!(Redactor::default().redact(text), wanted);
        assert!(text == wanted || Redactor::default().hits(text.as_bytes()), "{text}");
    }
}

#[test]
fn field_of_a_packed_value_is_redacted() {
    let body = serde_json::json!({ "args": { "password": "Correct-Horse", "authorization": "Basic dXNlcjpwYXNz1" } });
    let packed = rmp_serde::to_vec_named(&body).unwrap();
    assert!(Redactor::default().hits(&packed));
    let mut value = body;
    Redactor::default().redact_value(&mut value);
    assert_eq!(value["args"], serde_json::json!({ "password": REDACTED, "authorization": REDACTED }));
}

/// Rate of other text that is damaged: 0 of these.
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
        "http://127.0.0.1:8080?to=a@b.example",
        "muster1.eyJ… is an invitation, mustertoken_… a token, mt1-… the token of a task",
        "authorization: required",
        "Set the Authorization header; the hf_hub and npm_config_registry variables stay",
        "https://hooks.slack.com/services/",
        "glpat-1 and xapp-1",
        "export PWD=/var/lib/app2/data OLDPWD=~/work2/x",
        r#"{"PWD": "/home/Ann2/Work"} pwd: /srv/app2/current"#,
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-AbC123",
        r#""secret": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-AbC123""#,
    ];
    for text in cases {
        assert_eq!(Redactor::default().redact(text), text);
    }
}

#[test]
fn a_private_key_goes_and_its_lines_stay() {
    let text =
        "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA1234\nabcd\n-----END RSA PRIVATE KEY-----\nb";
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
