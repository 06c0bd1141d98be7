//! What the commands about the installation take, and those that take nothing but the form of their answer.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Schema format.
    #[arg(long, value_enum, default_value_t = SchemaForm::JsonSchema)]
    form: SchemaForm,
    /// Same as --form asyncapi.
    #[arg(long, conflicts_with_all = ["form", "json_schema"])]
    asyncapi: bool,
    /// Same as --form json-schema.
    #[arg(long, conflicts_with = "form")]
    json_schema: bool,
}

/// In which form schemas are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaForm {
    /// JSON Schema of the envelope.
    JsonSchema,
    /// AsyncAPI: subjects and their messages.
    Asyncapi,
}

impl SchemaArgs {
    /// The form asked for, by whichever flag.
    pub(crate) const fn chosen(&self) -> SchemaForm {
        if self.asyncapi { SchemaForm::Asyncapi } else { self.form }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Only settings with this prefix, such as `limits`.
    pub(crate) prefix: Option<String>,
    /// Show every setting, instead of those that most people begin with and those that were set.
    #[arg(long)]
    pub(crate) all: bool,
    /// Say all there is to know of a setting, or of each in a group: what it does, its unit, its default, what it may be,
    /// where its value comes from and how it is set.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["prefix", "all"])]
    pub(crate) explain: Option<String>,
    /// Print an example of a settings file, with every setting.
    #[arg(long, conflicts_with_all = ["prefix", "all", "explain", "json"])]
    pub(crate) example: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
