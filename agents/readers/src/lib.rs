//! Text of documents: PDF, DOCX, ODT, PPTX, ODP, workbooks, EPUB, HTML, notebooks, mail, tables, and archives of these.
//!
//! What comes in may be made to do harm. So it is read in a process of its own, which can do nothing but answer: it has
//! limits of memory, time and files, opens no file, reaches no host, starts no program, and is killed when its time is up. A
//! document that breaks it costs that document.
//!
//! ```text
//! Readers --bytes--> child (`__read-document`) --text or why not--> Readers
//! ```
//!
//! Whoever uses [`Readers`] has a program that calls [`child_main`] before anything else.

mod archive;
mod child;
mod found;
mod html;
mod kind;
mod limits;
mod lines;
mod mail;
mod names;
mod notebook;
mod office;
mod package;
mod pdf;
mod picture;
mod pipe;
mod pool;
mod protocol;
mod read;
mod readers;
mod table;
mod xml;

pub use self::{
    child::{CHILD_ARGUMENT, child_main},
    readers::Readers,
};
