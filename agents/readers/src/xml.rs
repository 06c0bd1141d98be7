//! XML as a stream of what is in it. Nothing that a document declares is expanded: entities of its own are left out.

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};

use crate::found::Failure;

/// What is met on the way through a document.
pub(crate) enum Met<'a> {
    /// An element begins: its name without a prefix.
    Begin(&'a str, &'a Attributes<'a>),
    /// It ends.
    End(&'a str),
    Text(&'a str),
}

/// The attributes of an element.
pub(crate) struct Attributes<'a>(&'a BytesStart<'a>);

impl Attributes<'_> {
    /// The value of the one with this name, whatever its prefix.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let found = self.0.attributes().flatten().find(|one| one.key.local_name().as_ref() == name)?;
        Some(found.value.chars().take(2_000).collect())
    }

    /// The same, by its name with its prefix.
    pub(crate) fn get_whole(&self, name: &str) -> Option<String> {
        let found = self.0.attributes().flatten().find(|one| one.key.as_ref() == name)?;
        Some(found.value.chars().take(2_000).collect())
    }
}

/// Walks through a document. What is broken ends it: what was met before has been told.
pub(crate) fn walk(bytes: &[u8], deepest: u64, mut each: impl FnMut(Met<'_>)) -> Result<(), Failure> {
    // Read as bytes, so that one byte that is no UTF-8 costs a character.
    let text = decoded(bytes);
    let mut reader = Reader::from_str(&text);
    reader.config_mut().check_end_names = false;
    let mut depth = 0u64;
    loop {
        match reader.read_event().map_err(Failure::broken)? {
            Event::Start(start) => {
                depth += 1;
                if depth > deepest {
                    return Err(Failure::TooLarge(format!("{deepest} elements within each other")));
                }
                each(Met::Begin(start.local_name().as_ref(), &Attributes(&start)));
            }
            Event::Empty(start) => {
                each(Met::Begin(start.local_name().as_ref(), &Attributes(&start)));
                each(Met::End(start.local_name().as_ref()));
            }
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                each(Met::End(end.local_name().as_ref()));
            }
            Event::Text(text) => each(Met::Text(&text.xml10_content())),
            Event::CData(text) => each(Met::Text(&text.xml10_content())),
            Event::GeneralRef(reference) => {
                let mut room = [0; 4];
                if let Ok(Some(c)) = reference.resolve_char_ref() {
                    each(Met::Text(c.encode_utf8(&mut room)));
                } else if let Some(known) = resolve_xml_entity(&reference.xml10_content()) {
                    each(Met::Text(known));
                }
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

fn decoded(bytes: &[u8]) -> String {
    muster_corpus::decode(bytes.to_vec()).unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned())
}
