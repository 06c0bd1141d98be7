//! What `muster top` shows, and what it does when a key is pressed. Pure: [`update`](update::update) makes of a state and
//! an event the next state and what is to be done, [`draw`](draw::draw) makes of a state a picture. The command carries
//! out what is to be done.

mod detail;
mod draw;
mod editor;
mod help;
mod key;
mod list;
mod rows;
mod state;
#[cfg(test)]
mod tests;
mod update;

pub(crate) use draw::{Look, draw};
pub(crate) use key::Key;
pub(crate) use state::{Order, Top, View};
pub(crate) use update::{Effect, Event, update};
