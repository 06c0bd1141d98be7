//! From the bytes of a document to its text. Pure.

use crate::found::{Failure, Found};
use crate::kind::Kind;
use crate::limits::Budget;
use crate::office::{book, sheets, slides, words};
use crate::{archive, html, mail, notebook, pdf, picture, table};
use muster_tools::settings::ReadLimits;

/// What is asked of whoever reads a document.
#[derive(Debug, Clone)]
pub(crate) struct Asked<'a> {
    pub(crate) name: &'a str,
    pub(crate) media_type: Option<&'a str>,
    /// Whether texts and web pages in archives stay as they are, so that their lines can be cited.
    pub(crate) keeps_source: bool,
    pub(crate) limits: &'a ReadLimits,
}

/// Reads a document.
pub(crate) fn read(bytes: &[u8], asked: &Asked<'_>) -> Result<Found, Failure> {
    if bytes.len() as u64 > asked.limits.max_bytes {
        return Err(Failure::TooLarge(format!("{} bytes", asked.limits.max_bytes)));
    }
    let mut budget = Budget::new(asked.limits.clone(), bytes.len() as u64, asked.keeps_source);
    read_within(bytes, asked.name, asked.media_type, &mut budget)
}

/// Reads a document that may lie in another one.
pub(crate) fn read_within(
    bytes: &[u8],
    name: &str,
    media_type: Option<&str>,
    budget: &mut Budget,
) -> Result<Found, Failure> {
    let kind = Kind::of(name, media_type, bytes);
    let kind = kind.ok_or_else(|| unknown(name))?;
    match kind {
        Kind::Pdf => pdf::pdf(bytes, budget),
        Kind::Docx | Kind::Pptx if bytes.starts_with(crate::kind::COMPOUND) => Err(of_before(bytes)),
        Kind::Docx => words::docx(bytes, budget),
        Kind::Odt => words::odt(bytes, budget),
        Kind::Pptx => slides::pptx(bytes, budget),
        Kind::Odp => slides::odp(bytes, budget),
        Kind::Sheets => sheets::workbook(bytes, name, budget),
        Kind::Epub => book::epub(bytes, budget),
        Kind::Notebook => notebook::notebook(bytes, budget),
        Kind::Mail => mail::mail(bytes, budget),
        Kind::Mailbox => mail::mailbox(bytes, budget),
        Kind::Zip => zip(bytes, name, budget),
        Kind::Tar => archive::tar(bytes, budget),
        Kind::Gzip => archive::gzip(bytes, name, budget),
        // Its bytes are shown from where they lie as a file of their own: of what lies in others only text is handed on.
        Kind::Picture if !budget.keeps_source || budget.depth > 0 => Err(unknown(name)),
        Kind::Picture => picture::picture(bytes, budget),
        Kind::Html | Kind::Csv | Kind::Text => text(bytes, kind, budget),
    }
}

/// Why a file in the format of before 2007 is not read where one of after was expected.
fn of_before(bytes: &[u8]) -> Failure {
    if sheets::has_stream(bytes, "EncryptedPackage") {
        return Failure::Encrypted;
    }
    Failure::Unknown("office documents of before 2007 that are no workbooks".to_owned())
}

/// A zip file whose name does not say what it is may be a document all the same.
fn zip(bytes: &[u8], name: &str, budget: &mut Budget) -> Result<Found, Failure> {
    let package = crate::package::Package::open(bytes, budget)?;
    let has = |name: &str| package.names().any(|known| known == name);
    if has("word/document.xml") {
        words::docx(bytes, budget)
    } else if has("ppt/presentation.xml") {
        slides::pptx(bytes, budget)
    } else if has("xl/workbook.xml") || has("xl/workbook.bin") {
        sheets::workbook(bytes, name, budget)
    } else if has("META-INF/container.xml") && has("mimetype") {
        book::epub(bytes, budget)
    } else {
        archive::zip(bytes, budget)
    }
}

fn text(bytes: &[u8], kind: Kind, budget: &mut Budget) -> Result<Found, Failure> {
    let text = muster_corpus::decode(bytes.to_vec());
    let text = text.ok_or_else(|| Failure::Unknown("files that are no text".to_owned()))?;
    let source = budget.keeps_source;
    let room = budget.room();
    let (name, mut text, title) = match kind {
        Kind::Html if !source => {
            let (text, title) = html::to_text(&text, room);
            ("html", text, title)
        }
        Kind::Csv if !source => ("csv", table::rows(&text, room), None),
        _ => ("text", text, None),
    };
    let mut found = Found { title, ..Found::default() };
    if budget.take_text(&mut text) {
        found.leave_out("the end: there is too much text");
    }
    let whole = Found::text(name, text);
    Ok(Found { title: found.title, left_out: found.left_out, ..whole })
}

fn unknown(name: &str) -> Failure {
    Failure::Unknown(format!("files like {}", in_short(name)))
}

fn in_short(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(100).collect()
}
