//! Slides: PPTX (ECMA-376, part 1, 19) and ODP (OASIS OpenDocument 1.3, part 3).

use muster_corpus::Unit;

use super::words::{Odf, refuse_encrypted, title_of};
use crate::found::{Failure, Found};
use crate::limits::Budget;
use crate::lines::Lines;
use crate::package::Package;
use crate::xml::{Met, walk};

/// The text of a PPTX, slide by slide in the order in which they are shown.
pub(crate) fn pptx(bytes: &[u8], budget: &mut Budget) -> Result<Found, Failure> {
    let mut package = Package::open(bytes, budget)?;
    let slides = in_order(&mut package, budget)?;
    let mut found = Found::default();
    let mut pieces = Vec::new();
    for name in slides {
        if pieces.len() as u64 >= budget.limits.max_pages || budget.room() == 0 {
            found.leave_out(format!("the slides after {}", pieces.len()));
            break;
        }
        let slide = package.need(&name, budget)?;
        let mut reading = Slide::new(budget.room());
        if let Err(failure) = walk(&slide, crate::limits::MAX_NESTING, |met| reading.meet(&met)) {
            found.leave_out(format!("the end of slide {}: it {}", pieces.len() + 1, failure.in_short()));
        }
        let notes = name.replace("slides/slide", "notesSlides/notesSlide");
        if let Some(notes) = package.get(&notes, budget)? {
            reading.lines.gap();
            // Notes that are broken cost the notes.
            let _ = walk(&notes, crate::limits::MAX_NESTING, |met| reading.meet(&met));
        }
        let mut text = reading.lines.finish();
        budget.take_text(&mut text);
        pieces.push(text);
    }
    let title = package.get("docProps/core.xml", budget)?.and_then(|core| title_of(&core));
    let whole = Found::cut("pptx", Unit::Slide, pieces);
    Ok(Found { title, left_out: found.left_out, ..whole })
}

/// The files of the slides in the order in which they are shown; by their numbers where that cannot be told.
fn in_order(package: &mut Package<'_>, budget: &mut Budget) -> Result<Vec<String>, Failure> {
    let by_number = package.numbered("ppt/slides/slide", ".xml");
    let Some(presentation) = package.get("ppt/presentation.xml", budget)? else {
        return if by_number.is_empty() { Err(Failure::broken("it has no slides")) } else { Ok(by_number) };
    };
    let links = package.get("ppt/_rels/presentation.xml.rels", budget)?.unwrap_or_default();
    let mut ids = Vec::new();
    walk(&presentation, crate::limits::MAX_NESTING, |met| {
        if let Met::Begin("sldId", attributes) = met {
            ids.extend(attributes.get_whole("r:id"));
        }
    })?;
    let mut targets = std::collections::HashMap::new();
    walk(&links, crate::limits::MAX_NESTING, |met| {
        if let Met::Begin("Relationship", attributes) = met
            && let (Some(id), Some(target)) = (attributes.get("Id"), attributes.get("Target"))
        {
            targets.insert(id, target.rsplit('/').next().unwrap_or(&target).to_owned());
        }
    })?;
    let named = |id: &String| targets.get(id).map(|file| format!("ppt/slides/{file}"));
    let ordered: Vec<String> = ids.iter().filter_map(named).filter(|name| by_number.contains(name)).collect();
    Ok(if ordered.len() == by_number.len() { ordered } else { by_number })
}

struct Slide {
    lines: Lines,
    is_text: bool,
    is_title: bool,
    tables: u32,
}

impl Slide {
    fn new(most: usize) -> Self {
        Self { lines: Lines::new(most), is_text: false, is_title: false, tables: 0 }
    }

    fn meet(&mut self, met: &Met<'_>) {
        match met {
            Met::Begin("sp", _) => self.is_title = false,
            Met::Begin("ph", attributes) => {
                let kind = attributes.get("type").unwrap_or_default();
                self.is_title = kind == "title" || kind == "ctrTitle";
            }
            Met::Begin("tbl", _) => self.tables += 1,
            Met::End("tbl") => self.tables = self.tables.saturating_sub(1),
            Met::Begin("p", _) if self.is_title && self.tables == 0 => self.lines.heading(1),
            Met::Begin("t", _) => self.is_text = true,
            Met::End("t") => self.is_text = false,
            Met::Begin("br", _) if self.tables == 0 => self.lines.end_line(),
            Met::Text(text) if self.is_text => self.lines.text(text),
            Met::End("p") if self.tables == 0 => self.lines.end_line(),
            Met::End("p") => self.lines.text(" "),
            Met::End("tc") => self.lines.tab(),
            Met::End("tr") => self.lines.end_line(),
            Met::End("sp") => self.lines.gap(),
            _ => {}
        }
    }
}

/// The text of an ODP, slide by slide.
pub(crate) fn odp(bytes: &[u8], budget: &mut Budget) -> Result<Found, Failure> {
    let mut package = Package::open(bytes, budget)?;
    refuse_encrypted(&mut package, budget)?;
    let content = package.need("content.xml", budget)?;
    let (room, most) = (budget.room(), budget.limits.max_pages);
    let mut pieces = Vec::new();
    let mut reading = Odf::new(room);
    let mut is_in = false;
    let walked = walk(&content, crate::limits::MAX_NESTING, |met| match met {
        Met::Begin("page", _) => {
            is_in = true;
            reading.lines = Lines::new(room);
        }
        Met::End("page") if (pieces.len() as u64) < most => {
            is_in = false;
            pieces.push(std::mem::take(&mut reading.lines).finish());
        }
        met if is_in => reading.meet(&met),
        _ => {}
    });
    if pieces.is_empty() {
        walked?;
    }
    for piece in &mut pieces {
        budget.take_text(piece);
    }
    Ok(Found::cut("odp", Unit::Slide, pieces))
}
