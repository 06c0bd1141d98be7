use super::*;
use muster_tools::settings::ReadLimits;

/// A picture by its header: a chunk of PNG, so wide and so high.
fn png_of(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.extend(b"\x08\x02\0\0\0");
    bytes
}

fn jpeg_of(segments: &[u8]) -> Vec<u8> {
    [b"\xff\xd8", segments].concat()
}

fn webp_of(chunk: &[u8]) -> Vec<u8> {
    [b"RIFF\x40\0\0\0WEBP", chunk].concat()
}

fn told(bytes: &[u8]) -> String {
    let mut budget = Budget::new(ReadLimits::default(), bytes.len() as u64, true);
    match picture(bytes, &mut budget) {
        Ok(found) => found.parts.into_iter().flat_map(|part| part.pieces).collect(),
        Err(failure) => failure.in_short(),
    }
}

#[test]
fn a_line_is_made_of_the_header() {
    const FRAME: &[u8] = b"\xff\xc2\0\x11\x08\x01\xe0\x02\x80\x03";
    for (name, bytes, line) in [
        ("png", png_of(640, 480), "PNG, 640 x 480, 29 bytes"),
        (
            "jpeg",
            jpeg_of(&[b"\xff\xe0\0\x04ab\xff\xff\xc4\0\x02", FRAME].concat()),
            "JPEG, 640 x 480, 23 bytes",
        ),
        ("gif", b"GIF89a\x80\x02\xe0\x01\0".to_vec(), "GIF, 640 x 480, 11 bytes"),
        (
            "lossy",
            webp_of(b"VP8 \x20\0\0\0\x10\0\0\x9d\x01\x2a\x80\x42\xe0\x01"),
            "WebP, 640 x 480, 30 bytes",
        ),
        ("lossless", webp_of(b"VP8L\x20\0\0\0\x2f\x7f\xc2\x77\0"), "WebP, 640 x 480, 25 bytes"),
        ("extended", webp_of(b"VP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0"), "WebP, 640 x 480, 30 bytes"),
    ] {
        assert_eq!(told(&bytes), format!("[picture: {line}; corpus.look shows it to a model]"), "{name}");
    }
    assert_eq!(
        (grouped(999), grouped(45_312), grouped(1_000_000)),
        ("999".into(), "45,312".into(), "1,000,000".into())
    );
}

#[test]
fn broken_and_hostile_headers_are_told() {
    for (name, bytes, why) in [
        ("cut", png_of(640, 480)[..20].to_vec(), "says no size"),
        ("no header", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIDAT\0\0\0\x01\0\0\0\x01".to_vec(), "says no size"),
        ("nothing of it", png_of(0, 9), "says no size"),
        ("huge", png_of(u32::MAX, u32::MAX), "65535 pixels a side"),
        ("no frame", jpeg_of(b"\xff\xda\0\x02"), "says no size"),
        ("a length of nothing", jpeg_of(b"\xff\xe0\0\0\xff\xe0\0\0"), "says no size"),
        ("a length beyond the end", jpeg_of(b"\xff\xe0\xff\xff"), "says no size"),
        ("fill", jpeg_of(&[0xff; 1_000_000]), "says no size"),
        ("short gif", b"GIF89a\0".to_vec(), "says no size"),
        ("another chunk", webp_of(b"ICCP\0\0\0\0"), "says no size"),
        ("another code", webp_of(b"VP8 \x20\0\0\0\x10\0\0\0\0\0\x80\x02\xe0\x01"), "says no size"),
    ] {
        let said = told(&bytes);
        assert!(said.contains(why), "{name}: {said}");
    }
}
