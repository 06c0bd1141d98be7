//! Parts of the record: which stream holds a run, and the subjects in it. Pure.
//!
//! A record of one part is the stream `RUNS` with the subjects `run.<run>.…` and `evt.<run>.…`. One of several has a stream
//! for each of them, and its number stands in the subjects after their first token: `run.2.<run>.…`. A run is in one part for
//! good, so its order and its fences are those of one stream. All of our code knows the subjects without a number; it
//! is put in and taken out where streams are written and read.

use std::borrow::Cow;

use muster_shared::ids::RunId;

/// The stream of a record in one part.
const WHOLE: [&str; 1] = ["RUNS"];
/// The streams of records in several parts. The number of parts is in the name, so that whoever takes another number for
/// granted finds nothing rather than a part.
const OF_2: [&str; 2] = ["RUNS_0_OF_2", "RUNS_1_OF_2"];
const OF_4: [&str; 4] = ["RUNS_0_OF_4", "RUNS_1_OF_4", "RUNS_2_OF_4", "RUNS_3_OF_4"];
const OF_8: [&str; 8] = [
    "RUNS_0_OF_8",
    "RUNS_1_OF_8",
    "RUNS_2_OF_8",
    "RUNS_3_OF_8",
    "RUNS_4_OF_8",
    "RUNS_5_OF_8",
    "RUNS_6_OF_8",
    "RUNS_7_OF_8",
];
const OF_16: [&str; 16] = [
    "RUNS_0_OF_16",
    "RUNS_1_OF_16",
    "RUNS_2_OF_16",
    "RUNS_3_OF_16",
    "RUNS_4_OF_16",
    "RUNS_5_OF_16",
    "RUNS_6_OF_16",
    "RUNS_7_OF_16",
    "RUNS_8_OF_16",
    "RUNS_9_OF_16",
    "RUNS_10_OF_16",
    "RUNS_11_OF_16",
    "RUNS_12_OF_16",
    "RUNS_13_OF_16",
    "RUNS_14_OF_16",
    "RUNS_15_OF_16",
];
/// All ways to part the record.
const WAYS: [&[&str]; 5] = [&WHOLE, &OF_2, &OF_4, &OF_8, &OF_16];

/// First tokens of the record's subjects.
const KINDS: [&str; 2] = ["run", "evt"];

/// How the record is parted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partitions(&'static [&'static str]);

impl Default for Partitions {
    fn default() -> Self {
        Self(&WHOLE)
    }
}

impl Partitions {
    /// Numbers of parts that there may be.
    pub const COUNTS: [u8; 5] = [1, 2, 4, 8, 16];

    /// All ways to part a record.
    pub fn every() -> impl Iterator<Item = Self> {
        WAYS.into_iter().map(Self)
    }

    /// A record in so many parts; nothing for a number that is none of [`Self::COUNTS`].
    #[must_use]
    pub fn of_count(count: usize) -> Option<Self> {
        WAYS.into_iter().find(|streams| streams.len() == count).map(Self)
    }

    /// The way that a stream of this name is one of.
    #[must_use]
    pub fn with_stream(name: &str) -> Option<Self> {
        WAYS.into_iter().find(|streams| streams.contains(&name)).map(Self)
    }

    /// How many parts there are.
    #[must_use]
    pub const fn count(self) -> usize {
        self.0.len()
    }

    /// The part that holds a run: FNV-1a of its 32 digits by the number of parts, as the server's own subject mapping
    /// `partition(n, token)` has it.
    #[must_use]
    pub fn part_of(self, run: RunId) -> Part {
        let hash = run
            .to_string()
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Part { partitions: self, at: usize::try_from(hash).unwrap_or_default() % self.count() }
    }

    /// All parts.
    pub fn parts(self) -> impl Iterator<Item = Part> {
        (0..self.count()).map(move |at| Part { partitions: self, at })
    }

    /// The filter under which a watcher sees the subjects of one run that match `filter`.
    #[must_use]
    pub fn watched(self, run: Option<RunId>, filter: String) -> String {
        let of_record = filter.split('.').next().is_some_and(|kind| KINDS.contains(&kind));
        match run {
            Some(run) if of_record => self.part_of(run).subject(filter),
            Some(_) | None => filter,
        }
    }
}

/// One part of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    partitions: Partitions,
    at: usize,
}

impl Part {
    /// Its number, from 0.
    #[must_use]
    pub const fn at(self) -> usize {
        self.at
    }

    /// Whether a run is in it.
    #[must_use]
    pub fn holds(self, run: RunId) -> bool {
        self.partitions.part_of(run) == self
    }

    /// Its stream.
    #[must_use]
    pub fn stream(self) -> &'static str {
        self.partitions.0.get(self.at).copied().unwrap_or(WHOLE[0])
    }

    /// How many parts there are.
    #[must_use]
    pub const fn of(self) -> usize {
        self.partitions.count()
    }

    /// Whether it is the whole record.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        self.partitions.count() == 1
    }

    /// A subject or filter of the record as it is in this part.
    #[must_use]
    pub fn subject(self, plain: String) -> String {
        match plain.split_once('.') {
            Some((kind, rest)) if !self.is_whole() => format!("{kind}.{}.{rest}", self.at),
            Some(_) | None => plain,
        }
    }
}

/// A subject without the number of its part; others as they are.
#[must_use]
pub fn plain(subject: &str) -> Cow<'_, str> {
    let mut tokens = subject.splitn(3, '.');
    match (tokens.next(), tokens.next(), tokens.next()) {
        (Some(kind), Some(part), Some(rest)) if KINDS.contains(&kind) && is_number(part) => {
            Cow::Owned(format!("{kind}.{rest}"))
        }
        _ => Cow::Borrowed(subject),
    }
}

/// Whether a token is the number of a part. A run has 32 digits.
fn is_number(token: &str) -> bool {
    (1..=2).contains(&token.len()) && token.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn run(n: u128) -> RunId {
        RunId::from_uuid(Uuid::from_u128(n))
    }

    #[test]
    fn a_record_of_one_part_is_as_it_always_was() {
        let whole = Partitions::of_count(1).unwrap();
        assert_eq!(whole, Partitions::default());
        let part = whole.part_of(run(7));
        assert_eq!(part.stream(), "RUNS");
        assert_eq!(part.subject("run.R.decided".into()), "run.R.decided");
        assert_eq!(whole.watched(Some(run(7)), "evt.R.>".into()), "evt.R.>");
    }

    #[test]
    fn the_number_goes_in_and_comes_out_again() {
        let four = Partitions::of_count(4).unwrap();
        let parts: Vec<Part> = four.parts().collect();
        let subjects = ["run.R.decided", "evt.*.*.*.*.*.started", "run.>", "evt.R.worker.w-1.1.2.step"];
        for (part, subject) in parts.iter().flat_map(|part| subjects.map(|subject| (part, subject))) {
            let inside = part.subject(subject.to_owned());
            assert_ne!(inside, subject);
            assert_eq!(plain(&inside), subject, "{inside}");
            assert_eq!(plain(subject), subject);
        }
        assert_eq!(parts[2].subject("run.R.decided".into()), "run.2.R.decided");
        assert_eq!(parts[2].stream(), "RUNS_2_OF_4");
        assert_eq!(plain("cmd.2.submit"), "cmd.2.submit", "only the record has parts");
    }

    #[test]
    fn a_watcher_of_one_run_listens_in_its_part() {
        let four = Partitions::of_count(4).unwrap();
        let at = four.part_of(run(7)).at();
        assert_eq!(four.watched(Some(run(7)), "evt.R.>".into()), format!("evt.{at}.R.>"));
        assert_eq!(four.watched(Some(run(7)), "live.R.>".into()), "live.R.>");
        assert_eq!(four.watched(None, "evt.>".into()), "evt.>", "which is in all parts");
    }

    /// By the reference: FNV-1a with 32 bits of 32 hexadecimal digits. Whoever counts otherwise looks for runs where they
    /// are not.
    #[test]
    fn where_a_run_is_never_changes() {
        let at = |count, n| Partitions::of_count(count).unwrap().part_of(run(n)).at();
        for (n, of_4, of_16) in [(0, 1, 5), (1, 2, 2), (2, 3, 15), (0xaa, 3, 15)] {
            assert_eq!((at(4, n), at(16, n)), (of_4, of_16), "{n:x}");
        }
    }

    #[test]
    fn every_part_gets_its_share_of_runs() {
        for count in Partitions::COUNTS {
            let partitions = Partitions::of_count(count.into()).unwrap();
            let mut shares = vec![0_usize; partitions.count()];
            (0..16_000).for_each(|_| shares[partitions.part_of(RunId::from_uuid(Uuid::now_v7())).at()] += 1);
            let fair = 16_000 / partitions.count();
            assert!(shares.iter().all(|share| share.abs_diff(fair) < fair / 4), "{count}: {shares:?}");
        }
    }

    #[test]
    fn a_stream_says_how_the_record_is_parted() {
        for count in Partitions::COUNTS {
            let partitions = Partitions::of_count(count.into()).unwrap();
            for part in partitions.parts() {
                assert_eq!(Partitions::with_stream(part.stream()), Some(partitions));
            }
        }
        assert_eq!(Partitions::with_stream("TASKS"), None);
        assert_eq!((Partitions::of_count(0), Partitions::of_count(3)), (None, None));
    }
}
