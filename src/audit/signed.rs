//! Who vouches for the links of a run, and who gave the orders that it took: held against the fleet's public keys. Pure.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use muster_bus::KeptMessage;
use muster_bus::credentials::signing::{Purpose, Signature, Trust, Verifier};
use muster_bus::credentials::{HolderKind, Identity};
use muster_bus::orders::signer_kind;
use muster_bus::signatures::said_by;
use muster_shared::flow::Goal;
use muster_shared::ids::Seq;
use muster_shared::run::chain::{ChainFault, Misfit};
use muster_shared::run::{Input, Link, Request, RequestAction, SignedOrder};
use muster_shared::time::Millis;
use muster_shared::wire::ask::Ask;
use muster_shared::wire::{Body, Command, Encoding, Envelope, decode};
use serde::Serialize;

/// The public keys by which signatures are judged, and where they come from.
#[derive(Debug, Clone)]
pub(crate) struct AuditKeys {
    pub(crate) trust: Trust,
    pub(crate) origin: KeysOrigin,
}

/// Where public keys come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeysOrigin {
    /// Whoever audits named them.
    Given,
    /// His own credentials, or the keys of the fleet in this folder.
    Own,
    /// The file that is verified: whoever made it up could have made them up too.
    Claimed,
}

/// What was found of signatures.
#[derive(Debug, Serialize)]
pub(crate) struct Signatures {
    /// By what one compares whether these are the fleet's keys.
    pub(crate) fingerprint: String,
    pub(crate) keys: KeysOrigin,
    /// How many links each orchestrator vouches for.
    pub(crate) sealed_by: BTreeMap<String, u64>,
    /// The orders that were signed.
    pub(crate) orders: Vec<OrderGiven>,
}

impl Signatures {
    /// Whether nothing is signed.
    pub(crate) fn is_empty(&self) -> bool {
        self.sealed_by.is_empty() && self.orders.is_empty()
    }
}

/// An order that a run took.
#[derive(Debug, Serialize)]
pub(crate) struct OrderGiven {
    /// The decision that took it.
    pub(crate) seq: Seq,
    /// What was asked.
    pub(crate) what: &'static str,
    pub(crate) by: String,
    #[serde(rename = "as")]
    pub(crate) kind: &'static str,
    /// Whether what was signed is in the record: it is not where it held a secret.
    pub(crate) kept: bool,
}

/// Holds seals and orders against the keys. Every link must have a seal.
///
/// # Errors
/// The first entry whose seal, or whose order, does not fit.
pub(crate) fn check(messages: &[KeptMessage], keys: &AuditKeys) -> Result<Signatures, Misfit> {
    let verifier = Verifier::of(keys.trust.clone());
    let mut found = Signatures {
        fingerprint: keys.trust.fingerprint(),
        keys: keys.origin,
        sealed_by: BTreeMap::new(),
        orders: Vec::new(),
    };
    let mut known = BTreeMap::new();
    for message in messages {
        let wrong = |fault| Misfit { seq: message.seq, told_by: None, fault };
        let sealer =
            seal(message, &verifier, &mut known).map_err(|why| wrong(ChainFault::WrongSeal { why }))?;
        match sealer {
            Some(sealer) => *found.sealed_by.entry(sealer.name.to_string()).or_default() += 1,
            None if message.link.is_some() => return Err(wrong(ChainFault::NoSeal)),
            None => {}
        }
        for input in inputs(message) {
            let order =
                order(&input, &verifier, message).map_err(|why| wrong(ChainFault::WrongOrder { why }))?;
            found.orders.extend(order);
        }
    }
    Ok(found)
}

/// Who vouches for the link of a message, if it has one that somebody vouches for.
fn seal(
    message: &KeptMessage,
    verifier: &Verifier,
    known: &mut BTreeMap<String, String>,
) -> Result<Option<Identity>, String> {
    let link = message.link.as_deref().and_then(|text| Link::of_header(text).ok());
    let Some((hash, seal)) = link.and_then(|link| Some((link.hash, link.seal?))) else { return Ok(None) };
    let by = match seal.introduction() {
        Some(by) => by.to_owned(),
        None => known.get(&seal.by).cloned().ok_or("no link before it says whose key that is")?,
    };
    let signature = Signature { by, signature: seal.signature.clone() };
    let who = verifier.verify(Purpose::Seal, &signature, hash.as_bytes(), message.at);
    let who = who.map_err(|error| error.to_string())?;
    if !matches!(who.kind, HolderKind::Orchestrator | HolderKind::Operator) {
        return Err(format!("{} ({}) decides nothing", who.name, who.kind));
    }
    if let Ok(vouched) = verifier.vouch(&signature.by) {
        known.insert(vouched.public_key().to_owned(), signature.by);
    }
    Ok(Some(who))
}

/// What a decision took in.
fn inputs(message: &KeptMessage) -> Vec<Input> {
    let envelope: Option<Envelope> = decode(&message.payload, message.encoding).ok();
    match envelope.map(|envelope| envelope.body) {
        Some(Body::Decided(decided)) => decided.inputs,
        // What lies apart, or cannot be read, is told of by the chain.
        _ => Vec::new(),
    }
}

/// The order that an input is, if it was signed, and is what was signed.
fn order(input: &Input, verifier: &Verifier, message: &KeptMessage) -> Result<Option<OrderGiven>, String> {
    let (signed, what) = match input {
        Input::Request(Request { signed: Some(signed), action, .. }) => (signed, action.name()),
        Input::Goal { signed: Some(signed), .. } => (signed, "goal"),
        Input::Fork { signed: Some(signed), .. } => (signed, "fork"),
        Input::Request(_)
        | Input::Goal { .. }
        | Input::Fork { .. }
        | Input::Refuse { .. }
        | Input::Agent { .. }
        | Input::Unreadable { .. }
        | Input::Capacity
        | Input::Timer
        | Input::AgentLost { .. }
        | Input::Silent { .. }
        | Input::ChildEnded { .. }
        | Input::ContractBroken { .. }
        | Input::Bids { .. }
        | Input::TrialWithdrawn { .. }
        | Input::GuardsSaid { .. } => return Ok(None),
    };
    let SignedOrder { by, kind, payload, .. } = &**signed;
    let given =
        OrderGiven { seq: message.seq, what, by: by.clone(), kind: kind.name(), kept: !payload.is_empty() };
    if given.kept {
        let envelope = opened(signed, verifier, message.at)?;
        if !is_what_was_signed(input, &envelope, message) {
            return Err(format!("the signed {what} says something else than the record"));
        }
    }
    Ok(Some(given))
}

/// What was signed, if it was by whom the record says.
fn opened(signed: &SignedOrder, verifier: &Verifier, at: Millis) -> Result<Envelope, String> {
    let payload = STANDARD_NO_PAD.decode(&signed.payload).map_err(|error| error.to_string())?;
    let signature = Signature::of_kept(&signed.signature).map_err(|error| error.to_string())?;
    let bytes = said_by(&signed.subject, &payload);
    let who = verifier.verify(Purpose::Order, &signature, &bytes, at).map_err(|error| error.to_string())?;
    if who.name.as_str() != signed.by || signer_kind(&who.kind) != Ok(signed.kind) {
        return Err(format!("it is signed by {} ({}), not by {}", who.name, who.kind, signed.by));
    }
    decode(&payload, Encoding::of(None, &payload)).map_err(|error| error.to_string())
}

/// Whether what was recorded of an order is what was signed. What intake bounds (times, lengths) may differ.
fn is_what_was_signed(input: &Input, signed: &Envelope, message: &KeptMessage) -> bool {
    let of_this_run =
        |run: muster_shared::ids::RunId| message.subject.split('.').nth(1) == Some(&run.to_string());
    match (input, &signed.body) {
        // A body in the object store is named by its hash, and is not looked into.
        (_, Body::Stored(_)) => true,
        (Input::Request(recorded), Body::Command(Command::Request(request))) => {
            of_this_run(request.run)
                && recorded.run == request.run
                && recorded.id == request.own_id().unwrap_or(signed.id)
                && is_same(&request.action, &recorded.action)
                && request.reason.trim().starts_with(recorded.reason.as_str())
        }
        (
            Input::Goal { goal, .. },
            Body::Command(Command::Submit { run, goal: signed } | Command::Attend { run, goal: signed, .. }),
        ) => of_this_run(*run) && same_goal(goal, signed),
        // Which run a request becomes, the orchestrator says that answers it.
        (Input::Goal { goal, .. }, Body::Ask(Ask::Submit { goal: signed, run, .. })) => {
            run.is_none_or(of_this_run) && same_goal(goal, signed)
        }
        (Input::Fork { from, .. }, Body::Command(Command::Fork { run, from: signed, .. })) => {
            of_this_run(*run) && (from.run, from.at) == (signed.run, signed.at)
        }
        _ => false,
    }
}

/// How long a run may go on is brought within bounds.
fn is_same(signed: &RequestAction, recorded: &RequestAction) -> bool {
    match (signed, recorded) {
        (RequestAction::Resume { .. }, RequestAction::Resume { .. }) => true,
        (signed, recorded) => signed == recorded,
    }
}

/// A deadline counts from when the goal was asked.
fn same_goal(recorded: &Goal, signed: &Goal) -> bool {
    *recorded == Goal { deadline_ms: recorded.deadline_ms, ..signed.clone() }
}

#[cfg(test)]
mod tests {
    use muster_bus::Signatures as Signing;
    use muster_bus::credentials::{FleetKeys, Holder};
    use muster_shared::ids::RunId;
    use muster_shared::run::SignerKind;
    use serde_json::{Value, json};

    use super::*;

    fn run() -> RunId {
        "0193f0c0c0c07000800000000000cafe".parse().unwrap()
    }

    /// The request to cancel the run, as ann signed it.
    fn signed(ann: &Signing, reason: &str) -> SignedOrder {
        let subject = format!("cmd.{}.cancel", run());
        let command =
            json!({ "command": "request", "run": run(), "reason": reason, "action": { "type": "cancel" } });
        let envelope = json!({ "id": uuid::Uuid::from_u128(7), "sent": 1, "body": { "type": "command", "content": command } });
        let payload = envelope.to_string().into_bytes();
        let signature = ann.sign(Purpose::Order, &said_by(&subject, &payload)).unwrap().kept();
        let payload = STANDARD_NO_PAD.encode(payload);
        SignedOrder { by: "ann".to_owned(), kind: SignerKind::Person, subject, payload, signature }
    }

    /// A decision that took a request in.
    fn decision(request: &Request) -> KeptMessage {
        let text = include_str!("../../tests/golden/run.jsonl");
        let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let mut envelope = line["envelope"].clone();
        envelope["body"]["content"]["inputs"] = json!([Input::Request(request.clone())]);
        KeptMessage {
            seq: Seq(5),
            at: Millis(2_000_000_000_000),
            subject: format!("run.{}.decided", run()),
            encoding: Encoding::Json,
            payload: envelope.to_string().into(),
            link: None,
        }
    }

    #[test]
    fn an_order_is_held_against_what_was_signed() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
        let member = |name: &str| {
            let file = folder.path().join(format!("{name}.creds"));
            fleet.issue_to(&file, &Holder::Person { name: name.parse().unwrap() }, None).unwrap();
            Signing::of(Some(&file)).unwrap()
        };
        let keys = AuditKeys { trust: fleet.public().unwrap(), origin: KeysOrigin::Given };
        let order = signed(&member("ann"), "enough");
        let request = Request::new(run(), RequestAction::Cancel).because("enough");
        let request = request.with_id(uuid::Uuid::from_u128(7)).signed(Some(order.clone()));
        let checked = |request: &Request| check(&[decision(request)], &keys);

        let found = checked(&request).unwrap();
        assert_eq!((found.orders.len(), found.orders[0].by.as_str(), found.orders[0].kept), (1, "ann", true));
        let secret = SignedOrder { payload: String::new(), ..order.clone() };
        assert!(!checked(&request.clone().signed(Some(secret))).unwrap().orders[0].kept);
        assert!(checked(&request.clone().signed(None)).unwrap().is_empty());

        let other_run = Request { run: RunId::from_uuid(uuid::Uuid::from_u128(9)), ..request.clone() };
        let other_id = request.clone().with_id(uuid::Uuid::from_u128(8));
        for (wrong, words) in [
            (other_run, "something else than the record"),
            (other_id, "something else than the record"),
            (Request { action: RequestAction::Pause, ..request.clone() }, "something else than the record"),
            (request.clone().because("more"), "something else than the record"),
            (request.clone().signed(Some(SignedOrder { by: "ben".into(), ..order.clone() })), "not by ben"),
            (
                request.clone().signed(Some(SignedOrder { kind: SignerKind::Operator, ..order.clone() })),
                "signed by ann (person)",
            ),
            (
                request.clone().signed(Some(SignedOrder { subject: "cmd.x.y".into(), ..order.clone() })),
                "not that of ann",
            ),
            (
                request.clone().signed(Some(SignedOrder {
                    signature: signed(&member("ben"), "enough").signature,
                    ..order.clone()
                })),
                "signed by ben (person), not by ann",
            ),
        ] {
            let misfit = checked(&wrong).unwrap_err();
            let ChainFault::WrongOrder { why } = &misfit.fault else { unreachable!("{misfit:?}") };
            assert!(misfit.seq == Seq(5) && why.contains(words), "{why}: {words}");
        }
    }
}
