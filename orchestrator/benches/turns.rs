//! What the turns of a run cost, without bus and broker: time, allocations and bytes per decision of a W.
//! `cargo bench -p muster-orchestrator --bench turns`.
#![allow(clippy::print_stdout, reason = "it prints what it measured")]

mod recorded;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use muster_shared::ids::{RunId, Seq};
use muster_shared::run::chain::digest;
use muster_shared::run::{Chain, Covered};
use recorded::Recorded;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// The usual allocator, which counts.
struct Counting;

#[expect(unsafe_code, reason = "hands everything on to the usual allocator")]
// SAFETY: what it promises is what the usual allocator does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: handed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs that are driven for one figure.
const RUNS: u32 = 50;

fn main() {
    let (mut took, mut allocations, mut bytes) = (Duration::ZERO, 0, 0);
    let mut count = recorded::Count::default();
    let runs = if std::env::args().any(|arg| arg == "--once") { 1 } else { RUNS };
    for _ in 0..runs {
        count = Recorded::run(|turn| {
            let before = (ALLOCATIONS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
            let began = Instant::now();
            turn();
            took += began.elapsed();
            allocations += ALLOCATIONS.load(Ordering::Relaxed) - before.0;
            bytes += BYTES.load(Ordering::Relaxed) - before.1;
        });
    }
    let decisions = u64::from(runs) * u64::from(count.decisions);
    println!(
        "a run: {} turns, {} decisions, {} entries; {:?} in its turns",
        count.turns,
        count.decisions,
        count.entries,
        took / runs
    );
    println!(
        "a decision: {:?}, {} allocations, {} bytes",
        took / u32::try_from(decisions).unwrap_or(u32::MAX),
        allocations / decisions,
        bytes / decisions
    );
    chained(if runs == 1 { 1 } else { CHAINS });
}

/// Runs whose hash chain is computed for one figure.
const CHAINS: u32 = 200;
/// What agents and orchestrators write of a W.
const ENTRIES: [u64; 2] = [60, 20];
/// Bytes of an entry of a W.
const ENTRY: usize = 1_650;

/// What the hash chain adds to the decisions of a W: hashes of what agents wrote, links, headers.
fn chained(runs: u32) {
    let run = RunId::from_uuid(uuid::Uuid::from_u128(7));
    let (bytes, subject) =
        (vec![7; ENTRY], "evt.0190a1b2c3d4700080000000000000aa.worker.worker-1.1-1.1.step");
    let [agents, decisions] = ENTRIES;
    let began = Instant::now();
    for _ in 0..runs {
        let mut chain = Chain::default();
        for decision in 0..decisions {
            for entry in 0..agents / decisions {
                let seq = Seq(decision * 10 + entry + 1);
                chain.note(Covered { seq, digest: digest(subject, &bytes) });
            }
            let link =
                chain.draft(run).over([digest("run.0190a1b2c3d4700080000000000000aa.decided", &bytes)]);
            std::hint::black_box(link.to_header());
            chain.wrote(Seq(decision * 10 + 9), link.hash);
        }
    }
    let took = began.elapsed() / runs;
    let entries = u32::try_from(agents + decisions).unwrap_or(u32::MAX);
    println!("its hash chain: {took:?} a run, {:?} an entry of {ENTRY} bytes", took / entries);
}
