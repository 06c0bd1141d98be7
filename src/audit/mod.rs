//! Whether the record of a run, as it stands or as it was exported, fits its hash chain. Pure.

pub(crate) mod file;
pub(crate) mod signed;

use muster_bus::KeptMessage;
use muster_bus::subject::Subject;
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::chain::{Misfit, Read, Verified, verify};
use muster_shared::run::{CHAIN_SINCE, RunEvent, SEALED_SINCE};
use muster_shared::time::Millis;
use muster_shared::wire::{Body, Envelope, decode};
use serde::Serialize;

use signed::{AuditKeys, Signatures};

/// What an audit came to.
#[derive(Debug, Serialize)]
pub(crate) struct Audit {
    pub(crate) run: RunId,
    #[serde(flatten)]
    pub(crate) found: Found,
    /// When the first entry was stored, by the broker.
    pub(crate) first_at: Option<Millis>,
    /// When the last entry was stored.
    pub(crate) last_at: Option<Millis>,
    /// Bodies that lie apart in the object store.
    pub(crate) apart: Apart,
    /// Who vouches for the links, and gave the orders; nothing where no keys of the fleet are known, or nothing is signed.
    pub(crate) signed: Option<Signatures>,
    /// Whether the fleet's keys are known and nobody vouches for any link: of runs of before there were seals. Whoever can write
    /// the stream could have made all of it up.
    pub(crate) unvouched: bool,
    /// Whether the run has ended by what stands here; nothing where that lies apart.
    pub(crate) ended: Option<bool>,
    /// The last entry that stands here.
    pub(crate) last: Option<Seq>,
    /// What the server says of entries that are not here.
    pub(crate) missing: Option<String>,
}

/// Whether the entries fit.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "result")]
pub(crate) enum Found {
    /// They do.
    Fits(Verified),
    /// There is no chain: nothing can be said.
    NoChain {
        /// How many there are.
        entries: u64,
        /// Whether the decision that began the run is among them.
        begun: bool,
    },
    /// This one does not.
    Misfit {
        /// Where, and what does not fit.
        #[serde(flatten)]
        misfit: Misfit,
        /// What stands there; nothing where nothing does.
        entry: Option<EntryAt>,
    },
}

/// Bodies that lie apart. Entries name them by their hash, so links cover them too.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Apart {
    /// How many were fetched and have the hash that their entry names.
    pub(crate) fit: u64,
    /// How many were not looked at.
    pub(crate) not_checked: u64,
    /// Those that are gone, or are not what their entry names.
    pub(crate) wrong: Vec<WrongBody>,
}

/// A body that does not fit.
#[derive(Debug, Serialize)]
pub(crate) struct WrongBody {
    /// The entry that names it.
    pub(crate) seq: Seq,
    /// What is wrong.
    pub(crate) why: String,
}

/// An entry, to be named.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct EntryAt {
    pub(crate) subject: String,
    pub(crate) at: Millis,
    /// What kind of entry, by its subject.
    pub(crate) what: String,
}

/// A record to be audited, and the keys by which signatures are judged.
#[derive(Clone, Copy)]
pub(crate) struct AuditedRecord<'a> {
    pub(crate) messages: &'a [KeptMessage],
    pub(crate) keys: Option<&'a AuditKeys>,
    /// What the server says of entries that it does not give out.
    pub(crate) missing: Option<&'a str>,
}

/// What the chain says, unless a signature before that is wrong.
fn first_misfit(found: Result<Verified, Misfit>, fault: Option<Misfit>) -> Result<Verified, Misfit> {
    match (found, fault) {
        (Err(misfit), Some(fault)) if misfit.seq < fault.seq => Err(misfit),
        (_, Some(fault)) => Err(fault),
        (found, None) => found,
    }
}

impl Audit {
    /// Holds the messages of a run against its chain.
    pub(crate) fn of(run: RunId, record: &AuditedRecord<'_>, apart: Apart) -> Self {
        let AuditedRecord { messages, keys, missing } = *record;
        let reads: Vec<Read> = messages.iter().map(KeptMessage::to_verify).collect();
        let is_linked = reads.iter().any(|read| read.link.is_some());
        // Of a run whose beginning cannot be read, nothing is passed over.
        let version = version(messages);
        let all_linked = version.map_or(is_linked, |version| version >= CHAIN_SINCE);
        let all_sealed = version.is_none_or(|version| version >= SEALED_SINCE);
        let signed = keys.map(|keys| signed::check(messages, keys, all_sealed)).transpose();
        let (signed, fault) = match signed {
            Ok(signed) => (signed, None),
            Err(fault) => (None, Some(fault)),
        };
        let found = match first_misfit(verify(run, &reads, all_linked), fault) {
            Ok(found) if found.begins.is_none() => {
                Found::NoChain { entries: found.entries, begun: version.is_some() }
            }
            Ok(found) => Found::Fits(found),
            Err(misfit) => {
                let there = messages.iter().find(|message| message.seq == misfit.seq);
                Found::Misfit { misfit, entry: there.map(entry_at) }
            }
        };
        let at = |message: Option<&KeptMessage>| message.map(|message| message.at);
        let (first_at, last_at) = (at(messages.first()), at(messages.last()));
        Self {
            run,
            unvouched: keys.is_some() && matches!(&found, Found::Fits(found) if found.sealed == 0),
            found,
            first_at,
            last_at,
            apart,
            signed: signed.filter(|signed| !signed.is_empty()),
            ended: has_ended(messages),
            last: messages.last().map(|message| message.seq),
            missing: missing.map(str::to_owned),
        }
    }

    /// Whether there is a chain that somebody vouches for, where that can be told, and all fits.
    pub(crate) fn passes(&self) -> bool {
        matches!(self.found, Found::Fits(_)) && !self.unvouched && self.apart.wrong.is_empty()
    }
}

/// The version of the run's events, by the decision that created it. One with a link is believed before one without.
fn version(messages: &[KeptMessage]) -> Option<u32> {
    let (linked, others): (Vec<_>, Vec<_>) = messages.iter().partition(|message| message.link.is_some());
    linked.into_iter().chain(others).find_map(created_with)
}

fn created_with(message: &KeptMessage) -> Option<u32> {
    let envelope: Envelope = decode(&message.payload, message.encoding).ok()?;
    let Body::Decided(decided) = envelope.body else { return None };
    decided.events.into_iter().find_map(|event| match event {
        RunEvent::RunCreated(created) => Some(created.event_version),
        _ => None,
    })
}

/// Whether a run's record tells its end; nothing where the body of a decision lies apart that may do so.
pub(crate) fn has_ended(messages: &[KeptMessage]) -> Option<bool> {
    let mut is_apart = false;
    for message in messages.iter().rev() {
        let envelope: Option<Envelope> = decode(&message.payload, message.encoding).ok();
        match envelope.map(|envelope| envelope.body) {
            Some(Body::Decided(decided)) if decided.events.iter().any(RunEvent::ends_run) => {
                return Some(true);
            }
            Some(Body::Stored(_)) if message.subject.starts_with("run.") => is_apart = true,
            Some(_) | None => {}
        }
    }
    (!is_apart).then_some(false)
}

fn entry_at(message: &KeptMessage) -> EntryAt {
    let what = match Subject::parse(&message.subject) {
        Ok(Subject::Decided(_)) => "a decision".to_owned(),
        Ok(Subject::Offer(_, _, task)) if message.link.is_some() => format!("a decision that offers {task}"),
        Ok(Subject::Offer(_, _, task)) => format!("an offer of {task}"),
        Ok(Subject::Event(_, key, kind)) => format!("{kind} of {} by {}", key.task, key.agent),
        Ok(_) | Err(_) => "of no known kind".to_owned(),
    };
    EntryAt { subject: message.subject.clone(), at: message.at, what }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use muster_shared::run::Chain;
    use muster_shared::run::chain::{ChainFault, digest};
    use muster_shared::wire::Encoding;

    use super::*;

    fn unsigned(messages: &[KeptMessage]) -> AuditedRecord<'_> {
        AuditedRecord { messages, keys: None, missing: None }
    }

    /// A run of before there was a chain, as it once was recorded.
    fn old() -> (RunId, Vec<KeptMessage>) {
        let text = include_str!("../../tests/golden/run-v1.jsonl");
        let message = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            KeptMessage {
                seq: Seq(line["seq"].as_u64().unwrap()),
                at: Millis(line["at"].as_u64().unwrap()),
                subject: line["subject"].as_str().unwrap().to_owned(),
                encoding: Encoding::Json,
                payload: line["envelope"].to_string().into(),
                link: None,
            }
        };
        let messages: Vec<KeptMessage> = text.lines().map(message).collect();
        let run = Subject::parse(&messages[0].subject).unwrap().run().unwrap();
        (run, messages)
    }

    /// The next decision, written by a build that links.
    fn decides(run: RunId, messages: &mut Vec<KeptMessage>, chain: &mut Chain) {
        let last = messages.last().unwrap().clone();
        let (seq, subject) = (Seq(last.seq.0 + 1), format!("run.{run}.decided"));
        let link = chain.draft(run).over([digest(&subject, b"{}")]);
        chain.wrote(seq, link.hash);
        let link = Some(link.to_header());
        messages.push(KeptMessage { seq, subject, payload: "{}".into(), link, ..last });
    }

    #[test]
    fn a_run_of_before_has_no_chain_until_it_is_decided_upon_again() {
        let (run, mut messages) = old();
        let entries = messages.len() as u64;
        let audit = Audit::of(run, &unsigned(&messages), Apart::default());
        assert!(!audit.passes());
        assert!(
            matches!(audit.found, Found::NoChain { entries: all, begun: true } if all == entries),
            "{audit:?}"
        );
        let mut chain = Chain::default();
        decides(run, &mut messages, &mut chain);
        let begins = messages.last().unwrap().seq;
        decides(run, &mut messages, &mut chain);
        let audit = Audit::of(run, &unsigned(&messages), Apart::default());
        let said = crate::render::audit::lines(&audit).join("\n");
        assert!(audit.passes(), "{said}");
        assert!(
            said.contains(&format!("no chain before entry {begins}: {entries} entries not verified")),
            "{said}"
        );
        assert!(said.contains("2 links") && said.contains("not sealed"), "{said}");
        let wrong = Apart { wrong: vec![WrongBody { seq: Seq(1), why: "gone".into() }], ..Apart::default() };
        assert!(!Audit::of(run, &unsigned(&messages), wrong).passes());

        messages.last_mut().unwrap().payload = "{ }".into();
        let audit = Audit::of(run, &unsigned(&messages), Apart::default());
        let said = crate::render::audit::lines(&audit).join("\n");
        assert!(!audit.passes());
        let last = messages.last().unwrap().seq;
        assert!(
            said.contains(&format!("entry {last} does not fit")) && said.contains("there: a decision"),
            "{said}"
        );
    }

    /// A chain of hashes can be computed by anybody: where the fleet's keys are known, somebody has to vouch for it.
    #[test]
    fn nobody_vouches_for_what_bears_no_seal() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = muster_bus::credentials::FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
        let keys = AuditKeys { trust: fleet.public().unwrap(), origin: signed::KeysOrigin::Given };
        let (run, mut messages) = old();
        let mut chain = Chain::default();
        decides(run, &mut messages, &mut chain);
        decides(run, &mut messages, &mut chain);
        let record = AuditedRecord { messages: &messages, keys: Some(&keys), missing: None };
        let audit = Audit::of(run, &record, Apart::default());
        let said = crate::render::audit::lines(&audit).join("\n");
        assert!(matches!(audit.found, Found::Fits(_)) && !audit.passes(), "{said}");
        assert!(
            said.contains("fits its hash chain") && said.contains("nobody vouches for it: it bears no seal"),
            "{said}"
        );

        let created = created(SEALED_SINCE);
        let link = Chain::default().draft(run).over([digest(&created.subject, &created.payload)]);
        let created = KeptMessage { link: Some(link.to_header()), ..created };
        let record =
            AuditedRecord { messages: std::slice::from_ref(&created), keys: Some(&keys), missing: None };
        let audit = Audit::of(run, &record, Apart::default());
        let Found::Misfit { misfit, .. } = &audit.found else { panic!("{audit:?}") };
        assert_eq!((misfit.seq, &misfit.fault), (created.seq, &ChainFault::NoSeal));
        assert!(Audit::of(run, &unsigned(std::slice::from_ref(&created)), Apart::default()).passes());
    }

    /// Whoever cuts a record off leaves a chain that fits.
    #[test]
    fn it_is_said_where_a_record_stops_and_what_is_missing() {
        let (run, messages) = old();
        let of = |messages: &[KeptMessage]| {
            let record = AuditedRecord { messages, keys: None, missing: Some("the server counts 9") };
            let audit = Audit::of(run, &record, Apart::default());
            (audit.ended, crate::render::audit::lines(&audit).join("\n"))
        };
        assert_eq!(of(&messages).0, Some(true), "{}", of(&messages).1);
        let (ended, said) = of(&messages[..3]);
        let last = messages[2].seq;
        assert_eq!(ended, Some(false));
        assert!(said.contains(&format!("the run has not ended at entry {last}")), "{said}");
        assert!(said.contains("messages are missing: the server counts 9"), "{said}");
        assert!(said.contains("by the broker's clock, which nothing covers"), "{said}");
        assert!(said.contains("begun by a build that wrote none"), "{said}");
        let (_, said) = of(&messages[messages.len() - 1..]);
        assert!(said.contains("the decision that began the run is not there"), "{said}");
    }

    /// The decision that began a run, in another version of events.
    fn created(version: u32) -> KeptMessage {
        let (_, messages) = old();
        let mut envelope: serde_json::Value = serde_json::from_slice(&messages[0].payload).unwrap();
        let events = envelope["body"]["content"]["events"].as_array_mut().unwrap();
        let event = events.iter_mut().find(|event| event["event"] == "run_created").unwrap();
        event["event_version"] = version.into();
        KeptMessage { payload: envelope.to_string().into(), ..messages[0].clone() }
    }

    /// Whoever takes all links out of a newer run, or puts an older beginning before it, is found.
    #[test]
    fn a_newer_run_is_nowhere_without_a_link() {
        let (run, mut messages) = old();
        messages[0] = created(CHAIN_SINCE);
        let audit = Audit::of(run, &unsigned(&messages), Apart::default());
        let Found::Misfit { misfit, .. } = &audit.found else { panic!("{audit:?}") };
        assert_eq!(misfit.seq, messages[0].seq);

        let first = created(CHAIN_SINCE);
        let link = Chain::default().draft(run).over([digest(&first.subject, &first.payload)]);
        let first = KeptMessage { seq: Seq(9), link: Some(link.to_header()), ..first };
        let older = KeptMessage { seq: Seq(8), ..created(1) };
        assert!(Audit::of(run, &unsigned(std::slice::from_ref(&first)), Apart::default()).passes());
        let audit = Audit::of(run, &unsigned(&[older, first]), Apart::default());
        let Found::Misfit { misfit, entry } = &audit.found else { panic!("{audit:?}") };
        assert_eq!((misfit.seq, entry.as_ref().unwrap().what.as_str()), (Seq(8), "a decision"));
    }
}
