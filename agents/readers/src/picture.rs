//! Pictures: what is known of one without a model, from its header alone.

use muster_corpus::PictureKind;

use crate::found::{Failure, Found};
use crate::limits::Budget;

/// Longest side, in pixels: no model is shown more.
const MOST_SIDE: u32 = 65_535;

/// A line about a picture: its kind, its size in pixels and in bytes.
pub(crate) fn picture(bytes: &[u8], budget: &mut Budget) -> Result<Found, Failure> {
    let kind = PictureKind::of(bytes).ok_or_else(|| Failure::Unknown("such pictures".to_owned()))?;
    let size = match kind {
        PictureKind::Png => png(bytes),
        PictureKind::Jpeg => jpeg(bytes),
        PictureKind::Gif => gif(bytes),
        PictureKind::Webp => webp(bytes),
    };
    let size = size.filter(|(width, height)| *width > 0 && *height > 0);
    let (width, height) = size.ok_or_else(|| Failure::broken("its header says no size"))?;
    if width.max(height) > MOST_SIDE {
        return Err(Failure::TooLarge(format!("{MOST_SIDE} pixels a side")));
    }
    let (name, length) = (kind.name(), grouped(bytes.len()));
    let mut line =
        format!("[picture: {name}, {width} x {height}, {length} bytes; corpus.look shows it to a model]");
    let mut found = Found::default();
    if budget.take_text(&mut line) {
        found.leave_out("the end: there is too much text");
    }
    Ok(Found { left_out: found.left_out, ..Found::text("picture", line) })
}

/// `45,312`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// These bytes as a number, the highest first.
fn high_first(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().fold(0, |number, byte| (number << 8) | u32::from(*byte)))
}

/// These bytes as a number, the lowest first.
fn low_first(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| (number << 8) | u32::from(*byte)))
}

/// PNG (ISO/IEC 15948): the first chunk is the header.
fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    let is_header = bytes.starts_with(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR");
    is_header.then(|| Some((high_first(bytes, 16, 4)?, high_first(bytes, 20, 4)?)))?
}

/// GIF: the screen on which its pictures are drawn.
fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    Some((low_first(bytes, 6, 2)?, low_first(bytes, 8, 2)?))
}

/// JPEG: the header of the first frame, behind segments of any number. Every turn leaves a byte behind.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let marker = *bytes.get(at + 1)?;
        match marker {
            // Bytes that fill.
            0xff => at += 1,
            // Markers that stand alone.
            0x01 | 0xd0..=0xd8 => at += 2,
            // Tables of codes and the like, of which the numbers are among those of frames.
            0xc4 | 0xc8 | 0xcc => at += 2 + segment(bytes, at)?,
            0xc0..=0xcf => return Some((high_first(bytes, at + 7, 2)?, high_first(bytes, at + 5, 2)?)),
            // The picture itself, or its end, before any frame; and what is no marker.
            0xd9 | 0xda | 0x00 => return None,
            0x02..=0xbf | 0xdb..=0xfe => at += 2 + segment(bytes, at)?,
        }
    }
}

/// The length of a segment behind its marker.
fn segment(bytes: &[u8], at: usize) -> Option<usize> {
    let length = high_first(bytes, at + 2, 2)?;
    usize::try_from(length).ok().filter(|length| *length >= 2)
}

/// WebP (RFC 9649): the first chunk says the size, in one of three ways.
fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    const FIRST: usize = 20;
    match bytes.get(12..16)? {
        b"VP8X" => Some((low_first(bytes, FIRST + 4, 3)? + 1, low_first(bytes, FIRST + 7, 3)? + 1)),
        b"VP8L" if bytes.get(FIRST) == Some(&0x2f) => {
            let packed = low_first(bytes, FIRST + 1, 4)?;
            Some(((packed & 0x3fff) + 1, ((packed >> 14) & 0x3fff) + 1))
        }
        b"VP8 " if bytes.get(FIRST + 3..FIRST + 6) == Some(b"\x9d\x01\x2a") => {
            let side = |at| Some(low_first(bytes, at, 2)? & 0x3fff);
            Some((side(FIRST + 6)?, side(FIRST + 8)?))
        }
        // Other chunks come after the first.
        _ => None,
    }
}

#[cfg(test)]
#[path = "picture_tests.rs"]
mod tests;
