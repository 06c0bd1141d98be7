//! PDF: the text of each page. A page that breaks its reader costs that page.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use muster_corpus::Unit;
use pdf_extract::{
    ConvertToFmt, Document, Error, MediaBox, Object, ObjectId, OutputDev, OutputError, PlainTextOutput,
    Transform, output_doc,
};

use crate::found::{Failure, Found};
use crate::limits::Budget;

/// Most pages that break their reader before the rest is left out.
const MOST_BROKEN: usize = 200;

/// The pages of a PDF.
pub(crate) fn pdf(bytes: &[u8], budget: &mut Budget) -> Result<Found, Failure> {
    let mut document = Document::load_mem(bytes).map_err(failure)?;
    if document.is_encrypted() {
        // Many are encrypted with no password to read them.
        document.decrypt("").map_err(|_| Failure::Encrypted)?;
    }
    let most = usize::try_from(budget.limits.max_pages).unwrap_or(usize::MAX);
    let pages: Vec<ObjectId> = document.page_iter().take(most.saturating_add(1)).collect();
    if pages.is_empty() {
        return Err(Failure::broken("it has no pages"));
    }
    let mut output = Output::new(pages.len().min(most), budget.room());
    let unread = read_all(&mut document, pages, &mut output);
    let mut found = Found::default();
    if let [first, ..] = unread.as_slice() {
        if unread.len() == output.pieces.len() {
            return Err(Failure::broken("none of its pages can be read"));
        }
        found.leave_out(format!("{} pages that cannot be read, such as {first}", unread.len()));
    }
    if output.is_full {
        found.leave_out("the last pages: there is too much of it");
    }
    let mut pieces = output.pieces;
    for piece in &mut pieces {
        budget.take_text(piece);
    }
    let whole = Found::cut("pdf", Unit::Page, pieces);
    Ok(Found { left_out: found.left_out, title: title(&document), ..whole })
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Decryption(_) | Error::InvalidPassword => Failure::Encrypted,
        other => Failure::broken(other),
    }
}

fn title(document: &Document) -> Option<String> {
    let about = document.trailer.get_deref(b"Info", document).ok()?.as_dict().ok()?;
    let title = pdf_extract::decode_text_string(about.get_deref(b"Title", document).ok()?).ok()?;
    let plain: String = title.chars().filter(|c| !c.is_control()).take(500).collect();
    Some(plain.trim().to_owned()).filter(|title| !title.is_empty())
}

/// Reads all pages; gives the numbers of those that cannot be read.
fn read_all(document: &mut Document, pages: Vec<ObjectId>, output: &mut Output) -> Vec<u32> {
    let mut unread = Vec::new();
    let mut left: Vec<(u32, ObjectId)> = (1u32..).zip(pages).collect();
    while !left.is_empty() && unread.len() < MOST_BROKEN {
        output.numbers = left.iter().map(|(number, _)| *number).collect();
        output.begun = 0;
        // What reads a PDF panics where it has no answer.
        let read = catch_unwind(AssertUnwindSafe(|| output_doc(document, &mut *output)));
        if matches!(read, Ok(Ok(()))) || output.is_full {
            return unread;
        }
        // A page is noticed by its beginning; one that breaks before that is the next one.
        let at = if output.is_within { output.begun.saturating_sub(1) } else { output.begun };
        output.is_within = false;
        let Some((broken, _)) = left.get(at) else { return unread };
        unread.push(*broken);
        let gone: HashSet<ObjectId> = left.iter().take(at + 1).map(|(_, id)| *id).collect();
        for id in &gone {
            // No longer a page for whoever walks the tree.
            if let Ok(page) = document.get_object_mut(*id).and_then(Object::as_dict_mut) {
                page.set("Type", Object::Name(b"Read".to_vec()));
            }
        }
        left.retain(|(_, id)| !gone.contains(id));
    }
    unread.extend(left.iter().map(|(number, _)| *number));
    unread
}

/// The text of one page while it is written.
#[derive(Clone, Default)]
struct PageText {
    text: Rc<RefCell<String>>,
    most: usize,
}

impl fmt::Write for PageText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut written = self.text.borrow_mut();
        if written.len() + text.len() > self.most {
            return Err(fmt::Error);
        }
        written.push_str(text);
        Ok(())
    }
}

impl ConvertToFmt for PageText {
    type Writer = Self;

    fn convert(self) -> Self {
        self
    }
}

/// Gathers the text of pages.
struct Output {
    pieces: Vec<String>,
    /// The numbers of the pages that come, in order.
    numbers: Vec<u32>,
    begun: usize,
    is_within: bool,
    room: usize,
    is_full: bool,
    page: PageText,
    writer: PlainTextOutput<PageText>,
}

impl Output {
    fn new(pages: usize, room: usize) -> Self {
        let page = PageText::default();
        Self {
            pieces: vec![String::new(); pages],
            numbers: Vec::new(),
            begun: 0,
            is_within: false,
            room,
            is_full: false,
            writer: PlainTextOutput::new(page.clone()),
            page,
        }
    }

    /// Keeps what was written of the page, line by line without what stands at their ends.
    fn keep(&mut self) {
        let number = self.begun.checked_sub(1).and_then(|at| self.numbers.get(at)).copied().unwrap_or(0);
        let text = std::mem::take(&mut *self.page.text.borrow_mut());
        let text = tidy(&text);
        self.room = self.room.saturating_sub(text.len());
        let at = usize::try_from(number).unwrap_or(usize::MAX).wrapping_sub(1);
        match self.pieces.get_mut(at) {
            Some(piece) => *piece = text,
            None => self.is_full = true,
        }
    }
}

fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines().map(str::trim_end) {
        if line.is_empty() && (out.is_empty() || out.ends_with("\n\n")) {
            continue;
        }
        out.extend(line.chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }));
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

impl OutputDev for Output {
    fn begin_page(
        &mut self,
        number: u32,
        media: &MediaBox,
        art: Option<(f64, f64, f64, f64)>,
    ) -> Result<(), OutputError> {
        if self.room == 0 || self.begun >= self.numbers.len() {
            self.is_full = true;
            return Err(OutputError::FormatError(fmt::Error));
        }
        self.begun += 1;
        self.is_within = true;
        self.page = PageText { text: Rc::default(), most: self.room };
        self.writer = PlainTextOutput::new(self.page.clone());
        self.writer.begin_page(number, media, art)
    }

    fn end_page(&mut self) -> Result<(), OutputError> {
        self.is_within = false;
        self.keep();
        if self.is_full { Err(OutputError::FormatError(fmt::Error)) } else { Ok(()) }
    }

    fn output_character(
        &mut self,
        place: &Transform,
        width: f64,
        spacing: f64,
        size: f64,
        character: &str,
    ) -> Result<(), OutputError> {
        let written = self.writer.output_character(place, width, spacing, size, character);
        if written.is_err() {
            // There is no more room: what there was is kept.
            self.keep();
            self.is_full = true;
        }
        written
    }

    fn begin_word(&mut self) -> Result<(), OutputError> {
        self.writer.begin_word()
    }

    fn end_word(&mut self) -> Result<(), OutputError> {
        self.writer.end_word()
    }

    fn end_line(&mut self) -> Result<(), OutputError> {
        self.writer.end_line()
    }
}
