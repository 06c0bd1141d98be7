//! `muster tools leases`.

use std::time::Duration;

use muster_shared::wire::lending::ToolLease;

use super::{figures, table as tables};

/// Most characters of one cell.
const MOST_CELL: usize = 64;

/// Leases, one a line.
pub(crate) fn table(leases: &[ToolLease]) -> String {
    let row = |lease: &ToolLease| {
        let left = match lease.running {
            0 => figures::span(Duration::from_millis(lease.left_ms)),
            _ => "in use".to_owned(),
        };
        // The last digits tell runs apart.
        let run = &lease.run[lease.run.ceil_char_boundary(lease.run.len().saturating_sub(8))..];
        let (lender, borrower) = (lease.lender.to_string(), lease.borrower.to_string());
        let cells = [&lease.lease, &lease.tool, &lender, &borrower, run, &lease.task];
        // Lenders write what they like: a cell is one line, and short.
        let cells = cells.into_iter().map(|cell: &str| figures::one_line(cell, MOST_CELL));
        cells.chain([lease.calls.to_string(), left]).collect()
    };
    let heads = ["LEASE", "TOOL", "OF", "LENT TO", "RUN", "TASK", "CALLS", "LEFT"];
    tables::plain(&heads, leases.iter().map(row).collect(), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_says_whose_tool_is_lent_to_whom_for_what_and_for_how_long() {
        let lease = ToolLease {
            lease: "researcher-1.3".to_owned(),
            tool: "sql".to_owned(),
            lender: "researcher-1".parse().unwrap(),
            borrower: "worker-2".parse().unwrap(),
            role: "worker".parse().unwrap(),
            run: "0193c2a100007000800000001234abcd".to_owned(),
            task: "1-2".to_owned(),
            left_ms: 90_000,
            calls: 4,
            running: 0,
        };
        let used = ToolLease { running: 1, run: "ä".to_owned(), ..lease.clone() };
        let shown = table(&[lease, used]);
        let lines: Vec<&str> = shown.lines().collect();
        for word in ["researcher-1.3", "sql", "worker-2", "1234abcd", "1-2", " 4 "] {
            assert!(lines[1].contains(word), "{word}: {shown}");
        }
        assert!(!lines[1].contains("in use") && lines[2].contains("in use"), "{shown}");
    }
}
