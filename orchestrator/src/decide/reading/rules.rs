//! The rules as this version has them.

use std::collections::BTreeMap;

use muster_shared::conflict::{
    Comparison, Found, Near, Says as _, Side, Subject, compare, detect, near, read_value,
};
use muster_shared::expected;
use muster_shared::flow::{Contradiction, Said, TextPart};
use muster_shared::plan::{complexity, coverage, tools};
use muster_shared::run::ConflictState;
use muster_shared::text::{is_with_an, normalise_space};

use super::super::groups::opinions;
use super::super::peers::context::shared_words;
use super::ReadText;
use super::question::{Counts, ReadingQuestion};

/// Reads texts by the rules of this version.
#[derive(Debug, Clone, Copy, Default)]
pub struct ByRules;

impl ReadText for ByRules {
    fn read(&self, question: &ReadingQuestion<'_>, _: u32) -> Option<Said> {
        use ReadingQuestion as Ask;
        match *question {
            Ask::SmallGoal(goal) => complexity::small(goal).map(|words| Said::Number(place(words))),
            Ask::Separable { goal, specialists } => complexity::separable(goal, specialists).map(Said::Word),
            Ask::Uncovered { goal, texts } => parts(goal, &coverage::uncovered(goal, texts.iter().copied())),
            Ask::Unanswered { goal, told, contributions } => {
                parts(goal, &coverage::unanswered(goal, told, contributions))
            }
            Ask::FirstPart { goal } => match coverage::parts(goal).as_slice() {
                [first, _, ..] => parts(goal, std::slice::from_ref(first)),
                [] | [_] => None,
            },
            Ask::Unmet { expected, result, .. } => {
                let unmet = expected::unmet(expected, result, None);
                (!unmet.is_empty()).then_some(Said::Texts(unmet))
            }
            Ask::Contradictions { sides, known, counts, tolerance } => {
                let found = detect(sides, tolerance).into_iter();
                let found: Vec<Contradiction> =
                    found.filter_map(|found| contradiction(sides, &found, known, counts)).collect();
                (!found.is_empty()).then_some(Said::Contradictions(found))
            }
            Ask::Near { sides, asked, tolerance } => {
                let pairs = near(sides, tolerance, |pair| asked.iter().any(|before| is_same(before, pair)));
                let places =
                    |pair: &Near| Some(vec![place_of(sides, &pair.one)?, place_of(sides, &pair.other)?]);
                (!pairs.is_empty()).then(|| Said::Groups(pairs.iter().filter_map(places).collect()))
            }
            Ask::SameSubject { one, other } => {
                let subject = Subject::of(one);
                yes(subject.is_some() && subject == Subject::of(other))
            }
            Ask::SameValue { side, value, tolerance } => yes(tolerance.says(side, value)),
            Ask::OtherValue { claim, value, tolerance } => {
                let subject = Subject::of(&claim.subject);
                let how = subject.map(|subject| compare(&subject, &claim.value, value, tolerance));
                yes(how == Some(Comparison::Differ))
            }
            Ask::Value { text } => read_value(text, "").map(Said::Value),
            Ask::Camps { views, tolerance } => {
                let camps = opinions::camps(views, tolerance);
                (camps.len() > 1).then_some(Said::Groups(camps))
            }
            Ask::Article { word } => yes(is_with_an(word)),
            Ask::Tool { name, known } => tools::nearest(name, known).map(|near| Said::Word(near.to_owned())),
            Ask::SharedWords { asked, results } => {
                let shared: Vec<u32> =
                    results.iter().map(|(_, result)| place(shared_words(asked, result))).collect();
                shared.iter().any(|count| *count > 0).then_some(Said::Numbers(shared))
            }
        }
    }
}

const fn yes(is_so: bool) -> Option<Said> {
    if is_so { Some(Said::Yes) } else { None }
}

fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Where parts of a goal stand in it.
fn parts(goal: &str, parts: &[String]) -> Option<Said> {
    let line = normalise_space(goal);
    let parts: Vec<TextPart> = parts.iter().filter_map(|part| TextPart::of(&line, part)).collect();
    (!parts.is_empty()).then_some(Said::Parts(parts))
}

fn place_of(sides: &[Side], wanted: &Side) -> Option<u32> {
    sides.iter().position(|side| side == wanted).map(place)
}

/// What was found, by places; nothing where it is known and only what is new counts.
fn contradiction(
    sides: &[Side],
    found: &Found,
    known: &BTreeMap<u32, ConflictState>,
    counts: Counts,
) -> Option<Contradiction> {
    let same = known.iter().filter(|(_, conflict)| conflict.subject().as_ref() == Some(&found.subject));
    let tries =
        |sides: &[Side]| sides.iter().map(|side| (side.task.clone(), side.generation)).collect::<Vec<_>>();
    let now = tries(&found.sides);
    if counts == Counts::New && same.clone().any(|(_, conflict)| tries(&conflict.sides) == now) {
        return None;
    }
    let words = found.in_words();
    let names = found.sides.iter().find(|side| side.claim.subject == words)?;
    Some(Contradiction {
        sides: found.sides.iter().filter_map(|side| place_of(sides, side)).collect(),
        named: place_of(sides, names)?,
        known: same.map(|(id, _)| *id).collect(),
    })
}

/// Whether two pairs are the same claims of the same tasks.
fn is_same(one: &Near, other: &Near) -> bool {
    let same = |one: &Side, other: &Side| {
        one.task == other.task
            && one.claim.subject == other.claim.subject
            && one.claim.value == other.claim.value
    };
    same(&one.one, &other.one) && same(&one.other, &other.other)
}
