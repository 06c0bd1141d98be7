//! Words that say nothing by themselves. Which these are depends on what a text is read for, so each reading has one list,
//! and all of them are here.
//!
//! | read for | by | when |
//! |---|---|---|
//! | [`is_link`] | citations | agents, whose steps are recorded |
//! | [`is_light_in_search`] | searching documents and lessons | agents, whose steps are recorded; lessons, which are an input |

/// Articles, prepositions and forms of "be". Sorted.
const LINKS: [&str; 21] = [
    "a", "an", "and", "are", "at", "be", "by", "for", "in", "is", "it", "its", "of", "on", "s", "that",
    "the", "this", "was", "were", "with",
];

/// Words without a meaning of their own in goals and passages. Sorted.
const COMMON: [&str; 126] = [
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "because", "been", "before", "being", "between", "both", "but", "by", "can", "could", "did", "do",
    "does", "done", "each", "either", "else", "for", "from", "further", "get", "had", "has", "have",
    "having", "he", "her", "here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just",
    "let", "like", "me", "might", "more", "most", "much", "must", "my", "no", "nor", "not", "of", "off",
    "on", "once", "one", "only", "or", "other", "our", "out", "over", "own", "per", "please", "same", "she",
    "should", "so", "some", "such", "tell", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "those", "through", "to", "too", "under", "until", "up", "upon", "us", "very", "was",
    "we", "were", "what", "when", "where", "whether", "which", "while", "who", "whom", "whose", "why",
    "will", "with", "within", "without", "would", "you", "your",
];

/// Further words that stand in nearly every passage. Sorted.
const LIGHT_IN_SEARCHES: [&str; 56] = [
    "above",
    "against",
    "aren't",
    "below",
    "can't",
    "cannot",
    "didn't",
    "doesn't",
    "doing",
    "don't",
    "down",
    "during",
    "ever",
    "few",
    "gets",
    "hasn't",
    "haven't",
    "hers",
    "herself",
    "himself",
    "however",
    "i'd",
    "i'll",
    "i'm",
    "i've",
    "isn't",
    "it's",
    "itself",
    "let's",
    "may",
    "myself",
    "neither",
    "ours",
    "ourselves",
    "rather",
    "s",
    "shall",
    "shouldn't",
    "t",
    "that's",
    "theirs",
    "themselves",
    "they're",
    "thus",
    "wasn't",
    "weren't",
    "what's",
    "whatever",
    "won't",
    "yes",
    "yet",
    "you'd",
    "you'll",
    "you're",
    "yours",
    "yourself",
];

/// Whether a word in lower case only links others.
#[must_use]
pub fn is_link(word: &str) -> bool {
    LINKS.binary_search(&word).is_ok()
}

fn is_common(word: &str) -> bool {
    COMMON.binary_search(&word).is_ok()
}

/// Whether a word in lower case says nothing about a passage.
#[must_use]
pub fn is_light_in_search(word: &str) -> bool {
    is_common(word) || LIGHT_IN_SEARCHES.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_as_looking_up_needs_it() {
        let lists: [&[&str]; 3] = [&LINKS, &COMMON, &LIGHT_IN_SEARCHES];
        for list in lists {
            assert!(list.windows(2).all(|pair| pair[0] < pair[1]), "{list:?}");
        }
        assert!(is_link("the") && !is_link("worker"));
        assert!(is_light_in_search("the") && !is_light_in_search("worker"));
    }
}
