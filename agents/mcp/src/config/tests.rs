use proptest::prelude::*;

use super::*;

fn environment(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("s3cret".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn read(text: &str) -> Result<McpFile, ConfigError> {
    parse(text, &Reading { max_servers: 3, environment: Some(&environment) })
}

fn one(entry: &str) -> Result<ServerConfig, String> {
    let file = read(&format!("{{\"mcpServers\": {{\"one\": {entry}}}}}")).unwrap();
    match file.left_out.first() {
        Some(left_out) => Err(left_out.reason.clone()),
        None => Ok(file.servers.first().unwrap().clone()),
    }
}

#[test]
fn a_file_of_other_tools_is_read_as_it_is() {
    let file = read(
        r#"{
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "server"], "env": {"KEY": "${TOKEN}"}, "cwd": "/srv"},
                "remote": {"type": "http", "url": "https://example.org/mcp",
                           "headers": {"Authorization": "Bearer ${env:TOKEN}"}}
            }
        }"#,
    )
    .unwrap();
    assert!(file.left_out.is_empty() && file.warnings.is_empty(), "{file:?}");
    let [files, remote] = file.servers.as_slice() else { panic!("{file:?}") };
    let Reached::Child(child) = &files.reached else { panic!("{files:?}") };
    assert_eq!((files.name.as_str(), child.command.as_str()), ("files", "npx"));
    assert_eq!(child.args, ["-y", "server"]);
    assert_eq!(child.cwd.as_deref(), Some(std::path::Path::new("/srv")));
    assert_eq!(secrecy::ExposeSecret::expose_secret(&child.env["KEY"]), "s3cret");
    let Reached::Http(endpoint) = &remote.reached else { panic!("{remote:?}") };
    assert_eq!(endpoint.host(), "example.org:443");
    assert_eq!(secrecy::ExposeSecret::expose_secret(&endpoint.headers["Authorization"]), "Bearer s3cret");
    assert!(!format!("{file:?}").contains("s3cret"), "secrets are never shown");
}

#[test]
fn the_form_of_vs_code_is_read_and_what_is_not_known_is_told() {
    let file = read(
        r#"{"inputs": [], "servers": {"a b": {"type": "stdio", "command": "x", "gallery": true, "args": ["${HOME}"]}}}"#,
    )
    .unwrap();
    assert_eq!(file.servers.first().unwrap().namespace, "a-b");
    let expected = [
        "`inputs` is not read",
        "`a b`: `gallery` is not read",
        "`a b`: `${…}` in `args` is passed on as it stands",
    ];
    assert_eq!(file.warnings, expected);
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    for (text, place, says) in [
        ("{\n  // mine\n  \"mcpServers\": {}\n}", (2, 3), "JSON has no comments"),
        (
            "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"},\n  }\n}",
            (4, 3),
            "a comma before the end",
        ),
        ("{\"mcpServers\": {\"a\": {\"args\": [\"x\",]}}}", (1, 36), "a comma before the end"),
        ("{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"a\": {}}}", (1, 42), "`a` stands there twice"),
        ("{\"mcpServers\"", (1, 13), "EOF"),
        ("", (1, 0), "EOF"),
    ] {
        match read(text) {
            Err(ConfigError::NotJson { line, column, reason }) => {
                assert_eq!((line, column), place, "{text}: {reason}");
                assert!(reason.contains(says), "{text}: {reason}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_file_of_another_form_is_refused() {
    for (text, says) in [
        ("[]", "must be an object"),
        ("{\"mcp\": {}}", "has no `mcpServers`"),
        ("{\"mcpServers\": []}", "`mcpServers` must be an object"),
        ("{\"mcpServers\": {\"a\": {}}, \"servers\": {\"a\": {}}}", "`a` stands there twice"),
        ("{\"mcpServers\": {\"a\": 1, \"b\": 1, \"c\": 1, \"d\": 1}}", "4 servers; at most 3"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    let long = format!("{}{{\"mcpServers\": {{}}}}", " ".repeat(MAX_FILE));
    assert!(matches!(read(&long), Err(ConfigError::TooLarge(_))));
}

#[test]
fn a_server_that_cannot_be_used_is_left_out_and_the_others_are_not() {
    for (entry, says) in [
        ("7", "must be an object"),
        ("{}", "neither `command` nor `url`"),
        (r#"{"command": "x", "url": "http://a"}"#, "both"),
        (r#"{"command": ""}"#, "`command` is empty"),
        (r#"{"command": 1}"#, "`command` must be a text"),
        (r#"{"command": "x", "type": "http"}"#, "must be \"stdio\""),
        (r#"{"command": "x", "args": "y"}"#, "`args` must be a list"),
        (r#"{"command": "x", "args": ["a\u0000b"]}"#, "zero byte"),
        (r#"{"command": "x", "env": {"A": "${MISSING}"}}"#, "`env.A`: the variable `MISSING` is not set"),
        (r#"{"command": "x", "env": {"A": "${input:key}"}}"#, "names no variable"),
        (r#"{"command": "x", "env": {"A": "${TOKEN"}}"#, "without its `}`"),
        (r#"{"command": "x", "env": {"A=B": "c"}}"#, "no name for a variable"),
        (r#"{"command": "x", "disabled": true}"#, "disabled"),
        (r#"{"url": "example.org"}"#, "no address"),
        (r#"{"url": "file:///etc/passwd"}"#, "must begin with http"),
        (r#"{"url": "https://example.org", "type": "sse"}"#, "streamable HTTP address"),
        (r#"{"url": "https://example.org", "type": "carrier pigeon"}"#, "not known"),
    ] {
        let reason = one(entry).unwrap_err();
        assert!(reason.contains(says), "{entry}: {reason}");
    }
    let file = read(r#"{"mcpServers": {"bad": {}, "good": {"command": "x"}}}"#).unwrap();
    assert_eq!(file.servers.len(), 1);
    assert_eq!(file.left_out.first().unwrap().server, "bad");
}

#[test]
fn variables_are_filled_in_only_where_values_are_secret() {
    for (given, filled) in [
        ("plain", "plain"),
        ("${TOKEN}", "s3cret"),
        ("a${env:TOKEN}b${TOKEN}c", "as3cretbs3cretc"),
        ("${EMPTY}", ""),
        ("${MISSING:-else}", "else"),
        ("${MISSING:-}", ""),
        ("$TOKEN", "$TOKEN"),
        ("${TOKEN:-else}", "s3cret"),
    ] {
        assert_eq!(expand(given, &environment).as_deref(), Ok(filled), "{given}");
    }
    let Reached::Child(child) = one(r#"{"command": "${TOKEN}", "args": ["${TOKEN}"]}"#).unwrap().reached
    else {
        panic!("no child")
    };
    assert_eq!(
        (child.command.as_str(), child.args.as_slice()),
        ("${TOKEN}", ["${TOKEN}".to_owned()].as_slice())
    );
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in ".*") {
        let _read = read(&text);
        let _read = read(&format!("{{\"mcpServers\": {text}}}"));
    }

    #[test]
    fn a_value_without_a_dollar_stays_as_it_is(text in "[^$]*") {
        prop_assert_eq!(expand(&text, &environment), Ok(text));
    }
}
