//! Which of some names is meant by one that is none of them.

/// How alike two names have to be, of 1: of three letters one may be wrong.
const NEAR: f64 = 0.65;

/// Most characters of a name that are compared.
const MOST: usize = 200;

/// The candidate nearest to `name`, if one is near enough to be meant: by the letters that would have to be changed,
/// relative to the longer of the two. Of names with dots or slashes the last part counts too: `search` is near
/// `corpus.search`.
#[must_use]
pub fn nearest_name<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = comparable(name);
    let scored = candidates.map(|candidate| {
        let other = comparable(candidate);
        let whole = likeness(&name, &other);
        // Of two with the same last part, the one that is nearer in whole.
        let part = 0.95 * likeness(last_part(&name), last_part(&other));
        (whole.max(part), whole, candidate)
    });
    let near = scored.filter(|(best, ..)| *best >= NEAR);
    let nearest = near.max_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    nearest.map(|(.., candidate)| candidate)
}

fn comparable(name: &str) -> String {
    name.trim().to_lowercase().chars().take(MOST).collect()
}

fn last_part(name: &str) -> &str {
    name.rsplit(['.', '/']).next().unwrap_or(name)
}

fn likeness(one: &str, other: &str) -> f64 {
    let longer = one.chars().count().max(other.chars().count());
    if longer == 0 {
        return 0.0;
    }
    1.0 - strsim::osa_distance(one, other) as f64 / longer as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_is_meant() {
        let known = [
            "limits.max_steps",
            "limits.max_depth",
            "roles.*.max_steps",
            "corpus.search",
            "replay",
            "worker",
        ];
        for (name, meant) in [
            ("limits.max_step", Some("limits.max_steps")),
            ("limits.maxdepth", Some("limits.max_depth")),
            ("roles.writer.max_stepz", Some("roles.*.max_steps")),
            ("search", Some("corpus.search")),
            ("corpus.serach", Some("corpus.search")),
            ("Wroker", Some("worker")),
            ("repo", None),
            ("work", Some("worker")),
            ("max", None),
            ("", None),
        ] {
            assert_eq!(nearest_name(name, known.into_iter()), meant, "{name}");
        }
        assert_eq!(nearest_name("", [""].into_iter()), None);
    }
}
