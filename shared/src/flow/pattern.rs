//! How a task is given out (O1): to one agent, by auction, to a committee, or to several of whom the first wins.

use std::fmt;
use std::str::FromStr;

use crate::text_form::text_form;

/// How a task is given out. Written `hierarchical`, `auction`, `committee:3`, `committee:3:1` (with a round of
/// discussion) or `redundant:2`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pattern {
    /// The orchestrator gives it to the agent that fits it best.
    #[default]
    Hierarchical,
    /// Agents bid for it, and the best bid gets it.
    Auction,
    /// Several do it by themselves, and come to one verdict.
    Committee {
        /// How many, from 2 to [`Pattern::MOST_MEMBERS`].
        members: u8,
        /// How often they read what the others found and think again, up to [`Pattern::MOST_ROUNDS`].
        rounds: u8,
    },
    /// Several do it at the same time; the first good result counts.
    Redundant {
        /// How many, from 2 to [`Pattern::MOST_MEMBERS`].
        copies: u8,
    },
}

impl Pattern {
    /// Most members of a committee or of a redundant group.
    pub const MOST_MEMBERS: u8 = 9;
    /// Most rounds of discussion.
    pub const MOST_ROUNDS: u8 = 3;

    /// Whether it is the usual one.
    #[must_use]
    pub const fn is_hierarchical(&self) -> bool {
        matches!(self, Self::Hierarchical)
    }

    /// How many tasks of their own it makes of one; 1 when it stays one.
    #[must_use]
    pub const fn members(self) -> u8 {
        match self {
            Self::Hierarchical | Self::Auction => 1,
            Self::Committee { members, .. } => members,
            Self::Redundant { copies } => copies,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hierarchical => f.write_str("hierarchical"),
            Self::Auction => f.write_str("auction"),
            Self::Committee { members, rounds: 0 } => write!(f, "committee:{members}"),
            Self::Committee { members, rounds } => write!(f, "committee:{members}:{rounds}"),
            Self::Redundant { copies } => write!(f, "redundant:{copies}"),
        }
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_lowercase();
        let mut parts = lower.split(':');
        let (name, first, second) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let whole = parts.next().is_none();
        let pattern = match (name, first, second) {
            ("hierarchical", None, None) => Some(Self::Hierarchical),
            ("auction", None, None) => Some(Self::Auction),
            ("committee", first, second) => {
                let members = first.map_or(Some(3), |text| within(text, 2, Self::MOST_MEMBERS));
                let rounds = second.map_or(Some(0), |text| within(text, 0, Self::MOST_ROUNDS));
                members.zip(rounds).map(|(members, rounds)| Self::Committee { members, rounds })
            }
            ("redundant", first, None) => {
                let copies = first.map_or(Some(2), |text| within(text, 2, Self::MOST_MEMBERS));
                copies.map(|copies| Self::Redundant { copies })
            }
            (_, _, _) => None,
        };
        pattern.filter(|_| whole).ok_or_else(|| {
            format!(
                "{text:?} is no pattern: write hierarchical, auction, committee:3 (2 to {} members; :1 after it for \
                 a round of discussion, at most {}) or redundant:2",
                Self::MOST_MEMBERS,
                Self::MOST_ROUNDS
            )
        })
    }
}

fn within(text: &str, least: u8, most: u8) -> Option<u8> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

text_form!(
    Pattern,
    "Pattern",
    "^(hierarchical|auction|committee(:[2-9](:[0-3])?)?|redundant(:[2-9])?)$",
    "How a task is given out: hierarchical, auction, committee:3, committee:3:1 or redundant:2"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_read_as_they_are_written() {
        for text in
            ["hierarchical", "auction", "committee:3", "committee:2:1", "committee:9:3", "redundant:2"]
        {
            assert_eq!(text.parse::<Pattern>().unwrap().to_string(), text);
        }
        assert_eq!("Committee".parse(), Ok(Pattern::Committee { members: 3, rounds: 0 }));
        assert_eq!("redundant".parse(), Ok(Pattern::Redundant { copies: 2 }));
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_those_that_are() {
        for text in
            ["", "auctions", "committee:1", "committee:10", "committee:3:4", "redundant:2:1", "auction:2"]
        {
            let refused = text.parse::<Pattern>().unwrap_err();
            assert!(refused.contains("committee:3"), "{text}: {refused}");
        }
    }
}
