//! Agents that have nothing to do, many of them on one machine: real processes, each with a connection of its own,
//! registered, beating and waiting for tasks.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use muster_support::fleet::{Fleet, wait_until};
use muster_support::model_server::ModelServer;
use muster_support::process::consumption;
use muster_support::workload::{Speech, script};

use super::cost::of_w;
use super::table::{Table, mib, ms};
use crate::runs;

/// How many agents there are beside the usual fleet.
const AGENTS: [usize; 3] = [0, 200, 1_000];
/// Agents that are started together: all at once would be slower than one after the other.
const TOGETHER: usize = 20;
/// How long they are left alone.
const WATCH: Duration = Duration::from_secs(20);
/// Time for all of them to come.
const LIMIT: Duration = Duration::from_secs(600);

/// Processes that end when this is dropped.
struct Crowd(Vec<Child>);

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ended = child.kill();
        }
        for child in &mut self.0 {
            let _ended = child.wait();
        }
    }
}

pub(crate) fn measure() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let model = ModelServer::start(script(Duration::ZERO, Speech::Native)).unwrap();
    let headings = [
        "agents",
        "all there",
        "CPU, % of a core",
        "of server",
        "of orchestr.",
        "of agents",
        "memory (PSS)",
        "of server",
        "of orchestr.",
        "of an agent",
        "muster ps",
        "W: wall",
        "W: CPU",
        "W: messages",
    ];
    let table = Table::begin("idle agents beside the usual fleet, as real processes", &headings);
    for agents in AGENTS {
        let fleet = runs::fleet(&model, &["--set", "fleet.start_limit=5m"]);
        let began = Instant::now();
        let crowd = crowd(&fleet, agents);
        let came = began.elapsed();
        std::thread::sleep(Duration::from_secs(5));
        let pids: Vec<u32> = crowd.0.iter().map(Child::id).collect();
        let one = |name: &str| {
            fleet
                .pids()
                .iter()
                .filter(|(of, _)| of.starts_with(name))
                .map(|(_, pid)| *pid)
                .collect::<Vec<u32>>()
        };
        let (server, orchestrator) = (one("nats-server"), one("orchestrator"));
        let all: Vec<u32> = fleet.pids().iter().map(|(_, pid)| *pid).chain(pids.iter().copied()).collect();
        let before = [&server, &orchestrator, &pids, &all].map(|of| consumption(of));
        std::thread::sleep(WATCH);
        let after = [&server, &orchestrator, &pids, &all].map(|of| consumption(of));
        let share = |at: usize| {
            let used = after[at].cpu.saturating_sub(before[at].cpu);
            format!("{:.2} %", used.as_secs_f64() / WATCH.as_secs_f64() * 100.0)
        };
        let each = after[2].pss / u64::try_from(agents.max(1)).unwrap();
        let asked = Instant::now();
        fleet.folder().output(&["ps"]).unwrap();
        let listed = asked.elapsed();
        let cost = runtime.block_on(of_w(&fleet));
        table.line([
            agents.to_string(),
            ms(came),
            share(3),
            share(0),
            share(1),
            share(2),
            mib(after[3].pss),
            mib(after[0].pss),
            mib(after[1].pss),
            mib(each),
            ms(listed),
            ms(cost.wall),
            ms(cost.server + cost.orchestrators + cost.agents),
            cost.messages.to_string(),
        ]);
    }
}

/// So many more workers, when all of them are in the registry.
fn crowd(fleet: &Fleet, agents: usize) -> Crowd {
    let usual = there(fleet);
    let mut crowd = Crowd(Vec::new());
    while crowd.0.len() < agents {
        for _ in 0..TOGETHER.min(agents - crowd.0.len()) {
            let mut command = fleet.folder().command(&["agent", "worker"]);
            command.env("MUSTER_BUS_URL", fleet.url()).env("MUSTER_AGENT_MODEL", "openai/scripted");
            crowd.0.push(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        }
        let wanted = usual + crowd.0.len();
        wait_until("agents are in the registry", LIMIT, || there(fleet) >= wanted).unwrap();
    }
    crowd
}

fn there(fleet: &Fleet) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { runs::connect(&fleet.url()).await.registry().list().await.unwrap().len() })
}
