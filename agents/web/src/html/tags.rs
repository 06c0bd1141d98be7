//! A page as tags and text, in order.

use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use super::build::Builder;

/// Longest value of an attribute that is looked at, in bytes.
const LONGEST_VALUE: usize = 4096;

/// The attributes that matter.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    pub(super) href: Option<String>,
    pub(super) role: String,
    /// Classes and identifier.
    pub(super) names: String,
    pub(super) alt: String,
    pub(super) start: Option<u32>,
    pub(super) columns: Option<usize>,
    pub(super) is_hidden: bool,
}

impl Attributes {
    fn set(&mut self, name: &[u8], value: &[u8]) {
        if value.len() > LONGEST_VALUE {
            return;
        }
        let value = String::from_utf8_lossy(value);
        let value = value.trim();
        match name {
            b"href" => self.href = Some(value.to_owned()),
            b"role" => self.role = value.to_ascii_lowercase(),
            b"class" | b"id" => {
                self.names.push(' ');
                self.names.push_str(&value.to_ascii_lowercase());
            }
            b"alt" => value.clone_into(&mut self.alt),
            b"start" => self.start = value.parse().ok(),
            b"colspan" => self.columns = value.parse().ok(),
            b"aria-hidden" => self.is_hidden |= value.eq_ignore_ascii_case("true"),
            b"style" => {
                let style: String = value.to_ascii_lowercase().split_whitespace().collect();
                self.is_hidden |= style.contains("display:none") || style.contains("visibility:hidden");
            }
            // Others say nothing of the text.
            _ => {}
        }
    }
}

/// Hands a page's tags and text to the builder.
pub(super) fn each(html: &str, builder: &mut Builder) {
    let mut emitter = CallbackEmitter::new(Reader {
        builder,
        name: String::new(),
        attributes: Attributes::default(),
        attribute: Vec::new(),
    });
    // Script and style are no markup within.
    emitter.naively_switch_states(true);
    // Reading from memory does not fail.
    let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
}

struct Reader<'a> {
    builder: &'a mut Builder,
    name: String,
    attributes: Attributes,
    attribute: Vec<u8>,
}

impl Callback<std::convert::Infallible, ()> for Reader<'_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<std::convert::Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.name = String::from_utf8_lossy(name).into_owned();
                self.attributes = Attributes::default();
                self.attribute.clear();
            }
            CallbackEvent::AttributeName { name } => {
                self.attribute.clear();
                self.attribute.extend_from_slice(name);
                if name == b"hidden" {
                    self.attributes.is_hidden = true;
                }
            }
            CallbackEvent::AttributeValue { value } => self.attributes.set(&self.attribute, value),
            CallbackEvent::CloseStartTag { .. } => {
                self.builder.start(&self.name, std::mem::take(&mut self.attributes));
            }
            CallbackEvent::EndTag { name } => self.builder.end(&String::from_utf8_lossy(name)),
            CallbackEvent::String { value } => self.builder.text(&String::from_utf8_lossy(value)),
            _ => {}
        }
        None
    }
}

/// The text of a scrap of HTML, such as a snippet with marked words, on one line.
pub(crate) fn plain(html: &str) -> String {
    let mut text = String::new();
    let emitter =
        CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<std::convert::Infallible> {
            if let CallbackEvent::String { value } = event {
                text.push_str(&String::from_utf8_lossy(value));
            }
            None
        });
    let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
    muster_shared::text::normalise_space(&text)
}
