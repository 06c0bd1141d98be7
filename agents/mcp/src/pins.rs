//! What was first seen of each server's tools. A tool that is later described otherwise is held back until a person accepts
//! it: whoever poisons a tool does so after it was looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::definition::{DefinitionLimits, ListedTool, ToolDefinition, difference};
use crate::names::tool_names;
use crate::plain::visible;

/// Largest file of pins that is read, in bytes.
pub(crate) const MAX_PINS: u64 = 64 * 1024 * 1024;

/// Most tools that are known of one server, those included that it no longer has.
const MAX_KNOWN: usize = 2_000;

/// All pins, by server and by the name that the server gives the tool. Pure data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pins {
    servers: BTreeMap<String, BTreeMap<String, Pin>>,
    /// Reasons why the server, or a tool of it, is not used, as its process last saw it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// What is known of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The second part of the name under which it is served; it stays.
    pub name: String,
    /// Names what is accepted: [`ToolDefinition::digest`]. Empty where nothing is yet.
    pub digest: String,
    /// What is accepted: what was first seen, or what a person accepted since.
    pub accepted: Option<ToolDefinition>,
    /// What the server says now, where that is something else: it waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed: Option<ToolDefinition>,
    /// Digest of the proposed definition that a person was last shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
}

/// A tool that is not served until a person accepts its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldDefinition {
    /// Its name at the server.
    pub tool: String,
    /// The second part of its name here.
    pub name: String,
    /// Digest of the proposed definition.
    pub digest: String,
    /// Difference from the accepted definition, line by line; the whole definition if none is accepted.
    pub difference: String,
    /// Digest of the definition that a person was last shown.
    pub shown: Option<String>,
}

/// By what rules tools are looked at.
#[derive(Debug, Clone)]
pub struct ReviewRules {
    /// The server's namespace.
    pub namespace: String,
    /// The limits of a definition.
    pub limits: DefinitionLimits,
    /// Whether a new tool of a known server waits for a person.
    pub hold_new: bool,
}

/// What came of looking at a server's tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Review {
    /// The tools that may be called.
    pub served: Vec<ServedTool>,
    /// What a person should hear of.
    pub news: Vec<ToolNews>,
}

/// A tool that may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedTool {
    /// Its name at the server.
    pub tool: String,
    /// The second part of its name here.
    pub name: String,
    /// Names what was accepted of it.
    pub digest: String,
    /// What was accepted of it.
    pub definition: ToolDefinition,
}

/// Something about a tool that a person should hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolNews {
    /// A server that was known has a tool that it did not have. It is served, unless new tools are held back.
    New {
        /// Its name at the server.
        tool: String,
        /// Whether it waits for a person.
        held: bool,
    },
    /// A known tool is described otherwise. It waits for a person.
    Changed {
        /// Its name at the server.
        tool: String,
        /// What is different, line by line.
        difference: String,
    },
    /// A tool that nobody is served, whoever accepts it.
    Refused {
        /// Its name at the server, with nothing in it that hides.
        tool: String,
        /// Why.
        reason: String,
    },
}

/// Why pins could not be read.
#[derive(Debug, thiserror::Error)]
pub enum PinsError {
    /// The file cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// It is not a file of pins. Not read as an empty one: then nothing would be held back.
    #[error("{path} is no file of pins: {reason}. Mend it, or remove it to accept what the servers say now")]
    Broken {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
}

impl Pins {
    /// Accepts the proposed definition of a tool if it has this digest. Returns false if it has another one, or none.
    pub fn accept(&mut self, server: &str, tool: &str, digest: &str) -> bool {
        let pin = self.servers.get_mut(server).and_then(|tools| tools.get_mut(tool));
        let Some(pin) = pin else { return false };
        let Some(proposed) = pin.proposed.take_if(|proposed| proposed.digest(tool) == digest) else {
            return false;
        };
        (pin.digest, pin.accepted, pin.shown) = (digest.to_owned(), Some(proposed), None);
        true
    }

    /// Records that a person was shown the proposed definition of a tool with this digest.
    pub fn show(&mut self, server: &str, tool: &str, digest: &str) {
        if let Some(pin) = self.servers.get_mut(server).and_then(|tools| tools.get_mut(tool)) {
            pin.shown = Some(digest.to_owned());
        }
    }

    /// The tools of a server that wait for a person.
    #[must_use]
    pub fn held(&self, server: &str) -> Vec<HeldDefinition> {
        let pins = self.servers.get(server).into_iter().flatten();
        pins.filter_map(|(tool, pin)| pin.held(tool)).collect()
    }

    /// Looks at what a server says of its tools, and keeps what is new. What is served is exactly what is accepted.
    pub fn review(&mut self, server: &str, listed: &[ListedTool], rules: &ReviewRules) -> Review {
        let is_known = self.servers.contains_key(server);
        let pins = self.servers.entry(server.to_owned()).or_default();
        let mut review = Review::default();
        let sound = sound_of(listed, pins, rules, &mut review.news);
        let names = {
            let kept: BTreeMap<&str, &str> =
                pins.iter().map(|(tool, pin)| (tool.as_str(), pin.name.as_str())).collect();
            // Tools that are known and not listed now keep their names too.
            let all: BTreeSet<&str> = sound.keys().copied().chain(kept.keys().copied()).collect();
            tool_names(&rules.namespace, &all, &kept)
        };
        for (tool, definition) in sound {
            let Some(name) = names.get(tool) else { continue };
            let hold = is_known && rules.hold_new;
            let is_new = !pins.contains_key(tool);
            let pin = pins.entry(tool.to_owned()).or_insert_with(|| Pin::first(tool, name, definition, hold));
            pin.name.clone_from(name);
            if is_new && is_known && !hold {
                review.news.push(ToolNews::New { tool: tool.to_owned(), held: false });
            }
            match pin.judge(tool, definition) {
                Verdict::Serve(served) => review.served.push(served),
                Verdict::Hold(news) => review.news.push(news),
            }
        }
        review
    }

    /// Reads pins from a file; none when there is no file.
    ///
    /// # Errors
    /// When it cannot be read, or is no file of pins.
    pub fn load(path: &Path) -> Result<Self, PinsError> {
        let shown = path.display().to_string();
        let broken = |reason: String| PinsError::Broken { path: shown.clone(), reason };
        match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(PinsError::Io { path: shown, error }),
            Ok(about) if about.len() > MAX_PINS => {
                return Err(broken(format!("it has more than {MAX_PINS} bytes")));
            }
            Ok(_) => {}
        }
        let text =
            std::fs::read_to_string(path).map_err(|error| PinsError::Io { path: shown.clone(), error })?;
        serde_json::from_str(&text).map_err(|error| broken(error.to_string()))
    }

    /// Writes pins to a file that only its owner reads (0600), as a whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), PinsError> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| PinsError::Broken {
            path: path.display().to_string(),
            reason: error.to_string(),
        })?;
        crate::private::write(path, &text)
            .map_err(|error| PinsError::Io { path: path.display().to_string(), error })
    }
}

/// The tools that may be served at all, by name; of the others it is told why not.
fn sound_of<'a>(
    listed: &'a [ListedTool],
    pins: &BTreeMap<String, Pin>,
    rules: &ReviewRules,
    news: &mut Vec<ToolNews>,
) -> BTreeMap<&'a str, &'a ToolDefinition> {
    let mut sound: BTreeMap<&str, &ToolDefinition> = BTreeMap::new();
    let mut new = 0;
    for ListedTool { name, definition } in listed {
        let is_new = !pins.contains_key(name);
        let fault = if sound.contains_key(name.as_str()) {
            Some("the server has another tool of that name".to_owned())
        } else if is_new && pins.len() + new >= MAX_KNOWN {
            Some(format!("the server has had {MAX_KNOWN} tools by now; forget its pins to begin anew"))
        } else {
            definition.fault(name, rules.limits)
        };
        match fault {
            Some(reason) => news.push(ToolNews::Refused { tool: visible(name), reason }),
            None => {
                new += usize::from(is_new);
                sound.insert(name, definition);
            }
        }
    }
    sound
}

/// What is done about a tool.
enum Verdict {
    Serve(ServedTool),
    Hold(ToolNews),
}

impl Pin {
    fn first(tool: &str, name: &str, definition: &ToolDefinition, hold: bool) -> Self {
        let name = name.to_owned();
        if hold {
            let proposed = Some(definition.clone());
            return Self { name, digest: String::new(), accepted: None, proposed, shown: None };
        }
        let (digest, accepted) = (definition.digest(tool), Some(definition.clone()));
        Self { name, digest, accepted, proposed: None, shown: None }
    }

    fn held(&self, tool: &str) -> Option<HeldDefinition> {
        let proposed = self.proposed.as_ref()?;
        let nothing = ToolDefinition {
            description: String::new(),
            schema: serde_json::Value::Null,
            hints: proposed.hints,
        };
        Some(HeldDefinition {
            tool: tool.to_owned(),
            name: self.name.clone(),
            digest: proposed.digest(tool),
            difference: difference(self.accepted.as_ref().unwrap_or(&nothing), proposed),
            shown: self.shown.clone(),
        })
    }

    fn judge(&mut self, tool: &str, definition: &ToolDefinition) -> Verdict {
        if self.accepted.is_some() && self.digest == definition.digest(tool) {
            self.proposed = None;
            return Verdict::Serve(ServedTool {
                tool: tool.to_owned(),
                name: self.name.clone(),
                digest: self.digest.clone(),
                definition: definition.clone(),
            });
        }
        self.proposed = Some(definition.clone());
        let tool = tool.to_owned();
        Verdict::Hold(match &self.accepted {
            Some(accepted) => ToolNews::Changed { tool, difference: difference(accepted, definition) },
            None => ToolNews::New { tool, held: true },
        })
    }
}

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
