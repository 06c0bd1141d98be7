//! The programs that asked at this gateway: kept in the registry for as long as they ask, and told what is ordered.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use muster_agents::definition::{Contract, Schema};
use muster_bus::{Bus, BusError};
use muster_shared::flow::{Presence, Specialty};
use muster_shared::ids::{AgentId, Role};
use muster_shared::run::EVENT_VERSION;
use muster_shared::wire::gateway::{GatewayRefusal, TakeRequest};
use muster_shared::wire::{Advertised, ControlMessage, Profile};

use crate::refusal::{busy, failed, invalid};
use muster_shared::sync::lock;

/// A program that was not heard of for so long is let go.
const LET_GO: Duration = Duration::from_secs(120);
/// Changes of load are told at most this often: they are for people, nothing is decided by them.
const LOAD_PAUSE: Duration = Duration::from_secs(2);
/// Most programs that are known here.
const MOST: usize = 4096;
/// How long an order about what is not at hand is kept: a task is given within a fraction of it.
const ORDERS_KEPT: Duration = Duration::from_secs(10);
/// Most orders that are kept for one program.
const MOST_ORDERS: usize = 32;

/// A program.
pub(crate) struct Program {
    pub(crate) id: AgentId,
    pub(crate) role: Role,
    pub(crate) slots: u32,
    pub(crate) model: String,
    pub(crate) contract: Contract,
    /// The bus in its name.
    pub(crate) bus: Bus,
    profile: Profile,
    state: Mutex<ProgramState>,
    /// Whether it was told to end.
    pub(crate) is_to_end: AtomicBool,
    listening: Mutex<Option<tokio::task::JoinHandle<()>>>,
    /// Orders about what was not at hand when they came, oldest first.
    orders: Mutex<VecDeque<(Instant, ControlMessage)>>,
}

struct ProgramState {
    heard: Instant,
    /// When it was entered into the registry last, and how busy.
    entered: Option<(Instant, u32)>,
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(listening) = lock(&self.listening).take() {
            listening.abort();
        }
    }
}

impl Program {
    /// Keeps an order about a task that may be just on its way to this program.
    pub(crate) fn keep_order(&self, order: ControlMessage) {
        let mut orders = lock(&self.orders);
        orders.retain(|(at, _)| at.elapsed() < ORDERS_KEPT);
        if orders.len() >= MOST_ORDERS {
            orders.pop_front();
        }
        orders.push_back((Instant::now(), order));
    }

    /// The orders that were kept and are not too old.
    pub(crate) fn kept_orders(&self) -> Vec<ControlMessage> {
        let orders = lock(&self.orders);
        let recent = orders.iter().filter(|(at, _)| at.elapsed() < ORDERS_KEPT);
        recent.map(|(_, order)| order.clone()).collect()
    }

    /// How long nothing was heard of it.
    pub(crate) fn silent_for(&self) -> Duration {
        lock(&self.state).heard.elapsed()
    }

    /// It was heard of; it is entered into the registry where that is due.
    pub(crate) async fn hear(&self, busy: u32) -> Result<(), BusError> {
        let every = self.bus.settings().heartbeat;
        {
            let mut state = lock(&self.state);
            state.heard = Instant::now();
            let is_told = |(at, told): (Instant, u32)| {
                at.elapsed() < if told == busy { every } else { every.min(LOAD_PAUSE) }
            };
            if state.entered.is_some_and(is_told) {
                return Ok(());
            }
            state.entered = Some((Instant::now(), busy));
        }
        let profile = Profile { busy: busy.min(self.slots), ..self.profile.clone() };
        self.bus.registry().keep(&profile).await
    }

    /// It is gone: the registry forgets it, and its tasks go to others.
    pub(crate) async fn forget(&self) {
        lock(&self.state).entered = None;
        if let Err(error) = self.bus.registry().forget(&self.id).await {
            tracing::debug!(%error, agent = %self.id, "the registry forgets a program when its time is up");
        }
    }
}

/// All programs that asked here.
pub(crate) struct Programs {
    bus: Bus,
    all: Mutex<HashMap<AgentId, Arc<Program>>>,
}

impl Programs {
    pub(crate) fn new(bus: Bus) -> Self {
        Self { bus, all: Mutex::default() }
    }

    pub(crate) fn find(&self, agent: &AgentId) -> Option<Arc<Program>> {
        lock(&self.all).get(agent).cloned()
    }

    /// The program that asks for a task; `listen` begins to hear what it is told, once.
    pub(crate) fn enter(
        &self,
        role: &Role,
        request: &TakeRequest,
        listen: impl FnOnce(&Arc<Program>) -> tokio::task::JoinHandle<()>,
    ) -> Result<Arc<Program>, GatewayRefusal> {
        let profile = profile_of(role, request);
        if let Some(why) = profile.implausible() {
            return Err(invalid("agent", &why));
        }
        let contract = contract_of(request)?;
        let mut all = lock(&self.all);
        if let Some(known) = all.get(&request.agent) {
            if known.role != *role {
                let why = format!("{} is at work as {}; a process has one role", request.agent, known.role);
                return Err(invalid("agent", &why));
            }
            if same(&known.profile, &profile) {
                return Ok(Arc::clone(known));
            }
        }
        if all.len() >= MOST && !all.contains_key(&request.agent) {
            return Err(busy(format!("{MOST} programs are known here, which are the most")));
        }
        let program = Arc::new(Program {
            id: request.agent.clone(),
            role: role.clone(),
            slots: request.slots,
            model: request.model.clone(),
            contract,
            bus: self.bus.as_agent(&request.agent),
            profile,
            state: Mutex::new(ProgramState { heard: Instant::now(), entered: None }),
            is_to_end: AtomicBool::new(false),
            listening: Mutex::default(),
            orders: Mutex::default(),
        });
        *lock(&program.listening) = Some(listen(&program));
        all.insert(request.agent.clone(), Arc::clone(&program));
        Ok(program)
    }

    /// Whether a program may go by the name that it gives: nobody speaks for an agent that speaks for itself, or has another
    /// role.
    pub(crate) async fn may_be(&self, agent: &AgentId, role: &Role) -> Result<(), GatewayRefusal> {
        if self.find(agent).is_some() {
            return Ok(());
        }
        match self.bus.registry().find(agent).await.map_err(failed)? {
            Some(known) if !known.by_gateway || known.role != role.as_str() => {
                let why =
                    format!("{agent} is the name of a {} that is at work: take another name", known.role);
                Err(invalid("agent", &why))
            }
            _ => Ok(()),
        }
    }

    /// A program that asked at another gateway, by what it said there.
    pub(crate) async fn adopt(
        &self,
        agent: &AgentId,
        role: &Role,
        listen: impl FnOnce(&Arc<Program>) -> tokio::task::JoinHandle<()>,
    ) -> Result<Arc<Program>, GatewayRefusal> {
        if let Some(known) = self.find(agent) {
            return Ok(known);
        }
        let known = self.bus.registry().find(agent).await.map_err(failed)?;
        self.enter(role, &request_of(agent, known), listen)
    }

    /// Lets those go that were not heard of for long and have nothing in hand.
    pub(crate) fn let_go(&self, has_tasks: impl Fn(&AgentId) -> bool) {
        lock(&self.all).retain(|agent, program| program.silent_for() < LET_GO || has_tasks(agent));
    }

    /// A program, or all of them where none is named, is told to end.
    pub(crate) fn end(program: &Program) {
        program.is_to_end.store(true, Ordering::Relaxed);
    }
}

/// Whether nothing else is said than before.
fn same(one: &Profile, other: &Profile) -> bool {
    Profile { started_at: 0, ..one.clone() } == Profile { started_at: 0, ..other.clone() }
}

fn profile_of(role: &Role, request: &TakeRequest) -> Profile {
    let told = Specialty {
        role: role.clone(),
        description: request.description.clone(),
        capabilities: request.capabilities.clone(),
        tools: Vec::new(),
        gives: Vec::new(),
    }
    .within_limits();
    let advertised = Advertised {
        description: told.description,
        capabilities: told.capabilities.clone(),
        contract: request.contract.clone(),
    };
    let is_specialist = matches!(role, Role::Specialist(_));
    Profile {
        agent: request.agent.clone(),
        role: role.to_string(),
        pid: request.pid,
        host: request.host.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        event_version: EVENT_VERSION,
        slots: request.slots,
        busy: 0,
        model: request.model.clone(),
        tools: Vec::new(),
        started_at: 0,
        resident_bytes: 0,
        specialist: is_specialist.then(|| Box::new(advertised)),
        name: request.name.clone(),
        quiet_ms: request.quiet_ms,
        set_aside: Vec::new(),
        by_gateway: true,
        times_set_aside: 0,
        excluded: Vec::new(),
        metrics: String::new(),
        presence: Presence { capabilities: told.capabilities, ..Presence::default() },
    }
}

fn contract_of(request: &TakeRequest) -> Result<Contract, GatewayRefusal> {
    let compiled = |field: &str, schema: &Option<serde_json::Value>| {
        let Some(schema) = schema else { return Ok(None) };
        let (bytes, most) = (schema.to_string().len(), Schema::MAX_BYTES);
        if bytes > most {
            return Err(invalid(field, &format!("it has {bytes} bytes, {most} is the most")));
        }
        Schema::new(schema.clone()).map(Some).map_err(|why| invalid(field, &why))
    };
    Ok(Contract {
        input: compiled("contract.input", &request.contract.input)?,
        output: compiled("contract.output", &request.contract.output)?,
    })
}

/// What a program said of itself, as far as the registry has it.
fn request_of(agent: &AgentId, known: Option<Profile>) -> TakeRequest {
    let mut request = TakeRequest {
        agent: agent.clone(),
        id: None,
        patience_ms: None,
        slots: 1,
        description: String::new(),
        capabilities: Vec::new(),
        contract: muster_shared::flow::ContractSchemas::default(),
        name: String::new(),
        quiet_ms: 0,
        model: String::new(),
        pid: 0,
        host: String::new(),
    };
    if let Some(profile) = known {
        let Profile { slots, name, quiet_ms, model, pid, host, specialist, .. } = profile;
        let advertised = specialist.map(|one| *one).unwrap_or_default();
        request = TakeRequest {
            slots,
            name,
            quiet_ms,
            model,
            pid,
            host,
            description: advertised.description,
            capabilities: advertised.capabilities,
            contract: advertised.contract,
            ..request
        };
    }
    request
}
