//! Whether the record of a run, as it stands or as it was exported, fits its hash chain. Pure.

pub(crate) mod file;
pub(crate) mod signed;

use muster_bus::KeptMessage;
use muster_bus::subject::Subject;
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::RunEvent;
use muster_shared::run::chain::{Misfit, Read, Verified, verify};
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
    /// There is no decision among them, so that nothing can be said.
    NoChain {
        /// How many there are.
        entries: u64,
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

impl Audit {
    /// Holds the messages of a run against its chain.
    pub(crate) fn of(run: RunId, record: &AuditedRecord<'_>, apart: Apart) -> Self {
        let AuditedRecord { messages, keys, missing } = *record;
        let reads: Vec<Read> = messages.iter().map(KeptMessage::to_verify).collect();
        let signed = keys.map(|keys| signed::check(messages, keys)).transpose();
        let (signed, fault) = match signed {
            Ok(signed) => (signed, None),
            Err(fault) => (None, Some(fault)),
        };
        // The first fault, of the chain or of a signature.
        let first_misfit = match (verify(run, &reads), fault) {
            (Err(misfit), Some(fault)) if misfit.seq < fault.seq => Err(misfit),
            (_, Some(fault)) => Err(fault),
            (found, None) => found,
        };
        let found = match first_misfit {
            Ok(found) if found.begins.is_none() => Found::NoChain { entries: found.entries },
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

    /// Whether there is a chain, and all fits.
    pub(crate) fn passes(&self) -> bool {
        matches!(self.found, Found::Fits(_)) && self.apart.wrong.is_empty()
    }
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
            _ => {}
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
        _ => "of no known kind".to_owned(),
    };
    EntryAt { subject: message.subject.clone(), at: message.at, what }
}

#[cfg(test)]
mod tests {
    use muster_shared::run::chain::{ChainFault, digest};
    use muster_shared::run::{Chain, Covered};
    use muster_shared::wire::Encoding;

    use super::*;

    fn unsigned(messages: &[KeptMessage]) -> AuditedRecord<'_> {
        AuditedRecord { messages, keys: None, missing: None }
    }

    /// A run with a link at each decision.
    fn recorded() -> (RunId, Vec<KeptMessage>) {
        let text = include_str!("../../tests/golden/run.jsonl");
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
        let mut messages: Vec<KeptMessage> = text.lines().map(message).collect();
        let run = Subject::parse(&messages[0].subject).unwrap().run().unwrap();
        let (mut chain, mut at) = (Chain::default(), 0);
        while at < messages.len() {
            let KeptMessage { seq, subject, payload, .. } = &messages[at];
            let envelope: Envelope = decode(payload, Encoding::Json).unwrap();
            let Body::Decided(decided) = envelope.body else {
                chain.note(Covered { seq: *seq, digest: digest(subject, payload) });
                at += 1;
                continue;
            };
            let batch = &messages[at..=at + usize::try_from(decided.offers).unwrap()];
            let link = chain.draft(run).over(batch.iter().map(|one| digest(&one.subject, &one.payload)));
            chain.wrote(*seq, link.hash);
            let next = at + batch.len();
            messages[at].link = Some(link.to_header());
            at = next;
        }
        (run, messages)
    }

    fn misfit(run: RunId, record: &AuditedRecord<'_>) -> Misfit {
        match Audit::of(run, record, Apart::default()).found {
            Found::Misfit { misfit, .. } => misfit,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_run_fits_its_chain_until_somebody_changes_it() {
        let (run, mut messages) = recorded();
        let audit = Audit::of(run, &unsigned(&messages), Apart::default());
        let said = crate::render::audit::lines(&audit).join("\n");
        assert!(audit.passes() && said.contains("not sealed"), "{said}");
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

        let (_, mut messages) = recorded();
        messages[0].link = None;
        let found = misfit(run, &unsigned(&messages));
        assert_eq!((found.seq, found.fault), (messages[0].seq, ChainFault::NoLink));
    }

    /// A chain of hashes can be computed by anybody: where the fleet's keys are known, somebody has to vouch for it.
    #[test]
    fn nobody_vouches_for_what_bears_no_seal() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = muster_bus::credentials::FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
        let keys = AuditKeys { trust: fleet.public().unwrap(), origin: signed::KeysOrigin::Given };
        let (run, messages) = recorded();
        let record = AuditedRecord { messages: &messages, keys: Some(&keys), missing: None };
        let found = misfit(run, &record);
        assert_eq!((found.seq, found.fault), (messages[0].seq, ChainFault::NoSeal));
    }

    /// Whoever cuts a record off leaves a chain that fits.
    #[test]
    fn it_is_said_where_a_record_stops_and_what_is_missing() {
        let (run, messages) = recorded();
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
        let (_, said) = of(&messages[messages.len() - 1..]);
        assert!(said.contains("none with a link stands before it"), "{said}");
    }
}
