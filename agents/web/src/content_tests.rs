use proptest::prelude::*;

use super::*;

#[test]
fn the_kind_is_what_the_site_says_else_what_stands_there() {
    let table: [(Option<&str>, &[u8], Kind); 14] = [
        (Some("text/html; charset=x"), b"", Kind::Html),
        (Some("TEXT/HTML"), b"", Kind::Html),
        (None, b" \n<!DOCTYPE html>", Kind::Html),
        (Some("application/octet-stream"), b"<html>", Kind::Html),
        (None, b"plain", Kind::Text),
        (Some("application/octet-stream"), b"%PDF-1.7\0", Kind::Other),
        (Some("text/csv"), b"", Kind::Text),
        (Some("application/ld+json"), b"", Kind::Text),
        (Some("application/atom+xml"), b"", Kind::Text),
        (Some("text/plain"), b"a\0b", Kind::Other),
        (Some("text/plain"), b"\xff\xfea\0", Kind::Text),
        (Some("application/pdf"), b"<html>", Kind::Other),
        (Some("image/png"), b"", Kind::Other),
        (Some("nonsense"), b"", Kind::Other),
    ];
    for (media_type, bytes, kind) in table {
        assert_eq!(kind_of(media_type, bytes), kind, "{media_type:?} {bytes:?}");
    }
}

proptest! {
    #[test]
    fn the_parts_of_a_text_join_to_the_text(text in "[a-zé€ \n]{0,300}", most in 1_usize..40) {
        let (mut joined, mut from) = (String::new(), 0);
        while from < text.len() {
            let part = slice(&text, from, most.max(4));
            prop_assert!(part.from == from && part.to > from && part.text.len() <= most.max(4));
            joined.push_str(part.text);
            from = part.to;
        }
        prop_assert_eq!(joined, text);
    }

    #[test]
    fn no_bytes_and_no_media_type_make_reading_fail(bytes in proptest::collection::vec(any::<u8>(), 0..300), said in ".{0,40}") {
        let kind = kind_of(Some(&said), &bytes);
        let _ = decode(&bytes, Some(&said), kind);
    }
}
