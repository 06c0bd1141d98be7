use serde_json::json;

use super::*;

const GOOD: &str = "\
---
role: security_auditor
description: Finds weaknesses in code and says how to close them.
capabilities: [security audit, secrets]
model: offline
tools: [corpus.*]
contract:
  input:
    type: object
    properties:
      documents: {type: integer, minimum: 1}
  output:
    type: object
    required: [findings]
    properties:
      findings: {type: array}
limits:
  steps: 12
  slots: 2
  deadline: 5m
---
You read code as an attacker would.

## REACT_CYCLE

### Typical thoughts
- Where does outside data come in?
- What is trusted
  without a check?

### Specific actions
- `threat_model`: name who could do what

### Done criteria
- Every finding has a place

### Escalation triggers
- A key that works

## Tone
Be brief.
```
# no heading
```
";

#[test]
fn a_whole_file_is_read() {
    let read = Definition::parse(GOOD).unwrap();
    assert_eq!(read.role.to_string(), "security_auditor");
    assert_eq!(read.capabilities, ["security audit", "secrets"]);
    assert_eq!(read.tools.as_deref(), Some(&["corpus.*".to_owned()][..]));
    let limits =
        DefinitionLimits { steps: Some(12), slots: Some(2), deadline: Some(Duration::from_secs(300)) };
    assert_eq!(read.limits, limits);
    let Sections { instructions, typical_thoughts, specific_actions, done_criteria, escalation_triggers } =
        &read.sections;
    assert_eq!(
        instructions,
        "You read code as an attacker would.\n\n\n## Tone\nBe brief.\n```\n# no heading\n```"
    );
    assert_eq!(typical_thoughts[1], "What is trusted without a check?");
    assert_eq!(specific_actions, &["`threat_model`: name who could do what"]);
    assert_eq!(done_criteria, &["Every finding has a place"]);
    assert_eq!(escalation_triggers, &["A key that works"]);
    let output = read.contract.output.as_ref().unwrap();
    assert!(output.faults("data", &json!({"findings": []})).is_empty());
    assert_eq!(output.faults("data", &json!({"findings": 3})).len(), 1);
    assert_eq!(read.hash.len(), 16);
    assert_ne!(read.hash, Definition::parse(&GOOD.replace("Be brief", "Be long")).unwrap().hash);
}

/// Each fault is found where it stands, and something is said that helps.
#[test]
fn faults_are_named_with_line_and_column() {
    let cases = [
        ("model: offline", "permissions: [peple]", (5, 15), "\"peple\" in permissions", "people"),
        ("model: offline", "modle: offline", (5, 1), "\"modle\"", "did you mean \"model\""),
        ("  slots: 2", "  slotz: 2", (19, 3), "\"slotz\" in limits", "did you mean \"slots\""),
        ("limits:\n  steps: 12", "limits:\n  steps: many", (18, 10), "invalid type", ""),
        ("steps: 12", "steps: 0", (18, 3), "steps must be", ""),
        ("deadline: 5m", "deadline: soon", (20, 3), "\"soon\" is no time", ""),
        ("role: security_auditor", "role: worker", (2, 1), "\"worker\"", "name of your own"),
        ("role: security_auditor", "role: Security", (2, 1), "\"Security\"", "lower-case"),
        ("findings: {type: array}", "findings: {type: arrays}", (12, 3), "contract.output", "json-schema"),
        ("tools: [corpus.*]", "tools: [\"corpus search\"]", (6, 1), "\"corpus search\"", "calculator"),
        ("role: security_auditor\n", "", (1, 1), "\"role\" is missing", ""),
        ("---\nrole", "role", (1, 1), "does not begin", "---"),
        (
            "capabilities: [security audit, secrets]",
            "capabilities: [a, b",
            (5, 6),
            "did not find expected",
            "",
        ),
    ];
    for (from, to, place, what, advice) in cases {
        assert!(GOOD.contains(from), "{from}");
        let fault = Definition::parse(&GOOD.replacen(from, to, 1)).unwrap_err();
        assert_eq!((fault.line, fault.column), place, "{to}: {fault}");
        assert!(fault.what.contains(what) && fault.advice.contains(advice), "{to}: {fault}");
    }
}

#[test]
fn hostile_files_are_refused_and_never_panic() {
    let bomb = "---\na: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nrole: [*c,*c,*c]\n---\n";
    let deep = format!("---\nrole: {}\n---\n", "[".repeat(10_000));
    for text in ["", "---", "---\n---", "---\n- a\n---\n", "\u{0}", bomb, &deep] {
        assert!(Definition::parse(text).is_err(), "{:?}", text.chars().take(40).collect::<String>());
    }
}
