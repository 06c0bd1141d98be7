//! Conditions: `params.depth == "deep" and not (count(scan.findings) < 3 or scan.result contains "nothing")`.

use super::names::Path;

/// Longest condition, in bytes.
pub(super) const MAX_BYTES: usize = 500;

/// Deepest nesting of a condition.
const MAX_DEPTH: u32 = 16;

/// A condition that was read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    /// A text, a number, yes or no.
    Literal(Datum),
    /// What a path refers to.
    Path(Path),
    /// The number of items of a list, or of letters of a text.
    Count(Box<Expression>),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Compare(Box<Expression>, ComparisonOperator, Box<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComparisonOperator {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
    Contains,
    In,
}

impl ComparisonOperator {
    const ALL: [(&'static str, Self); 8] = [
        ("==", Self::Equal),
        ("!=", Self::Unequal),
        ("<=", Self::AtMost),
        (">=", Self::AtLeast),
        ("<", Self::Less),
        (">", Self::More),
        ("contains", Self::Contains),
        ("in", Self::In),
    ];
}

/// A value in a condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Datum {
    Text(String),
    Number(f64),
    Flag(bool),
    List(Vec<String>),
    /// A parameter that was not given.
    Nothing,
}

impl Datum {
    /// Whether it counts as yes: not empty, not 0, not no.
    pub(super) fn holds(&self) -> bool {
        match self {
            Self::Text(text) => !text.trim().is_empty(),
            Self::Number(number) => *number != 0.0,
            Self::Flag(flag) => *flag,
            Self::List(items) => !items.is_empty(),
            Self::Nothing => false,
        }
    }
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub(super) enum Kind {
    #[strum(to_string = "a text")]
    Text,
    #[strum(to_string = "a number")]
    Number,
    #[strum(to_string = "yes or no")]
    Flag,
    #[strum(to_string = "a list")]
    List,
}

impl Expression {
    /// Reads a condition.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("the condition has {} bytes, {MAX_BYTES} is the most", text.len()));
        }
        let mut reader = Reader { rest: text, depth: 0 };
        let found = reader.either()?;
        reader.skip();
        if reader.rest.is_empty() { Ok(found) } else { Err(reader.unexpected("the end, `and` or `or`")) }
    }

    /// What it refers to.
    pub(super) fn paths(&self) -> Vec<&Path> {
        match self {
            Self::Literal(_) => Vec::new(),
            Self::Path(path) => vec![path],
            Self::Count(of) | Self::Not(of) => of.paths(),
            Self::And(a, b) | Self::Or(a, b) | Self::Compare(a, _, b) => {
                a.paths().into_iter().chain(b.paths()).collect()
            }
        }
    }

    /// The kind of its value, or why it cannot have one. `kind` tells that of what a path refers to.
    pub(super) fn kind(&self, kind: &impl Fn(&Path) -> Option<Kind>) -> Result<Option<Kind>, String> {
        match self {
            Self::Literal(datum) => Ok(match datum {
                Datum::Text(_) => Some(Kind::Text),
                Datum::Number(_) => Some(Kind::Number),
                Datum::Flag(_) => Some(Kind::Flag),
                Datum::List(_) => Some(Kind::List),
                Datum::Nothing => None,
            }),
            Self::Path(path) => Ok(kind(path)),
            Self::Count(of) => match of.kind(kind)? {
                Some(wrong @ (Kind::Number | Kind::Flag)) => Err(format!("count() of {wrong} means nothing")),
                Some(Kind::Text | Kind::List) | None => Ok(Some(Kind::Number)),
            },
            Self::Not(of) => of.kind(kind).map(|_| Some(Kind::Flag)),
            Self::And(a, b) | Self::Or(a, b) => {
                a.kind(kind)?;
                b.kind(kind).map(|_| Some(Kind::Flag))
            }
            Self::Compare(a, how, b) => {
                if let (Some(a), Some(b)) = (a.kind(kind)?, b.kind(kind)?) {
                    comparable(a, *how, b)?;
                }
                Ok(Some(Kind::Flag))
            }
        }
    }

    /// Its value. `value` tells what a path refers to.
    pub(super) fn value(&self, value: &impl Fn(&Path) -> Datum) -> Datum {
        match self {
            Self::Literal(datum) => datum.clone(),
            Self::Path(path) => value(path),
            Self::Count(of) => Datum::Number(match of.value(value) {
                Datum::List(items) => count(items.len()),
                Datum::Text(text) => count(text.chars().count()),
                Datum::Number(_) | Datum::Flag(_) | Datum::Nothing => 0.0,
            }),
            Self::Not(of) => Datum::Flag(!of.value(value).holds()),
            Self::And(a, b) => Datum::Flag(a.value(value).holds() && b.value(value).holds()),
            Self::Or(a, b) => Datum::Flag(a.value(value).holds() || b.value(value).holds()),
            Self::Compare(a, how, b) => Datum::Flag(compare(&a.value(value), *how, &b.value(value))),
        }
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn comparable(a: Kind, how: ComparisonOperator, b: Kind) -> Result<(), String> {
    let fits = match how {
        ComparisonOperator::Equal | ComparisonOperator::Unequal => a == b,
        ComparisonOperator::Less
        | ComparisonOperator::AtMost
        | ComparisonOperator::More
        | ComparisonOperator::AtLeast => a == Kind::Number && b == Kind::Number,
        ComparisonOperator::Contains => matches!(a, Kind::Text | Kind::List) && b == Kind::Text,
        ComparisonOperator::In => a == Kind::Text && matches!(b, Kind::Text | Kind::List),
    };
    let sign = ComparisonOperator::ALL.iter().find(|(_, other)| *other == how).map_or("", |(sign, _)| sign);
    if fits { Ok(()) } else { Err(format!("`{sign}` cannot compare {a} with {b}")) }
}

/// Texts are compared as people do: without regard to case and outer space.
fn compare(a: &Datum, how: ComparisonOperator, b: &Datum) -> bool {
    let same = |a: &str, b: &str| a.trim().to_lowercase() == b.trim().to_lowercase();
    let within = |inner: &Datum, outer: &Datum| match (inner, outer) {
        (Datum::Text(inner), Datum::Text(outer)) => {
            outer.to_lowercase().contains(&inner.trim().to_lowercase())
        }
        (Datum::Text(inner), Datum::List(items)) => items.iter().any(|item| same(item, inner)),
        _ => false,
    };
    let order = |test: fn(f64, f64) -> bool| match (a, b) {
        (Datum::Number(a), Datum::Number(b)) => test(*a, *b),
        _ => false,
    };
    let equal = || match (a, b) {
        (Datum::Text(a), Datum::Text(b)) => same(a, b),
        (a, b) => a == b,
    };
    match how {
        ComparisonOperator::Equal => equal(),
        ComparisonOperator::Unequal => !equal(),
        ComparisonOperator::Less => order(|a, b| a < b),
        ComparisonOperator::AtMost => order(|a, b| a <= b),
        ComparisonOperator::More => order(|a, b| a > b),
        ComparisonOperator::AtLeast => order(|a, b| a >= b),
        ComparisonOperator::Contains => within(b, a),
        ComparisonOperator::In => within(a, b),
    }
}

/// Reads a condition from left to right.
struct Reader<'a> {
    rest: &'a str,
    depth: u32,
}

impl Reader<'_> {
    fn either(&mut self) -> Result<Expression, String> {
        self.deeper(|reader| {
            let mut found = reader.both()?;
            while reader.word("or") {
                found = Expression::Or(Box::new(found), Box::new(reader.both()?));
            }
            Ok(found)
        })
    }

    fn both(&mut self) -> Result<Expression, String> {
        let mut found = self.negated()?;
        while self.word("and") {
            found = Expression::And(Box::new(found), Box::new(self.negated()?));
        }
        Ok(found)
    }

    fn negated(&mut self) -> Result<Expression, String> {
        if self.word("not") {
            return self.deeper(|reader| Ok(Expression::Not(Box::new(reader.negated()?))));
        }
        let left = self.operand()?;
        let found = ComparisonOperator::ALL.iter().find(|(sign, _)| {
            if sign.starts_with(char::is_alphabetic) { self.word(sign) } else { self.sign(sign) }
        });
        match found {
            Some((_, how)) => Ok(Expression::Compare(Box::new(left), *how, Box::new(self.operand()?))),
            None => Ok(left),
        }
    }

    fn operand(&mut self) -> Result<Expression, String> {
        self.skip();
        if self.sign("(") {
            let inner = self.either()?;
            return if self.sign(")") { Ok(inner) } else { Err(self.unexpected("`)`")) };
        }
        for quote in ['"', '\''] {
            if let Some(rest) = self.rest.strip_prefix(quote) {
                let (text, rest) = rest.split_once(quote).ok_or("a text in quotes does not end")?;
                self.rest = rest;
                return Ok(Expression::Literal(Datum::Text(text.to_owned())));
            }
        }
        let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-');
        let end = self.rest.find(|letter| !is_part(letter)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(self.unexpected("a value"));
        }
        self.rest = rest;
        match word {
            "true" => return Ok(Expression::Literal(Datum::Flag(true))),
            "false" => return Ok(Expression::Literal(Datum::Flag(false))),
            "count" if self.sign("(") => {
                let inner = self.either()?;
                let closed = self.sign(")");
                return if closed {
                    Ok(Expression::Count(Box::new(inner)))
                } else {
                    Err(self.unexpected("`)`"))
                };
            }
            _ => {}
        }
        if let Ok(number) = word.parse::<f64>()
            && number.is_finite()
        {
            return Ok(Expression::Literal(Datum::Number(number)));
        }
        Path::read(word).map(Expression::Path)
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        if self.depth == MAX_DEPTH {
            return Err(format!("the condition nests deeper than {MAX_DEPTH} levels"));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn sign(&mut self, sign: &str) -> bool {
        self.skip();
        let rest = self.rest.strip_prefix(sign);
        rest.inspect(|_| ()).map(|rest| self.rest = rest).is_some()
    }

    fn word(&mut self, word: &str) -> bool {
        self.skip();
        let rest = self.rest.strip_prefix(word);
        let ends = |rest: &&str| {
            !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_' || next == '.')
        };
        rest.filter(ends).map(|rest| self.rest = rest).is_some()
    }

    fn unexpected(&self, wanted: &str) -> String {
        let near: String = self.rest.chars().take(20).collect();
        if near.is_empty() {
            format!("the condition ends where {wanted} is expected")
        } else {
            format!("{wanted} is expected before {near:?}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(path: &Path) -> Datum {
        match path.to_string().as_str() {
            "params.depth" => Datum::Text("Deep".to_owned()),
            "params.n" => Datum::Number(3.0),
            "params.none" => Datum::Nothing,
            "scan.findings" => Datum::List(vec!["one".to_owned(), "two".to_owned()]),
            "scan.result" => Datum::Text("There is nothing to find.".to_owned()),
            "scan.ok" => Datum::Flag(true),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn conditions_mean_what_they_say() {
        let table = [
            ("params.depth == 'deep'", true),
            ("params.depth != \"deep\"", false),
            ("params.n >= 3 and params.n < 4", true),
            ("not scan.ok or params.n > 3", false),
            ("not (scan.ok and params.n > 3)", true),
            ("count(scan.findings) == 2", true),
            ("scan.result contains 'NOTHING'", true),
            ("'two' in scan.findings", true),
            ("scan.findings contains 'tw'", false),
            ("params.none", false),
            ("params.none == 'x'", false),
            ("true and not false", true),
            ("scan.ok and params.n > 3 or params.n == 3", true),
        ];
        for (text, holds) in table {
            assert_eq!(Expression::read(text).unwrap().value(&value).holds(), holds, "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused_with_the_reason() {
        let deep = format!("{}true{}", "(".repeat(40), ")".repeat(40));
        let table = [
            ("", "ends where a value"),
            ("params.n ==", "ends where a value"),
            ("params.n = 3", "is expected before \"= 3\""),
            ("(scan.ok", "ends where `)`"),
            ("scan.mood", "refers to nothing"),
            ("wombat", "refers to nothing"),
            ("params.n > 3 params.n", "the end, `and` or `or` is expected before \"params.n\""),
            ("'open", "does not end"),
            (deep.as_str(), "nests deeper"),
        ];
        for (text, why) in table {
            let refused = Expression::read(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }

    #[test]
    fn kinds_that_cannot_be_compared_are_refused() {
        let kind = |path: &Path| match value(path) {
            Datum::Text(_) => Some(Kind::Text),
            Datum::Number(_) => Some(Kind::Number),
            Datum::Flag(_) => Some(Kind::Flag),
            Datum::List(_) => Some(Kind::List),
            Datum::Nothing => None,
        };
        for text in ["params.depth > 3", "scan.ok == 'yes'", "3 in scan.findings", "count(params.n) > 1"] {
            assert!(Expression::read(text).unwrap().kind(&kind).is_err(), "{text}");
        }
        for text in ["params.none == 3", "params.depth contains 'x'", "count(scan.result) > 1"] {
            assert!(Expression::read(text).unwrap().kind(&kind).is_ok(), "{text}");
        }
    }
}
