//! Lists of what is allowed: patterns, and exceptions from them. Two patterns of a kind are either disjoint or meet in one
//! pattern, so that the meet of two lists can be written as a list again.

use std::fmt;
use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::host::HostPattern;

/// Stands for everything of its kind.
pub const EVERYTHING: &str = "*";

/// Before what is left out.
const NOT: char = '!';

/// Most patterns that one list is read with, exceptions included.
pub const MOST_PATTERNS: usize = 64;

/// Most of each that a meet of lists has: beyond, less is allowed rather than more.
const MOST_MET: usize = 4 * MOST_PATTERNS;

/// Longest pattern, in bytes.
pub const LONGEST_PATTERN: usize = 200;

/// Bytes of a pattern, on the average, that a list has room for.
const USUAL_BYTES: usize = 64;

/// What patterns of a kind mean.
pub trait PatternKind: Clone + Copy + Default + PartialEq + Eq + fmt::Debug + Send + Sync + 'static {
    /// What is listed, in words, several of it.
    const NOUN: &'static str;

    /// The pattern as it is kept.
    ///
    /// # Errors
    /// When it is none.
    fn read(pattern: &str) -> Result<String, String>;

    /// Whether all that one pattern means is meant by the other.
    fn within(narrow: &str, wide: &str) -> bool;

    /// What both patterns mean; nothing when there is none of it.
    fn meet(one: &str, other: &str) -> Option<String> {
        match (Self::within(one, other), Self::within(other, one)) {
            (true, true) => Some(one.min(other).to_owned()),
            (true, false) => Some(one.to_owned()),
            (false, true) => Some(other.to_owned()),
            (false, false) => None,
        }
    }

    /// Whether a pattern means this. What is asked about is taken as it comes.
    fn means(pattern: &str, what: &str) -> bool;
}

/// Tools, by their names: `calculator`, or `corpus.*` for all that begin so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolNames;

/// Documents, by their paths: `docs` for a document or a folder of that path, `docs/a*` for all whose path begins so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DocumentPaths;

/// Values of the shared context, by their keys: `figure`, or `figures.*` for all that begin so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContextKeys;

/// Hosts: `example.org`, `*.example.org` for those below it, each with `:443` for one port of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostNames;

fn narrower(narrow: &str, wide: &str) -> bool {
    match wide.strip_suffix('*') {
        Some(beginning) => narrow.strip_suffix('*').unwrap_or(narrow).starts_with(beginning),
        None => narrow == wide,
    }
}

fn begins_so(pattern: &str, what: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => what.starts_with(beginning),
        None => pattern == what,
    }
}

/// A pattern with a star at its end or none.
fn with_one_star(pattern: String) -> Result<String, String> {
    match pattern.find('*') {
        Some(at) if at + 1 < pattern.len() => Err("a * stands at its end only".to_owned()),
        Some(_) | None => Ok(pattern),
    }
}

/// Models write `corpus_search` for `corpus.search`.
fn plain_tool(name: &str) -> String {
    name.trim().to_lowercase().replace('.', "_")
}

impl PatternKind for ToolNames {
    const NOUN: &'static str = "tools";

    fn read(pattern: &str) -> Result<String, String> {
        with_one_star(pattern.to_lowercase())
    }

    fn within(narrow: &str, wide: &str) -> bool {
        narrower(&plain_tool(narrow), &plain_tool(wide))
    }

    fn means(pattern: &str, what: &str) -> bool {
        begins_so(&plain_tool(pattern), &plain_tool(what))
    }
}

impl PatternKind for DocumentPaths {
    const NOUN: &'static str = "documents";

    fn read(pattern: &str) -> Result<String, String> {
        let plain = pattern.strip_prefix("./").unwrap_or(pattern);
        let plain = plain.strip_suffix("/*").or_else(|| plain.strip_suffix('/')).unwrap_or(plain);
        if plain.is_empty() || plain.split('/').any(|part| part == "..") {
            return Err("a path within the documents is meant, such as docs/guide.md or docs".to_owned());
        }
        with_one_star(plain.to_owned())
    }

    fn within(narrow: &str, wide: &str) -> bool {
        let plain = narrow.strip_suffix('*').unwrap_or(narrow);
        match wide.strip_suffix('*') {
            Some(beginning) => plain.starts_with(beginning),
            None => {
                let below = plain.strip_prefix(wide);
                below.is_some_and(|rest| rest.starts_with('/') || rest.is_empty() && plain == narrow)
            }
        }
    }

    fn means(pattern: &str, what: &str) -> bool {
        let what = what.strip_prefix("./").unwrap_or(what);
        let goes_up = what.split('/').any(|part| part == "..");
        !goes_up && !what.ends_with('*') && Self::within(what, pattern)
    }
}

impl PatternKind for ContextKeys {
    const NOUN: &'static str = "keys";

    fn read(pattern: &str) -> Result<String, String> {
        with_one_star(pattern.to_owned())
    }

    fn within(narrow: &str, wide: &str) -> bool {
        narrower(narrow, wide)
    }

    fn means(pattern: &str, what: &str) -> bool {
        begins_so(pattern, what)
    }
}

impl PatternKind for HostNames {
    const NOUN: &'static str = "hosts";

    fn read(pattern: &str) -> Result<String, String> {
        HostPattern::read(pattern).map(|host| host.to_string())
    }

    fn within(narrow: &str, wide: &str) -> bool {
        match (HostPattern::read(narrow), HostPattern::read(wide)) {
            (Ok(narrow), Ok(wide)) => wide.holds(&narrow),
            (Ok(_) | Err(_), _) => false,
        }
    }

    fn meet(one: &str, other: &str) -> Option<String> {
        let (one, other) = (HostPattern::read(one).ok()?, HostPattern::read(other).ok()?);
        one.meet(&other).map(|host| host.to_string())
    }

    fn means(pattern: &str, what: &str) -> bool {
        Self::within(what, pattern)
    }
}

/// What is allowed of a kind: what one of the patterns means and none of the exceptions. Written as a list of texts, those
/// of exceptions begin with `!`.
#[derive(Clone, PartialEq, Eq)]
pub struct Allowed<K> {
    /// Everything where there is none.
    only: Option<Vec<String>>,
    except: Vec<String>,
    kind: PhantomData<K>,
}

impl<K: PatternKind> Default for Allowed<K> {
    fn default() -> Self {
        Self::all()
    }
}

impl<K: PatternKind> Allowed<K> {
    /// Everything.
    #[must_use]
    pub const fn all() -> Self {
        Self { only: None, except: Vec::new(), kind: PhantomData }
    }

    /// Nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self { only: Some(Vec::new()), except: Vec::new(), kind: PhantomData }
    }

    /// What a list of patterns and exceptions allows. A list of exceptions alone leaves them out of everything.
    ///
    /// # Errors
    /// When one of them is no pattern, or there are too many.
    pub fn read<T: AsRef<str>>(list: impl IntoIterator<Item = T>) -> Result<Self, String> {
        Self::read_at_most(list, MOST_PATTERNS)
    }

    fn read_at_most<T: AsRef<str>>(list: impl IntoIterator<Item = T>, most: usize) -> Result<Self, String> {
        let (mut patterns, mut except, mut bytes) = (Vec::new(), Vec::new(), 0);
        for text in list {
            let text = text.as_ref().trim();
            match text.strip_prefix(NOT) {
                Some(left_out) => except.push(read_one::<K>(left_out.trim())?),
                None => patterns.push(read_one::<K>(text)?),
            }
            if patterns.len() + except.len() > most {
                return Err(format!("more than {most} {} are listed", K::NOUN));
            }
            bytes += text.len();
        }
        if bytes > most * USUAL_BYTES {
            return Err(format!("the {} are listed in more than {} bytes", K::NOUN, most * USUAL_BYTES));
        }
        let everything = patterns.is_empty() && !except.is_empty();
        Ok(Self::sorted((!everything).then_some(patterns), except))
    }

    /// What both allow.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        if self.is_all() || other.is_all() {
            return if self.is_all() { other.clone() } else { self.clone() };
        }
        let only = match (&self.only, &other.only) {
            (None, only) | (only, None) => only.clone(),
            (Some(own), Some(other)) => {
                let met = own.iter().flat_map(|one| other.iter().filter_map(|other| K::meet(one, other)));
                Some(met.collect())
            }
        };
        let except = self.except.iter().chain(&other.except).cloned().collect();
        let mut met = Self::sorted(only, except);
        if met.except.len() > MOST_MET {
            // An exception that is forgotten would allow more.
            return Self::none();
        }
        met.only.iter_mut().for_each(|only| only.truncate(MOST_MET));
        met
    }

    /// Whether this is allowed.
    #[must_use]
    pub fn allows(&self, what: &str) -> bool {
        let is_meant = |list: &[String]| list.iter().any(|pattern| is_meant::<K>(pattern, what));
        self.only.as_deref().is_none_or(is_meant) && !is_meant(&self.except)
    }

    /// Whether everything is allowed.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.only.is_none() && self.except.is_empty()
    }

    /// Whether nothing is.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.only.as_ref().is_some_and(Vec::is_empty)
    }

    /// Nothing twice, nothing that another one means already, and no exception from what is not allowed anyway.
    fn sorted(only: Option<Vec<String>>, except: Vec<String>) -> Self {
        if except.iter().any(|left_out| left_out == EVERYTHING) {
            return Self::none();
        }
        let mut except = widest::<K>(except);
        let is_left = |pattern: &String| !except.iter().any(|left_out| K::within(pattern, left_out));
        let only = only.filter(|only| only.iter().all(|pattern| pattern != EVERYTHING));
        let only = only.map(|only| widest::<K>(only).into_iter().filter(is_left).collect::<Vec<_>>());
        if let Some(only) = &only {
            except.retain(|left_out| only.iter().any(|pattern| K::meet(pattern, left_out).is_some()));
        }
        Self { only, except, kind: PhantomData }
    }

    /// The list as it is written.
    pub fn list(&self) -> impl Iterator<Item = String> + '_ {
        let everything = self.only.is_none().then(|| EVERYTHING.to_owned());
        let only = self.only.iter().flatten().cloned();
        everything
            .into_iter()
            .chain(only)
            .chain(self.except.iter().map(|left_out| format!("{NOT}{left_out}")))
    }
}

/// `all tools`, `no tools`, `calculator, corpus.*`, `all tools but corpus.*`.
impl<K: PatternKind> fmt::Display for Allowed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Most patterns that are told.
        const MOST: usize = 8;
        let told = |list: &[String]| {
            let more = list.len().saturating_sub(MOST);
            let told = list.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
            if more == 0 { told } else { format!("{told} and {more} more") }
        };
        match &self.only {
            Some(only) if only.is_empty() => write!(f, "no {}", K::NOUN)?,
            Some(only) => f.write_str(&told(only))?,
            None => write!(f, "all {}", K::NOUN)?,
        }
        if self.except.is_empty() { Ok(()) } else { write!(f, " but {}", told(&self.except)) }
    }
}

impl<K: PatternKind> fmt::Debug for Allowed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

fn read_one<K: PatternKind>(plain: &str) -> Result<String, String> {
    if plain.is_empty() || plain.len() > LONGEST_PATTERN || plain.chars().any(char::is_control) {
        let shown: String = plain.chars().take(40).collect();
        return Err(format!("{shown:?} names none of the {}: write 1 to {LONGEST_PATTERN} bytes", K::NOUN));
    }
    if plain == EVERYTHING {
        return Ok(plain.to_owned());
    }
    K::read(plain).map_err(|why| format!("{plain:?} names none of the {}: {why}", K::NOUN))
}

fn is_meant<K: PatternKind>(pattern: &str, what: &str) -> bool {
    K::means(pattern, what)
}

/// The patterns that no other one holds, in order.
fn widest<K: PatternKind>(mut all: Vec<String>) -> Vec<String> {
    all.sort();
    all.dedup();
    let mut kept: Vec<String> = Vec::new();
    for pattern in all {
        if kept.iter().any(|wide| K::within(&pattern, wide)) {
            continue;
        }
        kept.retain(|narrow| !K::within(narrow, &pattern));
        kept.push(pattern);
    }
    kept
}

impl<K: PatternKind> Serialize for Allowed<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.list())
    }
}

impl<'de, K: PatternKind> Deserialize<'de> for Allowed<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What a meet of long lists made is read as it was written.
        let list = Vec::<String>::deserialize(deserializer)?;
        Self::read_at_most(list, 2 * MOST_MET).map_err(de::Error::custom)
    }
}

#[cfg(test)]
impl<K> schemars::JsonSchema for Allowed<K> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Allowed".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = Vec::<String>::json_schema(generator);
        schema.insert(
            "description".to_owned(),
            "Patterns of what is allowed, and exceptions from them, which begin with `!`; `*` is everything"
                .into(),
        );
        schema
    }
}
