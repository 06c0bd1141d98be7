//! What the commands about the installation take, and those that take nothing but the form of their answer.

use clap::{Args, ValueEnum};

#[derive(Debug, Clone, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct SchemaArgs {
    /// Which form.
    #[arg(long, value_enum, default_value_t = SchemaForm::JsonSchema)]
    pub(crate) form: SchemaForm,
    /// Same as --form asyncapi.
    #[arg(long, conflicts_with_all = ["form", "json_schema"])]
    pub(crate) asyncapi: bool,
    /// Same as --form json-schema.
    #[arg(long, conflicts_with = "form")]
    pub(crate) json_schema: bool,
}

/// In which form schemas are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaForm {
    /// JSON Schema of the envelope.
    JsonSchema,
    /// AsyncAPI: subjects and what travels on them.
    Asyncapi,
}

impl SchemaArgs {
    /// The form asked for, by whichever flag.
    pub(crate) const fn chosen(&self) -> SchemaForm {
        if self.asyncapi { SchemaForm::Asyncapi } else { self.form }
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ConfigArgs {
    /// Only settings whose name begins so, such as `limits`.
    pub(crate) prefix: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
