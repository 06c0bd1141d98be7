use super::*;

type Vars<'a> = &'a [(&'a str, &'a str)];

fn resolve(spec: Option<&str>, vars: Vars<'_>) -> Result<ModelTarget, TargetError> {
    let settings = TargetSettings { spec: spec.map(str::to_owned), ..TargetSettings::default() };
    ModelTarget::resolve(
        &settings,
        &|name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()),
        &|path| match path {
            "/keys/a" => Ok("sk-file\n".to_owned()),
            "/keys/empty" => Ok("\n".to_owned()),
            _ => Err("no such file".to_owned()),
        },
    )
}

#[test]
fn specs_and_variables_choose_the_target() {
    let key: Vars<'_> = &[("OPENAI_API_KEY", "sk-1"), ("ANTHROPIC_API_KEY", "ak"), ("GOOGLE_API_KEY", "gk")];
    let cases: &[(Option<&str>, Vars<'_>, &str, &str)] = &[
        (None, &[], "offline/rules", ""),
        (Some("offline"), key, "offline/rules", ""),
        (Some(" "), &[("OPENAI_API_KEY", " ")], "offline/rules", ""),
        (None, key, "openai/gpt-4o-mini", "https://api.openai.com/v1/"),
        (Some("openai/gpt-4o"), key, "openai/gpt-4o", "https://api.openai.com/v1/"),
        (Some("openai:gpt-4o"), key, "openai/gpt-4o", "https://api.openai.com/v1/"),
        (Some("gpt-4.1"), key, "openai/gpt-4.1", "https://api.openai.com/v1/"),
        (Some("claude-opus-4-1"), key, "anthropic/claude-opus-4-1", "https://api.anthropic.com/v1/"),
        (Some("gemini"), key, "gemini/gemini-2.5-flash", "https://generativelanguage.googleapis.com/v1beta/"),
        (
            Some("google/gemini-2.5-pro"),
            key,
            "gemini/gemini-2.5-pro",
            "https://generativelanguage.googleapis.com/v1beta/",
        ),
        (Some("ollama/llama3.2:3b"), &[], "ollama/llama3.2:3b", "http://localhost:11434/"),
        (Some("ollama/q"), &[("OLLAMA_HOST", "box:9000")], "ollama/q", "http://box:9000/"),
        (Some("ollama/q"), &[("OLLAMA_HOST", "0.0.0.0")], "ollama/q", "http://127.0.0.1:11434/"),
        (Some("ollama/q"), &[("OLLAMA_HOST", "http://box")], "ollama/q", "http://box/"),
        (None, &[("OLLAMA_HOST", "box")], "ollama/llama3.2", "http://box:11434/"),
        (Some("my-model"), &[("OPENAI_BASE_URL", "http://h:1/v1")], "openai/my-model", "http://h:1/v1/"),
        (
            Some("openai/meta-llama/L3"),
            &[("OPENAI_BASE_URL", "http://h:1/v1/")],
            "openai/meta-llama/L3",
            "http://h:1/v1/",
        ),
        (Some("openai//models/q.gguf"), key, "openai//models/q.gguf", "https://api.openai.com/v1/"),
        (Some("openai::gpt-4o"), key, "openai/gpt-4o", "https://api.openai.com/v1/"),
        (Some("openai//"), key, "openai/gpt-4o-mini", "https://api.openai.com/v1/"),
        (Some("openai/x"), &[("OPENAI_BASE_URL", "http://h:1/v1#there")], "openai/x", "http://h:1/v1/"),
        (Some("anthropic/x"), &[("ANTHROPIC_BASE_URL", "http://h:2")], "anthropic/x", "http://h:2/v1/"),
    ];
    for (spec, vars, name, endpoint) in cases {
        let target = resolve(*spec, vars).unwrap();
        assert_eq!(target.name(), *name, "{spec:?} {vars:?}");
        assert_eq!(target.endpoint_or_default(), *endpoint, "{spec:?} {vars:?}");
    }
}

#[test]
fn mistakes_say_what_to_do() {
    let cases: &[(Option<&str>, Vars<'_>, &str)] = &[
        (Some("openai/gpt-4o"), &[], "set OPENAI_API_KEY"),
        (Some("mystery"), &[], "PROVIDER/MODEL"),
        (Some("openai"), &[("OPENAI_BASE_URL", "localhost:80")], "OPENAI_BASE_URL"),
        (Some("openai"), &[("OPENAI_BASE_URL", "ftp://u:pw@h/")], "\"h/\""),
        (Some("openai"), &[("OPENAI_API_KEY", "a b")], "copy it again"),
        (Some("openai"), &[("OPENAI_API_KEY_FILE", "/none")], "no such file"),
        (Some("openai"), &[("OPENAI_API_KEY_FILE", "/keys/empty")], "is empty"),
    ];
    for (spec, vars, part) in cases {
        let text = resolve(*spec, vars).unwrap_err().to_string();
        assert!(text.contains(part), "{text:?} lacks {part:?}");
        assert!(!text.contains("pw"), "{text:?}");
    }
}

#[test]
fn a_key_comes_from_a_file_and_never_shows() {
    let target = resolve(Some("openai"), &[("OPENAI_API_KEY_FILE", "/keys/a")]).unwrap();
    assert_eq!(target.key.as_ref().unwrap().expose_secret(), "sk-file");
    assert!(!format!("{target:?} {target}").contains("sk-file"));
    assert_eq!(target.redact("bad key sk-file!"), "bad key [key]!");

    let target = resolve(Some("openai/x"), &[("OPENAI_BASE_URL", "http://u:hush@h/v1")]).unwrap();
    assert!(!format!("{target:?} {target}").contains("hush"));
    assert!(!target.redact("http://u:hush@h/v1/").contains("hush"));
}
