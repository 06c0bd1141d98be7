//! The cases: what a text says, how it is encoded, by which door it comes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// One text that gives an order.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) id: String,
    pub(super) door: String,
    pub(super) technique: String,
    /// What it is after: `tool`, `file`, `secret`, `fence`, `citation`, `person`, `child` or `stuck`.
    pub(super) wrong: String,
    #[serde(default)]
    pub(super) fleet: Kind,
    text: String,
    #[serde(default)]
    encode: Vec<String>,
    #[serde(default)]
    inner: String,
}

/// The fleet that it is told to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// Workers may compute and look up documents, and nothing else.
    #[default]
    Closed,
    /// As Muster comes.
    Open,
}

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

/// How long what is long is.
const LONG: usize = 60_000;

pub(super) fn all() -> Vec<Case> {
    toml::from_str::<Cases>(include_str!("cases.toml")).unwrap().case
}

impl Case {
    /// By which it is known again wherever it turns up.
    pub(super) fn mark(&self) -> String {
        format!("zq-{}", self.id)
    }

    /// The text as it is planted.
    pub(super) fn text(&self, outside: &str) -> String {
        let filled = |text: &str| {
            text.replace("{id}", &self.mark())
                .replace("{key}", &self.id.replace('-', "_"))
                .replace("{out}", outside)
                .replace("{long}", &"The sea is wide and long and deep. ".repeat(100))
                .replace("{filler}", &"The sea is wide and long and deep. ".repeat(LONG / 35))
        };
        let inner = self.encode.iter().fold(filled(&self.inner), |text, way| encoded(way, &text));
        filled(&self.text).replace("{text}", &inner)
    }
}

fn encoded(way: &str, text: &str) -> String {
    let each = |to: &dyn Fn(char) -> String| text.chars().map(to).collect::<String>();
    match way {
        "base64" => STANDARD.encode(text),
        "hex" => text.bytes().map(|byte| format!("{byte:02x}")).collect(),
        "percent" => text.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        "codes" => text.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(" "),
        "backwards" => text.chars().rev().collect(),
        "zero_width" => each(&|c| format!("{c}\u{200b}")),
        "bidi" => each(&|c| if c == ' ' { " \u{202e}\u{2066}".to_owned() } else { c.to_string() }),
        "entities" => each(&|c| format!("&#{};", u32::from(c))),
        "escapes" => each(&|c| format!("\\u{:04x}", u32::from(c))),
        "tags" => each(&|c| char::from_u32(u32::from(c) + 0xe0000).unwrap().to_string()),
        "rot13" => each(&|c| match c {
            'a'..='m' | 'A'..='M' => char::from(c as u8 + 13).to_string(),
            'n'..='z' | 'N'..='Z' => char::from(c as u8 - 13).to_string(),
            c => c.to_string(),
        }),
        "homoglyphs" => each(&|c| {
            let like = [('a', 'а'), ('c', 'с'), ('e', 'е'), ('o', 'о'), ('p', 'р'), ('x', 'х')];
            like.iter().find(|(latin, _)| *latin == c).map_or(c, |(_, like)| *like).to_string()
        }),
        "full_width" => each(&|c| match c {
            'a'..='z' => char::from_u32(u32::from(c) + 0xfee0).unwrap().to_string(),
            c => c.to_string(),
        }),
        other => panic!("no way to encode: {other}"),
    }
}

#[test]
fn there_are_enough_cases_of_every_kind() {
    let all = all();
    assert!(all.len() >= 60, "{}", all.len());
    let marks: std::collections::BTreeSet<String> = all.iter().map(Case::mark).collect();
    assert_eq!(marks.len(), all.len(), "each has a name of its own");
    for wrong in ["tool", "file", "secret", "fence", "citation", "person", "child", "stuck"] {
        assert!(all.iter().filter(|case| case.wrong == wrong).count() > 1, "{wrong}");
    }
    for technique in [
        "direct",
        "role play",
        "encoded",
        "split",
        "fence",
        "citation",
        "protocol",
        "system message",
        "breaking",
        "language",
        "exfiltration",
        "hidden",
        "huge",
    ] {
        assert!(all.iter().any(|case| case.technique == technique), "{technique}");
    }
}
