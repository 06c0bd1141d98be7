//! The documents in a few lines, for prompts.

use crate::Outline;

/// The documents, a line each, within so many bytes: paths and lengths first, then as many headings as there is room for,
/// the upper ones before those below them.
#[must_use]
pub fn in_words(outlines: &[Outline], most: usize) -> String {
    let bare: Vec<String> =
        outlines.iter().map(|one| format!("{} ({} {})", one.path, one.lines, one.unit.many())).collect();
    let mut room = most;
    let listed = bare.iter().take_while(|line| {
        let fits = line.len() < room;
        room = room.saturating_sub(line.len() + 1);
        fits
    });
    let listed = listed.count();
    let chosen = headings(&outlines[..listed], room);
    let mut lines: Vec<String> = (bare.into_iter().take(listed).zip(chosen))
        .map(
            |(line, headings)| {
                if headings.is_empty() { line } else { format!("{line}: {}", headings.join("; ")) }
            },
        )
        .collect();
    if listed < outlines.len() {
        lines.push(format!("and {} more", outlines.len() - listed));
    }
    lines.join("\n")
}

/// Which headings of each document are told: level by level, as long as there is room.
fn headings(outlines: &[Outline], mut room: usize) -> Vec<Vec<String>> {
    const DEEPEST: usize = 3;
    let mut told: Vec<Vec<(usize, &str)>> = vec![Vec::new(); outlines.len()];
    'levels: for level in 1..=DEEPEST {
        for (one, told) in outlines.iter().zip(&mut told) {
            for (at, trail) in one.headings.iter().enumerate() {
                let Some(own) = trail.rsplit(" > ").next() else { continue };
                if trail.matches(" > ").count() + 1 != level {
                    continue;
                }
                if own.len() + 2 > room {
                    break 'levels;
                }
                room -= own.len() + 2;
                told.push((at, own));
            }
        }
    }
    let in_order = |mut told: Vec<(usize, &str)>| {
        told.sort_by_key(|(at, _)| *at);
        told.into_iter().map(|(_, heading)| heading.to_owned()).collect()
    };
    told.into_iter().map(in_order).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(path: &str, headings: &[&str]) -> Outline {
        let headings = headings.iter().map(|one| (*one).into()).collect();
        Outline { path: path.into(), lines: 9, unit: crate::Unit::Line, headings }
    }

    #[test]
    fn upper_headings_come_first_and_stand_in_order() {
        let all = [outline("a.md", &["A", "A > One", "A > Two"]), outline("b.md", &["B", "B > Three"])];
        assert_eq!(in_words(&all, 500), "a.md (9 lines): A; One; Two\nb.md (9 lines): B; Three");
        assert_eq!(in_words(&all, 42), "a.md (9 lines): A; One\nb.md (9 lines): B");
        assert_eq!(in_words(&all, 36), "a.md (9 lines): A\nb.md (9 lines): B");
        assert_eq!(in_words(&all, 20), "a.md (9 lines)\nand 1 more");
        assert_eq!(in_words(&[], 20), "");
    }
}
