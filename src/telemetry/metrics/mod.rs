//! Figures of this process for Prometheus: counted where something is written to the record, told where somebody asks.

mod families;
mod family;
mod figures;
mod label;
mod own;
mod text;

pub(crate) use families::Fleet;
pub(crate) use figures::Figures;
pub(crate) use label::label;
pub(crate) use own::begin;
pub(crate) use text::Form;
