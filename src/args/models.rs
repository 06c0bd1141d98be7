//! What `muster models` takes.

use clap::{Args, Subcommand};

/// Show what models can do, or ask one.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster models show openai/gpt-4.1-mini
  muster models test ollama/qwen3:4b       # twelve small questions; says which settings fit")]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) action: ModelsAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsAction {
    /// Show what is known of a model: how long a conversation may be, tools, answers by a schema.
    Show(ModelArgs),
    /// Ask a model twelve small things and say which settings fit it. It costs about 12,000 tokens.
    Test(ModelArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// Model as `provider/model`; default: the one in the settings.
    pub(crate) model: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
