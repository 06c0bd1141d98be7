//! Which of some names is meant by one that is none of them.

/// How alike two names have to be, of 1.
const NEAR: f64 = 0.7;

/// The candidate most like `name` by Jaro-Winkler similarity, if above 0.7. For a namespaced or slashed candidate the
/// last part counts too: `search` is near `corpus.search`.
pub fn nearest_name<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| {
            let last = candidate.rsplit(['.', '/']).next().unwrap_or(candidate);
            let whole = strsim::jaro_winkler(name, candidate);
            let part = strsim::jaro_winkler(name.rsplit(['.', '/']).next().unwrap_or(name), last) * 0.95;
            (candidate, whole.max(part))
        })
        .filter(|(_, likeness)| *likeness >= NEAR)
        .max_by(|left, right| left.1.total_cmp(&right.1))
        .map(|(candidate, _)| candidate)
}
