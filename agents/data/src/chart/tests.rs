use muster_tools::{ToolResult, ToolStatus};
use proptest::prelude::*;

use super::*;
use crate::DataParts;
use crate::testing::{Held, context, engine};

const SALES: &str = "region,year,amount\nnorth,2025,10.5\nsouth,2025,20\nnorth,2026,30\nsouth,2026,\n";

async fn draw(held: &Arc<Held>, args: Value) -> ToolResult {
    let queries = Arc::new(Queries::new(DataParts::default()));
    engine(vec![chart_tool(queries)]).call("chart", args, &context(held)).await
}

fn months() -> Value {
    json!({"columns": ["month", "rent", "food"], "rows": [
        ["2026-01-01", 500, 210.5], ["2026-02-01", 500, 190], ["2026-03-01", 520, null], ["2026-06-01", 520, 240]
    ]})
}

/// The texts of a chart, and the number of its elements with this tag.
fn parts(svg: &str, tag: &str) -> (Vec<String>, usize) {
    let document = roxmltree::Document::parse(svg).expect("well-formed");
    let tagged = |tag: &str| document.descendants().filter(|node| node.has_tag_name(tag)).count();
    assert!(tagged("title") == 1 && tagged("desc") == 1 && tagged("script") == 0, "{svg}");
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    (texts.filter_map(|node| node.text()).map(|text| text.trim().to_owned()).collect(), tagged(tag))
}

#[tokio::test]
async fn every_kind_draws_all_values_and_labels() {
    let regions = json!({"columns": ["region", "2025", "2026"], "rows": [["north", 10, 12], ["south", 7, -3], ["east & <west>", 4, 5]]});
    let shares = json!({"columns": ["item", "cost"], "rows": [["rent", 500], ["food", 200], ["rest", 0]]});
    let points = json!({"columns": ["x", "y", "of"], "rows": [[1, 10, "a"], [2, 100, "a"], [2, 1000, "b"], [3, 99999, "b"]]});
    let values: Vec<Value> = [1, 2, 2, 3, 3, 3, 4, 4, 5, 12].iter().map(|n| json!(["all", n])).collect();
    let values = json!({"columns": ["group", "v"], "rows": values});
    let held = Held::with(&[]);
    // Of rectangles, one is the ground, and one for each of several series is in the legend.
    for (mut args, tag, count, labels) in [
        (
            json!({"kind": "line", "title": "Costs by month", "data": months(), "y_label": "EUR"}),
            "circle",
            7,
            vec!["Costs by month", "EUR", "month", "rent", "food"],
        ),
        (json!({"kind": "area", "data": months(), "stacked": true}), "polygon", 2, vec!["rent", "food"]),
        (
            json!({"kind": "bar", "title": "Regions", "data": regions}),
            "rect",
            6 + 1 + 2,
            vec!["Regions", "region", "north", "south", "east & <west>", "2025", "2026", "0"],
        ),
        (
            json!({"kind": "bar", "data": shares, "stacked": true}),
            "rect",
            3 + 1,
            vec!["rent", "food", "rest", "item", "cost"],
        ),
        (
            json!({"kind": "scatter", "data": points, "series": "of", "y": ["y"], "log": true}),
            "circle",
            4,
            vec!["a", "b", "10", "1,000", "100,000"],
        ),
        (
            json!({"kind": "histogram", "data": values, "y": ["v"], "bins": 4}),
            "rect",
            4 + 1,
            vec!["v", "count", "1 to 3.75", "9.25 to 12"],
        ),
    ] {
        args["path"] = json!("charts/a.svg");
        let result = draw(&held, args.clone()).await;
        assert_eq!(result.status, ToolStatus::Success, "{args}: {}", result.content);
        let svg = held.text("charts/a.svg").unwrap();
        let (texts, found) = parts(&svg, tag);
        assert_eq!(found, count, "{args}: {svg}");
        for label in labels {
            assert!(texts.iter().any(|text| text == label), "{label} is missing in {texts:?}");
        }
        assert!(!svg.contains("href") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

#[test]
fn numbers_are_short_and_grouped() {
    for (value, wanted) in [
        (0.0, "0"),
        (-0.0, "0"),
        (1_234_567.0, "1,234,567"),
        (-123_456.5, "-123,456.5"),
        (-0.25, "-0.25"),
        (1.5e12, "1.5e12"),
        (2e-7, "2e-7"),
        (1e10, "1e10"),
    ] {
        assert_eq!(super::draw::number(value), wanted);
    }
}

#[tokio::test]
async fn a_chart_says_where_it_is_and_what_it_shows() {
    let held = Held::with(&[("sales.csv", SALES.as_bytes())]);
    let args = json!({"kind": "bar", "title": "Sales, by region!", "query": "SELECT region, sum(amount) AS total FROM sales GROUP BY 1"});
    let result = draw(&held, args).await;
    assert_eq!(result.status, ToolStatus::Success, "{}", result.content);
    let bytes = held.text("charts/sales-by-region.svg").unwrap().len();
    assert_eq!(
        result.content,
        format!(
            "Wrote charts/sales-by-region.svg ({bytes} bytes): Sales, by region!: bar chart of total by region, 2 values from 20 to 40.5\n\
             From sales.csv.\nIn a report: ![Sales, by region!: bar chart of total by region, 2 values from 20 to 40.5](charts/sales-by-region.svg)"
        )
    );
    let result = draw(&held, json!({"kind": "line", "file": "sales.csv", "x": "year", "y": ["amount"], "series": "region", "path": "a.svg"})).await;
    assert_eq!(result.status, ToolStatus::Success, "{}", result.content);
    let svg = held.text("a.svg").unwrap();
    let (texts, _) = parts(&svg, "text");
    assert!(
        ["north", "south"].iter().all(|name| texts.iter().any(|text| text == name)),
        "the legend names both: {texts:?}"
    );
}

#[tokio::test]
async fn what_cannot_be_drawn_is_told() {
    let held = Held::with(&[("sales.csv", SALES.as_bytes())]);
    let one = |rows: Value| json!({"columns": ["x", "y"], "rows": rows});
    let many: Vec<Value> = (0..5001).map(|n| json!([n, n])).collect();
    let wide: Vec<Value> = (0..20).map(|n| json!(format!("c{n}"))).collect();
    for (args, said) in [
        (json!({"kind": "line"}), "give one of `data`, `file` and `query`"),
        (json!({"kind": "line", "data": one(json!([]))}), "there are no rows"),
        (json!({"kind": "line", "data": one(json!([[1, null]]))}), "no column of numbers"),
        (json!({"kind": "line", "data": one(json!([[1, null]])), "y": ["y"]}), "there are no numbers"),
        (
            json!({"kind": "line", "data": one(json!([[1, 2], [3, "abc"]])), "y": ["y"]}),
            "`y` in row 2 is `abc` and no number",
        ),
        (
            json!({"kind": "line", "data": one(json!([[1, "NaN"]])), "y": ["y"]}),
            "is NaN, which cannot be drawn",
        ),
        (
            json!({"kind": "line", "data": one(json!([[1, "inf"]])), "y": ["y"]}),
            "is inf, which cannot be drawn",
        ),
        (json!({"kind": "line", "data": one(json!([[1, 1e300]]))}), "no column of numbers"),
        (json!({"kind": "line", "data": one(json!([[1, -2]])), "log": true}), "1 values are 0 or less"),
        (json!({"kind": "bar", "data": one(json!([[1, 2]])), "log": true}), "start at 0"),
        (
            json!({"kind": "bar", "stacked": true, "data": one(json!([["a", -2]]))}),
            "stacked values cannot be negative",
        ),
        (json!({"kind": "line", "data": one(json!(many))}), "there are 5001 values, at most 5000"),
        (json!({"kind": "line", "data": {"columns": wide, "rows": [vec![1; 20]]}}), "19 series, at most 12"),
        (json!({"kind": "line", "data": one(json!([[1]]))}), "row 1 has 1 values"),
        (json!({"kind": "line", "data": one(json!([[1, 2]])), "x": "z"}), "no column `z`"),
        (json!({"kind": "line", "data": one(json!([[1, 2]])), "path": "a.png"}), "must end in .svg"),
        (json!({"kind": "line", "data": one(json!([[1, 2]])), "path": "../a.svg"}), "not allowed"),
        (
            json!({"kind": "line", "file": "sales.csv", "x": "region", "y": ["amount"], "series": "region"}),
            "several rows for `north`",
        ),
        (json!({"kind": "line", "query": "DELETE FROM sales"}), "Only reading is possible"),
        (json!({"kind": "line", "file": "none.csv"}), "no file `none.csv`"),
    ] {
        let result = draw(&held, args.clone()).await;
        assert_eq!(result.status, ToolStatus::Refused, "{args}: {}", result.content);
        assert!(result.content.contains(said), "{said}: {}", result.content);
    }
    assert_eq!(held.text("charts/line-chart.svg"), None);
}

fn cells() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => any::<f64>().prop_map(|number| json!(number)),
        3 => (-1000_i64..1000).prop_map(|number| json!(number)),
        1 => Just(Value::Null),
        1 => "\\PC{0,8}".prop_map(Value::from),
        1 => Just(json!("<script>]]>&\u{0}\u{1b}[2J\u{202e}")),
        1 => "(19|20)[0-9]{2}-[0-1][0-9]-[0-3][0-9]".prop_map(Value::from),
    ]
}

fn kinds() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["line", "bar", "area", "scatter", "histogram"])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Whatever the data are, a chart is well-formed, of bounded size, and without what is no number; or there is none.
    #[test]
    fn any_data_is_drawn_well_or_refused(
        kind in kinds(),
        rows in prop::collection::vec(prop::collection::vec(cells(), 3), 0..20),
        title in "(?s).{0,80}",
        names in prop::collection::vec("(?s).{0,20}", 3),
        flags in prop::collection::vec(any::<bool>(), 4),
        small in any::<bool>(),
    ) {
        let mut args = json!({"kind": kind, "title": title, "stacked": flags[0], "log": flags[1],
            "data": {"columns": names, "rows": rows}});
        if flags[2] {
            args["y"] = json!([names[1]]);
        }
        if flags[3] {
            args["series"] = json!(names[2]);
        }
        let mut request: Request = serde_json::from_value(args).unwrap();
        (request.width, request.height) = if small { (Some(200), Some(150)) } else { (None, None) };
        let rows = inline_rows(request.data.as_ref().unwrap()).unwrap();
        if let Ok((svg, _)) = drawn(&rows, &request) {
            let parsed = roxmltree::Document::parse(&svg);
            prop_assert!(parsed.is_ok(), "{:?} {}", parsed.err(), svg);
            prop_assert!(svg.len() < 200_000, "{}", svg.len());
            let document = parsed.unwrap();
            for node in document.descendants() {
                prop_assert!(node.tag_name().name() != "script");
                for attribute in node.attributes() {
                    let value = attribute.value();
                    prop_assert!(!value.contains("NaN") && !value.contains("inf"), "{value}");
                }
            }
        }
    }
}
