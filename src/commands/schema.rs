//! `muster schema`: what travels on the bus, for programs in other languages.

use muster_shared::wire::schema;

use crate::args::{SchemaArgs, SchemaForm};
use crate::exit::{Exit, Failure};
use crate::output;

/// Prints the schemas.
pub(super) fn print(args: &SchemaArgs) -> Result<Exit, Failure> {
    match args.chosen() {
        SchemaForm::JsonSchema => output::text(schema::JSON_SCHEMA)?,
        SchemaForm::Asyncapi => output::text(schema::ASYNCAPI)?,
    }
    Ok(Exit::Completed)
}
