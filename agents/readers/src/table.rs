//! Tables in text: CSV (RFC 4180) and its like, as rows with tabs.

/// The rows of a table with tabs between cells, at most so many bytes.
pub(crate) fn rows(text: &str, most: usize) -> String {
    let separator = separator(text);
    let (mut out, mut quoted, mut at_start) = (String::with_capacity(text.len().min(most)), false, true);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if out.len() + 4 > most {
            break;
        }
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => {
                rest.next();
                out.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if at_start => quoted = true,
            '\r' => {}
            '\n' | '\t' if quoted => out.push(' '),
            c if c == separator && !quoted => out.push('\t'),
            c => out.push(c),
        }
        at_start = !quoted && (c == separator || c == '\n');
    }
    out
}

/// The character between cells: of those that the first line has, the most frequent.
fn separator(text: &str) -> char {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let count = |separator: &char| first.matches(*separator).count();
    [',', ';', '\t', '|'].into_iter().rev().max_by_key(count).unwrap_or(',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_told_apart_as_they_stand() {
        for (text, shown) in [
            ("a,b\r\n1,\"x, y\"\r\n", "a\tb\n1\tx, y\n"),
            ("a;b\n\"say \"\"hi\"\"\";2\n", "a\tb\nsay \"hi\"\t2\n"),
            ("a\tb\n5\" pipe\t2", "a\tb\n5\" pipe\t2"),
            ("a,b\n\"two\nlines\",3", "a\tb\ntwo lines\t3"),
        ] {
            assert_eq!(rows(text, 1_000), shown);
        }
        assert!(rows("a,b,c,d,e,f", 6).len() <= 6);
    }
}
