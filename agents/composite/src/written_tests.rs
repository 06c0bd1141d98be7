use super::*;
use crate::together;

const GOOD: &str = r#"description = "Looks things up and notes them."
time = "60s"
result = "{{steps.note.content}}"

[parameters]
type = "object"
properties.query.type = "string"

[[steps]]
name = "find"
tool = "corpus.search"
arguments = { query = "{{args.query}}" }

[[steps]]
name = "note"
tool = "own.note"
for_each = "{{steps.find.data.hits}}"
at_once = 4
arguments = { word = "{{item.path}}" }
when = { value = "{{steps.find.data.total}}", above = 0 }
on_failure = "compensate"
compensate = { tool = "own.unnote", arguments = { id = "{{result.data.id}}" } }

[[steps]]
name = "wait"
tool = "own.state"
needs = ["note"]
repeat = { until = { not = { value = "{{result.data.state}}", equals = "open" } }, most = 5, wait = "2s" }
"#;

#[test]
fn a_file_says_which_tools_are_called_with_what_and_when() {
    let read = Composite::parse(GOOD, "gather").unwrap();
    assert_eq!((read.name.as_str(), read.time), ("own.gather", Duration::from_secs(60)));
    let tools: Vec<&str> = read.tools().into_iter().collect();
    assert_eq!(tools, ["corpus.search", "own.note", "own.state", "own.unnote"]);
    let [find, note, wait] = read.steps.as_slice() else { unreachable!() };
    assert!(
        find.needs.is_empty()
            && note.needs == [0].into()
            && note.after == [0].into()
            && wait.needs == [1].into()
    );
    assert!(matches!(note.calls, Calls::Each { at_once: 4, .. }));
    assert!(matches!(wait.calls, Calls::Until { most: 5, .. }));
    assert!(read.steps.iter().any(|step| step.compensate.is_some()));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let table = [
        ("time = \"60s\"", "time = \"9m\"", (2, 8), "no time"),
        ("description", "descripton", (1, 1), "unknown field"),
        ("args.query", "args.quary", (12, 13), "have no `quary`"),
        ("steps.find.data.hits", "steps.fnd.data.hits", (17, 12), "no step `fnd`"),
        ("name = \"note\"", "name = \"find\"", (15, 8), "two steps"),
        ("name = \"note\"", "name = \"1\"", (15, 8), "no name for a step"),
        ("at_once = 4", "at_once = 9", (18, 11), "1 to 8"),
        ("{{item.path}}", "{{result.data}}", (19, 13), "`result` is there only"),
        ("{{args.query}}", "{{item}}", (12, 13), "`item` is there only"),
        ("{{args.query}}", "{{query}}", (12, 13), "begins with"),
        ("above = 0", "beyond = 0", (20, 47), "unknown field"),
        (", above = 0", "", (20, 8), "a condition is"),
        ("tool = \"corpus.search\"", "tool = \"corpus search\"", (11, 8), "no name of a tool"),
        ("needs = [\"note\"]", "needs = [\"nothing\"]", (27, 10), "no step `nothing`"),
        ("most = 5", "most = 101", (28, 10), "1 to 100"),
        ("wait = \"2s\"", "wait = \"2h\"", (28, 10), "no wait"),
        ("on_failure = \"compensate\"", "on_failure = \"perhaps\"", (21, 14), "perhaps"),
        ("arguments = { query = \"{{args.query}}\" }", "needs = [\"wait\"]", (10, 8), "can never begin"),
        ("result.data.id", "steps.wait.data.id", (22, 23), "which it does not need"),
        ("properties.query.type = \"string\"", "properties.query.type = 7", (5, 1), "no JSON Schema"),
    ];
    for (before, after, place, words) in table {
        assert!(GOOD.contains(before), "{before}");
        let text = GOOD.replacen(before, after, 1);
        let fault = Composite::parse(&text, "gather").unwrap_err();
        assert!(fault.what.contains(words), "{after}: {fault}");
        assert_eq!((fault.line, fault.column), place, "{after}: {fault}");
    }
    assert!(Composite::parse(GOOD, "no name").is_err());
    let step = |at: usize| format!("[[steps]]\nname = \"s{at}\"\ntool = \"t\"\n");
    let many: String = (0..33).map(step).collect();
    let fault = Composite::parse(&format!("description = \"d\"\n{many}"), "many").unwrap_err();
    assert!(fault.what.contains("1 to 32 steps") && fault.line > 90, "{fault}");
}

#[test]
fn none_calls_itself_and_none_is_nested_too_deep() {
    let calling = |name: &str, tools: &[&str]| {
        let steps: Vec<String> = tools
            .iter()
            .enumerate()
            .map(|(at, tool)| format!("[[steps]]\nname = \"s{at}\"\ntool = \"{tool}\"\n"))
            .collect();
        let text = format!("description = \"d\"\n{}", steps.concat());
        let read = Composite::parse(&text, name).unwrap();
        (text, read)
    };
    let all = vec![
        calling("self", &["look", "own_self"]),
        calling("ping", &["own.pong"]),
        calling("pong", &["look", "own.ping"]),
        calling("top", &["own.middle"]),
        calling("middle", &["own.low", "look"]),
        calling("low", &["look"]),
        calling("beside", &["own.ping"]),
    ];
    let (sound, wrong) = together(all);
    let names: Vec<&str> = sound.iter().map(|composite| composite.name.as_str()).collect();
    assert_eq!(names, ["own.middle", "own.low"]);
    let told: Vec<String> =
        wrong.iter().map(|(name, fault)| format!("{name}:{}: {}", fault.line, fault.what)).collect();
    assert_eq!(told[0], "own.self:7: `own.self` calls itself by way of `own_self`");
    assert!(told[1].starts_with("own.ping:4: ") && told[2].starts_with("own.pong:7: "), "{told:?}");
    assert!(told[3].contains("own.top:4: with `own.middle` there are more than 2"), "{told:?}");
    assert!(told[4].starts_with("own.beside:4: with `own.ping`"), "{told:?}");
}

proptest::proptest! {
    #[test]
    fn no_text_whatever_breaks_the_reader(text in ".{0,300}", at in 0..GOOD.len(), with in ".{0,5}") {
        let _ = Composite::parse(&text, "x");
        let mut changed = GOOD.to_owned();
        if changed.is_char_boundary(at) {
            changed.insert_str(at, &with);
        }
        if let Err(fault) = Composite::parse(&changed, "x") {
            proptest::prop_assert!(fault.line >= 1 && fault.column >= 1 && fault.line <= changed.lines().count() + 1);
        }
    }
}
