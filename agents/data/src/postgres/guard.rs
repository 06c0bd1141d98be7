//! What a query to PostgreSQL may not be, by its text and by the tables that it reads. Pure.
//!
//! What a role may read, its rights on the server say. These rules keep queries from what a transaction that only reads
//! would still let through: functions that wait, lock, signal, read files, or run SQL that nobody looked at.

use std::collections::BTreeSet;

/// Longest query, in bytes.
pub(super) const MAX_QUERY: usize = 16 * 1024;

/// Beginnings of names of functions that do more than compute and read.
const DENIED: [&str; 32] = [
    "pg_sleep",
    "pg_advisory",
    "pg_try_advisory",
    "pg_terminate_backend",
    "pg_cancel_backend",
    "pg_read_",
    "pg_ls_",
    "pg_stat_file",
    "pg_stat_reset",
    "pg_file_",
    "pg_current_logfile",
    "pg_reload_conf",
    "pg_rotate_logfile",
    "pg_notify",
    "pg_logical_",
    "pg_replication_",
    "pg_create_",
    "pg_drop_",
    "pg_switch_wal",
    "pg_promote",
    "pg_wal_",
    "pg_backup_",
    "pg_export_snapshot",
    "pg_import_",
    "pg_log_",
    "pg_current_xact_id",
    "txid_current",
    "dblink",
    "crosstab",
    "connectby",
    "xpath_table",
    "set_config",
];

/// Further ones, of which the beginning would mean others too.
const DENIED_WHOLE: [&str; 16] = [
    "setval",
    "nextval",
    "ts_stat",
    "ts_rewrite",
    "loread",
    "lowrite",
    "lo_import",
    "lo_export",
    "lo_from_bytea",
    "lo_put",
    "lo_get",
    "lo_create",
    "lo_creat",
    "lo_unlink",
    "lo_open",
    "lo_truncate",
];

/// What stands in the names of functions that read tables named by a text, so that no plan shows them.
const DENIED_WITHIN: &str = "_to_xml";

/// A table that a query reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TableName {
    pub(super) schema: String,
    pub(super) table: String,
}

/// The query as it is put into a cursor, without what ends it.
///
/// # Errors
/// What it may not have, in words for a model.
pub(super) fn checked(query: &str) -> Result<&str, String> {
    let plain = query.trim().trim_end_matches([';', ' ', '\n', '\t', '\r']);
    if plain.is_empty() {
        return Err("`query` is empty".to_owned());
    }
    if plain.len() > MAX_QUERY {
        return Err(format!("the query has {} bytes, {MAX_QUERY} is the most", plain.len()));
    }
    if plain.contains('\0') {
        return Err("the query has a character that is none".to_owned());
    }
    let lower = plain.to_lowercase();
    // Names written by numbers of characters would be read by nobody here.
    if lower.contains("u&\"") || lower.contains("u&'") {
        return Err("write names and texts as they are, without U&".to_owned());
    }
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '_');
    let denied = words.into_iter().find(|word| is_denied(word));
    match denied {
        Some(word) => Err(format!("`{word}` does more than read and is not let through, wherever it stands")),
        None => Ok(plain),
    }
}

fn is_denied(word: &str) -> bool {
    DENIED.iter().any(|begin| word.starts_with(begin))
        || DENIED_WHOLE.contains(&word)
        || word.contains(DENIED_WITHIN)
}

/// Whether all tables are in schemas that may be read.
///
/// # Errors
/// Which is not, and which schemas may be read.
pub(super) fn within(tables: &BTreeSet<TableName>, schemas: &[String]) -> Result<(), String> {
    match tables.iter().find(|table| !schemas.contains(&table.schema)) {
        Some(TableName { schema, table }) => Err(format!(
            "it reads `{schema}.{table}`, by itself or by a view, and only these schemas may be read: {}",
            schemas.join(", ")
        )),
        None => Ok(()),
    }
}

/// A name in SQL.
pub(super) fn name(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_does_more_than_read_is_refused_by_name() {
        for query in [
            "SELECT pg_sleep(10)",
            "SELECT PG_SLEEP_FOR('1s')",
            "SELECT \"pg_sleep\"(1)",
            "SELECT pg_catalog.pg_read_file('/etc/passwd')",
            "SELECT pg_try_advisory_lock(1)",
            "SELECT lo_export(1, '/tmp/x')",
            "SELECT query_to_xml('select 1', true, true, '')",
            "SELECT table_to_xml('audit.log', true, true, '')",
            "SELECT * FROM crosstab('select 1')",
            "SELECT U&\"pg\\005fsleep\"(1)",
            "SELECT set_config('statement_timeout', '0', false)",
            "SELECT dblink_exec('x', 'y')",
            " ; ",
            "",
        ] {
            assert!(checked(query).is_err(), "{query}");
        }
        for query in [
            "SELECT 1",
            "SELECT lower(name), log(2) FROM pg_catalog_of_cars",
            "SELECT location, loyalty FROM t",
        ] {
            assert_eq!(checked(query), Ok(query));
        }
        assert_eq!(checked(" SELECT 1 ;\n ; ").unwrap(), "SELECT 1");
        assert!(checked(&format!("SELECT '{}'", "x".repeat(MAX_QUERY))).is_err());
    }

    #[test]
    fn tables_are_only_read_in_the_schemas_that_may_be_read() {
        let table =
            |schema: &str, table: &str| TableName { schema: schema.to_owned(), table: table.to_owned() };
        let found = BTreeSet::from([table("public", "a"), table("audit", "b")]);
        let told = within(&found, &["public".to_owned()]).unwrap_err();
        assert!(told.contains("`audit.b`"), "{told}");
        assert_eq!(within(&found, &["public".to_owned(), "audit".to_owned()]), Ok(()));
        assert_eq!(within(&BTreeSet::new(), &["public".to_owned()]), Ok(()));
    }
}
