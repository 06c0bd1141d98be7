//! The place of a task in the plan.

use std::fmt;
use std::str::FromStr;

use super::{NameError, TaskId, parse_position};
use crate::text_form::text_form;

/// The place of a task in the plan tree, such as `1-2-3`; a member of a committee or of a redundant
/// group carries a letter: `1-2~a`. Orders depth first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskIndex {
    path: Path,
    member: Option<char>,
}

/// The positions on the way to a task. Indices are looked up and copied all the time and mostly short: up to
/// [`Path::SHORT`] positions stand in place.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Path {
    /// The first so many of these.
    Short(u8, [u16; Self::SHORT]),
    /// All of these.
    Long(Box<[u16]>),
}

impl Path {
    /// How many positions stand in place.
    const SHORT: usize = 10;

    fn as_slice(&self) -> &[u16] {
        match self {
            Self::Short(count, positions) => positions.get(..usize::from(*count)).unwrap_or(positions),
            Self::Long(positions) => positions,
        }
    }
}

impl From<&[u16]> for Path {
    fn from(path: &[u16]) -> Self {
        let mut positions = [0; Self::SHORT];
        match (positions.get_mut(..path.len()), u8::try_from(path.len())) {
            (Some(head), Ok(count)) => {
                head.copy_from_slice(path);
                Self::Short(count, positions)
            }
            _ => Self::Long(path.into()),
        }
    }
}

impl PartialOrd for Path {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Path {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl TaskIndex {
    /// Deepest index that is accepted anywhere.
    pub const MAX_DEPTH: usize = 20;

    /// The `n`th task (from 1) at the top of the plan.
    #[must_use]
    pub fn top(n: u16) -> Self {
        Self { path: Path::from([n].as_slice()), member: None }
    }

    /// The `n`th child (from 1) of this task.
    #[must_use]
    pub fn child(&self, n: u16) -> Self {
        let mut path = self.positions().to_vec();
        path.push(n);
        Self { path: Path::from(path.as_slice()), member: None }
    }

    /// The task above, or nothing at the top.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.positions().split_last()?;
        (!above.is_empty()).then(|| Self { path: Path::from(above), member: None })
    }

    /// 1 at the top of the plan.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.positions().len()
    }

    /// The positions on the way to it, from the top.
    #[must_use]
    pub fn positions(&self) -> &[u16] {
        self.path.as_slice()
    }

    /// The position among its siblings, from 1.
    #[must_use]
    pub fn position(&self) -> u16 {
        self.positions().last().copied().unwrap_or(0)
    }

    /// Whether both are the same place in the tree, whichever member they name.
    #[must_use]
    pub fn is_same_place(&self, other: &Self) -> bool {
        self.path == other.path
    }

    /// The member of this task that carries the letter, from `a` to `z`; nothing for anything else, or when this is a
    /// member itself.
    #[must_use]
    pub fn member(&self, letter: char) -> Option<Self> {
        let fits = self.member.is_none() && letter.is_ascii_lowercase();
        fits.then(|| Self { path: self.path.clone(), member: Some(letter) })
    }

    /// The letter of a member.
    #[must_use]
    pub const fn letter(&self) -> Option<char> {
        self.member
    }

    /// Whether it names a member of a committee or of a redundant group, which stands in no plan.
    #[must_use]
    pub const fn is_member(&self) -> bool {
        self.member.is_some()
    }

    /// The id of this task.
    #[must_use]
    pub fn to_task_id(&self) -> TaskId {
        TaskId::Leaf(self.clone())
    }

    /// The task of the plan: of a member the one that it is a member of, else itself.
    #[must_use]
    pub fn planned(&self) -> Self {
        Self { path: self.path.clone(), member: None }
    }

    /// Whether `self` lies anywhere below `other`.
    #[must_use]
    pub fn is_below(&self, other: &Self) -> bool {
        let (own, above) = (self.positions(), other.positions());
        own.len() > above.len() && own.starts_with(above)
    }
}

impl fmt::Display for TaskIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.positions().iter().enumerate() {
            let dash = if at == 0 { "" } else { "-" };
            write!(f, "{dash}{part}")?;
        }
        self.member.map_or(Ok(()), |member| write!(f, "~{member}"))
    }
}

impl FromStr for TaskIndex {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let wrong = || NameError::new(text, "a task index such as 1-2-3");
        let (path, member) = match text.split_once('~') {
            None => (text, None),
            Some((path, member)) => {
                let letter: char = member.parse().ok().filter(char::is_ascii_lowercase).ok_or_else(wrong)?;
                (path, Some(letter))
            }
        };
        let path = path.split('-').map(parse_position).collect::<Option<Vec<u16>>>().ok_or_else(wrong)?;
        if path.len() > Self::MAX_DEPTH {
            return Err(wrong());
        }
        Ok(Self { path: Path::from(path.as_slice()), member })
    }
}
text_form!(
    TaskIndex,
    "TaskIndex",
    "^[1-9][0-9]*(-[1-9][0-9]*)*(~[a-z])?$",
    "The place of a task in the plan"
);
