//! The sections of a definition, by their headings.

use serde::Serialize;

/// The sections below the front matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Sections {
    /// What stands before any heading that is known, and under others.
    pub instructions: String,
    /// Questions that the specialist asks itself.
    pub typical_thoughts: Vec<String>,
    /// What it does that others do not.
    pub specific_actions: Vec<String>,
    /// When its task is done.
    pub done_criteria: Vec<String>,
    /// When a person has to decide.
    pub escalation_triggers: Vec<String>,
}

/// A section that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KnownSection {
    TypicalThoughts,
    SpecificActions,
    DoneCriteria,
    EscalationTriggers,
}

impl Sections {
    /// Reads the text below the front matter. Headings of any level count; what stands under one that is not known
    /// belongs to the instructions, with its heading.
    #[must_use]
    pub(super) fn read(body: &str) -> Self {
        let mut sections = Self::default();
        let (mut current, mut in_code) = (None, false);
        for line in body.lines() {
            in_code ^= line.trim_start().starts_with("```");
            match heading(line).filter(|_| !in_code) {
                // It only stands above the others.
                Some(title) if title == "react cycle" => current = None,
                Some(title) => {
                    current = known(&title);
                    if current.is_none() {
                        sections.instruct(line);
                    }
                }
                None => sections.take(current, line),
            }
        }
        sections.instructions = sections.instructions.trim().to_owned();
        sections
    }

    fn take(&mut self, current: Option<KnownSection>, line: &str) {
        let list = match current {
            None => return self.instruct(line),
            Some(KnownSection::TypicalThoughts) => &mut self.typical_thoughts,
            Some(KnownSection::SpecificActions) => &mut self.specific_actions,
            Some(KnownSection::DoneCriteria) => &mut self.done_criteria,
            Some(KnownSection::EscalationTriggers) => &mut self.escalation_triggers,
        };
        let text = line.trim();
        let item = ["- ", "* ", "+ "].iter().find_map(|mark| text.strip_prefix(mark));
        match (item, list.last_mut()) {
            (Some(item), _) => list.push(item.trim().to_owned()),
            (None, _) if text.is_empty() => {}
            // A long item goes on in the next line.
            (None, Some(last)) => *last = format!("{last} {text}"),
            (None, None) => list.push(text.to_owned()),
        }
    }

    fn instruct(&mut self, line: &str) {
        self.instructions.push_str(line.trim_end());
        self.instructions.push('\n');
    }
}

fn heading(line: &str) -> Option<String> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    (1..=6).contains(&level).then_some(())?;
    let title = title.strip_prefix(' ')?;
    Some(title.trim().to_lowercase().replace(['_', '-'], " "))
}

fn known(title: &str) -> Option<KnownSection> {
    match title {
        "typical thoughts" => Some(KnownSection::TypicalThoughts),
        "specific actions" => Some(KnownSection::SpecificActions),
        "done criteria" => Some(KnownSection::DoneCriteria),
        "escalation triggers" => Some(KnownSection::EscalationTriggers),
        _ => None,
    }
}
