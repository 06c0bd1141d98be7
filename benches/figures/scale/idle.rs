//! Agents that have nothing to do, many of them on one machine: real processes, each with a connection of its own,
//! registered, beating and waiting for tasks.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use muster_support::fleet::Fleet;
use muster_support::model_server::ModelServer;
use muster_support::process::consumption;
use muster_support::workload::{Speech, script};

use tokio::runtime::Runtime;

use super::cost::of_w;
use super::sizes;
use super::table::{Table, mib, ms};
use crate::runs;

/// How many agents there are beside the usual fleet.
const AGENTS: [usize; 3] = [0, 200, 1_000];
/// Agents that are started together: all at once would be slower than one after the other.
const TOGETHER: usize = 20;
/// How long they are left alone.
const WATCH: Duration = Duration::from_secs(20);
/// Time for those that were started together to come.
const LIMIT: Duration = Duration::from_secs(60);
/// How often it is looked who has come.
const LOOK: Duration = Duration::from_millis(200);

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

pub(crate) fn measure(wanted: &[usize]) {
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
    for agents in sizes(wanted, &AGENTS) {
        let fleet = runs::fleet(&model, &["--set", "fleet.start_limit=5m"]);
        let began = Instant::now();
        let crowd = crowd(&runtime, &fleet, agents);
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
        let each = after[2].pss / u64::try_from(pids.len().max(1)).unwrap();
        let asked = Instant::now();
        fleet.folder().output(&["ps"]).unwrap();
        let listed = asked.elapsed();
        let cost = runtime.block_on(of_w(&fleet));
        table.line([
            pids.len().to_string(),
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

/// So many more workers, when all of them are in the registry. Those that end at once are told of and not waited for.
fn crowd(runtime: &Runtime, fleet: &Fleet, agents: usize) -> Crowd {
    let bus = runtime.block_on(runs::connect(&fleet.url()));
    let there = || runtime.block_on(async { bus.registry().list().await.unwrap().len() });
    let usual = there();
    let mut crowd = Crowd(Vec::new());
    let mut begun = 0;
    while begun < agents {
        let more = TOGETHER.min(agents - begun);
        begun += more;
        for _ in 0..more {
            let mut command = fleet.folder().command(&["agent", "worker"]);
            command.env("MUSTER_BUS_URL", fleet.url()).env("MUSTER_AGENT_MODEL", "openai/scripted");
            let log = fleet.folder().path().join("agents.log");
            let errors = std::fs::File::options().create(true).append(true).open(log).unwrap();
            crowd.0.push(command.stdout(Stdio::null()).stderr(errors).spawn().unwrap());
        }
        let until = Instant::now() + LIMIT;
        while there() < usual + crowd.0.len() && Instant::now() < until {
            crowd.0.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
            std::thread::sleep(LOOK);
        }
    }
    if crowd.0.len() < agents {
        let said = std::fs::read_to_string(fleet.folder().path().join("agents.log")).unwrap_or_default();
        let why: Vec<&str> = said.lines().filter(|line| line.contains('×') || line.contains('│')).collect();
        println!(
            "{} of {agents} agents ended at once: {:?}",
            agents - crowd.0.len(),
            &why[..why.len().min(2)]
        );
    }
    crowd
}
