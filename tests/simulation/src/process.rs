//! What every process of the fleet is to the world.

use std::rc::Rc;

use muster_shared::ids::AgentId;
use muster_shared::run::Entry;
use muster_shared::wire::{ControlMessage, Profile};

use crate::io::Io;
use crate::messages::Answer;

/// One process. What it holds dies with it.
pub(crate) trait Process {
    fn begin(&mut self, io: &mut Io<'_>);
    /// An answer, or nothing when none came in time.
    fn heard(&mut self, call: u64, answer: Option<Answer>, io: &mut Io<'_>);
    fn woke(&mut self, token: u64, io: &mut Io<'_>);
    /// A message to all agents, or an order to end in good order.
    fn told(&mut self, message: &ControlMessage, io: &mut Io<'_>);
    /// An agent is there, or says something else of itself; only orchestrators are told.
    fn came(&mut self, profile: &Profile, io: &mut Io<'_>);
    /// An agent left in good order; only orchestrators are told.
    fn left(&mut self, agent: &AgentId, io: &mut Io<'_>);
    /// An agent counts as dead, whether or not it is.
    fn lost(&mut self, agent: &AgentId, io: &mut Io<'_>);
    /// What agents wrote, in order and without a gap; only orchestrators follow it.
    fn follow(&mut self, entries: &[Rc<Entry>], io: &mut Io<'_>);
}
