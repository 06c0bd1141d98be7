//! What goes wrong: messages that are lost, late or doubled, and processes that die, freeze, are cut off, or have
//! wrong clocks.

use std::collections::BTreeMap;

use crate::agenda::Time;
use crate::random::Random;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A request never reached the broker.
    RequestLost,
    /// A request was carried out and its answer never arrived: nobody knows whether it was.
    AnswerLost,
    /// A message took so long that later ones overtook it.
    Late,
    /// A request arrived twice.
    Doubled,
    /// A message to agents was lost.
    ControlLost,
    /// A process died.
    Crash,
    /// A process died, or froze, just when it wrote to the record.
    StruckWhileWriting,
    /// A process was frozen, and woke later.
    Freeze,
    /// A process was cut off from the broker for a while and went on.
    CutOff,
    /// A process was told to end in good order, and another took its place.
    Restart,
    /// A process's clock jumped.
    ClockJump,
    /// The broker was started again on its store.
    BrokerRestart,
    /// Everything died at once, and was started again.
    AllCrash,
    /// All workers died at once, and came back after a while.
    RoleDead,
    /// A command was submitted twice.
    CommandDoubled,
    /// Somebody of the same role wrote about a task that another has.
    Forged,
}

impl Fault {
    /// All kinds.
    pub const ALL: [Self; 16] = [
        Self::RequestLost,
        Self::AnswerLost,
        Self::Late,
        Self::Doubled,
        Self::ControlLost,
        Self::Crash,
        Self::StruckWhileWriting,
        Self::Freeze,
        Self::CutOff,
        Self::Restart,
        Self::ClockJump,
        Self::BrokerRestart,
        Self::AllCrash,
        Self::RoleDead,
        Self::CommandDoubled,
        Self::Forged,
    ];

    /// What it is called in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestLost => "request lost",
            Self::AnswerLost => "answer lost",
            Self::Late => "message late",
            Self::Doubled => "request doubled",
            Self::ControlLost => "control message lost",
            Self::Crash => "crash",
            Self::StruckWhileWriting => "struck while writing",
            Self::Freeze => "freeze",
            Self::CutOff => "cut off",
            Self::Restart => "orderly restart",
            Self::ClockJump => "clock jump",
            Self::BrokerRestart => "broker restart",
            Self::AllCrash => "everything crashed",
            Self::RoleDead => "role dead for a while",
            Self::CommandDoubled => "command doubled",
            Self::Forged => "forged",
        }
    }
}

/// How many faults there were, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(BTreeMap<Fault, u64>);

impl Faults {
    /// How many of a kind.
    #[must_use]
    pub fn of(&self, fault: Fault) -> u64 {
        self.0.get(&fault).copied().unwrap_or(0)
    }

    /// How many of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Adds those of another seed.
    pub fn add(&mut self, other: &Self) {
        for (fault, count) in &other.0 {
            *self.0.entry(*fault).or_default() += count;
        }
    }

    pub(crate) fn count(&mut self, fault: Fault) {
        *self.0.entry(fault).or_default() += 1;
    }
}

/// A blow to a process, or to all.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Blow {
    /// It dies; another takes its place after a time.
    Crash(usize, Time),
    Freeze(usize, Time),
    Cut(usize, Time),
    Restart(usize),
    /// Its clock is off by so many milliseconds from now on.
    Skew(usize, i64),
    /// All workers die; others come after a time.
    Role(Time),
    Broker(Time),
    All(Time),
}

/// How rough a seed is.
#[derive(Debug)]
pub(crate) struct Weather {
    /// Until when there are faults.
    pub(crate) until: Time,
    /// Of a thousand requests or answers.
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) doubled: u64,
    /// Of a thousand writes.
    pub(crate) struck: u64,
    pub(crate) blows: Vec<(Time, Blow)>,
}

impl Weather {
    pub(crate) fn new(random: &mut Random, places: usize) -> Self {
        let until = random.between(15_000, 90_000);
        let mut rate = |most: u64| if random.chance(400) { 0 } else { random.below(most) };
        let (lost, late, doubled, struck) = (rate(60), rate(60), rate(40), rate(60));
        let blows = (0..random.below(9)).map(|_| (random.below(until), Self::blow(random, places)));
        Self { until, lost, late, doubled, struck, blows: blows.collect() }
    }

    /// Nothing but these blows.
    pub(crate) const fn calm(blows: Vec<(Time, Blow)>) -> Self {
        Self { until: 0, lost: 0, late: 0, doubled: 0, struck: 0, blows }
    }

    fn blow(random: &mut Random, places: usize) -> Blow {
        let place = usize::try_from(random.below(places as u64)).unwrap_or(0);
        match random.below(22) {
            0..=5 => Blow::Crash(place, random.between(50, 8_000)),
            6..=9 => Blow::Freeze(place, span(random)),
            10..=12 => Blow::Cut(place, span(random)),
            13..=14 => Blow::Restart(place),
            15..=16 => Blow::Skew(place, skew(random)),
            17..=18 => Blow::Broker(random.between(100, 8_000)),
            19..=20 => Blow::Role(random.between(1_000, 40_000)),
            _ => Blow::All(random.between(100, 8_000)),
        }
    }

    /// What strikes a process that writes.
    pub(crate) fn strike(random: &mut Random, place: usize) -> Blow {
        if random.chance(600) {
            Blow::Crash(place, random.between(50, 8_000))
        } else {
            Blow::Freeze(place, span(random))
        }
    }
}

/// Shorter and longer than everything that runs out: progress, leases, waits.
const fn span(random: &mut Random) -> Time {
    if random.chance(500) { random.between(100, 8_000) } else { random.between(10_000, 60_000) }
}

fn skew(random: &mut Random) -> i64 {
    let most = if random.chance(700) { 5_000 } else { 60_000 };
    let off = i64::try_from(random.below(most)).unwrap_or(0);
    if random.chance(500) { off } else { -off }
}
