//! Words put together as people write them.

/// A number with its noun: `1 run`, `2 runs`.
#[must_use]
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
