//! Bounds of what a template of the user's may do: it ends, and takes no more memory than a prompt is worth.
//!
//! The engine counts instructions, and asks before it puts a value into a text. What operators make has no such place: those
//! that make texts longer stand only where their result is shown at once, and not kept to be made longer again.

use std::fmt::{self, Write as _};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{Object, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State, Template, filters};

/// Most bytes of a rendering, of a value that a filter takes or makes, and of all values that are put into texts on the way.
pub(super) const MOST_BYTES: usize = 8 * 1024 * 1024;
/// Most instructions of one rendering: a prompt of a large task takes a fiftieth of it, and a loop in a loop ends.
const MOST_WORK: usize = 1_000_000;
/// The same where long pieces of text may be repeated.
const LEAST_WORK: usize = 50_000;
/// Most bytes of plain text that loops may keep: by the longest piece, this is how much work there may be.
const MOST_REPEATED: usize = 2 * 1024 * 1024 * 1024;
/// Longest expression or statement, in bytes: one of many operators would overflow the stack while it is read.
const MAX_BLOCK: usize = 1_000;
/// Most further conditions in a template: the engine reads each within the one before.
const MOST_ELIFS: usize = 200;
/// Largest number that a filter takes which makes so many or so wide pieces.
const MOST_PIECES: i64 = 1_000;
/// Most digits of a number by which a text is multiplied.
const FACTOR_DIGITS: usize = 3;
/// Functions of ours, and of the engine's that keep nothing: what is made within their parentheses is gone afterwards.
const KEEP_NOTHING: [&str; 4] = ["fence", "as_json", "range", "dict"];

/// Sets the bounds of an environment.
pub(super) fn set(environment: &mut Environment<'static>) {
    environment.set_fuel(u64::try_from(MOST_WORK).ok());
    // An error tells its place, and not all values around it: there may be no end to them.
    environment.set_debug(false);
    environment.set_formatter(put);
    for (name, filter) in [
        ("batch", Value::from_function(filters::batch)),
        ("capitalize", Value::from_function(filters::capitalize)),
        ("chain", Value::from_function(filters::chain)),
        ("dictsort", Value::from_function(filters::dictsort)),
        ("format", Value::from_function(filters::format)),
        ("groupby", Value::from_function(filters::groupby)),
        ("indent", Value::from_function(filters::indent)),
        ("items", Value::from_function(filters::items)),
        ("join", Value::from_function(filters::join)),
        ("lines", Value::from_function(filters::lines)),
        ("list", Value::from_function(filters::list)),
        ("lower", Value::from_function(filters::lower)),
        ("pprint", Value::from_function(filters::pprint)),
        ("replace", Value::from_function(filters::replace)),
        ("reverse", Value::from_function(filters::reverse)),
        ("slice", Value::from_function(filters::slice)),
        ("sort", Value::from_function(filters::sort)),
        ("split", Value::from_function(filters::split)),
        ("string", Value::from_function(filters::string)),
        ("sum", Value::from_function(filters::sum)),
        ("title", Value::from_function(filters::title)),
        ("trim", Value::from_function(filters::trim)),
        ("unique", Value::from_function(filters::unique)),
        ("upper", Value::from_function(filters::upper)),
        ("zip", Value::from_function(filters::zip)),
    ] {
        environment.add_filter(name, move |state: &State<'_, '_>, given: Rest<Value>| {
            given.iter().try_for_each(fits)?;
            plausible(name, &given)?;
            let made = filter.call(state, &given)?;
            fits(&made)?;
            Ok::<Value, Error>(made)
        });
    }
}

/// Renders a template. A text that becomes too long is an error.
pub(super) fn render(template: &Template<'_, '_>, context: Value) -> Result<String, Error> {
    let mut written = Written::default();
    match template.render_captured_to(context, &mut written) {
        Ok(_) => String::from_utf8(written.0).map_err(|_| too_much("it is no text".to_owned())),
        Err(_) if written.0.len() >= MOST_BYTES => Err(too_long()),
        Err(error) => Err(error),
    }
}

/// What is rendered, up to the bound.
#[derive(Default)]
struct Written(Vec<u8>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MOST_BYTES - self.0.len();
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room { Err(io::Error::other("too long")) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How many bytes of values a rendering has put into texts.
#[derive(Debug, Default)]
struct Put(AtomicUsize);

impl Object for Put {}

/// Puts a value into the text, or into one that is kept.
fn put(out: &mut Output<'_>, state: &State<'_, '_>, value: &Value) -> Result<(), Error> {
    let bytes = length(value)?;
    let sum = state.get_or_set_temp_object("muster.put", Put::default);
    if sum.0.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > MOST_BYTES {
        return Err(too_long());
    }
    minijinja::escape_formatter(out, state, value)
}

fn too_much(why: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, why)
}

fn too_long() -> Error {
    too_much(format!("what it makes is longer than {MOST_BYTES} bytes"))
}

pub(super) fn fits(value: &Value) -> Result<(), Error> {
    length(value).map(drop)
}

/// How long a value is as text.
fn length(value: &Value) -> Result<usize, Error> {
    struct Count(usize);
    impl fmt::Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 = self.0.saturating_add(text.len());
            if self.0 > MOST_BYTES { Err(fmt::Error) } else { Ok(()) }
        }
    }
    if value.is_undefined() {
        return Ok(0);
    }
    let mut count = Count(0);
    match value.as_str() {
        Some(text) => count.0 = text.len(),
        // A value that fails to be shown in full is too long.
        None => drop(write!(count, "{value}")),
    }
    if count.0 > MOST_BYTES { Err(too_long()) } else { Ok(count.0) }
}

/// Whether a filter would make much of little.
fn plausible(name: &str, given: &[Value]) -> Result<(), Error> {
    let text = |at: usize| given.get(at).and_then(Value::as_str).map_or(0, str::len);
    let wide = || given.iter().skip(1).flat_map(numbers).max().unwrap_or(0);
    let made = match name {
        "batch" | "slice" | "indent" if wide() > MOST_PIECES => {
            return Err(too_much(format!("`{name}` takes numbers up to {MOST_PIECES}")));
        }
        "indent" => {
            let lines = given.first().and_then(Value::as_str).map_or(0, |text| text.lines().count());
            lines.saturating_mul(usize::try_from(wide()).unwrap_or(0))
        }
        "replace" => text(0).saturating_add(1).saturating_mul(text(2)) / text(1).max(1),
        "join" => given.first().and_then(Value::len).unwrap_or(0).saturating_mul(text(1)),
        "format" => {
            let digits = given.first().and_then(Value::as_str).unwrap_or_default();
            let widest = digits.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
            let starred = digits.contains('*') && wide() > MOST_PIECES;
            if widest > FACTOR_DIGITS || starred { usize::MAX } else { 0 }
        }
        _ => 0,
    };
    if made > MOST_BYTES { Err(too_long()) } else { Ok(()) }
}

/// The whole numbers among what is given to a filter, by place or by name.
fn numbers(given: &Value) -> Vec<i64> {
    match given.kind() {
        ValueKind::Number => vec![given.as_i64().unwrap_or(i64::MAX)],
        ValueKind::Map if given.is_kwargs() => {
            let names = given.try_iter().into_iter().flatten();
            names.filter_map(|name| given.get_item(&name).ok()?.as_i64()).collect()
        }
        _ => Vec::new(),
    }
}

/// A piece of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    /// Plain text.
    Plain(&'a str),
    /// An expression that is shown, or a condition.
    Shown(&'a str),
    /// Another statement.
    Statement(&'a str),
}

/// How much work a rendering of these templates may be, or why one of them is not taken.
pub(super) fn checked(text: &str) -> Result<u64, String> {
    let (mut longest, mut elifs) = (1, 0);
    for piece in pieces(text) {
        elifs += usize::from(matches!(piece, Piece::Shown(block) if block.starts_with("elif")));
        if elifs > MOST_ELIFS {
            return Err(format!("it has more than {MOST_ELIFS} `elif`: write conditions of their own"));
        }
        match piece {
            Piece::Plain(plain) => longest = longest.max(plain.len()),
            Piece::Shown(block) | Piece::Statement(block) if block.len() > MAX_BLOCK => {
                return Err(format!(
                    "an expression in it has more than {MAX_BLOCK} bytes: write it in several"
                ));
            }
            Piece::Shown(block) => grown(block, true)?,
            Piece::Statement(block) => grown(block, false)?,
        }
    }
    let work = (MOST_REPEATED / longest).clamp(LEAST_WORK, MOST_WORK);
    u64::try_from(work).map_err(|error| error.to_string())
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    let begins = |pair: &[u8]| matches!(pair, b"{{" | b"{%" | b"{#");
    while let Some(begin) = rest.as_bytes().windows(2).position(begins) {
        let (plain, block) = rest.split_at(begin);
        pieces.push(Piece::Plain(plain));
        let (mark, inner) = block.split_at(2);
        if mark == "{#" {
            rest = inner.split_once("#}").map_or("", |(_, rest)| rest);
            continue;
        }
        let end = end_of(inner);
        let body = &inner[..end];
        // Signs that take spaces away or keep them.
        let body = body.strip_prefix(['-', '+']).unwrap_or(body);
        let body = body.strip_suffix(['-', '+']).unwrap_or(body).trim();
        rest = inner.get(end + 2..).unwrap_or_default();
        let word = body.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        match word {
            "raw" if mark == "{%" => {
                // Nothing in it means anything.
                let end = rest.find("endraw").unwrap_or(rest.len());
                pieces.push(Piece::Plain(&rest[..end]));
                rest = rest[end..].split_once("%}").map_or("", |(_, rest)| rest);
            }
            "if" | "elif" if mark == "{%" => pieces.push(Piece::Shown(body)),
            _ if mark == "{%" => pieces.push(Piece::Statement(body)),
            _ => pieces.push(Piece::Shown(body)),
        }
    }
    pieces.push(Piece::Plain(rest));
    pieces
}

/// Where a block ends: behind its strings.
fn end_of(block: &str) -> usize {
    let (mut quote, mut escaped) = (None, false);
    let end = block.as_bytes().windows(2).position(|pair| {
        let byte = pair[0];
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if byte == b'\\' => escaped = true,
            Some(mark) if byte == mark => quote = None,
            Some(_) => {}
            None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
            None => return matches!(pair, b"}}" | b"%}"),
        }
        false
    });
    end.unwrap_or(block.len())
}

/// Refuses what would make a text longer and keep it.
fn grown(block: &str, shown: bool) -> Result<(), String> {
    let text = without_strings(block);
    // Within parentheses of what may keep its arguments: a macro, or the loop itself.
    let mut kept = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '(' => kept.push(keeps(&text[..at])),
            ')' => drop(kept.pop()),
            '~' | '+' | '*' => {
                let (before, after) = (&text[..at], &text[at + 1..]);
                // `**` makes numbers of numbers.
                let is_power = c == '*' && (before.ends_with('*') || after.starts_with('*'));
                let is_sum = c == '+' && (number_at_end(before) > 0 || number_at_begin(after) > 0);
                // What is spread over the arguments of a call.
                let is_spread = c == '*' && before.trim_end().ends_with(['(', ',']);
                if is_power || is_sum || is_spread {
                    continue;
                }
                if !shown || kept.contains(&true) {
                    return Err(format!(
                        "`{c}` may not make a text that is kept: show its parts one after the other, or keep them by \
                         {{% set x %}}{{{{ a }}}}{{{{ b }}}}{{% endset %}}"
                    ));
                }
                let factor = 1..=FACTOR_DIGITS;
                let is_small =
                    factor.contains(&number_at_end(before)) || factor.contains(&number_at_begin(after));
                if c == '*' && !is_small {
                    return Err(format!("`*` takes a number of at most {FACTOR_DIGITS} digits"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The same with nothing but spaces and quotation marks where strings stand.
fn without_strings(block: &str) -> String {
    let (mut quote, mut escaped) = (None, false);
    let blank = block.chars().map(|c| match quote {
        Some(_) if escaped => {
            escaped = false;
            '_'
        }
        Some(_) if c == '\\' => {
            escaped = true;
            '_'
        }
        Some(mark) if c == mark => {
            quote = None;
            c
        }
        Some(_) => '_',
        None => {
            if matches!(c, '"' | '\'') {
                quote = Some(c);
            }
            c
        }
    });
    blank.collect()
}

const fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.')
}

/// Whether what is called before an opening parenthesis may keep what it is given.
fn keeps(before: &str) -> bool {
    let before = before.trim_end();
    let name = before.rsplit(|c: char| !is_of_word(c)).next().unwrap_or_default();
    let rest = before[..before.len() - name.len()].trim_end();
    let is_group = name.is_empty() && !before.ends_with([')', ']']);
    // Words of the language before a group, filters, tests, and functions that are known.
    let is_word = matches!(name, "in" | "is" | "not" | "and" | "or" | "if" | "elif" | "else");
    let is_filter = rest.ends_with('|') || rest.ends_with(" is") || rest.ends_with(" is not");
    !(is_group || is_word || is_filter || KEEP_NOTHING.contains(&name))
}

/// How many digits the number has that stands there; none when it is no number.
fn number_at_end(text: &str) -> usize {
    let word = text.trim_end().rsplit(|c: char| !is_of_word(c)).next().unwrap_or_default();
    digits(word)
}

fn number_at_begin(text: &str) -> usize {
    let word = text.trim_start().split(|c: char| !is_of_word(c)).next().unwrap_or_default();
    digits(word)
}

fn digits(word: &str) -> usize {
    if word.bytes().all(|byte| byte.is_ascii_digit()) { word.len() } else { 0 }
}

#[cfg(test)]
#[path = "bounds_tests.rs"]
mod tests;
