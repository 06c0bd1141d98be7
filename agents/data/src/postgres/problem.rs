//! What PostgreSQL says is wrong, for a model.

use muster_shared::text::beginning;
use muster_tools::ToolFailure;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, ErrorPosition, SqlState};

use crate::settings::PostgresSettings;

/// Most characters of a message that are shown.
const MAX_SAID: usize = 800;

/// What a failure is told as.
pub(super) fn told(error: &Error, settings: &PostgresSettings) -> ToolFailure {
    match error.as_db_error() {
        Some(said) => by_server(said, settings),
        None => {
            let cause =
                std::error::Error::source(error).map(|cause| format!(" ({cause})")).unwrap_or_default();
            let words = beginning(&format!("{error}{cause}"), MAX_SAID);
            ToolFailure::Unavailable(format!(
                "the database cannot be reached: {words}. Try again later, or go on without it."
            ))
        }
    }
}

fn by_server(said: &DbError, settings: &PostgresSettings) -> ToolFailure {
    let code = said.code();
    let words = in_words(said);
    if *code == SqlState::QUERY_CANCELED || *code == SqlState::LOCK_NOT_AVAILABLE {
        return ToolFailure::Failed(format!(
            "The query was stopped after {} ms, its time limit. Filter or aggregate earlier.",
            settings.statement_time.as_millis()
        ));
    }
    if *code == SqlState::READ_ONLY_SQL_TRANSACTION || *code == SqlState::INSUFFICIENT_PRIVILEGE {
        return ToolFailure::Refused(format!(
            "Not let by the database: {words}. Only reading is possible, of what its role may read."
        ));
    }
    match code.code().get(..2) {
        // Classes of errors are open: of those that are not the query's fault, each is told.
        Some("08" | "53" | "57" | "58") => {
            ToolFailure::Unavailable(format!("the database cannot answer now: {words}. Try again later."))
        }
        Some("28" | "3D") => ToolFailure::Failed(format!(
            "the database refused the connection: {words}. A person has to look at its settings."
        )),
        _ if words.contains("multiple commands") => {
            ToolFailure::InvalidArguments("One statement at a time.".to_owned())
        }
        _ if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_COLUMN => {
            ToolFailure::InvalidArguments(format!(
                "{words}. The schema tool of this database shows tables and columns."
            ))
        }
        _ => ToolFailure::InvalidArguments(format!("{words}.")),
    }
}

fn in_words(said: &DbError) -> String {
    let mut words = beginning(said.message(), MAX_SAID);
    if let Some(ErrorPosition::Original(at)) = said.position() {
        words.push_str(&format!(" (at character {at})"));
    }
    for more in [said.detail(), said.hint()].into_iter().flatten() {
        words.push_str(". ");
        words.push_str(beginning(more, MAX_SAID).trim_end_matches('.'));
    }
    words
}
