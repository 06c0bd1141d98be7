//! Changes of bytes and of lines.
#![expect(clippy::ptr_arg, reason = "all changes have one shape")]

use mutatis::{Candidates, Context, Mutate};

use super::words::Words;
use crate::MAX_INPUT;

/// Changes bytes, with pieces of other inputs.
pub(super) struct Bytes<'a> {
    pub(super) pool: &'a [Vec<u8>],
    pub(super) words: &'a Words,
    pub(super) is_text: bool,
}

/// What breaks text, or means something in many formats.
const MARKS: [&[u8]; 34] = [
    b"\0",
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x80",
    "\u{feff}".as_bytes(),
    "\u{202e}".as_bytes(),
    "\u{2028}".as_bytes(),
    "e\u{301}".as_bytes(),
    "\u{1f980}".as_bytes(),
    "\u{130}".as_bytes(),
    "\u{df}".as_bytes(),
    "\u{fb01}".as_bytes(),
    b"\x1b[31m",
    b"\x7f",
    b"\r\n",
    b"\r",
    b"\n",
    b"\n\n",
    b"\t",
    b"\"",
    b"'",
    b"`",
    b"```",
    b"---\n",
    b"{{",
    b"}}",
    b"{%",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"../",
    b":",
];

/// Numbers at bounds.
pub(super) const NUMBERS: [&str; 24] = [
    "0",
    "-0",
    "-1",
    "1",
    "127",
    "128",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "1e308",
    "1e400",
    "-1e-400",
    "0.1",
];

/// What is put around or repeated, to nest deeply.
const OPENINGS: [&[u8]; 14] = [
    b"[",
    b"{\"a\":",
    b"(",
    b"{",
    b"<a>",
    b"> ",
    b"- ",
    b"not ",
    b"-",
    b"\x91",
    b"\x81\xa1a",
    b"{{",
    b"[[",
    b"# ",
];

type Change = fn(&Bytes<'_>, &mut Context, &mut Vec<u8>);

const CHANGES: [Change; 14] =
    [flip, set, insert_random, delete, double, repeat, swap, splice, cross, word, number, mark, nest, grow];
const LINE_CHANGES: [Change; 4] = [line_double, line_delete, line_swap, line_take];

impl Mutate<Vec<u8>> for Bytes<'_> {
    fn mutate(&mut self, c: &mut Candidates<'_>, value: &mut Vec<u8>) -> mutatis::Result<()> {
        let this = &*self;
        for change in CHANGES {
            c.mutation(|context| {
                change(this, context, value);
                Ok(())
            })?;
        }
        if this.is_text {
            for change in LINE_CHANGES {
                c.mutation(|context| {
                    change(this, context, value);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}

fn below(context: &mut Context, end: usize) -> usize {
    context.rng().gen_index(end).unwrap_or(0)
}

fn one<'a, T: ?Sized>(context: &mut Context, of: &[&'a T]) -> Option<&'a T> {
    let at = below(context, of.len());
    of.get(at).copied()
}

/// A part of the input, mostly a short one.
fn part(context: &mut Context, length: usize) -> std::ops::Range<usize> {
    let from = below(context, length + 1);
    let most = if below(context, 4) == 0 { length - from } else { (length - from).min(16) };
    from..from + below(context, most + 1)
}

fn put(context: &mut Context, value: &mut Vec<u8>, piece: &[u8]) {
    let at = below(context, value.len() + 1);
    let piece = &piece[..piece.len().min(MAX_INPUT)];
    value.splice(at..at, piece.iter().copied());
}

fn flip(_: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let (at, bit) = (below(context, value.len()), below(context, 8));
    if let Some(byte) = value.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

fn set(_: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let at = below(context, value.len());
    let new = context.rng().gen_u8();
    if let Some(byte) = value.get_mut(at) {
        *byte = new;
    }
}

fn insert_random(_: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let mut piece = [0; 8];
    context.rng().gen_bytes(&mut piece);
    let length = 1 + below(context, 8);
    put(context, value, &piece[..length]);
}

fn delete(_: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let part = part(context, value.len());
    value.drain(part);
}

fn double(_: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let part = part(context, value.len());
    let piece = value[part.clone()].to_vec();
    value.splice(part.end..part.end, piece);
}

/// The same piece very often.
fn repeat(_: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let part = part(context, value.len());
    let piece = value[part.clone()].to_vec();
    let times = 1 << below(context, 13);
    let times = times.min(MAX_INPUT / piece.len().max(1));
    value.splice(part, piece.repeat(times));
}

fn swap(_: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let (one, other) = (below(context, value.len()), below(context, value.len()));
    if !value.is_empty() {
        value.swap(one, other);
    }
}

/// A piece of another input within this one.
fn splice(bytes: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let other = below(context, bytes.pool.len());
    let Some(other) = bytes.pool.get(other) else { return };
    let piece = part(context, other.len());
    put(context, value, &other[piece]);
}

/// The beginning of this input, and the end of another.
fn cross(bytes: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let other = below(context, bytes.pool.len());
    let Some(other) = bytes.pool.get(other) else { return };
    value.truncate(below(context, value.len() + 1));
    value.extend_from_slice(&other[below(context, other.len() + 1)..]);
}

fn word(bytes: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    if let Some(word) = bytes.words.draw(context) {
        put(context, value, word.as_bytes());
    }
}

/// A number at a bound, in the place of one that stands there.
fn number(_: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let Some(new) = one(context, &NUMBERS) else { return };
    let from = below(context, value.len() + 1);
    let digit = |byte: &u8| byte.is_ascii_digit();
    match value[from..].iter().position(digit) {
        Some(at) => {
            let at = from + at;
            let length = value[at..].iter().take_while(|byte| digit(byte)).count();
            value.splice(at..at + length, new.bytes());
        }
        None => put(context, value, new.as_bytes()),
    }
}

fn mark(_: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    if let Some(mark) = one(context, &MARKS) {
        put(context, value, mark);
    }
}

fn nest(_: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let Some(opening) = one(context, &OPENINGS) else { return };
    let times = (1 << below(context, 16)).min(MAX_INPUT / opening.len());
    put(context, value, &opening.repeat(times));
}

/// Longer, as far as inputs may be.
fn grow(_: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let with = [b'a', b' ', b'\n', b'0', b'_', 0xc3][below(context, 6)];
    let length = 1 << (6 + below(context, 11));
    put(context, value, &vec![with; length]);
}

fn lines(value: &[u8]) -> Vec<Vec<u8>> {
    value.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn line_double(_: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let mut lines = lines(value);
    let (at, to) = (below(context, lines.len()), below(context, lines.len() + 1));
    if let Some(line) = lines.get(at).cloned() {
        lines.insert(to, line);
    }
    *value = lines.concat();
}

fn line_delete(_: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let mut lines = lines(value);
    if !lines.is_empty() {
        lines.remove(below(context, lines.len()));
    }
    *value = lines.concat();
}

fn line_swap(_: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let mut lines = lines(value);
    let (one, other) = (below(context, lines.len()), below(context, lines.len()));
    if !lines.is_empty() {
        lines.swap(one, other);
    }
    *value = lines.concat();
}

/// A line of another input.
fn line_take(bytes: &Bytes<'_>, context: &mut Context, value: &mut Vec<u8>) {
    let other = below(context, bytes.pool.len());
    let theirs = bytes.pool.get(other).map(|other| lines(other)).unwrap_or_default();
    let mut lines = lines(value);
    let (from, to) = (below(context, theirs.len()), below(context, lines.len() + 1));
    if let Some(line) = theirs.get(from).cloned() {
        lines.insert(to, line);
    }
    *value = lines.concat();
}
