//! Which result of a committee counts. The same results give the same verdict, in whatever order they came.

use muster_shared::flow::{ClaimValue, DecidedBy, Dissent, TaskResult, Verdict, View};
use muster_shared::ids::TaskIndex;

/// Longest view of a dissenter that is told, in characters.
const MAX_SAYS: usize = 300;

/// How much somebody counts who does not say how sure they are, in percent.
const UNSAID: u32 = 50;

/// What a member found, for others to read.
pub(super) fn view(member: &TaskIndex, result: &TaskResult) -> View {
    let mut claims = result.claims.clone();
    claims.truncate(View::MOST_CLAIMS);
    View {
        member: member.clone(),
        conclusion: result.conclusion.chars().take(View::MAX_CONCLUSION).collect(),
        claims,
        confidence: confidence(result),
    }
}

/// How sure a result is: of its claims, else of its findings; 0 when it does not say.
fn confidence(result: &TaskResult) -> u8 {
    let mean = |said: Vec<u8>| {
        let said: Vec<u32> = said.into_iter().filter(|percent| *percent > 0).map(u32::from).collect();
        let count = u32::try_from(said.len()).unwrap_or(u32::MAX);
        (count > 0).then(|| said.iter().sum::<u32>() / count)
    };
    let of_claims = mean(result.claims.iter().map(|claim| claim.confidence).collect());
    let of_findings = || mean(result.findings.iter().map(|finding| finding.confidence).collect());
    of_claims.or_else(of_findings).and_then(|percent| u8::try_from(percent.min(100)).ok()).unwrap_or(0)
}

/// The verdict on these views; nothing when there are none.
pub(super) fn verdict(views: &[View]) -> Option<Verdict> {
    let camps = camps(views);
    let most = camps.iter().map(|camp| camp.len()).max()?;
    let largest = camps.iter().find(|camp| camp.len() == most)?;
    if camps.len() == 1 {
        return Some(told(largest, views, DecidedBy::Unanimity));
    }
    if most * 2 > views.len() {
        return Some(told(largest, views, DecidedBy::Majority));
    }
    let surest = camps.iter().map(|camp| weight(camp)).max()?;
    let mut sure = camps.iter().filter(|camp| weight(camp) == surest);
    let first = sure.next()?;
    let by = if sure.next().is_none() { DecidedBy::Confidence } else { DecidedBy::Order };
    Some(told(first, views, by))
}

/// The verdict when the chair has spoken: who agrees with it is told from who does not.
pub(super) fn of_chair(chair: &View, views: &[View]) -> Verdict {
    let (agree, others): (Vec<&View>, Vec<&View>) = views.iter().partition(|view| agree(chair, view));
    let agree = std::iter::once(chair).chain(agree).map(|view| view.member.clone()).collect();
    let dissent = others.into_iter().map(dissent).collect();
    Verdict { counts: chair.member.clone(), by: DecidedBy::Chair, agree, dissent }
}

/// Those who agree with each other, by letter of their first. Each joins the first camp whose founder it agrees with.
fn camps(views: &[View]) -> Vec<Vec<&View>> {
    let mut sorted: Vec<&View> = views.iter().collect();
    sorted.sort_by(|one, other| one.member.cmp(&other.member));
    let mut camps: Vec<Vec<&View>> = Vec::new();
    for view in sorted {
        match camps.iter_mut().find(|camp| camp.first().is_some_and(|founder| agree(founder, view))) {
            Some(camp) => camp.push(view),
            None => camps.push(vec![view]),
        }
    }
    camps
}

/// Whether two say the same: of what both make claims about, else in their conclusions.
fn agree(one: &View, other: &View) -> bool {
    let mut compared = 0;
    for claim in &one.claims {
        let subject = plain(&claim.subject);
        for same in other.claims.iter().filter(|other| plain(&other.subject) == subject) {
            compared += 1;
            if !equal(&claim.value, &same.value) {
                return false;
            }
        }
    }
    compared > 0 || plain(&one.conclusion) == plain(&other.conclusion)
}

fn equal(one: &ClaimValue, other: &ClaimValue) -> bool {
    match (one, other) {
        (ClaimValue::Number { value, unit }, ClaimValue::Number { value: same, unit: other }) => {
            value == same && plain(unit) == plain(other)
        }
        (ClaimValue::Verdict(one), ClaimValue::Verdict(other)) => one == other,
        (ClaimValue::Date(one), ClaimValue::Date(other)) => one.trim() == other.trim(),
        (
            ClaimValue::Category(one) | ClaimValue::Text(one),
            ClaimValue::Category(other) | ClaimValue::Text(other),
        ) => plain(one) == plain(other),
        (
            ClaimValue::Number { .. }
            | ClaimValue::Verdict(_)
            | ClaimValue::Date(_)
            | ClaimValue::Category(_)
            | ClaimValue::Text(_),
            _,
        ) => false,
    }
}

/// A text as it is compared: words alone, in small letters.
fn plain(text: &str) -> String {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '%')).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

fn weight(camp: &[&View]) -> u32 {
    camp.iter().map(|view| if view.confidence == 0 { UNSAID } else { u32::from(view.confidence) }).sum()
}

/// Of those who agree, the result of the surest counts; the first by letter of equally sure ones.
fn told(camp: &[&View], views: &[View], by: DecidedBy) -> Verdict {
    let surest = camp.iter().map(|view| view.confidence).max().unwrap_or(0);
    let counts = camp.iter().find(|view| view.confidence == surest);
    let agree: Vec<TaskIndex> = camp.iter().map(|view| view.member.clone()).collect();
    let mut others: Vec<&View> = views.iter().filter(|view| !agree.contains(&view.member)).collect();
    others.sort_by(|one, other| one.member.cmp(&other.member));
    Verdict {
        counts: counts.map_or_else(|| TaskIndex::top(1), |view| view.member.clone()),
        by,
        agree,
        dissent: others.into_iter().map(dissent).collect(),
    }
}

fn dissent(view: &View) -> Dissent {
    let words = view.conclusion.split_whitespace().collect::<Vec<_>>().join(" ");
    let says = match words.char_indices().nth(MAX_SAYS) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    };
    Dissent { member: view.member.clone(), says, confidence: view.confidence }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use muster_shared::flow::{Claim, Finite};
    use proptest::prelude::*;

    use super::*;

    fn says(member: &str, conclusion: &str, confidence: u8) -> View {
        View {
            member: member.parse().unwrap(),
            conclusion: conclusion.to_owned(),
            claims: Vec::new(),
            confidence,
        }
    }

    fn claims(member: &str, percent: f64, confidence: u8) -> View {
        let value = ClaimValue::Number { value: Finite::new(percent).unwrap(), unit: "%".to_owned() };
        let (subject, method) = ("Chance of rain, Paris".to_owned(), String::new());
        let claim = Claim { subject, value, confidence, evidence: Vec::new(), method };
        View { claims: vec![claim], ..says(member, &format!("about {percent}, says {member}"), confidence) }
    }

    #[test]
    fn the_verdict_by_table() {
        let table = [
            (vec![says("1~a", "It is 42.", 0), says("1~b", "it is 42", 0)], "1~a", DecidedBy::Unanimity),
            (
                vec![says("1~a", "No.", 99), says("1~b", "Yes.", 20), says("1~c", "yes", 30)],
                "1~c",
                DecidedBy::Majority,
            ),
            (vec![claims("1~a", 30.0, 50), claims("1~b", 15.0, 60)], "1~b", DecidedBy::Confidence),
            (vec![claims("1~a", 30.0, 60), claims("1~b", 15.0, 60)], "1~a", DecidedBy::Order),
            (
                vec![claims("1~a", 30.0, 60), claims("1~b", 15.0, 90), claims("1~c", 30.0, 40)],
                "1~a",
                DecidedBy::Majority,
            ),
            (vec![says("1~a", "Yes", 0), says("1~b", "No", 40)], "1~a", DecidedBy::Confidence),
        ];
        for (views, counts, by) in table {
            let verdict = verdict(&views).unwrap();
            assert_eq!((verdict.counts.to_string().as_str(), verdict.by), (counts, by), "{views:?}");
            assert_eq!(verdict.agree.len() + verdict.dissent.len(), views.len());
        }
        assert_eq!(verdict(&[]), None);
    }

    #[test]
    fn the_chair_says_what_counts_and_who_disagrees_is_kept() {
        let chair = claims("1~z", 30.0, 80);
        let verdict = of_chair(&chair, &[claims("1~a", 30.0, 50), claims("1~b", 15.0, 90)]);
        assert_eq!(verdict.counts.to_string(), "1~z");
        assert_eq!(verdict.agree.iter().map(ToString::to_string).collect::<Vec<_>>(), ["1~z", "1~a"]);
        assert_eq!(verdict.dissent[0].member.to_string(), "1~b");
        let told = verdict.dissent_in_words().unwrap();
        assert!(told.contains("1~b, 90 % sure: about 15"), "{told}");
    }

    proptest! {
        /// Whoever speaks first has no advantage by it.
        #[test]
        fn the_order_of_arrival_decides_nothing(
            said in prop::collection::vec((0u8..3, 0u8..100, prop::bool::ANY), 1..9),
            seed in prop::collection::vec(0usize..1000, 9),
        ) {
            let views: Vec<View> = (b'a'..).zip(&said).map(|(letter, (what, sure, has_claim))| {
                let member = format!("1~{}", char::from(letter));
                if *has_claim { claims(&member, f64::from(*what), *sure) } else { says(&member, &format!("it is {what}"), *sure) }
            }).collect();
            let mut other: Vec<(usize, View)> = seed.into_iter().zip(views.clone()).collect();
            other.sort_by_key(|(key, _)| *key);
            let other: Vec<View> = other.into_iter().map(|(_, view)| view).collect();
            prop_assert_eq!(verdict(&views), verdict(&other));
        }
    }
}
