//! Whether a run's entries fit its hash chain, and which is the first that does not. Pure.

use std::collections::{BTreeSet, VecDeque};

use serde::Serialize;

use super::{Digest, Link, Mark, MarkedEntry, OWN, add, beginning};
use crate::ids::{RunId, Seq};

/// An entry as it was read, to be held against the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Its place.
    pub seq: Seq,
    /// The hash of its subject and bytes as they stand there.
    pub digest: Digest,
    /// Whether it stands among what agents wrote.
    pub by_agent: bool,
    /// The link in its header; an error where what stands there is no link.
    pub link: Option<Result<Link, String>>,
}

/// What of a record was verified.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Entries in all.
    pub entries: u64,
    /// Those of them that links cover.
    pub covered: u64,
    /// Links, one for each decision.
    pub links: u64,
    /// The entry with the first link; nothing where there is no chain.
    pub begins: Option<Seq>,
    /// Entries before it.
    pub before: u64,
    /// What agents wrote and no link covers yet.
    pub uncovered: u64,
    /// The first of it.
    pub uncovered_since: Option<Seq>,
    /// The entry with the last link.
    pub head_at: Option<Seq>,
    /// The hash of the last link. Whoever noted it down can tell later that nothing of the record was made anew.
    pub head: Option<Digest>,
    /// Links that somebody vouches for. Whether these seals hold is for whoever has the fleet's keys to say.
    pub sealed: u64,
    /// The entry with the first of them.
    pub sealed_since: Option<Seq>,
}

/// The first entry that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Misfit {
    /// Its place. Nothing may stand there: see the fault.
    pub seq: Seq,
    /// The decision whose link tells, if one does.
    pub told_by: Option<Seq>,
    /// What does not fit.
    pub fault: ChainFault,
}

/// What does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ChainFault {
    /// It does not come after the entry before it.
    #[error("it stands behind entry {after}")]
    OutOfOrder {
        /// The entry before it.
        after: Seq,
    },
    /// Its bytes, its subject or its place are not those that were hashed.
    #[error("its bytes, its subject or its place are not what they were when it was decided upon")]
    Changed,
    /// The same of one of the entries from this one on: the link names only some of very many.
    #[error(
        "of the entries from {first} to it at least one was changed, taken out or put in; the link names only some"
    )]
    ChangedSince {
        /// The first of them.
        first: Seq,
    },
    /// The link names it, and it is not there.
    #[error("it is not there")]
    Missing,
    /// It stands among entries that the link covers, and the link does not name it.
    #[error("it was not there when the entries after it were decided upon")]
    Unnamed,
    /// Offers of the decision are not there.
    #[error("offers of this decision are not there ({missing})")]
    OffersMissing {
        /// How many.
        missing: u64,
    },
    /// A decision, or an offer that no decision announces, without a link.
    #[error("it has no link, as every decision of this run has")]
    NoLink,
    /// Nobody vouches for its link: somebody does for one before it, or the fleet has keys.
    #[error("nobody vouches for it: its link bears no seal")]
    NoSeal,
    /// The seal of its link does not hold.
    #[error("the seal of its link does not hold: {why}")]
    WrongSeal {
        /// Why.
        why: String,
    },
    /// An order that it took is not as it was signed.
    #[error("an order that it took is not as it was signed: {why}")]
    WrongOrder {
        /// Why.
        why: String,
    },
    /// What stands in its header is no link.
    #[error("what stands in its header is no link: {why}")]
    Garbled {
        /// Why.
        why: String,
    },
    /// It follows a link, and there is none before it.
    #[error("it follows a decision, and none with a link stands before it")]
    NoBeginning,
    /// It begins a chain, and there is one already.
    #[error("it begins a chain, and there is one already")]
    SecondBeginning,
    /// It follows another link than the one before it.
    #[error(
        "it follows a decision with the link {follows}…, and the one before it has {before}…: one between them is \
                 missing, or one of both was changed"
    )]
    OtherBefore {
        /// The beginning of the hash of the link that it follows.
        follows: Mark,
        /// The beginning of the hash of the link before it.
        before: Mark,
    },
    /// The hash of its link is not the one that comes out.
    #[error("the hash of its link is not the one that comes out, {came}")]
    OtherHash {
        /// What comes out.
        came: Digest,
    },
}

/// Goes through all entries of a run, in order, and computes each link again. Every decision must have one.
///
/// # Errors
/// The first entry that does not fit.
pub fn verify(run: RunId, entries: &[Read]) -> Result<Verified, Misfit> {
    let mut verifier = Verifier {
        run,
        entries,
        waiting: VecDeque::new(),
        offers: BTreeSet::new(),
        found: Verified::default(),
    };
    let mut after = Seq(0);
    for (at, entry) in entries.iter().enumerate() {
        if entry.seq <= after {
            return Err(misfit(entry.seq, ChainFault::OutOfOrder { after }));
        }
        after = entry.seq;
        verifier.entry(at, entry)?;
    }
    Ok(verifier.finish())
}

struct Verifier<'a> {
    run: RunId,
    entries: &'a [Read],
    /// What agents wrote and no link has covered.
    waiting: VecDeque<&'a Read>,
    /// Offers that a decision before them has announced, by their place among the entries.
    offers: BTreeSet<usize>,
    found: Verified,
}

const fn misfit(seq: Seq, fault: ChainFault) -> Misfit {
    Misfit { seq, told_by: None, fault }
}

impl<'a> Verifier<'a> {
    fn entry(&mut self, at: usize, entry: &'a Read) -> Result<(), Misfit> {
        self.found.entries += 1;
        if entry.by_agent {
            self.waiting.push_back(entry);
            return Ok(());
        }
        if self.offers.remove(&at) {
            return match entry.link {
                Some(_) => Err(misfit(entry.seq, ChainFault::NoBeginning)),
                None => Ok(()),
            };
        }
        match &entry.link {
            Some(Ok(link)) => self.decision(at, entry, link),
            Some(Err(why)) => Err(misfit(entry.seq, ChainFault::Garbled { why: why.clone() })),
            None => Err(misfit(entry.seq, ChainFault::NoLink)),
        }
    }

    fn decision(&mut self, at: usize, entry: &'a Read, link: &Link) -> Result<(), Misfit> {
        let told = |seq, fault| Misfit { seq, told_by: Some(entry.seq), fault };
        let mut so_far = self.follows(entry, link)?;
        for named in &link.of {
            so_far = self
                .agents(so_far, *named, link.every)
                .map_err(|misfit| Misfit { told_by: Some(entry.seq), ..misfit })?;
        }
        for (message, mark) in self.messages(at, link)?.into_iter().zip(&link.own) {
            so_far = add(so_far, OWN, message.digest);
            if so_far.mark() != *mark {
                return Err(told(message.seq, ChainFault::Changed));
            }
            self.found.covered += 1;
        }
        if so_far != link.hash {
            return Err(told(entry.seq, ChainFault::OtherHash { came: so_far }));
        }
        match &link.seal {
            Some(_) => {
                self.found.sealed += 1;
                self.found.sealed_since.get_or_insert(entry.seq);
            }
            None if self.found.sealed > 0 => return Err(misfit(entry.seq, ChainFault::NoSeal)),
            None => {}
        }
        self.found.links += 1;
        self.found.head = Some(link.hash);
        self.found.head_at = Some(entry.seq);
        Ok(())
    }

    /// What a link begins with: the hash of the one before it, if it says that it follows that one.
    fn follows(&mut self, entry: &Read, link: &Link) -> Result<Digest, Misfit> {
        match (link.prev, self.found.head) {
            (None, None) if link.of.is_empty() => {
                self.found.begins = Some(entry.seq);
                self.found.before += self.waiting.len() as u64;
                self.waiting.clear();
                Ok(beginning(self.run))
            }
            (None, None) => {
                let why = "it begins the chain and covers entries before it".to_owned();
                Err(misfit(entry.seq, ChainFault::Garbled { why }))
            }
            (None, Some(_)) => Err(misfit(entry.seq, ChainFault::SecondBeginning)),
            (Some(_), None) => Err(misfit(entry.seq, ChainFault::NoBeginning)),
            (Some(follows), Some(head)) if follows == head.mark() => Ok(head),
            (Some(follows), Some(head)) => {
                Err(misfit(entry.seq, ChainFault::OtherBefore { follows, before: head.mark() }))
            }
        }
    }

    /// Adds what agents wrote up to an entry that the link names.
    fn agents(
        &mut self,
        mut so_far: Digest,
        MarkedEntry(place, mark): MarkedEntry,
        every: u32,
    ) -> Result<Digest, Misfit> {
        let (mut first, mut last) = (None, None);
        while let Some(entry) = self.waiting.pop_front_if(|entry| entry.seq <= place) {
            if every == 1 && entry.seq < place {
                return Err(misfit(entry.seq, ChainFault::Unnamed));
            }
            so_far = add(so_far, entry.seq, entry.digest);
            first = first.or(Some(entry.seq));
            last = Some(entry.seq);
            self.found.covered += 1;
        }
        match (first, last) {
            (Some(_), Some(last)) if last == place && so_far.mark() == mark => Ok(so_far),
            (Some(first), Some(last)) if last == place && first != last => {
                Err(misfit(place, ChainFault::ChangedSince { first }))
            }
            (_, Some(last)) if last == place => Err(misfit(place, ChainFault::Changed)),
            _ => Err(misfit(place, ChainFault::Missing)),
        }
    }

    /// The messages of a decision: its own, and the offers that it announces.
    fn messages(&mut self, at: usize, link: &Link) -> Result<Vec<&'a Read>, Misfit> {
        let entries = self.entries;
        let written = entries.iter().enumerate().skip(at).filter(|(_, entry)| !entry.by_agent);
        let own = written.take(link.own.len()).take_while(|(i, entry)| *i == at || entry.link.is_none());
        let (places, own): (Vec<usize>, Vec<&Read>) = own.unzip();
        if own.len() < link.own.len() {
            let seq = entries.get(at).map_or(Seq(0), |entry| entry.seq);
            let missing = (link.own.len() - own.len()) as u64;
            return Err(Misfit { seq, told_by: Some(seq), fault: ChainFault::OffersMissing { missing } });
        }
        self.offers.extend(places.into_iter().skip(1));
        Ok(own)
    }

    fn finish(mut self) -> Verified {
        if self.found.begins.is_some() {
            self.found.uncovered = self.waiting.len() as u64;
            self.found.uncovered_since = self.waiting.front().map(|entry| entry.seq);
        } else {
            self.found.before += self.waiting.len() as u64;
        }
        self.found
    }
}
