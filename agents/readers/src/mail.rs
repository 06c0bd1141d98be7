//! Mail (RFC 5322, MIME) and mailboxes: what was written, and what is attached as documents of their own.

use std::io::Cursor;

use mail_parser::mailbox::mbox::MessageIterator;
use mail_parser::{Address, Message, MessageParser, MimeHeaders, PartType};

use crate::found::{Failure, Found, Part};
use crate::html;
use crate::limits::Budget;
use crate::names::Names;
use crate::read::read_within;

/// A message and what is attached to it.
pub(crate) fn mail(bytes: &[u8], budget: &mut Budget) -> Result<Found, Failure> {
    let message = MessageParser::default().parse(bytes);
    let message = message.filter(|message| !message.headers().is_empty());
    let mut found = of_message(&message.ok_or_else(|| Failure::broken("it is no message"))?, budget);
    "eml".clone_into(&mut found.kind);
    Ok(found)
}

fn of_message(message: &Message<'_>, budget: &mut Budget) -> Found {
    let mut found = Found::of("eml", Vec::new());
    found.title = message.subject().map(str::to_owned);
    let mut text = written(message, budget.room());
    if budget.take_text(&mut text) {
        found.leave_out("the end of the message: there is too much text");
    }
    found.parts.push(Part::text(text));
    let mut names = Names::default();
    for (number, attached) in (1u32..).zip(message.attachments()) {
        let given = attached.attachment_name().map(str::to_owned);
        match &attached.body {
            PartType::Message(inner) => {
                let name = names.name(&given.unwrap_or_else(|| format!("message-{number}.eml")));
                within(&mut found, &name, budget, |budget| Ok(of_message(inner, budget)));
            }
            PartType::Text(_) | PartType::Html(_) | PartType::Binary(_) | PartType::InlineBinary(_) => {
                let name = names.name(&given.unwrap_or_else(|| format!("attachment-{number}")));
                let media_type = attached
                    .content_type()
                    .map(|kind| format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or_default()));
                within(&mut found, &name, budget, |budget| {
                    read_within(attached.contents(), &name, media_type.as_deref(), budget)
                });
            }
            PartType::Multipart(_) => {}
        }
    }
    found
}

/// Reads what lies within a file, and puts its documents below that name.
pub(crate) fn within(
    found: &mut Found,
    name: &str,
    budget: &mut Budget,
    read: impl FnOnce(&mut Budget) -> Result<Found, Failure>,
) {
    if budget.depth >= crate::limits::MAX_DEPTH {
        found.leave_out(format!("{name}: it lies too deep"));
        return;
    }
    if !budget.take_document() {
        found.leave_out(format!("{name}: there are too many files"));
        return;
    }
    budget.depth += 1;
    let read = read(budget);
    budget.depth -= 1;
    match read {
        Ok(inner) => {
            for why in inner.left_out {
                found.leave_out(format!("{name}: {why}"));
            }
            for part in inner.parts {
                let within =
                    if part.within.is_empty() { name.to_owned() } else { format!("{name}/{}", part.within) };
                found.parts.push(Part { within, ..part });
            }
        }
        Err(failure) => found.leave_out(format!("{name}: {}", failure.in_a_file())),
    }
}

/// The head of a message and its words.
fn written(message: &Message<'_>, most: usize) -> String {
    let mut text = String::new();
    let mut head = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            text.push_str(&format!("{name}: {}\n", value.replace(['\r', '\n'], " ")));
        }
    };
    head("From", message.from().map(people));
    head("To", message.to().map(people));
    head("Cc", message.cc().map(people));
    head("Date", message.date().map(mail_parser::DateTime::to_rfc3339));
    head("Subject", message.subject().map(str::to_owned));
    for part in message.text_bodies() {
        let words = match &part.body {
            PartType::Text(words) => words.replace("\r\n", "\n"),
            PartType::Html(page) => html::to_text(page, most).0,
            _ => continue,
        };
        text.push('\n');
        text.push_str(words.trim_end());
        text.push('\n');
        if text.len() > most {
            break;
        }
    }
    text
}

fn people(address: &Address<'_>) -> String {
    const MOST: usize = 50;
    let one = |person: &mail_parser::Addr<'_>| match (person.name(), person.address()) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (Some(only), None) | (None, Some(only)) => only.to_owned(),
        (None, None) => String::new(),
    };
    address.iter().take(MOST).map(one).filter(|person| !person.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The messages of a mailbox, each a document of its own.
pub(crate) fn mailbox(bytes: &[u8], budget: &mut Budget) -> Result<Found, Failure> {
    if !bytes.starts_with(b"From ") {
        return Err(Failure::broken("it does not begin with a message"));
    }
    let mut found = Found::of("mbox", Vec::new());
    for (number, message) in (1u64..).zip(MessageIterator::new(Cursor::new(bytes))) {
        let message = message.map_err(Failure::broken)?;
        if budget.room() == 0 || number > crate::limits::MAX_DOCUMENTS {
            found.leave_out(format!("the messages from {number} on: there is too much"));
            break;
        }
        within(&mut found, &format!("{number}.eml"), budget, |budget| mail(message.contents(), budget));
    }
    Ok(found)
}
