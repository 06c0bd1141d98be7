//! Lines of web pages.

use super::super::super::text::strip_tags;
use super::{BlockSplitter, RawKind};

pattern!(HTML_HEADING, r"(?i)^\s*<h([1-6])\b[^>]*>(.*?)(?:</h[1-6]>.*)?$");
pattern!(OPEN_TAG, r"</?[A-Za-z!][^<>]*$");
pattern!(
    BLOCK_TAG,
    r"(?i)</?(?:p|li|div|h[1-6]|tr|td|th|ul|ol|dl|dt|dd|table|section|article|header|footer|nav|main|body|head|title|br|hr|pre|blockquote|figure|figcaption|summary|details)\b[^>]*>"
);

impl BlockSplitter {
    pub(super) fn html_line(&mut self, number: u32, raw: &str) {
        let raw = match (self.in_tag, raw.find('>')) {
            (true, None) => return,
            (true, Some(end)) => &raw[end + 1..],
            (false, _) => raw,
        };
        let cut = OPEN_TAG.find(raw).map_or(raw.len(), |open| open.start());
        self.in_tag = cut < raw.len();
        let raw = &raw[..cut];
        let lower = raw.to_ascii_lowercase();
        if lower.contains("<script") || lower.contains("<style") {
            self.flush();
            self.in_script = !(lower.contains("</script") || lower.contains("</style"));
            return;
        }
        if self.in_script {
            self.in_script = !(lower.contains("</script") || lower.contains("</style"));
            return;
        }
        if !raw.contains('<') {
            // The tools give web pages as text with headings marked by `#`; a space at the end of a line
            // stands where an element ended.
            self.prose_line(number, raw);
            if raw.ends_with(' ') {
                // An element on one line: an item of a list, as far as can be told.
                if self.open.kind == RawKind::Text && self.open.pieces.len() == 1 {
                    self.open.kind = RawKind::Item;
                }
                self.flush();
            }
            return;
        }
        if let Some(found) = HTML_HEADING.captures(raw) {
            let level = found[1].parse().unwrap_or(6);
            self.heading(level, &found[2]);
            return;
        }
        let mut at = 0;
        for tag in BLOCK_TAG.find_iter(raw) {
            self.text(number, strip_tags(&raw[at..tag.start()]).trim());
            self.flush();
            at = tag.end();
        }
        self.text(number, strip_tags(&raw[at..]).trim());
    }
}
