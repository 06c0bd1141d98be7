//! Which result of a committee counts. The same results give the same verdict, in whatever order they came.

use muster_shared::conflict::Tolerance;
use muster_shared::flow::{DecidedBy, Dissent, GroupVerdict, TaskResult, View};
use muster_shared::ids::TaskIndex;
use muster_shared::text::{beginning, normalise_space};

use super::opinions::camps;

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

/// The verdict on these views, by those who agree; nothing when there are none.
pub(super) fn verdict(views: &[View], tolerance: Tolerance) -> Option<GroupVerdict> {
    let camps = camps(views, tolerance);
    let told = |camp: &[&View], by| told(camp, views, by);
    let most = camps.iter().map(|camp| camp.len()).max()?;
    let largest = camps.iter().find(|camp| camp.len() == most)?;
    if camps.len() == 1 {
        return Some(told(largest, DecidedBy::Unanimity));
    }
    if most * 2 > views.len() {
        return Some(told(largest, DecidedBy::Majority));
    }
    let surest = camps.iter().map(|camp| weight(camp)).max()?;
    let mut sure = camps.iter().filter(|camp| weight(camp) == surest);
    let first = sure.next()?;
    let by = if sure.next().is_none() { DecidedBy::Confidence } else { DecidedBy::Order };
    Some(told(first, by))
}

fn weight(camp: &[&View]) -> u32 {
    camp.iter().map(|view| if view.confidence == 0 { UNSAID } else { u32::from(view.confidence) }).sum()
}

/// Of those who agree, the result of the surest counts; the first by letter of equally sure ones.
fn told(camp: &[&View], views: &[View], by: DecidedBy) -> GroupVerdict {
    let surest = camp.iter().map(|view| view.confidence).max().unwrap_or(0);
    let counts = camp.iter().find(|view| view.confidence == surest);
    let agree: Vec<TaskIndex> = camp.iter().map(|view| view.member.clone()).collect();
    let mut others: Vec<&View> = views.iter().filter(|view| !agree.contains(&view.member)).collect();
    others.sort_by(|one, other| one.member.cmp(&other.member));
    GroupVerdict {
        counts: counts.map_or_else(|| TaskIndex::top(1), |view| view.member.clone()),
        by,
        agree,
        dissent: others.into_iter().map(dissent).collect(),
    }
}

fn dissent(view: &View) -> Dissent {
    let says = beginning(&normalise_space(&view.conclusion), MAX_SAYS);
    Dissent { member: view.member.clone(), says, confidence: view.confidence }
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::{Claim, ClaimValue, Finite};
    use proptest::prelude::*;

    use super::*;

    const TOLERANCE: Tolerance = Tolerance { percent: 5 };

    fn says(member: &str, conclusion: &str, confidence: u8) -> View {
        View {
            member: member.parse().unwrap(),
            conclusion: conclusion.to_owned(),
            claims: Vec::new(),
            confidence,
        }
    }

    fn claims(member: &str, percent: f64, confidence: u8) -> View {
        let value = number(percent, "%");
        View { conclusion: format!("about {percent}, says {member}"), ..claiming(member, value, confidence) }
    }

    fn number(value: f64, unit: &str) -> ClaimValue {
        ClaimValue::Number { value: Finite::new(value).unwrap(), unit: unit.to_owned() }
    }

    fn claiming(member: &str, value: ClaimValue, confidence: u8) -> View {
        let (subject, method) = ("Chance of rain, Paris".to_owned(), String::new());
        let claim = Claim { subject, value, confidence, evidence: Vec::new(), method };
        View { claims: vec![claim], ..says(member, &format!("so says {member}"), confidence) }
    }

    #[test]
    fn the_verdict_by_table() {
        use DecidedBy::{Confidence, Majority, Order, Unanimity};
        let a = |confidence| claims("1~a", 30.0, confidence);
        let b = |confidence| claims("1~b", 15.0, confidence);
        let table = [
            (vec![says("1~a", "It is  42", 0), says("1~b", "it is 42", 0)], "1~a", Unanimity),
            (vec![says("1~a", "No.", 99), says("1~b", "Yes.", 20), says("1~c", "yes", 30)], "1~c", Majority),
            (vec![a(50), b(60)], "1~b", Confidence),
            (vec![a(60), b(60)], "1~a", Order),
            (vec![a(60), b(90), claims("1~c", 30.0, 40)], "1~a", Majority),
            (vec![says("1~a", "Yes", 0), says("1~b", "No", 40)], "1~a", Confidence),
        ];
        for (views, counts, by) in table {
            let verdict = verdict(&views, TOLERANCE).unwrap();
            assert_eq!((verdict.counts.to_string().as_str(), verdict.by), (counts, by), "{views:?}");
            assert_eq!(verdict.agree.len() + verdict.dissent.len(), views.len());
        }
        let prose = [says("1~a", "Apples are green.", 60), says("1~b", "The color of apples is green.", 60)];
        let found = verdict(&prose, TOLERANCE).unwrap();
        assert_eq!((found.by, found.agree.len()), (Order, 1), "prose is not judged");
        assert_eq!(verdict(&[], TOLERANCE), None);
    }

    #[test]
    fn members_agree_in_what_they_claim_and_not_in_how_they_write_it() {
        let text = |text: &str| ClaimValue::Text(text.to_owned());
        let kind = |text: &str| ClaimValue::Category(text.to_owned());
        let date = |text: &str| ClaimValue::Date(text.to_owned());
        let table = [
            (vec![number(30.0, "%"), number(0.3, ""), text("30 percent")], 3, DecidedBy::Unanimity),
            (vec![number(30.0, "%"), number(0.3, ""), number(15.0, "%")], 2, DecidedBy::Majority),
            (vec![number(1_000.0, "m"), number(1.0, "km"), number(2.0, "km")], 2, DecidedBy::Majority),
            (vec![number(30.0, "%"), number(33.0, "%"), number(36.0, "%")], 3, DecidedBy::Unanimity),
            (vec![date("2026-11-22"), text("22 November 2026"), date("2026-11-23")], 2, DecidedBy::Majority),
            (vec![ClaimValue::Verdict(true), text("Yes."), text("no")], 2, DecidedBy::Majority),
            (vec![kind("Red"), kind("red"), kind("green")], 2, DecidedBy::Majority),
            (vec![number(1.0, "km"), number(1.0, "kg"), number(2.0, "h")], 1, DecidedBy::Order),
        ];
        for (values, agree, by) in table {
            let members = ["1~a", "1~b", "1~c"].into_iter().zip(&values);
            let views: Vec<View> =
                members.map(|(member, value)| claiming(member, value.clone(), 60)).collect();
            let verdict = verdict(&views, TOLERANCE).unwrap();
            assert_eq!((verdict.agree.len(), verdict.by), (agree, by), "{values:?}");
        }
    }

    #[test]
    fn numbers_so_large_that_they_cannot_be_converted_are_no_trouble() {
        let views = [claiming("1~a", number(1e308, "km"), 50), claiming("1~b", number(1e308, "km"), 50)];
        assert_eq!(verdict(&views, TOLERANCE).unwrap().agree.len(), 1);
    }

    proptest! {
        /// Who bears which letter makes no difference to what holds, unless nothing but the letter is left to decide.
        #[test]
        fn the_letters_of_members_decide_nothing_but_ties(
            said in prop::collection::vec((20u8..50, 40u8..100), 1..9),
            seed in prop::collection::vec(0usize..1000, 9),
        ) {
            let mut shuffled: Vec<(usize, (u8, u8))> = seed.into_iter().zip(said.clone()).collect();
            shuffled.sort_by_key(|(key, _)| *key);
            let shuffled: Vec<(u8, u8)> = shuffled.into_iter().map(|(_, said)| said).collect();
            let of = |said: &[(u8, u8)]| {
                let views: Vec<View> = (b'a'..).zip(said).map(|(letter, (percent, sure))| {
                    let view = claiming(&format!("1~{}", char::from(letter)), number(f64::from(*percent), "%"), *sure);
                    View { conclusion: String::new(), ..view }
                }).collect();
                let verdict = verdict(&views, TOLERANCE).unwrap();
                let mut held: Vec<String> = views.iter().filter(|view| verdict.agree.contains(&view.member))
                    .map(|view| view.claims[0].value.to_string()).collect();
                held.sort();
                (verdict.by, if verdict.by == DecidedBy::Order { Vec::new() } else { held })
            };
            prop_assert_eq!(of(&said), of(&shuffled));
        }

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
            prop_assert_eq!(verdict(&views, TOLERANCE), verdict(&other, TOLERANCE));
        }
    }
}
