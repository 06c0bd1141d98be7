use super::*;

fn inputs(toml: &str, variables: &[(&str, &str)], flags: &[(&str, &str)]) -> (tempfile::TempDir, Inputs) {
    let folder = tempfile::tempdir().unwrap();
    if !toml.is_empty() {
        std::fs::write(folder.path().join(FILE_NAME), toml).unwrap();
    }
    let inputs = Inputs {
        folder: folder.path().join("deeper/still"),
        variables: variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        flags: flags.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned(), "--set".to_owned())).collect(),
        ..Inputs::default()
    };
    (folder, inputs)
}

fn origin_of(loaded: &Loaded, key: &str) -> (Value, String) {
    let found = loaded.effective.iter().find(|e| e.key == key).unwrap();
    (found.value.clone(), found.origin.clone())
}

#[test]
fn later_sources_win_and_each_value_knows_its_own() {
    let (_keep, inputs) = inputs(
        "[limits]\nmax_steps = 1\nmax_width = 2\n\n[fleet.scale]\nworker = 3\n",
        &[("MUSTER_LIMITS_MAX_STEPS", "4"), ("MUSTER_LIMITS_MAX_DEPTH", "2")],
        &[("limits.max_depth", "1")],
    );
    let loaded = load(&inputs).unwrap();
    let limits = &loaded.settings.limits;
    assert_eq!((limits.max_steps, limits.max_width, limits.max_depth), (4, 2, 1));
    assert_eq!(loaded.settings.fleet.scale.get("worker"), Some(&3));
    assert_eq!(
        origin_of(&loaded, "limits.max_steps"),
        (4.into(), "environment MUSTER_LIMITS_MAX_STEPS".into())
    );
    assert_eq!(origin_of(&loaded, "limits.max_depth"), (1.into(), "--set".into()));
    assert_eq!(origin_of(&loaded, "limits.max_tasks").1, "default");
    assert!(origin_of(&loaded, "fleet.scale.worker").1.ends_with("muster.toml:6"));
}

#[test]
fn a_flag_may_not_invent_a_key() {
    let (_keep, inputs) = inputs("", &[], &[("limits.max_stps", "1")]);
    let error = load(&inputs).unwrap_err();
    let SettingsError::UnknownFlagKey { advice, .. } = error else { unreachable!("{error}") };
    assert!(advice.contains("limits.max_steps"));
}

#[test]
fn a_list_is_written_as_toml_or_with_commas() {
    const KEY: &str = "limits.responses.stronger_models";
    let cases: [(&str, &[&str]); 10] = [
        ("a", &["a"]),
        ("a,b", &["a", "b"]),
        (" a , b,,", &["a", "b"]),
        ("", &[]),
        ("[]", &[]),
        ("[\"a\"]", &["a"]),
        (" [\"a\", 'b'] ", &["a", "b"]),
        ("[\n  \"a\",\n  \"b\",\n]", &["a", "b"]),
        ("[\"a, b\"]", &["a, b"]),
        ("openai/gpt-4.1", &["openai/gpt-4.1"]),
    ];
    for (text, wanted) in cases {
        let flag = inputs("", &[], &[(KEY, text)]).1;
        let variable = inputs("", &[("MUSTER_LIMITS_RESPONSES_STRONGER_MODELS", text)], &[]).1;
        for inputs in [flag, variable] {
            let loaded = load(&inputs).unwrap();
            assert_eq!(loaded.settings.limits.responses.stronger_models, wanted, "{text:?}");
        }
    }
    for text in ["[a]", "[\"a\"", "[\"a\"] b", "[\"a\"]\nx = 1", "[,]", "["] {
        let error = load(&inputs("", &[], &[(KEY, text)]).1).unwrap_err();
        let help = miette::Diagnostic::help(&error).unwrap().to_string();
        let said = error.to_string();
        assert!(said.contains(&format!("{KEY} (from --set) is a list, and {text} is none")), "{said}");
        assert!(help.contains("[\"a\", \"b\"]"), "{help}");
    }
    let nested = load(&inputs("", &[], &[(KEY, "[[\"a\"]]")]).1).unwrap_err().to_string();
    assert!(nested.contains("stronger_models"), "{nested}");
    // Where only some words are allowed, the wrong one is named, with where it comes from.
    let policy = |text: &str| load(&inputs("", &[], &[("limits.conflicts.policy", text)]).1);
    for text in ["[\"majority\", \"person\"]", "majority,person"] {
        assert_eq!(policy(text).unwrap().settings.limits.conflicts.policy.len(), 2, "{text}");
    }
    let said = "limits.conflicts.policy[0] (from --set): there is no luck among its values";
    assert_eq!(policy("[\"luck\"]").unwrap_err().to_string(), said);
}

#[test]
fn every_span_is_written_as_people_write_it() {
    let (_keep, inputs) = inputs(
        "[agent]\ndrain = \"45s\"\n",
        &[("MUSTER_AGENT_CALLS_CALL", "250ms")],
        &[("fleet.start_limit", "1m")],
    );
    let loaded = load(&inputs).unwrap();
    let shown = |key: &str| origin_of(&loaded, key).0;
    assert_eq!(shown("agent.drain"), "45s");
    assert_eq!(shown("agent.calls.call"), "250ms");
    assert_eq!(shown("fleet.start_limit"), "1m");
    assert_eq!(shown("limits.run_deadline"), "1h");
    let raw = |key: &str| key.ends_with(".secs") || key.ends_with("_ms") || key.ends_with("_s");
    let bare: Vec<&str> = loaded.effective.iter().map(|e| e.key.as_str()).filter(|key| raw(key)).collect();
    assert_eq!(bare, Vec::<&str>::new());
}

#[test]
fn the_example_is_what_the_declarations_say() {
    let here = include_str!("../../deploy/muster.example.toml");
    assert_eq!(example(), here, "write it anew: muster config --example > deploy/muster.example.toml");
}

/// Blocks that belong to files of other kinds start with the key of such a file or with its name.
#[test]
fn documented_settings_are_accepted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for entry in std::fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let blocks = text.split("\n```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("toml\n"));
        for block in blocks.filter(|block| block.starts_with("# muster.toml") || block.starts_with('[')) {
            count += 1;
            let read = read_settings_text(block);
            assert!(
                read.is_ok(),
                "{}: {:?}\n{block}",
                path.display(),
                read.err().map(|error| error.to_string())
            );
        }
    }
    assert!(count > 8, "{count} blocks were found");
}

/// Each setting has a user who would change it: an additional one has to replace another.
#[test]
fn there_are_at_most_200_settings_and_the_documentation_lists_them() {
    let keys = Keys::of(Settings::SETTINGS);
    let record: toml::Table = include_str!("../../weights.toml").parse().unwrap();
    let recorded = record["totals"]["settings"].as_integer().unwrap();
    assert!(recorded <= 200);
    assert_eq!(
        keys.iter().count(),
        usize::try_from(recorded).unwrap(),
        "weights.toml has the number of settings"
    );
    let row = |key: &keys::Key| {
        let (name, reach) = (key.name.replace('*', "NAME"), key.reach.as_str());
        format!("| `{name}` | {reach} | {} |\n", key.sensitivity.as_str())
    };
    let table: String = keys.iter().map(row).collect();
    let listed = include_str!("../../docs/settings.md");
    assert!(listed.contains(&table), "docs/settings.md lists others than these:\n{table}");
}

#[test]
fn limits_are_those_of_runs_and_every_setting_says_what_it_does() {
    let loaded = load(&inputs("[ask]\neffort = \"thorough\"\n", &[], &[]).1).unwrap();
    assert_eq!(loaded.settings.limits, muster_shared::flow::RunLimits::default());
    for key in Keys::of(Settings::SETTINGS).iter() {
        assert!(key.help().len() > 5 && key.help().ends_with('.'), "{}: {:?}", key.name, key.help());
        let is_declared_secret = matches!(key.setting.takes.kind, muster_shared::setting::Kind::Secret);
        assert_eq!(key.is_secret(), is_declared_secret, "{}", key.name);
    }
}

/// What a record leaves out is shown as it was set all the same.
#[test]
fn a_limit_that_is_not_written_is_shown_as_it_was_set() {
    for (key, value, shown) in [
        ("limits.max_replans", "3", serde_json::json!(3)),
        ("limits.max_deaths", "3", serde_json::json!(3)),
        ("limits.silence", "0s", serde_json::json!("0s")),
        ("limits.budget.cost", "1.5", serde_json::json!(1.5)),
        ("limits.people.ask", "", serde_json::json!([])),
        ("limits.silence", "60s", serde_json::json!("1m")),
        ("limits.iterate_plans", "yes", serde_json::json!(true)),
    ] {
        let loaded = load(&inputs("", &[], &[(key, value)]).1).unwrap();
        assert_eq!(origin_of(&loaded, key), (shown, "--set".to_owned()), "{key}");
    }
    let none = load(&inputs("", &[], &[("limits.max_deaths", "0")]).1).unwrap();
    assert_eq!(none.settings.limits.max_deaths, 0);
}

#[test]
fn a_value_that_is_held_in_another_form_is_refused_by_the_name_that_people_have_for_it() {
    for (key, value, said) in [
        ("limits.run_deadline", "30", "limits.run_deadline (from --set): \"30\" is not a span of time"),
        (
            "limits.replan_below_confidence",
            "much",
            "limits.replan_below_confidence (from --set) must be a whole number",
        ),
        ("limits.budget.cost", "-1", "limits.budget.cost (from --set) must be a number from 0"),
        ("limits.budget.cost", "nan", "limits.budget.cost (from --set) must be a number from 0"),
        ("fleet.budget.cost", "much", "fleet.budget.cost (from --set) must be a number from 0"),
    ] {
        let refused = load(&inputs("", &[], &[(key, value)]).1).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
    }
    let (_keep, inputs) = inputs("[limits.budget]\ncost = nan\n", &[], &[]);
    let refused = load(&inputs).unwrap_err().to_string();
    assert!(refused.contains("limits.budget.cost (from") && refused.contains("muster.toml:2"), "{refused}");
}

/// The example states defaults, or examples where nothing is set by default: both must be taken.
#[test]
fn every_line_of_the_example_is_true() {
    let example = include_str!("../../deploy/muster.example.toml");
    let is_setting = |line: &str| {
        line.split_once(" = ").is_some_and(|(key, _)| {
            !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
        })
    };
    let uncommented: String = example
        .lines()
        .map(|line| {
            // What people name has a heading that is a comment too.
            let is_heading = |rest: &str| rest.starts_with('[') && rest.ends_with(']');
            line.strip_prefix("# ").filter(|rest| is_setting(rest) || is_heading(rest)).unwrap_or(line)
        })
        .map(|line| format!("{line}\n"))
        .collect();
    let (_keep, inputs) = inputs(&uncommented, &[], &[]);
    // Some of them need the user's word.
    let loaded = load(&Inputs { care: Care::Everything, ..inputs }).unwrap();
    let defaults = load(&self::inputs("", &[], &[]).1).unwrap();
    let lines = uncommented.lines().filter(|line| is_setting(line)).count();
    let given: Vec<&Effective> = loaded.effective.iter().filter(|e| e.origin != "default").collect();
    assert_eq!(given.len(), lines, "every line sets a value");
    for setting in given {
        let default = defaults.effective.iter().find(|e| e.key == setting.key);
        // Empty by default: the line is an example of a value.
        let example_only = default.is_none_or(|e| e.value.is_null() || e.value == serde_json::json!([]));
        assert!(
            example_only || default.is_some_and(|e| e.value == setting.value),
            "{} is {} in the example and {:?} by default",
            setting.key,
            setting.value,
            default.map(|e| &e.value)
        );
    }
    let named = |key: &str| loaded.effective.iter().any(|e| e.key == key && e.origin != "default");
    let missing: Vec<&str> = defaults
        .effective
        .iter()
        .map(|e| e.key.as_str())
        .filter(|key| !named(key) && !keys::is_secret(key))
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "settings without a line in the example");
}

#[test]
fn what_a_project_may_not_say_by_itself_is_an_error_or_left_out() {
    const DANGEROUS: &str =
        "[limits]\nmax_steps = 2\n[server]\nbinary = \"./x\"\n[bus]\nurl = \"nats://h\"\n";
    let (_keep, strict) = inputs(DANGEROUS, &[], &[]);
    let error = load(&strict).unwrap_err();
    let SettingsError::Untrusted { what, .. } = &error else { unreachable!("{error}") };
    assert!(what.contains("server.binary = ./x") && what.contains("bus.url = nats://h"), "{what}");
    assert!(!what.contains("max_steps"), "what runs nothing counts at once: {what}");

    let lenient = load(&Inputs { care: Care::Lenient, ..strict.clone() }).unwrap();
    assert_eq!((lenient.settings.limits.max_steps, &lenient.settings.bus.url), (2, &None));
    assert_eq!((lenient.left_out.len(), lenient.needs.len()), (1, 2));
    assert_eq!(origin_of(&lenient, "server.binary").1, "default");

    let all = load(&Inputs { care: Care::Everything, ..strict.clone() }).unwrap();
    assert!(all.settings.server.binary.is_some() && all.is_found && all.left_out.is_empty());

    // What a flag or a variable says goes before: the file's word does not matter then.
    let (_keep, over) =
        inputs(DANGEROUS, &[("MUSTER_BUS_URL", "nats://mine")], &[("server.binary", "/usr/bin/nats-server")]);
    assert_eq!(load(&over).unwrap().settings.bus.url.as_deref(), Some("nats://mine"));
}

/// Values of the user's own settings, with values of a project that take effect at once and values that need consent.
const OWN_AND_PROJECT: &[(&str, &[&str], &[&str])] = &[
    ("fleet.budget.cost = 5.0", &["5.0", "4.5"], &["5.1", "100000.0"]),
    ("fleet.budget_per = \"total\"", &["\"total\""], &["\"day\""]),
    ("limits.budget.model_calls = 50", &["49"], &["51"]),
    ("agent.rates.\"openai/x\".requests_per_minute = 10", &["1"], &["100000"]),
    ("agent.prices.house.input = 2.0\nagent.prices.house.output = 1.0", &["2.5"], &["1.5", "0.0"]),
    ("tool.quotas.shell.per_run = 3", &["2"], &["4"]),
    ("tool.approve = [\"shell\"]", &["[\"*\"]", "[\"mail\", \"shell\"]"], &["[]", "[\"mail\"]"]),
    ("limits.people.approve_tools = [\"mail.*\"]", &["[\"*\"]"], &["[\"mail.send\"]"]),
    ("limits.people.approvals = 2", &["2", "3"], &["1"]),
    ("limits.people.pause_at = [\"the plan\"]", &["[\"the plan\", \"2\"]"], &["[]"]),
    ("limits.people.answer_within = \"10m\"", &["\"1h\""], &["\"1s\""]),
    ("limits.people.review = \"ask\"", &[], &["\"auto\""]),
    ("limits.people.on_timeout = \"abort\"", &[], &["\"proceed\""]),
    ("limits.people.approve_by = [\"ann\"]", &[], &["[\"mallory\"]"]),
    ("agent.permissions.worker = [\"plan\", \"tools\"]", &["[\"plan\"]", "[]"], &["[\"people\"]"]),
    (
        "agent.tools.worker = [\"calculator\", \"corpus.*\"]",
        &["[\"corpus.read\"]"],
        &["[\"*\"]", "[\"sql\"]"],
    ),
    ("limits.rights.tools = [\"calculator\"]", &["[\"calculator\"]", "[]"], &["[\"*\"]", "[\"!x\"]"]),
    ("limits.rights.documents = [\"docs\"]", &["[\"docs/a.md\"]"], &["[\"docs\", \"src\"]"]),
    ("limits.rights.hosts = [\"*.a.org\"]", &["[\"x.a.org:443\"]"], &["[\"a.net\"]"]),
    ("limits.rights.people = false", &["false"], &["true"]),
    ("server.tls = true", &["true"], &["false"]),
    ("agent.model = \"openai/cheap\"", &["\"offline\""], &["\"openai/expensive\""]),
    ("agent.template_dir = \"mine\"", &[], &["\"tpl\""]),
    ("keep.completed = \"300d\"", &[], &["\"1s\""]),
];

fn with_own(own: &str, project: &str) -> (tempfile::TempDir, Inputs) {
    let (folder, project) = inputs(project, &[], &[]);
    let path = folder.path().join("own.toml");
    std::fs::write(&path, own).unwrap();
    (folder, Inputs { own: Some(path), ..project })
}

#[test]
fn a_project_narrows_the_users_own_settings_at_once_and_widens_them_with_consent() {
    for (own, narrower, wider) in OWN_AND_PROJECT {
        let key = own.split(" = ").next().unwrap();
        let shown = key.replace('"', "");
        let load = |value: &str| load(&with_own(own, &format!("{key} = {value}\n")).1);
        for value in *narrower {
            let loaded = load(value).unwrap_or_else(|error| unreachable!("{key} = {value}: {error}"));
            assert!(origin_of(&loaded, &shown).1.ends_with("muster.toml:1"), "{key} = {value}");
        }
        for value in *wider {
            let Err(SettingsError::Untrusted { what, .. }) = load(value) else {
                unreachable!("{key} = {value}")
            };
            assert!(what.contains(&shown), "{what}");
        }
    }
    let own = "agent.prices.house = { input = 2.0, output = 1.0 }\n";
    let price = |name: &str| {
        load(&with_own(own, &format!("agent.prices.{name} = {{ input = 0.0, output = 0.0 }}\n")).1)
    };
    assert!(price("scripted").is_ok(), "its price is not known");
    for known in ["gpt-4o", "\"openai/gpt\"", "house-large", "hou"] {
        assert!(price(known).is_err(), "{known}");
    }
    let tools =
        |role: &str, list: &str| load(&with_own("", &format!("agent.tools.{role} = [\"{list}\"]\n")).1);
    assert!(
        tools("researcher", "corpus.read").is_ok() && tools("chef", "*").is_ok(),
        "usual tools; a new role"
    );
    assert!(tools("researcher", "*").is_err());
    let (_keep, wide) =
        with_own("tool.approve = [\"shell\"]", "[limits]\nmax_steps = 2\n[tool]\napprove = []\n");
    let lenient = load(&Inputs { care: Care::Lenient, ..wide }).unwrap();
    assert_eq!(
        (lenient.settings.limits.max_steps, &lenient.settings.tool.approve[..]),
        (2, &["shell".to_owned()][..])
    );
}

/// Without a list of its own, a member of a detached fleet would take the list of its supervisor.
#[test]
fn no_flags_are_handed_down_as_an_empty_list() {
    let handed_down = handed_down(&[]).unwrap();
    assert_eq!(taken_over(&[handed_down]).unwrap(), []);
}
