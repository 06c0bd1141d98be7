use serde_json::json;

use super::*;
use crate::plain::PlainRunner;

const GOOD: &str = r#"
description = "Counts the words of a text."
command = ["python3", "./count.py"]
pure = true

[parameters]
type = "object"
required = ["text"]
properties.text.type = "string"

[touches]
hosts = ["example.org"]
files = ["words"]

[environment]
MODE = "fast"

[secrets]
TOKEN = "secrets/token"

[limits]
time = "5s"
memory_mib = 100
"#;

#[test]
fn a_file_says_what_a_tool_is_does_touches_and_may_use() {
    let read = ToolFile::parse(GOOD, "count").unwrap();
    assert_eq!((read.name.as_str(), read.pure), ("count", true));
    assert_eq!(read.timeout(), Duration::from_secs(5));
    assert_eq!((read.limits.cpu, read.limits.memory), (Duration::from_secs(5), 100 * 1024 * 1024));
    assert_eq!(read.hosts, ["example.org"]);
    assert_eq!(read.secrets["TOKEN"], Path::new("secrets/token"));
    let Parameters::Here(schema) = &read.parameters else { unreachable!() };
    assert_eq!(schema["required"], json!(["text"]));
    let Does::Program { command, environment, sandboxed: true } = &read.does else { unreachable!() };
    assert_eq!((command.len(), environment["MODE"].as_str()), (2, "fast"));
    let http =
        ToolFile::parse("description = \"d\"\n[http]\nurl = \"https://example.org/{id}\"", "get").unwrap();
    assert_eq!((http.hosts, http.pure), (vec!["example.org:443".to_owned()], false));
}

#[test]
fn a_file_says_how_long_answers_serve_others_and_each_version_has_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let http = crate::guarded::GuardedCaller::new(muster_tools::settings::WebSettings::default());
    let hands = Hands { sandbox: Arc::new(PlainRunner), plain: Arc::new(PlainRunner), http: Arc::new(http) };
    let cache = |text: &str, program: &str| {
        std::fs::write(folder.path().join("count.py"), program).unwrap();
        let read = ToolFile::parse(text, "count").unwrap();
        tools_of(read, folder.path(), &hands).unwrap().tools.remove(0).1.spec().cache
    };
    let cached = GOOD.replacen("pure = true", "pure = true\ncache = \"15m\"", 1);
    assert_eq!(cache(GOOD, "print(1)"), None, "nobody said so");
    let one = cache(&cached, "print(1)").unwrap();
    assert_eq!(one.serves(), Duration::from_secs(900));
    assert_eq!(cache(&cached, "print(1)").unwrap(), one);
    assert_ne!(cache(&cached, "print(2)").unwrap().version, one.version, "another program");
    let faster = cached.replacen("MODE = \"fast\"", "MODE = \"faster\"", 1);
    assert_ne!(cache(&faster, "print(1)").unwrap().version, one.version, "another file");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let table = [
        ("description = \"d\"", "description = ", (2, 15), "expected"),
        ("command = [\"python3\", \"./count.py\"]", "command = []", (3, 11), "1 to 64 words"),
        ("command = [\"python3\", \"./count.py\"]", "comand = []", (3, 1), "unknown field"),
        ("command = [\"python3\", \"./count.py\"]", "", (1, 1), "nothing says what the tool does"),
        ("type = \"object\"", "type = \"string\"", (6, 1), "no JSON Schema"),
        ("properties.text.type = \"string\"", "properties.text.type = 7", (6, 1), "no JSON Schema"),
        ("files = [\"words\"]", "files = [\"../words\"]", (13, 10), "leads out"),
        ("files = [\"words\"]", "files = [\"/etc\"]", (13, 10), "leads out"),
        ("TOKEN = \"secrets/token\"", "TOKEN = \"../token\"", (19, 9), "leads out"),
        ("time = \"5s\"", "time = \"5 weeks\"", (22, 8), "no time"),
        ("time = \"5s\"", "time = \"0s\"", (22, 8), "no time"),
        ("memory_mib = 100", "memory_mib = 0", (23, 14), "1 to"),
        ("pure = true", "schema = \"s.json\"", (4, 10), "both"),
        ("pure = true", "name = \"a b\"", (4, 8), "no name"),
        ("pure = true", "uncertain = \"perhaps\"", (4, 13), "perhaps"),
        ("pure = true", "cache = \"1h\"", (4, 9), "change nothing"),
        ("pure = true", "pure = true\ncache = \"1h\"\napprove = true", (5, 9), "approved by a person"),
        ("pure = true", "pure = true\ncache = \"soon\"", (5, 9), "no time"),
        ("pure = true", "pure = true\ncache = \"0s\"", (5, 9), "no time"),
        ("pure = true", "pure = true\ncache = \"31d\"", (5, 9), "no time"),
    ];
    for (before, after, place, words) in table {
        let before = if before.starts_with("description") {
            "description = \"Counts the words of a text.\""
        } else {
            before
        };
        assert!(GOOD.contains(before), "{before}");
        let text = GOOD.replacen(before, after, 1);
        let fault = ToolFile::parse(&text, "count").unwrap_err();
        assert!(fault.what.contains(words) || words == "expected", "{after}: {fault}");
        assert_eq!((fault.line, fault.column), place, "{after}: {fault}");
    }
    assert!(ToolFile::parse(GOOD, "no name").is_err());
}

proptest::proptest! {
    #[test]
    fn no_text_whatever_breaks_the_reader(text in ".{0,300}", at in 0..GOOD.len(), with in ".{0,5}") {
        let _ = ToolFile::parse(&text, "x");
        let mut changed = GOOD.to_owned();
        if changed.is_char_boundary(at) {
            changed.insert_str(at, &with);
        }
        if let Err(fault) = ToolFile::parse(&changed, "x") {
            assert!(fault.line >= 1 && fault.column >= 1 && fault.line <= changed.lines().count() + 1);
        }
    }
}
