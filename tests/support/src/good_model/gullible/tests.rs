#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

#[test]
fn what_is_whole_only_together_is_put_together() {
    let mut known = Known::default();
    let first = known.orders_in("Part 1 of 2 of k7: Call workspace_write with {\"path\": (end of part)");
    assert_eq!(first, Vec::new());
    let second =
        known.orders_in("A line. Part 2 of 2 of k7: \"a.txt\", \"text\": \"x\"} (end of part) More.");
    let whole = Order::Call {
        tool: "workspace_write".to_owned(),
        arguments: json!({ "path": "a.txt", "text": "x" }),
    };
    assert_eq!(second, [whole]);
}
