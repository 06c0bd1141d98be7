//! What a tool is, and the engine that runs tools safely. The tools themselves are elsewhere.
//!
//! A [`Tool`] describes itself by a [`ToolSpec`] and does one thing. The [`ToolRegistry`] holds the tools of an agent;
//! nothing in it ever changes once it is there. The [`ToolEngine`] calls them: it looks the name up, checks the arguments
//! against the schema and the permissions of the [`ToolContext`], keeps the time limit, survives whatever the tool does,
//! cuts what is too long, and gives a [`ToolResult`] that a model can act on.
//!
//! A crate of its own: those with tools in them need it, and not each other.

pub mod address;
mod asker;
mod context;
pub mod engine;
pub mod keeper;
mod path;
pub mod patterns;
pub mod program;
pub mod reader;
pub mod registry;
mod result;
mod serving;
pub mod settings;
mod sharing;
pub mod spec;
mod watch;
pub mod workspace;

pub use self::{
    asker::{Asker, PictureAnswer, PictureQuestion, Viewer},
    engine::{
        CallCount, CallCounter, EngineLimits, EngineRules, ToolBreakerRules, ToolEngine, ToolQuota,
        ToolRetries, why_broken,
    },
    keeper::{KeptResult, ResultKeeper},
    patterns::ToolPatterns,
    program::{Program, ProgramEnd, ProgramLimits, ProgramNetwork, ProgramRunner, ProgramStatus},
    reader::{DocumentPart, DocumentReader, DocumentText, UnreadableDocument},
    registry::{RegistryError, ToolRegistry},
    serving::{LeaseSettings, ToolServerSettings},
    sharing::{AnswerToShare, SharedAnswer, SharedAnswers, SharedKey, ToolCacheSettings},
    spec::{
        Permission, Repetition, Tool, ToolContext, ToolFailure, ToolOutput, ToolResult, ToolSource, ToolSpec,
        ToolStatus, Uncertain,
    },
    watch::CallWatch,
};
