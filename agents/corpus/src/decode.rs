//! From the bytes of a file to its text, or the finding that it is none.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// How many bytes at the beginning tell whether a file is text.
pub(super) const SNIFF: usize = 8 * 1024;

/// Whether the beginning of a file shows that it is no text.
pub(super) fn looks_binary(beginning: &[u8]) -> bool {
    if beginning.starts_with(b"%PDF-") {
        return true;
    }
    Encoding::for_bom(beginning).is_none() && beginning.contains(&0)
}

/// Whether a file is a picture, by how it begins.
pub(super) fn is_picture(beginning: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 7] =
        [b"\x89PNG", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*", b"\0\0\x01\0"];
    let is_bitmap = || beginning.starts_with(b"BM") && beginning.get(6..10) == Some(&[0; 4]);
    let of_riff = || beginning.starts_with(b"RIFF") && beginning.get(8..12) == Some(b"WEBP");
    let of_boxes = || {
        let brand = beginning.get(4..12).unwrap_or_default();
        [b"ftypheic", b"ftypheif", b"ftypmif1", b"ftypavif"].iter().any(|known| brand == *known)
    };
    BEGINNINGS.iter().any(|known| beginning.starts_with(known)) || is_bitmap() || of_riff() || of_boxes()
}

/// The text of a file with any byte order mark removed; none when it is binary.
pub fn decode(bytes: Vec<u8>) -> Option<String> {
    if let Some((encoding, mark)) = Encoding::for_bom(&bytes) {
        let text = if encoding == UTF_8 {
            String::from_utf8_lossy(&bytes[mark..]).into_owned()
        } else {
            encoding.decode_without_bom_handling(&bytes[mark..]).0.into_owned()
        };
        return Some(text).filter(|text| !text.contains('\0'));
    }
    if bytes.contains(&0) {
        return None;
    }
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) => decode_legacy(error.as_bytes()),
    }
}

/// Text that is not quite UTF-8: mostly UTF-8 with a few broken places, or the old western encoding.
fn decode_legacy(bytes: &[u8]) -> Option<String> {
    let controls =
        bytes.iter().filter(|byte| **byte < 32 && !matches!(byte, b'\t' | b'\n' | b'\r' | 12)).count();
    let high = bytes.iter().filter(|byte| **byte >= 128).count();
    if controls * 100 > bytes.len() || high * 3 > bytes.len() {
        return None;
    }
    let (mut broken, mut whole) = (0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        broken += usize::from(!chunk.invalid().is_empty());
        whole += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
    }
    if whole >= broken {
        Some(String::from_utf8_lossy(bytes).into_owned())
    } else {
        Some(WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_told_apart() {
        let utf16 = |text: &str, little: bool| -> Vec<u8> {
            let mark = if little { [0xff, 0xfe] } else { [0xfe, 0xff] };
            let units =
                text.encode_utf16().flat_map(|u| if little { u.to_le_bytes() } else { u.to_be_bytes() });
            mark.into_iter().chain(units).collect()
        };
        let cases: Vec<(&str, Vec<u8>, Option<&str>)> = vec![
            ("plain", b"one\ntwo".to_vec(), Some("one\ntwo")),
            ("utf-8", "grün".into(), Some("grün")),
            ("utf-8 with mark", "\u{feff}grün".into(), Some("grün")),
            ("utf-16 little", utf16("grün\n", true), Some("grün\n")),
            ("utf-16 big", utf16("grün\n", false), Some("grün\n")),
            (
                "latin-1",
                b"gr\xfcn und wei\xdf, in alter Schrift".to_vec(),
                Some("grün und weiß, in alter Schrift"),
            ),
            (
                "broken utf-8",
                [&b"\xc3\xbc and \xc3\xa4, broken: "[..], &b"\xff here"[..]].concat(),
                Some("ü and ä, broken: \u{fffd} here"),
            ),
            ("nul", b"a\0b".to_vec(), None),
            ("noise", (0..=255u8).filter(|byte| *byte != 0).collect(), None),
            ("empty", Vec::new(), Some("")),
        ];
        for (name, bytes, text) in cases {
            assert_eq!(decode(bytes).as_deref(), text, "{name}");
        }
        for (beginning, picture) in [
            (&b"\x89PNG\r\n"[..], true),
            (b"\xff\xd8\xff\xe0", true),
            (b"RIFF\x10\0\0\0WEBP", true),
            (b"RIFF\x10\0\0\0WAVE", false),
            (b"BM\x10\0\0\0\0\0\0\0", true),
            (b"BM is a company", false),
            (b"\0\0\0\x18ftypheic", true),
            (b"%PDF-1.7", false),
            (b"", false),
        ] {
            assert_eq!(is_picture(beginning), picture, "{beginning:?}");
        }
        assert!(looks_binary(b"%PDF-1.7\n") && looks_binary(b"\x7fELF\0") && !looks_binary(b"text"));
        assert!(!looks_binary(&utf16("text", true)));
    }
}
