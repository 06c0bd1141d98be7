use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::ids::TaskIndex;

fn rights(written: Value) -> Rights {
    serde_json::from_value(written).unwrap()
}

fn list<K: PatternKind>(written: &[&str]) -> Allowed<K> {
    Allowed::read(written).unwrap()
}

#[test]
fn a_pattern_means_what_it_says() {
    let tools: [(&[&str], &str, bool); 9] = [
        (&["calculator"], "calculator", true),
        (&["calculator"], "calculators", false),
        (&["corpus.*"], "corpus_search", true),
        (&["corpus_*"], "corpus.search", true),
        (&["Corpus.*"], "corpus.read", true),
        (&["*", "!corpus.*"], "corpus.read", false),
        (&["!corpus.*"], "calculator", true),
        (&["corpus.*", "!corpus.read"], "corpus.search", true),
        (&[], "calculator", false),
    ];
    for (written, name, allowed) in tools {
        assert_eq!(list::<ToolNames>(written).allows(name), allowed, "{written:?} {name}");
    }
    let documents: [(&[&str], &str, bool); 12] = [
        (&["docs"], "docs/guide.md", true),
        (&["docs/"], "docs/guide.md", true),
        (&["./docs/*"], "docs/a/b.md", true),
        (&["docs"], "docs-private/guide.md", false),
        (&["docs*"], "docs-private/guide.md", true),
        (&["guide.md"], "guide.md", true),
        (&["guide.md"], "./guide.md", true),
        (&["guide.md"], "docs/guide.md", false),
        (&["docs", "!docs/private"], "docs/private/a.md", false),
        (&["docs", "!docs/private"], "docs/privately.md", true),
        (&["docs"], "docs/../secret.md", false),
        (&["docs"], "DOCS/guide.md", false),
    ];
    for (written, path, allowed) in documents {
        assert_eq!(list::<DocumentPaths>(written).allows(path), allowed, "{written:?} {path}");
    }
    let keys: [(&[&str], &str, bool); 3] =
        [(&["a.*"], "a.b", true), (&["a.*"], "a", false), (&["a"], "a", true)];
    for (written, key, allowed) in keys {
        assert_eq!(list::<ContextKeys>(written).allows(key), allowed, "{written:?} {key}");
    }
}

#[test]
fn a_host_is_meant_by_its_name_its_domain_and_its_port() {
    let hosts: [(&[&str], &str, bool); 24] = [
        (&["example.org"], "example.org", true),
        (&["example.org"], "EXAMPLE.org.", true),
        (&["example.org"], "example.org:443", true),
        (&["example.org"], "www.example.org", false),
        (&["example.org"], "notexample.org", false),
        (&["*.example.org"], "www.example.org", true),
        (&["*.example.org"], "a.b.example.org:8080", true),
        (&["*.example.org"], "example.org", false),
        (&["*.example.org"], "evilexample.org", false),
        (&["*.example.org"], "example.org.evil.net", false),
        (&["example.org:443"], "example.org:443", true),
        (&["example.org:443"], "example.org:80", false),
        (&["example.org:443"], "example.org", false),
        (&["*", "!*.internal"], "db.internal:5432", false),
        (&["*", "!*.internal"], "example.org:443", true),
        (&["!169.254.169.254"], "169.254.169.254:80", false),
        (&["[::1]:8080"], "[0:0:0:0:0:0:0:1]:8080", true),
        (&["[::1]"], "[::2]", false),
        (&["*"], "no host", false),
        (&["*"], "*.example.org", false),
        (&["*"], "user@example.org", false),
        (&["*"], "", false),
        (&["*"], "example.org:0", false),
        (&[], "example.org", false),
    ];
    for (written, host, allowed) in hosts {
        let rights = Rights { hosts: list(written), ..Rights::default() };
        assert_eq!(rights.allow(&Use::Host(host)), allowed, "{written:?} {host}");
    }
    for wrong in ["*.1.2.3.4", "exa*mple.org", "*", "example.org:x", "-a.org", "a..org", "::1"] {
        let read = HostPattern::read(wrong);
        assert!(read.is_err(), "{wrong}: {read:?}");
    }
}

#[test]
fn what_is_no_pattern_is_refused() {
    assert!(Allowed::<ToolNames>::read(["a*b"]).is_err());
    assert!(Allowed::<ToolNames>::read([""]).is_err());
    assert!(Allowed::<DocumentPaths>::read(["../secret"]).is_err());
    assert!(Allowed::<DocumentPaths>::read(["/"]).is_err());
    assert!(Allowed::<ContextKeys>::read([&"k".repeat(LONGEST_PATTERN + 1)]).is_err());
    assert!(Allowed::<ToolNames>::read((0..=MOST_PATTERNS).map(|at| format!("t{at}"))).is_err());
    assert!(serde_json::from_value::<Rights>(json!({ "tool": [] })).is_err());
}

#[test]
fn open_rights_are_written_as_nothing_and_read_from_it() {
    assert_eq!(serde_json::to_value(Rights::default()).unwrap(), json!({}));
    assert!(rights(json!({})).is_open());
    let some = json!({ "tools": ["*", "!corpus.*"], "hosts": [], "people": false });
    assert_eq!(serde_json::to_value(rights(some.clone())).unwrap(), some);
    let open = serde_json::to_value(TaskRights::default()).unwrap();
    assert_eq!(open, json!([]));
}

#[test]
fn narrowing_takes_and_never_gives() {
    let own = rights(json!({ "tools": ["corpus.*", "calculator"], "people": false, "documents": ["docs"] }));
    let wish = rights(json!({
        "tools": ["*", "!corpus.read"], "documents": ["docs/a", "other"], "hosts": ["*.a.org:443"],
        "budget": { "model_calls": 3 },
    }));
    let met = own.narrowed_by(&wish);
    assert_eq!(
        serde_json::to_value(&met).unwrap(),
        json!({
            "tools": ["calculator", "corpus.*", "!corpus.read"], "documents": ["docs/a"],
            "hosts": ["*.a.org:443"], "people": false, "budget": { "model_calls": 3 },
        })
    );
    let hosts = met.narrowed_by(&rights(json!({ "hosts": ["x.a.org", "b.org", "y.a.org:80"] }))).hosts;
    assert_eq!(serde_json::to_value(hosts).unwrap(), json!(["x.a.org:443"]));
}

#[test]
fn a_refusal_says_what_is_missing_and_who_took_it() {
    let step = Grantor::Blueprint { name: "research".to_owned(), task: TaskIndex::top(2) };
    let nothing = rights(json!({ "hosts": [], "tools": ["calculator"] }));
    let task = TaskRights::default().narrowed_by(step, &nothing);
    let refusal = task.allows(&Use::Host("example.org")).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "fetch example.org: this task may fetch nothing (goal: all hosts → blueprint research step 2: no hosts)"
    );
    let goal = rights(json!({ "tools": ["calculator", "search"] }));
    let both = TaskRights::default()
        .narrowed_by(Grantor::Goal, &goal)
        .narrowed_by(Grantor::Plan { task: TaskIndex::top(1) }, &rights(json!({ "tools": ["search"] })));
    assert_eq!(
        both.allows(&Use::Tool("calculator")).unwrap_err().to_string(),
        "calculator: this task may not call it (goal: calculator, search → plan task 1: search)"
    );
    assert_eq!(both.allows(&Use::Tool("search")), Ok(()));
    assert_eq!(both.allows(&Use::Person), Ok(()));
}

#[test]
fn a_grant_that_takes_nothing_leaves_no_mark_and_long_chains_are_joined() {
    let goal = rights(json!({ "tools": ["a*"] }));
    let task = TaskRights::default().narrowed_by(Grantor::Goal, &goal);
    let again = task.clone().narrowed_by(Grantor::Plan { task: TaskIndex::top(1) }, &goal);
    assert_eq!(task, again);
    assert_eq!(task.clone().narrowed_by(Grantor::Goal, &Rights::default()), task);
    let mut long = task;
    for at in 0..40 {
        let wish = rights(json!({ "tools": ["*", format!("!ab{at}")] }));
        long = long.narrowed_by(Grantor::Plan { task: TaskIndex::top(1) }, &wish);
    }
    assert_eq!(long.grants().len(), MOST_GRANTS);
    for (tool, allowed) in [("ab0", false), ("ab39", false), ("ac", true), ("b", false)] {
        assert_eq!(long.allows(&Use::Tool(tool)).is_ok(), allowed, "{tool}");
    }
}

#[test]
fn a_call_is_held_against_all_that_it_uses() {
    let table = [
        ("calculator", json!({}), json!({ "tools": ["!calculator"] }), false),
        ("calculator", json!({}), json!({ "people": false }), true),
        ("find_tool", json!({ "what": "sums" }), json!({ "tools": ["calculator"] }), true),
        ("corpus.read", json!({ "path": "b.md" }), json!({ "documents": ["a.md"] }), false),
        ("corpus_read", json!({ "path": "b.md" }), json!({ "documents": ["a.md"] }), false),
        ("corpus.read", json!({ "path": "a.md" }), json!({ "documents": ["a.md"] }), true),
        ("corpus.look", json!({ "path": "b.png" }), json!({ "documents": ["a.png"] }), false),
        ("corpus.look", json!({ "path": "a.png" }), json!({ "documents": ["a.png"] }), true),
        ("corpus.search", json!({ "query": "q" }), json!({ "documents": ["a.md"] }), true),
        ("corpus.search", json!({ "query": "q" }), json!({ "documents": [] }), false),
        ("escalate", json!({}), json!({ "people": false }), false),
        ("request_info", json!({ "question": "q" }), json!({ "people": false }), true),
        ("request_info", json!({ "ask_person": true }), json!({ "people": false }), false),
        ("delegate", json!({}), json!({ "hand_over": false }), false),
        ("ask_peer", json!({}), json!({ "hand_over": false }), false),
        ("plan", json!({}), json!({ "runs": false }), false),
        ("blueprint", json!({}), json!({ "runs": false }), false),
        ("workspace.write", json!({}), json!({ "write_files": false }), false),
        ("workspace.read", json!({}), json!({ "write_files": false }), true),
        ("workspace.edit", json!({}), json!({ "write_files": false }), false),
        ("python", json!({ "code": "1" }), json!({ "write_files": false }), true),
        ("sql", json!({ "query": "select 1" }), json!({ "write_files": false }), true),
        ("sql.save", json!({}), json!({ "write_files": false }), false),
        ("fetch_file", json!({}), json!({ "write_files": false }), false),
        ("write_context", json!({ "key": "b" }), json!({ "write_context": ["a"] }), false),
        ("read_context", json!({ "key": "b" }), json!({ "read_context": ["a"] }), false),
        ("read_context", json!({ "key": "b", "prefix": true }), json!({ "read_context": ["a"] }), true),
        ("read_context", json!({}), json!({ "read_context": [] }), false),
    ];
    for (tool, arguments, written, allowed) in table {
        let task = TaskRights::default().narrowed_by(Grantor::Goal, &rights(written.clone()));
        let seen = task.allow_all(&Use::of_call(tool, &arguments));
        assert_eq!(seen.is_ok(), allowed, "{tool} {arguments} {written}: {seen:?}");
    }
}

fn patterns(letters: &'static str) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(proptest::string::string_regex(letters).unwrap(), 0..5)
}

fn any_rights() -> impl Strategy<Value = Rights> {
    let names = || patterns("!?[ab]{1,3}\\*?|\\*");
    let paths = || patterns("!?[ab](/[ab]){0,2}\\*?|\\*");
    let hosts = || patterns("!?(\\*\\.)?([ab]\\.){0,2}a(:(1|2))?|\\*");
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let calls = proptest::option::of(0..4u64);
    (names(), paths(), names(), hosts(), flags, calls).prop_map(
        |(tools, documents, keys, hosts, (people, hand_over, runs, write_files, effects), model_calls)| {
            Rights {
                tools: Allowed::read(tools).unwrap(),
                documents: Allowed::read(documents).unwrap(),
                read_context: Allowed::read(&keys).unwrap(),
                write_context: Allowed::read(&keys).unwrap(),
                hosts: Allowed::read(hosts).unwrap(),
                people,
                hand_over,
                runs,
                write_files,
                effects,
                budget: Budget { model_calls, ..Budget::UNLIMITED },
            }
        },
    )
}

/// All that can be wanted of what [`any_rights`] are about.
fn all_uses() -> Vec<(&'static str, String)> {
    let letters = ["a", "b"];
    let mut words: Vec<String> = letters.iter().map(|letter| (*letter).to_owned()).collect();
    for _ in 0..3 {
        let longer = words.iter().flat_map(|word| letters.map(|letter| format!("{word}{letter}")));
        words = words.iter().cloned().chain(longer.collect::<Vec<_>>()).collect();
        words.sort();
        words.dedup();
    }
    let split = |by: &str| -> Vec<String> {
        let parts = |word: &String| word.chars().map(String::from).collect::<Vec<_>>().join(by);
        words.iter().map(parts).collect()
    };
    let ports = ["", ":1", ":2", ":3"];
    let hosts = split(".").into_iter().flat_map(|host| ports.map(|port| format!("{host}{port}")));
    let named = |kind, all: Vec<String>| all.into_iter().map(move |what| (kind, what)).collect::<Vec<_>>();
    [
        named("tool", words.clone()),
        named("path", split("/")),
        named("read", words.clone()),
        named("write", words.clone()),
        named("host", hosts.collect()),
        named("flag", ["p", "h", "r", "e", "w"].map(str::to_owned).to_vec()),
    ]
    .concat()
}

fn wanted<'a>((kind, what): &'a (&'static str, String)) -> Use<'a> {
    match (*kind, what.as_str()) {
        ("tool", name) => Use::Tool(name),
        ("path", path) => Use::Document(path),
        ("read", key) => Use::ReadKey(key),
        ("write", key) => Use::WriteKey(key),
        ("host", host) => Use::Host(host),
        (_, "p") => Use::Person,
        (_, "h") => Use::HandOver,
        (_, "r") => Use::Run,
        (_, "e") => Use::Effect("x"),
        (_, _) => Use::WriteFile,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_two_rights_have_in_common_is_what_both_allow(one in any_rights(), other in any_rights()) {
        let met = one.narrowed_by(&other);
        for what in &all_uses() {
            let what = wanted(what);
            prop_assert_eq!(
                met.allow(&what), one.allow(&what) && other.allow(&what),
                "{:?} of {:?} and {:?}", what, one, other
            );
        }
        prop_assert!(one.budget.covers(&met.budget) && other.budget.covers(&met.budget));
    }

    #[test]
    fn narrowing_is_a_meet(one in any_rights(), other in any_rights(), third in any_rights()) {
        prop_assert_eq!(one.narrowed_by(&one), one.clone());
        prop_assert_eq!(one.narrowed_by(&other), other.narrowed_by(&one));
        prop_assert_eq!(one.narrowed_by(&Rights::default()), one.clone());
        let left = one.narrowed_by(&other).narrowed_by(&third);
        let right = one.narrowed_by(&other.narrowed_by(&third));
        for what in &all_uses() {
            prop_assert_eq!(left.allow(&wanted(what)), right.allow(&wanted(what)));
        }
        // Monotone: whoever begins with less has no more in the end.
        let less = one.narrowed_by(&third).narrowed_by(&other);
        let more = one.narrowed_by(&other);
        for what in &all_uses() {
            prop_assert!(!less.allow(&wanted(what)) || more.allow(&wanted(what)));
        }
    }

    #[test]
    fn a_chain_allows_what_all_its_grants_do(all in proptest::collection::vec(any_rights(), 0..24)) {
        let task = all.iter().fold(TaskRights::default(), |task, to| task.narrowed_by(Grantor::Goal, to));
        prop_assert!(task.grants().len() <= MOST_GRANTS);
        for what in &all_uses() {
            let what = wanted(what);
            prop_assert_eq!(task.allows(&what).is_ok(), all.iter().all(|to| to.allow(&what)));
        }
    }

    #[test]
    fn rights_are_read_as_they_were_written(one in any_rights(), other in any_rights()) {
        for rights in [one.clone(), one.narrowed_by(&other)] {
            let written = serde_json::to_value(&rights).unwrap();
            prop_assert_eq!(serde_json::from_value::<Rights>(written).unwrap(), rights);
        }
    }
}

#[test]
fn a_tool_that_is_lent_needs_the_right_to_it_by_both_names_and_to_what_it_uses() {
    let table = [
        (json!({}), true),
        (json!({ "tools": ["lent-worker.*"] }), false),
        (json!({ "tools": ["workspace.*"] }), false),
        (json!({ "tools": ["lent-worker.*", "workspace.*"] }), true),
        (json!({ "tools": ["!workspace.write"] }), false),
        (json!({ "tools": ["!lent-worker.*"] }), false),
        (json!({ "write_files": false }), false),
    ];
    for (to, wanted) in table {
        let to: Rights = serde_json::from_value(to).unwrap();
        let rights = TaskRights::default().narrowed_by(Grantor::Goal, &to);
        let (name, arguments) = ("lent-worker.workspace.write", json!({ "path": "a.md" }));
        for uses in [Use::of_call(name, &arguments), Use::of_tool(name)] {
            assert_eq!(rights.allow_all(&uses).is_ok(), wanted, "{to:?} {uses:?}");
        }
    }
    let deep = format!("{}x", "lent-a.".repeat(100_000));
    assert_eq!(Use::of_tool(&deep).len(), 2, "a name of any length costs nothing");
}
