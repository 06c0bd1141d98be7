//! Values of labels: few, short, and never what a model made up.

use std::collections::BTreeSet;
use std::sync::Mutex;

use muster_shared::sync::lock;

/// Longest value, in bytes.
const LONGEST: usize = 64;

/// Most names of one kind that are known.
const MOST_KNOWN: usize = 100;

/// What stands for all that is not told.
pub(crate) const OTHER: &str = "other";

/// A value as it is told: as it is where it looks like a name, else `other`.
pub(crate) fn label(text: &str) -> &str {
    let plain =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':' | b'/' | b'@' | b'~');
    let fits = !text.is_empty() && text.len() <= LONGEST && text.bytes().all(plain);
    if fits { text } else { OTHER }
}

/// Names that are known to exist.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<BTreeSet<String>>);

impl Known {
    /// The name of something that did something, so that it exists.
    pub(crate) fn real<'a>(&self, name: &'a str) -> &'a str {
        let name = label(name);
        let mut known = lock(&self.0);
        if known.contains(name) {
            return name;
        }
        if known.len() >= MOST_KNOWN {
            return OTHER;
        }
        known.insert(name.to_owned());
        name
    }

    /// The name of something that may have been made up.
    pub(crate) fn perhaps<'a>(&self, name: &'a str) -> &'a str {
        let known = lock(&self.0);
        if known.contains(name) { name } else { OTHER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_made_up_is_no_label() {
        let known = Known::default();
        assert_eq!(known.perhaps("delete_everything"), OTHER);
        assert_eq!(known.real("calculator"), "calculator");
        assert_eq!(known.perhaps("calculator"), "calculator");
        for odd in ["", "a b", "\"}", "né", &"x".repeat(65)] {
            assert_eq!(label(odd), OTHER, "{odd}");
        }
        for n in 0..200 {
            known.real(&format!("tool{n}"));
        }
        assert_eq!(known.real("one_more"), OTHER);
    }
}
