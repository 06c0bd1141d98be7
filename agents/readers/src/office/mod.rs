//! Documents of office programs.

pub(crate) mod book;
pub(crate) mod sheets;
pub(crate) mod slides;
pub(crate) mod words;
