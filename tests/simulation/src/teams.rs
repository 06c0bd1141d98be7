//! What tasks of a seed claim and know in common. Some seeds have results that contradict each other, and agents and
//! people that judge which holds; some have values that tasks and people write and read, each with the version it saw.

use muster_shared::flow::{
    Citation, Claim, ClaimValue, ConflictStep, Conflicts, ContextRead, ContextWrite, Finite, PeerAnswer,
    PeerRequest, PlanDraft, Question, TaskDraft, TaskOffered, Wait,
};
use muster_shared::ids::{RunId, TaskId};
use muster_shared::run::{Input, Request, RequestAction};
use serde_json::{Value, json};

use crate::random::Random;

/// What there are claims of.
const SUBJECTS: [&str; 4] = ["chance of rain", "colour of the door", "is it locked", "how the wind blows"];
/// What tasks may need, and agents may be able to do.
pub(crate) const NEEDS: [&str; 3] = ["sums", "maps", "law"];
/// The keys of values.
const KEYS: [&str; 2] = ["limit", "colour"];

/// Whether results of this seed contradict each other.
pub(crate) fn disputes(seed: u64) -> bool {
    Random::of(seed, "disputes").chance(400)
}

/// Whether tasks of this seed share values.
pub(crate) fn shares(seed: u64) -> bool {
    Random::of(seed, "shares").chance(400)
}

/// How many of a thousand policies have a step. What settles little, because few sides tell how they came to know, is tried
/// more often.
fn taken(step: ConflictStep) -> u64 {
    if step == ConflictStep::Methods { 850 } else { 550 }
}

/// How a seed settles what contradicts.
pub(crate) fn conflicts(seed: u64) -> Conflicts {
    let mut random = Random::of(seed, "conflicts");
    if !disputes(seed) {
        return Conflicts::default();
    }
    let mut steps = [
        ConflictStep::Methods,
        ConflictStep::Majority,
        ConflictStep::Confidence,
        ConflictStep::Authority,
        ConflictStep::Arbiter,
        ConflictStep::Verify,
        ConflictStep::Person,
    ];
    // In any order, so that each of them settles some.
    for at in (1..steps.len()).rev() {
        steps.swap(at, usize::try_from(random.below(at as u64 + 1)).unwrap_or(0));
    }
    Conflicts {
        policy: steps.into_iter().filter(|step| random.chance(taken(*step))).collect(),
        authority: vec!["role:researcher".to_owned(), "official/*".to_owned()],
        max_redos: u32::try_from(random.below(3)).unwrap_or(1),
        max_conflicts: u32::try_from(random.between(1, 6)).unwrap_or(1),
        settle_within_ms: random.between(5_000, 300_000),
        ..Conflicts::default()
    }
}

/// What a result claims. Who is asked about a subject by name claims something of that one.
pub(crate) fn claims(seed: u64, offer: &TaskOffered) -> Vec<Claim> {
    let Some(task) = offer.work.leaf() else { return Vec::new() };
    if !disputes(seed) {
        return Vec::new();
    }
    let mut random = random(seed, offer, "claims");
    let asked = SUBJECTS.iter().find(|subject| task.goal.contains(&format!("{subject:?}")));
    match (asked, &offer.task) {
        (Some(subject), _) if random.chance(800) => vec![claim(subject, &mut random)],
        (None, TaskId::Leaf(_)) => {
            let chosen = SUBJECTS.iter().filter(|_| random.chance(500)).collect::<Vec<_>>();
            chosen.into_iter().map(|subject| claim(subject, &mut random)).collect()
        }
        // It cannot tell.
        (Some(_) | None, _) => Vec::new(),
    }
}

fn claim(subject: &str, random: &mut Random) -> Claim {
    let number = |value: f64| Finite::new(value).unwrap_or_default();
    let value = match subject {
        // Two of these are so near that they are the same.
        "chance of rain" => {
            let value = random.pick(&[30.0, 31.0, 30.0, 15.0, 60.0]).copied().unwrap_or(30.0);
            ClaimValue::Number { value: number(value), unit: "%".to_owned() }
        }
        "colour of the door" => {
            ClaimValue::Category(random.pick(&["red", "blue", "red"]).copied().unwrap_or("red").to_owned())
        }
        "is it locked" => ClaimValue::Verdict(random.chance(600)),
        _ => ClaimValue::Text(
            random.pick(&["hard from the west", "not at all"]).copied().unwrap_or("").to_owned(),
        ),
    };
    let path = random.pick(&["official/a.md", "notes/b.md"]).copied().unwrap_or("a.md").to_owned();
    let evidence = vec![Citation { path, line: 1, quote: String::new() }];
    Claim {
        subject: subject.to_owned(),
        value,
        confidence: random.pick(&[0, 40, 60, 95]).copied().unwrap_or(0),
        evidence: if random.chance(400) { evidence } else { Vec::new() },
        method: if random.chance(400) { "by looking".to_owned() } else { String::new() },
    }
}

/// What somebody answers who is asked which value holds.
pub(crate) fn opinion(seed: u64, run: RunId, question: &Question) -> Option<String> {
    let mut random = Random::of(seed, &format!("{run}/opinion on {}", question.text));
    random.pick(&question.choices).cloned()
}

/// What a task asks of the values that tasks share. What it saw in its last step is the version that it names.
pub(crate) fn value_wanted(seed: u64, offer: &TaskOffered) -> Option<Wait> {
    if !shares(seed) || !offer.may_ask_peers {
        return None;
    }
    let mut random = random(seed, offer, "value");
    if !random.chance(450) {
        return None;
    }
    let seen = offer.answered.as_ref().and_then(|answered| answered.answer.as_deref()).and_then(seen);
    let (key, version) = match seen {
        Some((key, version)) => (key, version),
        None => (pick(&mut random), if random.chance(500) { 0 } else { random.below(3) }),
    };
    let request = if random.chance(700) {
        let version = u32::try_from(version).unwrap_or(0);
        PeerRequest::ContextWrite(ContextWrite { key, value: value(&mut random), version })
    } else {
        PeerRequest::ContextRead(ContextRead { key, prefix: random.chance(300) })
    };
    Some(Wait::Peer(Box::new(request)))
}

/// The value that an answer tells of, and its version.
fn seen(answer: &PeerAnswer) -> Option<(String, u64)> {
    match answer {
        PeerAnswer::ContextWritten { key, version } => Some((key.clone(), u64::from(*version))),
        PeerAnswer::ContextFound { entries } => {
            entries.iter().next().map(|(key, entry)| (key.clone(), u64::from(entry.version)))
        }
        PeerAnswer::HelpGiven { .. }
        | PeerAnswer::InformationShared { .. }
        | PeerAnswer::ContextGiven { .. }
        | PeerAnswer::CapabilityFound { .. } => None,
    }
}

fn pick(random: &mut Random) -> String {
    random.pick(&KEYS).copied().unwrap_or("limit").to_owned()
}

/// Mostly a number; a value of another type is refused where there is one.
fn value(random: &mut Random) -> Value {
    if random.chance(100) { json!("much") } else { json!(random.below(100)) }
}

/// Has some goals use values, and some say that they write them.
pub(crate) fn use_values(seed: u64, offer: &TaskOffered, plan: &mut PlanDraft) {
    if !shares(seed) {
        return;
    }
    let mut random = random(seed, offer, "uses");
    for task in &mut plan.tasks {
        mention(task, &mut random);
    }
}

fn mention(task: &mut TaskDraft, random: &mut Random) {
    let key = pick(random);
    match random.below(4) {
        0 => task.goal.push_str(&format!(" within {{{{context.{key}}}}}")),
        1 => task.goal.push_str(&format!(" and write {key}")),
        _ => {}
    }
}

/// What people write into the values of a run, and when.
pub(crate) fn written_by_people(seed: u64, run: RunId) -> Vec<(u64, Input)> {
    if !shares(seed) {
        return Vec::new();
    }
    let mut random = Random::of(seed, &format!("{run}/people write"));
    let count = random.below(4);
    let write = |_| {
        let id = uuid::Uuid::from_u128(u128::from(random.next()) << 64 | u128::from(random.next()));
        let (key, version) = (pick(&mut random), u32::try_from(random.below(3)).unwrap_or(0));
        let at = random.below(40_000);
        let action = RequestAction::SetContext { key, value: value(&mut random), version };
        let request = Request::new(run, action).with_id(id);
        (at, Input::Request(Request { by: "somebody".into(), ..request }))
    };
    (0..count).map(write).collect()
}

fn random(seed: u64, offer: &TaskOffered, what: &str) -> Random {
    Random::of(seed, &format!("{}/{}/{}/{what}", offer.run, offer.task, offer.generation))
}
