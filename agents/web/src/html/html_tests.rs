use proptest::prelude::*;

use super::*;

fn article(html: &str) -> String {
    text(&read(html), Shown::Article)
}

#[test]
fn elements_become_markdown() {
    let table = [
        ("<p>one\n two<p>three", "one two\n\nthree"),
        ("<h2>A <b>b</b></h2><p>c", "## A b\n\nc"),
        ("<h2></h2><p>plain", "plain"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "- a\n- b\n  - c\n- d"),
        ("<ol start=3><li>a</li><li><p>b</p></li></ol>", "3. a\n4. b"),
        ("<blockquote><p>a<p>b</blockquote>c", "> a\n\n> b\n\nc"),
        ("<pre>a\n  b\n</pre>", "```\na\n  b\n```"),
        ("<pre>```</pre>", "````\n```\n````"),
        ("x <code>y</code> z", "x `y` z"),
        ("a<br>b", "a\nb"),
        ("<img alt='a dog' src=x> runs", "[image: a dog] runs"),
        ("a<script>b<p>c</script>d<style>e</style>f", "adf"),
        ("<div hidden>a</div><div style='display : none'>b</div><div aria-hidden=true>c</div>d", "d"),
        ("a<!-- b -->c", "ac"),
        ("&lt;b&gt; &eacute;&#8364;&nbsp;x", "<b> é€ x"),
        ("<dl><dt>a<dd>b</dl>", "a\n\nb"),
        ("a</p>b</div></nonsense>c", "abc"),
    ];
    for (html, expected) in table {
        assert_eq!(article(html), expected, "{html}");
    }
}

#[test]
fn tables_keep_their_cells_and_those_that_only_arrange_are_texts() {
    let html = "<table><caption>T</caption><thead><tr><th>a<th>b|c</thead><tbody><tr><td>1<td>2<br>3<tr><td colspan=2>4</table>";
    assert!(
        article(html).ends_with("| a | b\\|c |\n| --- | --- |\n| 1 | 2 3 |\n| 4 |  |"),
        "{}",
        article(html)
    );
    let nested = "<table><tr><td>a<table><tr><td>b<td>c</table><td>d</table>";
    assert_eq!(article(nested), "| a b c | d |\n| --- | --- |");
    assert_eq!(article("<table><tr><td>a<tr><td>b</table>c"), "a\n\nb\n\nc");
}

#[test]
fn the_article_is_what_is_not_around_it() {
    let words =
        "These are some words of the article which are enough to be taken for what the page is about. "
            .repeat(3);
    let menu = "<ul><li><a href=/a>Alpha</a><li><a href=/b>Beta</a><li><a href=/c>Gamma</a><li><a href=/d>Delta</a></ul>";
    let around =
        "<nav>Menu</nav><div class='cookie-banner'>Cookies</div><aside>Aside</aside><footer>Foot</footer>";
    for html in [
        format!("{around}<main><p>{words}</main>"),
        format!("{around}{menu}<p>{words}"),
        format!("<body class=has-sidebar>{around}<div role=main><p>{words}</div><p>Elsewhere"),
        format!(
            "<div id=navbar><form>Search</form></div>{menu}<article><header><p>{words}</header></article>"
        ),
    ] {
        assert_eq!(article(&html), words.trim(), "{html}");
    }
    // A page that is links has nothing else to show.
    let links = format!("<p>Index of all the pages that there are</p>{}", menu.repeat(9));
    assert!(article(&links).contains("- Alpha\n- Beta"));
    assert!(text(&read(around), Shown::Everything).contains("Cookies"));
}

#[test]
fn links_and_titles_are_found() {
    let document = read(
        "<title> A\n&amp; B </title><base href=/x/><a href=' y '>one <b>two</b></a><nav><a href=z>n</a></nav><svg><title>no</title></svg>",
    );
    assert_eq!((document.title.as_deref(), document.base.as_deref()), (Some("A & B"), Some("/x/")));
    let links: Vec<_> =
        document.links.iter().map(|link| (link.text.as_str(), link.to.as_str(), link.is_around)).collect();
    assert_eq!(links, [("one two", "y", false), ("n", "z", true)]);
}

#[test]
fn a_snippet_loses_its_marks() {
    assert_eq!(plain("a <strong>b</strong>\n&amp; c &lt;d"), "a b & c <d");
}

#[test]
fn nesting_however_deep_costs_neither_stack_nor_much_time() {
    let small_stack = |html: String| {
        let begun = std::time::Instant::now();
        let thread = std::thread::Builder::new().stack_size(128 * 1024);
        let text = thread.spawn(move || text(&read(&html), Shown::Everything)).unwrap().join().unwrap();
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", begun.elapsed());
        text
    };
    for tag in ["div", "b", "table", "ul", "li", "blockquote", "a", "p", "td", "span", "svg", "button"] {
        let html =
            format!("{}deep{}after", format!("<{tag}>").repeat(50_000), format!("</{tag}>").repeat(50_000));
        let text = small_stack(html);
        assert!(text.contains("after") || matches!(tag, "svg" | "button"), "{tag}");
    }
    assert!(small_stack("<div a=b c".repeat(100_000)).len() < 2_000_000);
    assert!(small_stack(format!("<p {}>x", "a=1 ".repeat(300_000))).contains('x'));
    assert!(small_stack("<table><tr><td colspan=99999>x".repeat(20_000)).len() < 4_000_000);
}

proptest! {
    #[test]
    fn any_text_is_some_page(html in "(<(/?(p|li|ul|table|td|tr|pre|a|title|h1|nav|script|b|div)( hidden| href=x)?)>|[a&; \n<]){0,60}") {
        let document = read(&html);
        let all = text(&document, Shown::Everything);
        let _ = text(&document, Shown::Article);
        prop_assert!(all.len() <= html.len() * 40 + 100);
    }

    #[test]
    fn any_bytes_are_some_page(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        let _ = article(&String::from_utf8_lossy(&bytes));
    }
}
