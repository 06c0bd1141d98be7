//! Tables by the beginnings of models' names.

/// What stands for the longest beginning of a model's name, whatever provider is named before it. Case does not count.
pub(super) fn longest<'a, T>(table: impl IntoIterator<Item = (&'a str, T)>, model: &str) -> Option<T> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let begins =
        |begin: &str| name.get(..begin.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(begin));
    let fitting = table.into_iter().filter(|(begin, _)| begins(begin));
    fitting.max_by_key(|(begin, _)| begin.len()).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_counts() {
        let table = [("gpt-4o", 1), ("gpt-4o-mini", 2), ("GPT-5", 3)];
        for (model, found) in [
            ("gpt-4o-mini-2024", Some(2)),
            ("openai/gpt-4o-x", Some(1)),
            ("gpt-5", Some(3)),
            ("gpt-4", None),
            ("é", None),
            ("", None),
        ] {
            assert_eq!(longest(table, model), found, "{model}");
        }
    }
}
