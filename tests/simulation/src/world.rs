//! The world of one seed: its clock, its network, and the fate of its processes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::run::RunStatus;
use muster_shared::time::Millis;
use muster_shared::wire::{ControlMessage, Profile};

use crate::agenda::{Agenda, Time};
use crate::broker::{Broker, EPOCH};
use crate::checks::Checks;
use crate::faults::{Blow, Fault, Faults, Weather};
use crate::fleet::RandomFleet;
use crate::io::{Io, Out};
use crate::messages::{Answer, Item, Life, Line, Request};
use crate::process::Process;
use crate::random::Random;
use crate::scenario::Scenario;
use crate::stalls::Stalls;
use crate::{Options, Sabotage};

/// How long after the last fault every run must have ended.
const BOUND: Time = 30 * 60_000;
/// How long the fleet goes on after the last run has ended: frozen processes wake and find it so.
const AFTERWARDS: Time = 70_000;

/// What came of a seed in which every rule held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Entries of the record.
    pub entries: u64,
    /// Everything that happened: messages, alarms, faults.
    pub events: u64,
    /// How many turns orchestrators took, and how many at most of one run after the last fault.
    pub turns: u64,
    /// See there.
    pub late_turns: u64,
    /// What went wrong.
    pub faults: Faults,
    /// Runs that ended with a report, failed, and were stopped.
    pub ended: [u64; 3],
    /// How often each kind of event was decided.
    pub decided: BTreeMap<&'static str, u64>,
}

/// What came of a seed in which a rule was broken.
#[derive(Debug)]
pub struct Broken {
    /// The seed.
    pub seed: u64,
    /// The rules, and how they were broken.
    pub rules: Vec<String>,
    /// Every message, when it was to be kept.
    pub history: Vec<String>,
}

#[expect(clippy::large_enum_variant, reason = "moved once or twice, and few at a time")]
pub(crate) enum Event {
    Arrives {
        from: Life,
        call: u64,
        request: Request,
    },
    Answered {
        to: Life,
        call: u64,
        answer: Option<Answer>,
    },
    Woken {
        who: Life,
        token: u64,
    },
    Told {
        who: Life,
        message: Rc<ControlMessage>,
    },
    Lost {
        who: Life,
        agent: AgentId,
    },
    Came {
        who: Life,
        profile: Rc<Profile>,
    },
    Left {
        who: Life,
        agent: AgentId,
    },
    /// Somebody who was taken for dead is heard of again.
    Back(Life),
    Follows {
        who: Life,
    },
    Ordered(RunId, Rc<crate::messages::Order>),
    /// Somebody forks a run.
    Forked(RunId, RunId),
    Struck(Blow),
    Starts(usize),
    Thaws(Life),
    BrokerBack,
    Due,
}

/// A place in the fleet, and who lives there.
pub(crate) struct Place {
    pub(crate) life: u32,
    pub(crate) process: Option<Box<dyn Process>>,
    /// What waits for a frozen process.
    pub(crate) frozen: Option<VecDeque<Event>>,
    pub(crate) cut_until: Time,
    /// How often its connection to the broker was made anew, whoever lives there.
    pub(crate) connections: u64,
    pub(crate) skew: i64,
    pub(crate) followed: Seq,
    pub(crate) follows: bool,
}

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) options: Options,
    pub(crate) random: Random,
    pub(crate) now: Time,
    pub(crate) agenda: Agenda<Event>,
    pub(crate) numbers: u64,
    /// Calls that wait for their answer.
    pub(crate) open: BTreeSet<u64>,
    pub(crate) scenario: Scenario,
    /// The agents that are there, as far as anybody can know.
    pub(crate) registry: BTreeMap<AgentId, Rc<Profile>>,
    /// How many runs are still to be forked.
    pub(crate) forks_left: usize,
    pub(crate) weather: Weather,
    pub(crate) places: Vec<Place>,
    pub(crate) broker: Broker,
    pub(crate) broker_down: bool,
    pub(crate) due: Option<Time>,
    pub(crate) checks: Checks,
    pub(crate) stalls: Stalls,
    pub(crate) summary: Summary,
    pub(crate) history: Vec<String>,
}

impl World {
    pub(crate) fn new(seed: u64, options: Options) -> Self {
        let mut random = Random::of(seed, "world");
        let (scenario, weather) = if options.fleets {
            let fleet = RandomFleet::of(seed);
            let scenario = Scenario::of_fleet(seed, &fleet, &mut random);
            let kills = scenario.kills(&fleet, &mut random);
            (scenario, Weather::calm(kills))
        } else {
            let scenario = Scenario::new(seed, &mut random);
            let weather = Weather::new(&mut random, scenario.places.len());
            (scenario, weather)
        };
        let place = |_| Place {
            life: 0,
            process: None,
            frozen: None,
            cut_until: 0,
            connections: 0,
            skew: 0,
            followed: Seq(0),
            follows: false,
        };
        let places = scenario.places.iter().map(place).collect();
        Self {
            seed,
            options,
            random,
            now: 0,
            agenda: Agenda::new(),
            numbers: 0,
            open: BTreeSet::new(),
            forks_left: scenario.forks.len(),
            scenario,
            registry: BTreeMap::new(),
            weather,
            places,
            broker: Broker::new(options.sabotage),
            broker_down: false,
            due: None,
            checks: Checks::default(),
            stalls: Stalls::default(),
            summary: Summary::default(),
            history: Vec::new(),
        }
    }

    pub(crate) fn run(mut self) -> Result<Summary, Box<Broken>> {
        self.set_up();
        let bound = self.weather.until + BOUND;
        let mut ended_at = None;
        while let Some((at, event)) = self.agenda.next() {
            let until = ended_at.map_or(bound, |ended: Time| bound.min(ended + AFTERWARDS));
            if at > until || !self.checks.broken().is_empty() {
                break;
            }
            self.now = at;
            self.summary.events += 1;
            if self.options.fleets {
                self.look_for_stalls();
            }
            self.happen(event);
            // Whoever was begun late is waited for as well.
            ended_at = if self.have_ended() { ended_at.or(Some(at)) } else { None };
        }
        self.finish()
    }

    /// Whether all runs have ended that were asked for, and all that these began.
    fn have_ended(&self) -> bool {
        self.forks_left == 0
            && self.scenario.runs.iter().all(|run| self.checks.has_ended(*run))
            && self.checks.all_ended()
    }

    fn finish(mut self) -> Result<Summary, Box<Broken>> {
        if self.checks.broken().is_empty() {
            let runs = self.checks.runs(&self.scenario.runs);
            self.checks.finish(self.broker.log(), &runs, &mut self.random, self.options.fleets);
            for run in runs {
                self.checks.chain_fits(run, &self.broker.to_verify(run), self.broker.log());
            }
        }
        if !self.checks.broken().is_empty() {
            let rules = self.checks.broken().to_vec();
            return Err(Box::new(Broken { seed: self.seed, rules, history: self.history }));
        }
        self.summary.decided = self.checks.seen();
        self.summary.entries = self.broker.log().len() as u64;
        (self.summary.turns, self.summary.late_turns) = self.checks.turns();
        for run in &self.scenario.runs {
            match self.checks.state(*run).map(|run| run.status) {
                Some(RunStatus::Completed) => self.summary.ended[0] += 1,
                Some(RunStatus::Failed) => self.summary.ended[1] += 1,
                Some(_) | None => self.summary.ended[2] += 1,
            }
        }
        Ok(self.summary)
    }

    fn set_up(&mut self) {
        for place in 0..self.places.len() {
            let at = self.random.below(200);
            self.agenda.enter(at, Event::Starts(place));
        }
        for (at, run, order) in std::mem::take(&mut self.scenario.commands) {
            let order = Rc::new(order);
            let doubled =
                self.options.sabotage == Some(Sabotage::GoalsDecidedTwice) || self.random.chance(100);
            if doubled {
                self.summary.faults.count(Fault::CommandDoubled);
                let again = at + self.random.between(1, 3_000);
                self.agenda.enter(again, Event::Ordered(run, Rc::clone(&order)));
            }
            self.agenda.enter(at, Event::Ordered(run, order));
        }
        for (at, from, run) in std::mem::take(&mut self.scenario.forks) {
            self.agenda.enter(at, Event::Forked(from, run));
        }
        for (at, blow) in std::mem::take(&mut self.weather.blows) {
            self.agenda.enter(at, Event::Struck(blow));
        }
    }

    pub(crate) fn tell(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.options.traced {
            let (now, line) = (self.now, line(self));
            self.history.push(format!("{now:>8} {line}"));
        }
    }

    pub(crate) fn is_rough(&self) -> bool {
        self.now < self.weather.until
    }

    pub(crate) fn happen(&mut self, event: Event) {
        match event {
            Event::Arrives { from, call, request } => self.arrives(from, call, request),
            Event::Answered { to, call, answer } => self.answered(to, call, answer),
            Event::Woken { who, token } => {
                self.turn_of(who, Event::Woken { who, token }, |process, io| process.woke(token, io));
            }
            Event::Told { who, message } => {
                let kept = Rc::clone(&message);
                self.turn_of(who, Event::Told { who, message }, move |process, io| process.told(&kept, io));
            }
            Event::Lost { who, agent } => {
                let lost = agent.clone();
                self.turn_of(who, Event::Lost { who, agent }, move |process, io| process.lost(&lost, io));
            }
            Event::Came { who, profile } => {
                let kept = Rc::clone(&profile);
                self.turn_of(who, Event::Came { who, profile }, move |process, io| process.came(&kept, io));
            }
            Event::Left { who, agent } => {
                let left = agent.clone();
                self.turn_of(who, Event::Left { who, agent }, move |process, io| process.left(&left, io));
            }
            Event::Back(who) => self.back(who),
            Event::Follows { who } => self.follows(who),
            Event::Ordered(run, order) => {
                self.tell(|_| format!("somebody asks of {}: {order:?}", run.short()));
                self.broker.put(Line::Commands, Item::Command(run, order), self.now);
                self.after_broker();
            }
            Event::Forked(from, run) => self.forked(from, run),
            Event::Struck(blow) => self.struck(blow),
            Event::Starts(place) => self.starts(place),
            Event::Thaws(who) => self.thaws(who),
            Event::BrokerBack => {
                self.broker_down = false;
                self.tell(|_| "the broker is back".to_owned());
                self.after_broker();
            }
            Event::Due => {
                self.due = None;
                self.after_broker();
            }
        }
    }

    /// Lets a process have its turn, unless it is dead; a frozen one has it when it wakes.
    pub(crate) fn turn_of(
        &mut self,
        who: Life,
        event: Event,
        turn: impl FnOnce(&mut dyn Process, &mut Io<'_>),
    ) {
        let place = &mut self.places[who.place];
        if place.life != who.number || place.process.is_none() {
            return;
        }
        if let Some(waiting) = &mut place.frozen {
            waiting.push_back(event);
            return;
        }
        let Some(mut process) = place.process.take() else { return };
        let connections = place.connections;
        let clock = (EPOCH + self.now).saturating_add_signed(place.skew);
        let mut io = Io {
            time: self.now,
            clock: Millis(clock),
            connections,
            random: &mut self.random,
            numbers: &mut self.numbers,
            sabotage: self.options.sabotage,
            out: Vec::new(),
        };
        turn(&mut *process, &mut io);
        let out = io.out;
        self.places[who.place].process = Some(process);
        for out in out {
            self.carry_out(who, out);
        }
    }

    fn carry_out(&mut self, who: Life, out: Out) {
        match out {
            Out::Ask { call, request, limit } => self.sends(who, call, request, limit),
            Out::Wake { token, after } => self.agenda.enter(self.now + after, Event::Woken { who, token }),
            Out::Note(note) => {
                self.tell(|world| format!("{} notes {note:?}", world.name(who)));
                let is_rough = self.is_rough();
                self.checks.noted(&note, self.now, is_rough);
            }
            Out::Exit => {
                self.tell(|world| format!("{} ends", world.name(who)));
                self.places[who.place].process = None;
                self.leaves(who);
                self.agenda.enter(self.now + 300, Event::Starts(who.place));
            }
        }
    }

    pub(crate) fn name(&self, who: Life) -> String {
        let kind = match &self.scenario.places[who.place] {
            crate::scenario::Kind::Orchestrator => "orchestrator".to_owned(),
            crate::scenario::Kind::Agent { role, .. } => role.to_string(),
        };
        format!("{kind}-{}.{}", who.place, who.number)
    }
}
