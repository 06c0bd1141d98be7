//! What a fleet asks of its servers, computed from what one agent and one run were measured to cost; and how long writes wait
//! in the parts of the record, simulated. Pure: the same figures give the same table.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use muster_bus::partition::Partitions;
use muster_shared::ids::RunId;
use uuid::Uuid;

/// What was measured on one machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Record entries of a run.
    pub writes: f64,
    /// Bytes of them.
    pub bytes: f64,
    /// Model calls of a run.
    pub calls: f64,
    /// CPU time of the server for a run, in seconds.
    pub server_cpu: f64,
    /// The same of an orchestrator.
    pub orchestrator_cpu: f64,
    /// Writes a second that one stream takes.
    pub stream_writes: f64,
    /// The same of all streams of one server together.
    pub server_writes: f64,
    /// CPU time of the server for one sign of life of an agent.
    pub beat: f64,
    /// CPU time of the server to ask one connection for a sign of life.
    pub ping: f64,
    /// CPU time of each orchestrator for one sign of life of an agent: it hears of all of them.
    pub heard: f64,
    /// Memory of the server for an agent, in bytes.
    pub server_memory: f64,
}

/// A fleet that is to be served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fleet {
    /// Agents.
    pub agents: f64,
    /// The share of them that is at work.
    pub busy: f64,
    /// How long a model takes for an answer, in seconds.
    pub answer: f64,
    /// Cores of a server.
    pub cores: f64,
    /// `bus.heartbeat`, in seconds.
    pub heartbeat: f64,
    /// `server.ping`, in seconds.
    pub ping: f64,
}

/// Connections of an agent.
const CONNECTIONS: f64 = 2.0;

/// What a server, a stream or a core is to be used to at most: what is fuller makes others wait.
const FULL: f64 = 0.6;

/// What a fleet needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Needs {
    /// Runs a second.
    pub runs: f64,
    /// Writes a second to the record.
    pub writes: f64,
    /// Bytes a second.
    pub bytes: f64,
    /// Signs of life a second.
    pub beats: f64,
    /// Parts of the record; nothing when more would be needed than there may be.
    pub partitions: Option<u8>,
    /// Servers, by what needs most of them.
    pub servers: u32,
    /// What that is.
    pub bound: Bound,
    /// Orchestrators, each of one thread.
    pub orchestrators: u32,
    /// Memory of all servers for the agents' connections, in bytes.
    pub memory: f64,
}

/// What a number of servers follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// One server has enough of everything.
    Nothing,
    /// Writes to disk.
    Disk,
    /// CPU time.
    Cpu,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nothing => "–",
            Self::Disk => "disk",
            Self::Cpu => "CPU",
        })
    }
}

/// What a fleet needs by these figures.
#[must_use]
pub fn needs(of: &Measured, fleet: &Fleet) -> Needs {
    let runs = fleet.agents * fleet.busy / (of.calls * fleet.answer);
    let writes = runs * of.writes;
    let partitions =
        Partitions::COUNTS.into_iter().find(|count| f64::from(*count) * of.stream_writes * FULL >= writes);
    let by_disk = (writes / (of.server_writes * FULL)).ceil();
    let beats = fleet.agents / fleet.heartbeat;
    let idle = beats * of.beat + fleet.agents * CONNECTIONS / fleet.ping * of.ping;
    let cpu = runs * of.server_cpu + idle;
    let by_cpu = (cpu / (fleet.cores * FULL)).ceil();
    let bound = match (by_disk > 1.0 || by_cpu > 1.0, by_disk >= by_cpu) {
        (false, _) => Bound::Nothing,
        (true, true) => Bound::Disk,
        (true, false) => Bound::Cpu,
    };
    // Each hears of every agent, whatever its share of the runs: what that leaves of its thread is for runs.
    let left = FULL - beats * of.heard;
    let orchestrators = (runs * of.orchestrator_cpu / left).ceil();
    Needs {
        runs,
        writes,
        bytes: runs * of.bytes,
        beats,
        partitions,
        servers: whole(by_disk.max(by_cpu).max(1.0)),
        bound,
        orchestrators: if left > 0.0 { whole(orchestrators.max(1.0)) } else { 0 },
        memory: fleet.agents * of.server_memory,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small whole numbers above 0")]
const fn whole(number: f64) -> u32 {
    number as u32
}

/// How long writes waited, in seconds, and how busy the fullest part was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waits {
    /// Half of them waited so long at most.
    pub p50: f64,
    /// 99 of 100.
    pub p99: f64,
    /// Share of the time in which the fullest part wrote.
    pub fullest: f64,
}

/// What is simulated: runs that begin by chance, each with its writes spread by chance over its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Runs a second.
    pub runs: f64,
    /// Writes of each.
    pub writes: u32,
    /// How long a run takes, in seconds.
    pub lasts: f64,
    /// How long it is looked at, in seconds.
    pub time: f64,
}

/// How long writes wait in a record of so many parts, each of which takes one write after the other in `service` seconds.
#[must_use]
pub fn simulate(traffic: &Traffic, partitions: Partitions, service: f64) -> Waits {
    let mut random = Random(0x5eed);
    // By time, in nanoseconds: what is written when, and in which part.
    let mut writes: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut now = -traffic.lasts;
    while now < traffic.time {
        now -= (1.0 - random.share()).ln() / traffic.runs;
        let run =
            RunId::from_uuid(Uuid::from_u128(u128::from(random.next()) << 64 | u128::from(random.next())));
        let part = partitions.part_of(run).at();
        for _ in 0..traffic.writes {
            let at = now + random.share() * traffic.lasts;
            if (0.0..traffic.time).contains(&at) {
                writes.push(Reverse((nanos(at), part)));
            }
        }
    }
    let service = nanos(service);
    let mut free = vec![0_u64; partitions.count()];
    let mut worked = vec![0_u64; partitions.count()];
    let mut waited = Vec::with_capacity(writes.len());
    while let Some(Reverse((at, part))) = writes.pop() {
        let begins = free[part].max(at);
        free[part] = begins + service;
        worked[part] += service;
        waited.push(begins - at + service);
    }
    waited.sort_unstable();
    let percentile = |of: usize| waited.get(waited.len() * of / 100).map_or(0.0, |waited| seconds(*waited));
    let fullest = worked.into_iter().max().map_or(0.0, |worked| seconds(worked) / traffic.time);
    Waits { p50: percentile(50), p99: percentile(99), fullest }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "hours at most, never negative")]
fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

#[expect(clippy::cast_precision_loss, reason = "a figure")]
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Numbers that look like chance and are the same each time (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to 1, without 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURED: Measured = Measured {
        writes: 80.0,
        bytes: 280_000.0,
        calls: 40.0,
        server_cpu: 0.03,
        orchestrator_cpu: 0.01,
        stream_writes: 4_000.0,
        server_writes: 8_000.0,
        beat: 0.001,
        ping: 0.0003,
        heard: 0.00015,
        server_memory: 100_000.0,
    };

    fn fleet(agents: f64) -> Fleet {
        Fleet { agents, busy: 0.5, answer: 2.0, cores: 8.0, heartbeat: 5.0, ping: 2.0 }
    }

    #[test]
    fn a_small_fleet_needs_one_of_everything() {
        let needs = needs(&MEASURED, &fleet(100.0));
        assert_eq!((needs.partitions, needs.servers, needs.orchestrators), (Some(1), 1, 1));
        assert_eq!(needs.bound, Bound::Nothing);
        assert!((needs.runs - 0.625).abs() < 1e-9 && (needs.writes - 50.0).abs() < 1e-9, "{needs:?}");
    }

    #[test]
    fn what_is_needed_most_decides() {
        let many = needs(&MEASURED, &fleet(20_000.0));
        // 125 runs a second are 10,000 writes and 3.75 cores; 4,000 beats and 20,000 pings are 10.
        assert_eq!((many.partitions, many.servers, many.bound), (Some(8), 3, Bound::Disk));
        let slow = Measured { beat: 0.01, ..MEASURED };
        assert_eq!(
            (needs(&slow, &fleet(20_000.0)).servers, needs(&slow, &fleet(20_000.0)).bound),
            (11, Bound::Cpu)
        );
        let rarely = Fleet { heartbeat: 50.0, ping: 20.0, ..fleet(20_000.0) };
        assert_eq!(needs(&slow, &rarely).servers, 3, "who beats rarely costs little");
        let none = needs(&MEASURED, &fleet(1e6));
        assert_eq!(
            (none.partitions, none.orchestrators),
            (None, 0),
            "no orchestrator hears a million agents"
        );
    }

    #[test]
    fn writes_wait_longer_where_a_part_is_fuller() {
        let traffic = Traffic { runs: 20.0, writes: 80, lasts: 10.0, time: 20.0 };
        let of = |count| simulate(&traffic, Partitions::of_count(count).unwrap_or_default(), 1.0 / 2_000.0);
        let (one, four) = (of(1), of(4));
        assert!((one.fullest - 0.8).abs() < 0.1 && four.fullest < 0.35, "{one:?} {four:?}");
        assert!(four.p99 < one.p99 && one.p50 >= 1.0 / 2_000.0, "{one:?} {four:?}");
        assert_eq!(of(4), four, "it is the same each time");
    }
}
