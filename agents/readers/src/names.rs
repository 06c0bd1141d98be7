//! Names of what lies within a file, as they can be cited: they lead nowhere else, and none stands twice.

use std::collections::HashSet;

/// Longest name, in bytes.
const LONGEST: usize = 300;

/// The names that were given.
#[derive(Debug, Default)]
pub(crate) struct Names(HashSet<String>);

impl Names {
    /// The name of one thing, such as a sheet: a part of a path, without spaces.
    pub(crate) fn name(&mut self, wanted: &str) -> String {
        // Of what stands in running text as one word, so that a place in it is known as one.
        let fine = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let words: Vec<&str> = wanted.split_whitespace().collect();
        let plain: String = words.join("_").chars().map(|c| if fine(c) { c } else { '-' }).collect();
        self.once(plain.trim_matches('.').to_owned())
    }

    /// The path of a file; what leads out of the archive is taken as if it lay in it.
    pub(crate) fn path(&mut self, wanted: &str) -> String {
        let fine = |c: char| if c.is_control() { '-' } else { c };
        let wanted = wanted.replace('\\', "/");
        let parts: Vec<String> = wanted
            .split('/')
            .map(str::trim)
            .filter(|part| !part.is_empty() && !part.chars().all(|c| c == '.'))
            .map(|part| part.chars().map(fine).collect())
            .collect();
        self.once(parts.join("/"))
    }

    fn once(&mut self, mut plain: String) -> String {
        plain.truncate(plain.floor_char_boundary(LONGEST));
        if plain.is_empty() {
            "unnamed".clone_into(&mut plain);
        }
        let mut name = plain.clone();
        let mut number = 2;
        while !self.0.insert(name.clone()) {
            name = match plain.rsplit_once('.') {
                Some((stem, ending)) if !stem.is_empty() && !ending.contains('/') => {
                    format!("{stem}-{number}.{ending}")
                }
                _ => format!("{plain}-{number}"),
            };
            number += 1;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_and_stand_once() {
        let mut names = Names::default();
        for (wanted, given) in [
            ("../../etc/passwd", "etc/passwd"),
            ("/etc/passwd", "etc/passwd-2"),
            ("a\\..\\b.txt", "a/b.txt"),
            ("a/b.txt", "a/b-2.txt"),
            ("a/b.txt", "a/b-3.txt"),
            ("x\ny", "x-y"),
            ("..", "unnamed"),
        ] {
            assert_eq!(names.path(wanted), given, "{wanted}");
        }
        assert_eq!(names.name("Q1 / 2024: all"), "Q1_-_2024-_all");
        assert_eq!(names.name(".."), "unnamed-2");
    }
}
