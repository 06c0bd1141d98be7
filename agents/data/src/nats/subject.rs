//! Subjects and keys: which may be read, and what is asked for. Pure.

/// Longest subject that is asked for, in bytes.
const MAX: usize = 255;

/// What is wrong with a subject that may have `*` and `>` in it; nothing where it is sound.
pub(super) fn fault(subject: &str) -> Option<String> {
    let words: Vec<&str> = subject.split('.').collect();
    let is_word =
        |word: &str| !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || c.is_control());
    if subject.len() > MAX {
        return Some(format!("it is longer than {MAX} bytes"));
    }
    if !words.iter().all(|word| is_word(word)) {
        return Some("it has words between dots, none of them empty, without spaces".to_owned());
    }
    let ends_early = words.iter().rev().skip(1).any(|word| *word == ">");
    let is_mixed = words.iter().any(|word| word.len() > 1 && word.contains(['*', '>']));
    (ends_early || is_mixed)
        .then(|| "`*` stands for one word, and `>` at the end for all that follow".to_owned())
}

/// Whether all subjects that are meant by `wanted` are meant by `allowed` too.
pub(super) fn is_within(wanted: &str, allowed: &str) -> bool {
    let (mut wanted, mut allowed) = (wanted.split('.'), allowed.split('.'));
    loop {
        match (allowed.next(), wanted.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(word)) if word != ">" => {}
            (Some(own), Some(word)) if own == word => {}
            (Some(_) | None, Some(_) | None) => return false,
        }
    }
}

/// Whether a subject means one subject alone.
pub(super) fn is_one(subject: &str) -> bool {
    !subject.contains(['*', '>'])
}

/// What is asked for within what may be read: all of it where nothing is said.
///
/// # Errors
/// What is wrong, in words for a model.
pub(super) fn narrowed(wanted: Option<&str>, allowed: &str) -> Result<String, String> {
    let Some(wanted) = wanted.map(str::trim).filter(|wanted| !wanted.is_empty()) else {
        return Ok(allowed.to_owned());
    };
    if let Some(fault) = fault(wanted) {
        return Err(format!("`{wanted}` is no subject: {fault}"));
    }
    if !is_within(wanted, allowed) {
        return Err(format!("`{wanted}` is not within `{allowed}`, which is all that may be read here"));
    }
    Ok(wanted.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_asked_for_lies_within_what_may_be_read() {
        for (wanted, allowed, is) in [
            ("a", ">", true),
            (">", ">", true),
            ("a.b", "a.>", true),
            ("a", "a.>", false),
            ("a.*", "a.>", true),
            ("a.>", "a.*", false),
            ("a.>", "a.>", true),
            (">", "a.>", false),
            ("*", "a", false),
            ("*.b", "*.*", true),
            ("*.b", "a.*", false),
            ("a.b.c", "a.*", false),
            ("a.b", "a.b", true),
            ("a.b", "a.c", false),
            ("", "a", false),
        ] {
            assert_eq!(is_within(wanted, allowed), is, "{wanted} within {allowed}");
        }
        for (subject, is_sound) in [
            ("a.b", true),
            ("a.*.>", true),
            ("a..b", false),
            ("a.>.b", false),
            ("a b", false),
            ("a*", false),
            ("", false),
        ] {
            assert_eq!(fault(subject).is_none(), is_sound, "{subject}");
        }
        assert_eq!(narrowed(None, "a.>").unwrap(), "a.>");
        assert!(narrowed(Some("b"), "a.>").unwrap_err().contains("not within `a.>`"));
    }

    fn subject() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(vec!["a", "b", "*"]), 1..4)
            .prop_flat_map(|words| any::<bool>().prop_map(move |all| (words.clone(), all)))
            .prop_map(|(words, all)| words.join(".") + if all { ".>" } else { "" })
    }

    /// As a server matches a subject without wildcards.
    fn matches(subject: &str, filter: &str) -> bool {
        let (subject, filter): (Vec<_>, Vec<_>) = (subject.split('.').collect(), filter.split('.').collect());
        match filter.last() {
            Some(&">") => subject.len() >= filter.len() && same(&subject, &filter[..filter.len() - 1]),
            _ => subject.len() == filter.len() && same(&subject, &filter),
        }
    }

    fn same(subject: &[&str], filter: &[&str]) -> bool {
        filter.iter().zip(subject).all(|(own, word)| *own == "*" || own == word)
    }

    proptest! {
        /// Nothing that may not be read is ever meant by a filter that is let through.
        #[test]
        fn no_filter_leads_out(wanted in subject(), allowed in subject(), words in prop::collection::vec("[abc]", 1..6)) {
            let one = words.join(".");
            if is_within(&wanted, &allowed) && matches(&one, &wanted) {
                prop_assert!(matches(&one, &allowed), "{one} by {wanted} within {allowed}");
            }
        }
    }
}
