use proptest::prelude::*;

use super::*;

fn named(tools: &[&str], kept: &[(&str, &str)]) -> Vec<String> {
    let all: BTreeSet<&str> = tools.iter().copied().collect();
    let names = tool_names("ns", &all, &kept.iter().copied().collect());
    tools.iter().map(|tool| names.get(*tool).cloned().unwrap_or_default()).collect()
}

#[test]
fn namespaces_have_only_letters_digits_and_dashes() {
    let long = "a-name-that-is-much-longer-than-it-may-be";
    let all = namespaces(&["github", "my_server", "Ünï cödé", long, ""]);
    assert_eq!(all["github"], "github");
    assert_eq!(all["my_server"], "my-server");
    assert_eq!(all["Ünï cödé"], "-n--c-d-");
    assert!(all[long].starts_with("a-name-that-is-") && all[long].len() <= MAX_NAMESPACE, "{}", all[long]);
    assert!(!all[""].is_empty());
}

#[test]
fn servers_whose_names_would_be_the_same_are_told_apart() {
    let all = namespaces(&["a-b", "a_b", "a b"]);
    assert_eq!(all["a-b"], "a-b", "whoever is called exactly so keeps the name");
    assert!(all["a_b"].starts_with("a-b-") && all["a b"].starts_with("a-b-") && all["a_b"] != all["a b"]);
    let turned = namespaces(&["a b", "a_b", "a-b"]);
    assert_eq!(all, turned, "the order does not count");
}

#[test]
fn tools_keep_their_names_where_they_can() {
    assert_eq!(named(&["get_time", "x-y"], &[]), ["get_time", "x-y"]);
    let [dotted, plain] = named(&["a.b", "a_b"], &[]).try_into().unwrap();
    assert_eq!(plain, "a_b");
    assert!(dotted.starts_with("a_b-"), "{dotted}");
    assert!(
        named(&["read_resource"], &[]).concat().starts_with("read_resource-"),
        "ours is served under that name"
    );
}

#[test]
fn a_new_tool_never_takes_the_name_of_a_known_one() {
    let names = named(&["a.b", "a_b"], &[("a.b", "a_b")]);
    assert_eq!(names.first().unwrap(), "a_b");
    assert!(names.get(1).unwrap().starts_with("a_b-"), "{names:?}");
}

#[test]
fn what_was_kept_and_is_no_name_is_not_used() {
    assert_eq!(named(&["x"], &[("x", "a b")]), ["x"]);
    assert_eq!(named(&["x"], &[("x", "get_prompt")]), ["x"]);
    assert_eq!(named(&["x", "y"], &[("x", "z"), ("y", "z")]), ["z", "y"]);
}

proptest! {
    #[test]
    fn names_fit_the_registry_and_differ_as_models_see_them(
        servers in proptest::collection::btree_set(".{0,40}", 1..6),
        tools in proptest::collection::btree_set("[a-c._/-]{0,8}|.{0,80}", 1..20),
    ) {
        let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
        let tools: BTreeSet<&str> = tools.iter().map(String::as_str).collect();
        let mut seen = BTreeSet::new();
        for namespace in namespaces(&servers).values() {
            let names = tool_names(namespace, &tools, &BTreeMap::new());
            prop_assert_eq!(names.len(), tools.len());
            for part in names.values() {
                let whole = format!("{namespace}.{part}");
                prop_assert!(whole.len() <= MAX_NAME, "{}", whole);
                prop_assert!(
                    whole.split('.').count() == 2
                        && whole.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')),
                    "{}", whole
                );
                prop_assert!(seen.insert(muster_tools::spec::model_name(&whole)), "{}", whole);
            }
        }
    }
}
