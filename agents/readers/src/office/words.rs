//! Texts: DOCX (ECMA-376, part 1, 17) and ODT (OASIS OpenDocument 1.3, part 3).

use std::collections::HashMap;

use crate::found::{Failure, Found};
use crate::limits::Budget;
use crate::lines::Lines;
use crate::package::Package;
use crate::xml::{Met, walk};

/// The text of a DOCX.
pub(crate) fn docx(bytes: &[u8], budget: &mut Budget) -> Result<Found, Failure> {
    let mut package = Package::open(bytes, budget)?;
    let document = package.need("word/document.xml", budget)?;
    let styles = package.get("word/styles.xml", budget)?.unwrap_or_default();
    let styles = heading_styles(&styles, crate::limits::MAX_NESTING)?;
    let mut reading = Docx::new(&styles, budget.room());
    let walked = walk(&document, crate::limits::MAX_NESTING, |met| reading.meet(&met));
    for notes in ["word/footnotes.xml", "word/endnotes.xml", "word/comments.xml"] {
        if walked.is_ok()
            && let Some(notes) = package.get(notes, budget)?
        {
            reading.lines.gap();
            walk(&notes, crate::limits::MAX_NESTING, |met| reading.meet(&met))?;
        }
    }
    let title = package.get("docProps/core.xml", budget)?.and_then(|core| title_of(&core));
    finished("docx", reading.lines, walked, title, budget)
}

/// A text with what was read of it before it broke.
pub(crate) fn finished(
    kind: &str,
    lines: Lines,
    walked: Result<(), Failure>,
    title: Option<String>,
    budget: &mut Budget,
) -> Result<Found, Failure> {
    let is_cut = lines.len() >= budget.room();
    let mut text = lines.finish();
    let mut found = match walked {
        Err(failure) if text.is_empty() => return Err(failure),
        Err(failure) => {
            let mut found = Found::default();
            found.leave_out(format!("the end: it {}", failure.in_short()));
            found
        }
        Ok(()) => Found::default(),
    };
    if budget.take_text(&mut text) || is_cut {
        found.leave_out("the end: there is too much text");
    }
    let whole = Found::text(kind, text);
    Ok(Found { left_out: found.left_out, title, ..whole })
}

/// The title in the properties of a document.
pub(crate) fn title_of(core: &[u8]) -> Option<String> {
    let (mut is_in, mut title) = (false, String::new());
    let _ = walk(core, 16, |met| match met {
        Met::Begin(name, _) => is_in = name == "title",
        Met::End(_) => is_in = false,
        Met::Text(text) if is_in && title.len() < 500 => title.push_str(text),
        Met::Text(_) => {}
    });
    Some(title.trim().to_owned()).filter(|title| !title.is_empty())
}

/// The level of headings by the name of their style.
fn heading_styles(styles: &[u8], deepest: u64) -> Result<HashMap<String, usize>, Failure> {
    let (mut found, mut style) = (HashMap::new(), String::new());
    walk(styles, deepest, |met| {
        if let Met::Begin(name, attributes) = met {
            match name {
                "style" => style = attributes.get("styleId").unwrap_or_default(),
                "name" => {
                    let named = attributes.get("val").unwrap_or_default().to_ascii_lowercase();
                    let level = named.strip_prefix("heading ").and_then(|level| level.parse().ok());
                    let level = level.or((named == "title").then_some(1));
                    found.extend(level.map(|level: usize| (style.clone(), level)));
                }
                "outlineLvl" => {
                    let level = attributes.get("val").and_then(|level| level.parse::<usize>().ok());
                    found.extend(level.filter(|level| *level < 6).map(|level| (style.clone(), level + 1)));
                }
                _ => {}
            }
        }
    })?;
    Ok(found)
}

struct Docx<'a> {
    lines: Lines,
    styles: &'a HashMap<String, usize>,
    /// How deep in tables it is.
    tables: u32,
    is_text: bool,
    /// Text that was deleted, and alternatives for older programs.
    skipped: u32,
}

impl<'a> Docx<'a> {
    fn new(styles: &'a HashMap<String, usize>, most: usize) -> Self {
        Self { lines: Lines::new(most), styles, tables: 0, is_text: false, skipped: 0 }
    }

    fn meet(&mut self, met: &Met<'_>) {
        match met {
            Met::Begin("del" | "Fallback" | "instrText", _) => self.skipped += 1,
            Met::End("del" | "Fallback" | "instrText") => self.skipped = self.skipped.saturating_sub(1),
            _ if self.skipped > 0 => {}
            Met::Begin("p", _) if self.tables == 0 => self.lines.end_line(),
            Met::Begin("pStyle", attributes) => {
                let style = attributes.get("val").unwrap_or_default();
                if let Some(level) = self.styles.get(&style).filter(|_| self.tables == 0) {
                    self.lines.heading(*level);
                }
            }
            Met::Begin("outlineLvl", attributes) if self.tables == 0 => {
                if let Some(level) = attributes.get("val").and_then(|level| level.parse::<usize>().ok())
                    && level < 6
                {
                    self.lines.heading(level + 1);
                }
            }
            Met::Begin("numPr", _) if self.tables == 0 => self.lines.mark("- "),
            Met::Begin("tbl", _) => {
                self.lines.gap();
                self.tables += 1;
            }
            Met::Begin("t", _) => self.is_text = true,
            Met::End("t") => self.is_text = false,
            Met::Begin("tab", _) if self.tables == 0 => self.lines.tab(),
            Met::Begin("br" | "cr", _) if self.tables == 0 => self.lines.end_line(),
            Met::Begin("br" | "cr" | "tab" | "noBreakHyphen", _) => self.lines.text(" "),
            Met::Text(text) if self.is_text => self.lines.text(text),
            Met::End("p") if self.tables == 0 => self.lines.end_line(),
            Met::End("p") => self.lines.text(" "),
            Met::End("tc") if self.tables == 1 => self.lines.tab(),
            Met::End("tr") if self.tables == 1 => self.lines.end_line(),
            Met::End("tbl") => {
                self.tables = self.tables.saturating_sub(1);
                if self.tables == 0 {
                    self.lines.gap();
                }
            }
            _ => {}
        }
    }
}

/// The text of an ODT.
pub(crate) fn odt(bytes: &[u8], budget: &mut Budget) -> Result<Found, Failure> {
    let mut package = Package::open(bytes, budget)?;
    refuse_encrypted(&mut package, budget)?;
    let content = package.need("content.xml", budget)?;
    let mut reading = Odf::new(budget.room());
    let walked = walk(&content, crate::limits::MAX_NESTING, |met| reading.meet(&met));
    let title = package.get("meta.xml", budget)?.and_then(|meta| title_of(&meta));
    finished("odt", reading.lines, walked, title, budget)
}

/// An OpenDocument file that needs a password says so in its manifest.
pub(crate) fn refuse_encrypted(package: &mut Package<'_>, budget: &mut Budget) -> Result<(), Failure> {
    let manifest = package.get("META-INF/manifest.xml", budget)?.unwrap_or_default();
    let mut is_encrypted = false;
    let _ = walk(&manifest, crate::limits::MAX_NESTING, |met| {
        is_encrypted |= matches!(met, Met::Begin("encryption-data", _));
    });
    if is_encrypted { Err(Failure::Encrypted) } else { Ok(()) }
}

/// Text in an OpenDocument file.
#[derive(Default)]
pub(crate) struct Odf {
    pub(crate) lines: Lines,
    tables: u32,
    /// How deep in paragraphs it is: what stands outside of them is no text.
    paragraphs: u32,
}

impl Odf {
    pub(crate) fn new(most: usize) -> Self {
        Self { lines: Lines::new(most), ..Self::default() }
    }

    pub(crate) fn meet(&mut self, met: &Met<'_>) {
        match met {
            Met::Begin("h", attributes) => {
                let level = attributes.get("outline-level").and_then(|level| level.parse().ok()).unwrap_or(1);
                if self.tables == 0 {
                    self.lines.heading(level);
                }
                self.paragraphs += 1;
            }
            Met::Begin("p", _) => self.paragraphs += 1,
            Met::Begin("list-item", _) if self.tables == 0 => self.lines.mark("- "),
            Met::Begin("table", _) => {
                self.lines.gap();
                self.tables += 1;
            }
            Met::Begin("s", _) => self.lines.text(" "),
            Met::Begin("tab", _) if self.tables == 0 => self.lines.tab(),
            Met::Begin("line-break", _) if self.tables == 0 => self.lines.end_line(),
            Met::Text(text) if self.paragraphs > 0 => self.lines.text(text),
            Met::End("p" | "h") => {
                self.paragraphs = self.paragraphs.saturating_sub(1);
                if self.tables == 0 { self.lines.end_line() } else { self.lines.text(" ") }
            }
            Met::End("table-cell") if self.tables == 1 => self.lines.tab(),
            Met::End("table-row") if self.tables == 1 => self.lines.end_line(),
            Met::End("table") => {
                self.tables = self.tables.saturating_sub(1);
                if self.tables == 0 {
                    self.lines.gap();
                }
            }
            _ => {}
        }
    }
}
