//! Names of tables, made of those of files and sheets so that they need no quotes.

/// Longest name of a table, in characters.
const MAX_TABLE: usize = 48;

/// Longest name of a column, in characters.
const MAX_COLUMN: usize = 64;

/// Words that cannot stand for a table without quotes.
const RESERVED: [&str; 44] = [
    "add", "all", "alter", "and", "as", "between", "by", "case", "check", "column", "create", "default",
    "delete", "distinct", "drop", "else", "exists", "from", "group", "having", "in", "index", "insert",
    "into", "is", "join", "limit", "not", "null", "on", "or", "order", "primary", "select", "set", "table",
    "then", "to", "union", "unique", "update", "values", "when", "where",
];

/// The part of a path that names its tables: `notes/Sales 2024.csv` gives `Sales_2024`.
pub(crate) fn stem(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    plain(file.rsplit_once('.').map_or(file, |(stem, _)| stem))
}

/// A name for a table, of letters, digits and `_`.
pub(crate) fn plain(text: &str) -> String {
    let mut name = String::new();
    for c in text.trim().chars().take(MAX_TABLE) {
        let c = if c.is_alphanumeric() { c } else { '_' };
        if c != '_' || !name.ends_with('_') {
            name.push(c);
        }
    }
    let name = name.trim_matches('_');
    let needs_letter = name.is_empty()
        || name.starts_with(|c: char| c.is_numeric())
        || ["main", "temp", "sqlite"].iter().any(|taken| name.to_lowercase().starts_with(taken))
        || RESERVED.contains(&name.to_lowercase().as_str());
    if needs_letter { format!("t_{name}").trim_end_matches('_').to_owned() } else { name.to_owned() }
}

/// A name that none of these is, whatever the case of its letters; it is one of them from then on.
pub(crate) fn unique(name: &str, taken: &mut Vec<String>) -> String {
    let is_taken =
        |name: &str, taken: &[String]| taken.iter().any(|other| other.to_lowercase() == name.to_lowercase());
    let mut own = name.to_owned();
    let mut number = 2;
    while is_taken(&own, taken) {
        own = format!("{name}_{number}");
        number += 1;
    }
    taken.push(own.clone());
    own
}

/// Names of columns as they stand in the file, in one line each, none empty, none twice.
pub(crate) fn columns<'a>(cells: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = Vec::new();
    for (at, cell) in (1..).zip(cells) {
        let words: Vec<&str> = cell.split(|c: char| c.is_whitespace() || c.is_control()).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let name: String = words.join(" ").chars().take(MAX_COLUMN).collect();
        let name = if name.trim().is_empty() { format!("c{at}") } else { name };
        unique(&name, &mut taken);
    }
    taken
}

/// A name in SQL: in quotes where it needs them.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !RESERVED.contains(&name.to_lowercase().as_str());
    if is_plain { name.to_owned() } else { always_quoted(name) }
}

/// A name in SQL, in quotes.
pub(crate) fn always_quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_named_after_files_so_that_they_need_no_quotes() {
        for (path, name) in [
            ("sales.csv", "sales"),
            ("notes/Sales 2024 (final).csv", "Sales_2024_final"),
            ("2024.csv", "t_2024"),
            ("order.csv", "t_order"),
            ("main.sqlite", "t_main"),
            ("sqlite_master.csv", "t_sqlite_master"),
            ("x/---.json", "t"),
            ("Größe.tsv", "Größe"),
        ] {
            assert_eq!(stem(path), name, "{path}");
        }
    }

    #[test]
    fn no_two_columns_have_one_name_and_none_is_empty() {
        let named = columns(["a", "A", "", " total\n(EUR) ", "a"].into_iter());
        assert_eq!(named, ["a", "A_2", "c3", "total (EUR)", "a_3"]);
        assert_eq!(quoted("total (EUR)"), "\"total (EUR)\"");
        assert_eq!(quoted("order"), "\"order\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
        assert_eq!(quoted("region"), "region");
    }
}
