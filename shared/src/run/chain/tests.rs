//! Whatever is changed in a chained record is found, and where.

use proptest::prelude::*;
use proptest::sample::Index;
use uuid::Uuid;

use super::*;

const RUN: RunId = RunId::from_uuid(Uuid::from_u128(7));

/// Something that happens in a run.
#[derive(Debug, Clone)]
enum Act {
    /// An agent writes this.
    Agent(u8),
    /// An orchestrator decides, with so many offers behind it. The last entries of agents it has not heard of yet.
    Decide { offers: usize, late: usize },
    /// Another orchestrator takes over: it knows the record and nothing else.
    TakeOver,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => any::<u8>().prop_map(Act::Agent),
        3 => (0..3_usize, 0..3_usize).prop_map(|(offers, late)| Act::Decide { offers, late }),
        1 => Just(Act::TakeOver),
    ];
    prop::collection::vec(act, 1..40)
}

/// A message as it stands in the stream.
#[derive(Debug, Clone, PartialEq)]
struct Stored {
    seq: Seq,
    subject: String,
    bytes: Vec<u8>,
    link: Option<Link>,
}

impl Stored {
    fn is_of_agent(&self) -> bool {
        self.subject.starts_with("evt")
    }

    fn covered(&self) -> Covered {
        Covered { seq: self.seq, digest: digest(&self.subject, &self.bytes) }
    }

    fn chain_entry(&self) -> Option<ChainEntry> {
        match &self.link {
            Some(link) => Some(ChainEntry::Linked { seq: self.seq, link: Box::new(link.clone()) }),
            None => self.is_of_agent().then(|| ChainEntry::Agent(self.covered())),
        }
    }
}

/// A stream, and an orchestrator that writes to it.
#[derive(Default)]
struct Run {
    stream: Vec<Stored>,
    chain: Chain,
    /// What agents wrote and the orchestrator has not heard of.
    unheard: Vec<Covered>,
}

impl Run {
    fn of(acts: &[Act]) -> Self {
        let mut run = Self::default();
        // What stands there before the run is created is nothing that anybody decides upon.
        run.put("evt.before", vec![0], None);
        run.decide(0, 0);
        for act in acts {
            match act {
                Act::Agent(byte) => {
                    run.put("evt.agent", vec![*byte], None);
                    let written = run.stream.last().unwrap().covered();
                    run.unheard.push(written);
                }
                Act::Decide { offers, late } => run.decide(*offers, *late),
                Act::TakeOver => {
                    run.unheard.clear();
                    run.chain = run.read();
                }
            }
        }
        run.decide(1, 0);
        run
    }

    fn read(&self) -> Chain {
        let mut chain = Chain::default();
        self.stream.iter().filter_map(Stored::chain_entry).for_each(|entry| chain.read(entry));
        chain
    }

    fn put(&mut self, subject: &str, bytes: Vec<u8>, link: Option<Link>) {
        // Other runs write to the stream too.
        let seq = Seq(self.stream.last().map_or(3, |last| last.seq.0 + 1 + last.seq.0 % 3));
        self.stream.push(Stored { seq, subject: subject.to_owned(), bytes, link });
    }

    fn decide(&mut self, offers: usize, late: usize) {
        let late = self.unheard.split_off(self.unheard.len().saturating_sub(late));
        std::mem::replace(&mut self.unheard, late).into_iter().for_each(|entry| self.chain.note(entry));
        let number = u8::try_from(self.stream.len() % 251).unwrap();
        let messages: Vec<(&str, Vec<u8>)> = std::iter::once(("run.decided", vec![number]))
            .chain((0..offers).map(|at| ("run.task", vec![number, u8::try_from(at).unwrap()])))
            .collect();
        let draft = self.chain.draft(RUN);
        let link = draft.over(messages.iter().map(|(subject, bytes)| digest(subject, bytes)));
        let hash = link.hash;
        let mut link = Some(link);
        let first = self.stream.len();
        for (subject, bytes) in messages {
            self.put(subject, bytes, link.take());
        }
        self.chain.wrote(self.stream[first].seq, hash);
    }
}

fn verified(stream: &[Stored]) -> Result<Verified, Misfit> {
    let read = |stored: &Stored| Read {
        seq: stored.seq,
        digest: digest(&stored.subject, &stored.bytes),
        by_agent: stored.is_of_agent(),
        link: stored.link.clone().map(Ok),
    };
    verify(RUN, &stream.iter().map(read).collect::<Vec<_>>())
}

/// Places among the entries that the chain covers, and are not its last: from the creation on, up to the last decision.
fn any_covered(stream: &[Stored], at: &Index) -> usize {
    let last = stream.iter().rposition(|stored| stored.link.is_some()).unwrap();
    let through = stream[last].link.as_ref().and_then(Link::through).unwrap_or_default();
    let covered: Vec<usize> = (1..stream.len())
        .filter(|i| !stream[*i].is_of_agent() || stream[*i].seq <= through || is_covered(stream, *i))
        .collect();
    covered[at.index(covered.len())]
}

fn is_covered(stream: &[Stored], at: usize) -> bool {
    let covers = |link: &Link| link.through().is_some_and(|through| through >= stream[at].seq);
    stream[at + 1..].iter().filter_map(|stored| stored.link.as_ref()).any(covers)
}

proptest! {
    #[test]
    fn a_record_that_nobody_touched_fits_whoever_wrote_it_and_however_late_agents_were_heard(acts in acts()) {
        let run = Run::of(&acts);
        let found = verified(&run.stream).unwrap();
        let linked = run.stream.iter().filter(|stored| stored.link.is_some()).count() as u64;
        prop_assert_eq!((found.entries, found.links), (run.stream.len() as u64, linked));
        prop_assert_eq!(found.before, 1);
        prop_assert_eq!(found.uncovered, 0, "the last decision knew all");
        prop_assert_eq!(found.covered, found.entries - 1);
        prop_assert_eq!(found.head, run.chain.head());
        prop_assert_eq!(run.read(), Chain { known: run.read().known, ..run.chain.clone() });
    }

    #[test]
    fn a_changed_byte_subject_or_place_is_found_where_it_is(acts in acts(), at: Index, what in 0..3) {
        let mut stream = Run::of(&acts).stream;
        let at = any_covered(&stream, &at);
        let was = stream[at].seq;
        match what {
            0 => stream[at].bytes[0] ^= 1,
            1 => stream[at].subject.push('x'),
            // The place of a decision is not hashed: its author does not know it. `Decided.after` names it.
            _ if stream[at].is_of_agent() && stream[at + 1].seq.0 > was.0 + 1 => stream[at].seq = Seq(was.0 + 1),
            _ => stream[at].bytes.push(0),
        }
        let misfit = verified(&stream).unwrap_err();
        prop_assert_eq!(misfit.seq, was, "{:?}", misfit);
    }

    #[test]
    fn what_was_taken_out_is_found_at_its_place_or_at_the_next_that_does_not_fit(acts in acts(), at: Index) {
        let mut stream = Run::of(&acts).stream;
        let at = any_covered(&stream, &at);
        let is_last_link = stream[at].link.is_some()
            && stream[at + 1..].iter().all(|stored| stored.is_of_agent());
        prop_assume!(!is_last_link);
        let gone = stream.remove(at);
        let misfit = verified(&stream).unwrap_err();
        if gone.is_of_agent() {
            prop_assert_eq!((misfit.seq, misfit.fault), (gone.seq, ChainFault::Missing));
        } else if gone.link.is_some() {
            let next = stream[at..].iter().find(|stored| !stored.is_of_agent()).unwrap();
            prop_assert_eq!(misfit.seq, next.seq, "{:?}", misfit);
        } else {
            let decision = stream[..at].iter().rfind(|stored| stored.link.is_some()).unwrap();
            prop_assert_eq!(misfit.seq, decision.seq);
            prop_assert_eq!(misfit.fault, ChainFault::OffersMissing { missing: 1 });
        }
    }

    #[test]
    fn what_was_put_in_is_found_itself(acts in acts(), at: Index, by_agent: bool, byte: u8) {
        let mut stream = Run::of(&acts).stream;
        // Make room for places in between.
        let at = any_covered(&stream, &at).max(2);
        prop_assume!(stream[at].seq.0 > stream[at - 1].seq.0 + 1);
        // Before what agents wrote and a link covers; or anywhere, in the name of an orchestrator.
        prop_assume!(!by_agent || stream[at].is_of_agent());
        let subject = if by_agent { "evt.agent" } else { "run.decided" };
        let seq = Seq(stream[at].seq.0 - 1);
        stream.insert(at, Stored { seq, subject: subject.to_owned(), bytes: vec![byte], link: None });
        let misfit = verified(&stream).unwrap_err();
        prop_assert_eq!(misfit.seq, seq, "{:?}", misfit);
    }

    #[test]
    fn two_that_changed_places_are_found_at_the_first(acts in acts(), one: Index, other: Index) {
        let mut stream = Run::of(&acts).stream;
        let (one, other) = (any_covered(&stream, &one), any_covered(&stream, &other));
        let (one, other) = (one.min(other), one.max(other));
        let alike = |a: &Stored, b: &Stored| (&a.subject, &a.bytes, &a.link) == (&b.subject, &b.bytes, &b.link);
        prop_assume!(one != other && !alike(&stream[one], &stream[other]));
        let (first, second) = (stream[one].seq, stream[other].seq);
        let between: Vec<Stored> = stream[one..=other].to_vec();
        stream.swap(one, other);
        prop_assert!(verified(&stream).is_err());
        // The places stay, and what stands there changes.
        (stream[one].seq, stream[other].seq) = (first, second);
        let misfit = verified(&stream).unwrap_err();
        // A decision that lost its place to another entry may be missed by what follows it sooner than that entry is read.
        prop_assert!(between.iter().any(|stored| stored.seq == misfit.seq)
            || misfit.told_by.is_some_and(|told| told <= second), "{:?}", misfit);
    }
}

#[test]
fn of_very_many_entries_a_link_names_some_and_still_covers_all() {
    let agents: Vec<Act> = (0..2_000).map(|at| Act::Agent(u8::try_from(at % 250).unwrap())).collect();
    let mut stream = Run::of(&agents).stream;
    let link = stream.iter().rev().find_map(|stored| stored.link.clone()).unwrap();
    assert_eq!((link.every, link.of.len()), (8, 250));
    assert!(link.to_header().len() < 8_192, "{} bytes", link.to_header().len());
    assert_eq!(verified(&stream).unwrap().uncovered, 0);
    stream[1_000].bytes[0] ^= 1;
    let ChainFault::ChangedSince { first } = verified(&stream).unwrap_err().fault else {
        panic!("it is found");
    };
    let misfit = verified(&stream).unwrap_err();
    assert!((first..=misfit.seq).contains(&stream[1_000].seq), "{misfit:?}");
}

#[test]
fn a_link_that_was_changed_is_found_at_its_decision() {
    let stream = Run::of(&[Act::Agent(1), Act::Decide { offers: 1, late: 0 }]).stream;
    let at = stream.iter().rposition(|stored| stored.link.is_some()).unwrap();
    let with = |change: fn(&mut Link)| {
        let mut stream = stream.clone();
        change(stream[at].link.as_mut().unwrap());
        let misfit = verified(&stream).unwrap_err();
        assert_eq!(misfit.seq, stream[at].seq, "{misfit:?}");
        misfit.fault
    };
    assert!(matches!(with(|link| link.hash = beginning(RUN)), ChainFault::OtherHash { .. }));
    assert!(matches!(with(|link| link.prev = Some(beginning(RUN).mark())), ChainFault::OtherBefore { .. }));
    assert_eq!(with(|link| link.prev = None), ChainFault::SecondBeginning);
    assert!(matches!(with(|link| link.own.push(link.hash.mark())), ChainFault::OffersMissing { .. }));
}

#[test]
fn a_decision_without_a_link_before_all_others_is_found() {
    let mut stream = Run::of(&[Act::Agent(1), Act::Decide { offers: 0, late: 0 }]).stream;
    let forged = Stored { seq: Seq(1), subject: "run.decided".into(), bytes: vec![9], link: None };
    stream.insert(0, forged);
    let misfit = verified(&stream).unwrap_err();
    assert_eq!(misfit, Misfit { seq: Seq(1), told_by: None, fault: ChainFault::NoLink });
}

#[test]
fn what_agents_wrote_after_the_last_link_is_counted() {
    let mut run = Run::of(&[]);
    run.put("evt.agent", vec![1], None);
    let found = verified(&run.stream).unwrap();
    assert_eq!((found.uncovered, found.uncovered_since), (1, run.stream.last().map(|last| last.seq)));
    assert_eq!((found.sealed, found.sealed_since), (0, None));
}

#[test]
fn once_there_are_seals_every_link_has_one() {
    let acts = [Act::Decide { offers: 0, late: 0 }, Act::Decide { offers: 0, late: 0 }];
    let run = Run::of(&acts);
    let linked: Vec<usize> =
        run.stream.iter().enumerate().filter(|(_, stored)| stored.link.is_some()).map(|(i, _)| i).collect();
    let with_seals = |sealed: &[usize]| {
        let mut stream = run.stream.clone();
        for at in sealed {
            let seal = Seal { by: "U1".to_owned(), signature: "x".to_owned() };
            stream[linked[*at]].link.as_mut().unwrap().seal = Some(seal);
        }
        verified(&stream)
    };
    let last = linked.len() - 1;
    let later: Vec<usize> = (1..=last).collect();
    let found = with_seals(&later).unwrap();
    assert_eq!((found.sealed, found.sealed_since), (last as u64, Some(run.stream[linked[1]].seq)));
    let misfit = with_seals(&later[..last - 1]).unwrap_err();
    assert_eq!((misfit.seq, misfit.fault), (run.stream[linked[last]].seq, ChainFault::NoSeal));
}

#[test]
fn a_link_reads_as_it_was_written() {
    let run = Run::of(&[Act::Agent(1), Act::Decide { offers: 2, late: 0 }]);
    for link in run.stream.iter().filter_map(|stored| stored.link.as_ref()) {
        assert_eq!(&Link::of_header(&link.to_header()).unwrap(), link);
    }
    let first = run.stream[1].link.as_ref().unwrap();
    assert_eq!(first.to_header(), format!("{{\"own\":[\"{}\"],\"hash\":\"{}\"}}", first.own[0], first.hash));
    assert!(Link::of_header("{}").is_err());
}

/// What an outsider computes must come out for ever.
#[test]
fn the_hashes_are_those_that_the_documents_describe() {
    assert_eq!(
        beginning(RUN).to_string(),
        "6c9b7b28d2e67ed0231518c8e542d3ac1b243301e73062f5af7e36fa91dcc040"
    );
    assert_eq!(
        digest("run.decided", b"hello").to_string(),
        "d6a22718e2f62f8f8979bdf96c13cd5d7f497bf92e659bd5f79f4741e3d73dca"
    );
    assert_eq!(
        add(beginning(RUN), Seq(258), digest("run.decided", b"hello")).to_string(),
        "9010837c92d36a9d304f62850a1350c916a318ef15eb4f5487543970911eba41"
    );
}
