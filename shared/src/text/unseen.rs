//! Characters that nobody sees, and that do something all the same.

/// Whether a character could steer a terminal, turn the direction of text around, part lines where none is parted, or hide.
#[must_use]
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}')
}
