//! Brackets in text, counted before it is read as YAML.

/// How deeply brackets and braces stand in each other, whatever they are in: a reader of YAML that meets one within very many
/// others looks at all of these again.
#[must_use]
pub fn bracket_depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::bracket_depth;

    #[test]
    fn the_deepest_bracket_counts() {
        assert_eq!(bracket_depth("a: [1, {b: [2]}], c: []"), 3);
        assert_eq!(bracket_depth("]]]}"), 0);
        assert_eq!(bracket_depth(&"[{".repeat(50)), 100);
    }
}
