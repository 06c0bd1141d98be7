//! Plain tables.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// A table without lines: a heading, then rows. Columns named in `right` stand at the right.
pub(crate) fn plain(heading: &[&str], rows: Vec<Vec<String>>, right: &[usize]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(heading.to_vec());
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.add_rows(rows);
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if right.contains(&at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    super::figures::lines(table.lines().map(|line| line.trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = vec![vec!["worker".into(), "1".into()], vec!["a".into(), "1234".into()]];
        assert_eq!(plain(&["NAME", "N"], rows, &[1]), "NAME       N\nworker     1\na       1234");
    }
}
