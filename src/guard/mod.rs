//! The guards that come with Muster: what they say of what they are asked about. Pure.

pub(crate) mod allow_list;
pub(crate) mod personal;
pub(crate) mod secrets;
