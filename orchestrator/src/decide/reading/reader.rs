//! Asks rules about language for a decision, and keeps what they said.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use muster_shared::conflict::{Near, Says, Side, Tolerance};
use muster_shared::flow::{
    Claim, ClaimValue, Contradiction, Goal, Reading, ReadingRule, Said, Specialty, TaskResult, TextPart, View,
};
use muster_shared::ids::TaskIndex;
use muster_shared::plan::coverage::Contribution;
use muster_shared::plan::tools::NearestTool;
use muster_shared::run::ConflictState;
use muster_shared::text::normalise_space;

use super::question::Counts;
use super::{ReadText, ReadingQuestion};

/// What texts mean, for one decision.
#[derive(Debug)]
pub(in crate::decide) struct Reader<'a> {
    by: &'a dyn ReadText,
    /// What stands in the record with the decision.
    kept: RefCell<Vec<Reading>>,
    /// How often each question was asked.
    asked: RefCell<HashMap<(ReadingRule, u32), u32>>,
}

/// Claims about one subject that contradict each other.
#[derive(Debug, Clone)]
pub(in crate::decide) struct FoundContradiction {
    /// The subject in the words of a claim.
    pub(in crate::decide) subject: String,
    pub(in crate::decide) sides: Vec<Side>,
    /// The conflicts about the same subject that were found before.
    pub(in crate::decide) known: Vec<u32>,
}

impl<'a> Reader<'a> {
    pub(in crate::decide) fn new(by: &'a dyn ReadText) -> Self {
        Self { by, kept: RefCell::default(), asked: RefCell::default() }
    }

    /// What was said, for the record.
    pub(in crate::decide) fn into_kept(self) -> Vec<Reading> {
        self.kept.into_inner()
    }

    fn ask(&self, question: &ReadingQuestion<'_>) -> Option<Said> {
        let (rule, of) = (question.rule(), question.digest());
        let nth = self.count(rule, of);
        let said = self.by.read(question, nth);
        let mut kept = self.kept.borrow_mut();
        let before = kept.iter().rev().find(|reading| (reading.rule, reading.of) == (rule, of));
        let before = before.map_or(&Said::Nothing, |reading| &reading.says);
        // An answer stands until another one is given.
        let says = said.as_ref().unwrap_or(&Said::Nothing);
        if says != before {
            let says = says.clone();
            kept.push(Reading { rule, of, nth, says });
        }
        said
    }

    /// How often this was asked before.
    fn count(&self, rule: ReadingRule, of: u32) -> u32 {
        let mut asked = self.asked.borrow_mut();
        let times = asked.entry((rule, of)).or_insert(0);
        let before = *times;
        *times = before.saturating_add(1);
        before
    }

    /// Of how many words the goal is, where it is small enough to be done without a plan.
    pub(in crate::decide) fn small_goal(&self, goal: &Goal) -> Option<u32> {
        number(self.ask(&ReadingQuestion::SmallGoal(goal)).as_ref())
    }

    /// Why the goal is planned at once; nothing when it begins as one task.
    pub(in crate::decide) fn separable(&self, goal: &Goal, specialists: &[Specialty]) -> Option<String> {
        match self.ask(&ReadingQuestion::Separable { goal, specialists }) {
            Some(Said::Word(reason)) => Some(reason),
            Some(_) | None => None,
        }
    }

    /// The parts of the goal that none of the texts speaks of.
    pub(in crate::decide) fn uncovered(&self, goal: &str, texts: &[&str]) -> Vec<String> {
        parts(goal, self.ask(&ReadingQuestion::Uncovered { goal, texts }))
    }

    /// The parts of the goal that a report does not answer.
    pub(in crate::decide) fn unanswered(
        &self,
        goal: &str,
        told: &[&str],
        contributions: &[Contribution<'_>],
    ) -> Vec<String> {
        parts(goal, self.ask(&ReadingQuestion::Unanswered { goal, told, contributions }))
    }

    /// The first of several parts of the goal.
    pub(in crate::decide) fn first_part(&self, goal: &str) -> Option<String> {
        parts(goal, self.ask(&ReadingQuestion::FirstPart { goal })).into_iter().next()
    }

    /// What of the expected output a result does not hold.
    pub(in crate::decide) fn unmet(
        &self,
        task: &TaskIndex,
        expected: &str,
        result: &TaskResult,
    ) -> Vec<String> {
        match self.ask(&ReadingQuestion::Unmet { task, expected, result }) {
            Some(Said::Texts(unmet)) => unmet,
            Some(_) | None => Vec::new(),
        }
    }

    /// The claims that contradict each other.
    pub(in crate::decide) fn contradictions(
        &self,
        sides: &[Side],
        known: &BTreeMap<u32, ConflictState>,
        counts: Counts,
        tolerance: Tolerance,
    ) -> Vec<FoundContradiction> {
        let question = ReadingQuestion::Contradictions { sides, known, counts, tolerance };
        let Some(Said::Contradictions(found)) = self.ask(&question) else { return Vec::new() };
        let in_full = |found: Contradiction| {
            let subject = at(sides, found.named)?.claim.subject.clone();
            let Contradiction { sides: places, known, .. } = found;
            let sides = places.into_iter().filter_map(|place| at(sides, place).cloned()).collect();
            Some(FoundContradiction { subject, sides, known })
        };
        found.into_iter().filter_map(in_full).collect()
    }

    /// The pairs of claims that may speak of the same, without those that a model was asked about before.
    pub(in crate::decide) fn near(&self, sides: &[Side], asked: &[Near], tolerance: Tolerance) -> Vec<Near> {
        let Some(Said::Groups(pairs)) = self.ask(&ReadingQuestion::Near { sides, asked, tolerance }) else {
            return Vec::new();
        };
        let in_full = |pair: Vec<u32>| {
            if let [one, other] = pair.as_slice() {
                Some(Near { one: at(sides, *one)?.clone(), other: at(sides, *other)?.clone() })
            } else {
                None
            }
        };
        pairs.into_iter().filter_map(in_full).collect()
    }

    /// Whether two texts name one subject.
    pub(in crate::decide) fn is_same_subject(&self, one: &str, other: &str) -> bool {
        self.ask(&ReadingQuestion::SameSubject { one, other }).is_some()
    }

    /// Whether a text names what a conflict is about, in the words of any of its sides.
    pub(in crate::decide) fn is_about(&self, conflict: &ConflictState, text: &str) -> bool {
        let mut names: Vec<&str> = vec![&conflict.subject];
        for side in &conflict.sides {
            if !names.contains(&side.claim.subject.as_str()) {
                names.push(&side.claim.subject);
            }
        }
        names.into_iter().any(|name| self.is_same_subject(name, text))
    }

    /// Says which claims agree, as far apart as numbers may lie.
    pub(in crate::decide) const fn within(&'a self, tolerance: Tolerance) -> Within<'a> {
        Within { reader: self, tolerance }
    }

    /// Whether a claim contradicts a value.
    pub(in crate::decide) fn contradicts(
        &self,
        claim: &Claim,
        value: &ClaimValue,
        tolerance: Tolerance,
    ) -> bool {
        self.ask(&ReadingQuestion::OtherValue { claim, value, tolerance }).is_some()
    }

    /// What a text claims.
    pub(in crate::decide) fn value(&self, text: &str) -> Option<ClaimValue> {
        match self.ask(&ReadingQuestion::Value { text }) {
            Some(Said::Value(value)) => Some(value),
            Some(_) | None => None,
        }
    }

    /// The members of a group by who is of one mind.
    pub(in crate::decide) fn camps<'v>(&self, views: &'v [View], tolerance: Tolerance) -> Vec<Vec<&'v View>> {
        match self.ask(&ReadingQuestion::Camps { views, tolerance }) {
            Some(Said::Groups(camps)) => {
                let in_full =
                    |camp: Vec<u32>| camp.into_iter().filter_map(|place| at(views, place)).collect();
                camps.into_iter().map(in_full).collect()
            }
            Some(_) | None if views.is_empty() => Vec::new(),
            Some(_) | None => {
                let mut all: Vec<&View> = views.iter().collect();
                all.sort_by(|one, other| one.member.cmp(&other.member));
                vec![all]
            }
        }
    }

    /// A word with its article.
    pub(in crate::decide) fn with_article(&self, word: &str) -> String {
        let with_an = self.ask(&ReadingQuestion::Article { word }).is_some();
        format!("{} {word}", if with_an { "an" } else { "a" })
    }

    /// How many telling words each of the results shares with what is asked.
    pub(in crate::decide) fn shared_words(&self, asked: &str, results: &[(&TaskIndex, String)]) -> Vec<u32> {
        let shared = numbers(self.ask(&ReadingQuestion::SharedWords { asked, results }));
        if shared.is_empty() { vec![0; results.len()] } else { shared }
    }
}

impl NearestTool for Reader<'_> {
    fn nearest(&self, name: &str, known: &[String]) -> Option<String> {
        match self.ask(&ReadingQuestion::Tool { name, known }) {
            Some(Said::Word(tool)) => Some(tool),
            Some(_) | None => None,
        }
    }
}

/// Says which claims agree, as far apart as numbers may lie.
#[derive(Debug, Clone, Copy)]
pub(in crate::decide) struct Within<'a> {
    reader: &'a Reader<'a>,
    tolerance: Tolerance,
}

impl Says for Within<'_> {
    fn says(&self, side: &Side, value: &ClaimValue) -> bool {
        let tolerance = self.tolerance;
        self.reader.ask(&ReadingQuestion::SameValue { side, value, tolerance }).is_some()
    }
}

fn at<T>(items: &[T], place: u32) -> Option<&T> {
    items.get(usize::try_from(place).ok()?)
}

fn number(said: Option<&Said>) -> Option<u32> {
    match said {
        Some(Said::Number(number)) => Some(*number),
        Some(_) | None => None,
    }
}

fn numbers(said: Option<Said>) -> Vec<u32> {
    match said {
        Some(Said::Numbers(numbers)) => numbers,
        Some(_) | None => Vec::new(),
    }
}

fn parts(goal: &str, said: Option<Said>) -> Vec<String> {
    let Some(Said::Parts(parts)) = said else { return Vec::new() };
    let line = normalise_space(goal);
    parts.into_iter().filter_map(|part: TextPart| part.within(&line).map(str::to_owned)).collect()
}
