//! Says why a task goes to one agent and not to another.

use muster_shared::flow::{ContractViolation, PassedOver, Placement};
use muster_shared::ids::{AgentId, Queue};

use super::pool::{Kind, RolePool};
use super::search::Search;
use super::{Grade, Member, Roster};

/// Most faults of a contract that are told.
const MOST_FAULTS: usize = 2;
/// Longest text of one of them, in characters.
const MAX_FAULT: usize = 160;

pub(super) fn placement(
    roster: &Roster,
    pool: &RolePool,
    search: &Search<'_>,
    chosen: &AgentId,
) -> Placement {
    Placement {
        task: search.wanted.task.clone(),
        to: Queue::Agent(chosen.clone()),
        reasons: roster.member(chosen).map(|member| reasons(pool, search, member)).unwrap_or_default(),
        passed_over: passed_over(roster, pool, search, chosen),
    }
}

fn reasons(pool: &RolePool, search: &Search<'_>, chosen: &Member) -> Vec<String> {
    let mut reasons = Vec::new();
    if search.is_choosy && search.covered > 0 {
        reasons.push(can(pool, search, chosen));
    }
    if search.is_refused_by_some() {
        reasons.push("it takes on what the task brings, others do not".to_owned());
    }
    if !search.avoid.is_empty() && !search.avoid.contains_key(&chosen.candidate.agent) {
        reasons.push("others had the task before".to_owned());
    }
    if let Some(tally) = &chosen.tally {
        reasons.push(format!("known for {}", tally.in_words()));
    }
    match search.nearness(chosen) {
        0 => reasons.push("it did what the task builds on".to_owned()),
        1 => reasons.push("its machine holds the documents".to_owned()),
        _ => {}
    }
    let slots = chosen.candidate.slots;
    reasons.push(format!("{} of its {slots} slots free", slots.saturating_sub(search.taken(chosen))));
    reasons
}

/// What the chosen one can do of what is needed.
fn can(pool: &RolePool, search: &Search<'_>, chosen: &Member) -> String {
    let lacks: Vec<_> = pool.kind(chosen.kind).into_iter().flat_map(|kind| search.lacks(kind)).collect();
    let has: Vec<_> = search.needed().filter(|need| !lacks.contains(need)).collect();
    if lacks.is_empty() {
        format!("it can do what is needed: {}", has.join(", "))
    } else {
        format!("it can do most of what is needed: {}; nobody here can do all", has.join(", "))
    }
}

/// Some of those that were passed over: who was to be avoided, then the first of each kind, then the others of the kind
/// that was chosen from.
fn passed_over(roster: &Roster, pool: &RolePool, search: &Search<'_>, chosen: &AgentId) -> Vec<PassedOver> {
    let avoided = search.avoid.keys().copied();
    let firsts = pool.firsts().take(Placement::MOST_PASSED_OVER);
    let same = roster.member(chosen).and_then(|member| pool.kind(member.kind));
    let same = same.into_iter().flat_map(Kind::agents).take(Placement::MOST_PASSED_OVER);
    let mut passed_over: Vec<PassedOver> = Vec::new();
    for agent in avoided.chain(firsts).chain(same).filter(|agent| *agent != chosen) {
        if passed_over.len() >= Placement::MOST_PASSED_OVER {
            break;
        }
        if passed_over.iter().any(|other| other.agent == *agent) {
            continue;
        }
        let Some(reason) = reason(roster, pool, search, agent, chosen) else { continue };
        passed_over.push(PassedOver { agent: agent.clone(), reason });
    }
    passed_over
}

fn lacking(search: &Search<'_>, kind: &Kind) -> String {
    let mut text = String::with_capacity(64);
    for lack in search.lacks(kind) {
        text.push_str(if text.is_empty() { "it lacks " } else { ", " });
        text.push_str(&lack);
    }
    text
}

/// What a contract asks for that the task does not bring.
fn refused(contract_violation: &ContractViolation) -> String {
    let named = contract_violation.faults.iter().take(MOST_FAULTS).map(|fault| {
        let cut: String = fault.chars().take(MAX_FAULT).collect();
        if cut.len() < fault.len() { format!("{cut}…") } else { cut }
    });
    let named: Vec<String> = named.collect();
    let more = contract_violation.faults.len().saturating_sub(named.len());
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("its contract asks for what the task does not bring: {}{more}", named.join("; "))
}

/// The first thing in which an agent falls behind the chosen one.
fn reason(
    roster: &Roster,
    pool: &RolePool,
    search: &Search<'_>,
    agent: &AgentId,
    chosen: &AgentId,
) -> Option<String> {
    let member = roster.member(agent)?;
    if let Some(reason) = search.avoid.get(agent) {
        return Some((*reason).to_owned());
    }
    let kind = pool.kind(member.kind)?;
    if let Some(contract_violation) = search.refusal(kind) {
        return Some(refused(contract_violation));
    }
    if search.is_choosy && search.covers(kind) < search.covered {
        return Some(lacking(search, kind));
    }
    if member.grade == Grade::Excluded {
        return Some("it failed several tasks in a row and gets none for now".to_owned());
    }
    let (own, best) = (search.rank(agent)?, search.rank(chosen)?);
    if own.0 != best.0 {
        return Some("all its slots are taken".to_owned());
    }
    if own.1 != best.1 {
        let tally = member.tally.as_ref().map(|tally| tally.in_words()).unwrap_or_default();
        return Some(match member.grade {
            Grade::Poor => format!("too much of its work went wrong: {tally}"),
            Grade::Dear => format!("it takes longer or costs more: {tally}"),
            Grade::Usual | Grade::Excluded => "as good as known".to_owned(),
        });
    }
    if own.2 != best.2 {
        return Some("it knows less of what the task builds on".to_owned());
    }
    if own.3 != best.3 {
        return Some("it is busier".to_owned());
    }
    Some("it is as fit; the first by name is asked".to_owned())
}
