use proptest::prelude::*;

use super::*;

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\n";

#[test]
fn a_text_is_replaced_only_where_it_stands_once() {
    assert_eq!(replaced(TEXT, "two\nthree", "2\n3").unwrap(), "one\n2\n3\nfour\nfive\n");
    assert_eq!(replaced(TEXT, "five\n", "").unwrap(), "one\ntwo\nthree\nfour\n");
    for (old, new, said) in [
        ("", "x", "`old` is empty"),
        ("two", "two", "nothing would change"),
        ("o", "x", "stands in the file 3 times, in lines 1, 2, 4"),
        ("six", "x", "does not stand in the file; read"),
        ("  two\nthree", "x", "line 2 is `two`"),
    ] {
        assert!(
            replaced(TEXT, old, new).unwrap_err().contains(said),
            "{old}: {:?}",
            replaced(TEXT, old, new)
        );
    }
}

#[test]
fn a_diff_is_applied_as_a_whole() {
    for (diff, made) in [
        ("@@ -2,2 +2,2 @@\n two\n-three\n+3\n", "one\ntwo\n3\nfour\nfive\n"),
        (
            "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-one\n+1\n+1.5\n@@ -5 +6 @@\n-five\n+5\n",
            "1\n1.5\ntwo\nthree\nfour\n5\n",
        ),
        ("@@ -40,1 +40,1 @@\n-four\n+4\n", "one\ntwo\nthree\n4\nfive\n"),
        ("@@ -0,0 +1 @@\n+zero\n", "zero\none\ntwo\nthree\nfour\nfive\n"),
        ("@@ -5,0 +6 @@\n+six\n\\ No newline at end of file\n", "one\ntwo\nthree\nfour\nfive\nsix\n"),
        ("diff --git a/x b/x\nindex 1..2\n@@ -1,2 +1 @@ fn x()\n one\n-two\n", "one\nthree\nfour\nfive\n"),
    ] {
        assert_eq!(patched(TEXT, diff).as_deref(), Ok(made), "{diff}");
    }
}

#[test]
fn a_diff_that_does_not_fit_says_where() {
    for (diff, said) in [
        ("hello", "no unified diff"),
        ("@@ nonsense @@\n x\n", "should be such as"),
        ("@@ -2 +2 @@\n-zwei\n+2\n", "line 2 is `two`, the diff has `zwei`"),
        ("@@ -5,2 +5,1 @@\n five\n-six\n", "the file has 5 lines"),
        ("@@ -1 +1 @@\n*one\n", "begins with none of"),
        ("@@ -1 +1 @@\n one\n", "changes nothing"),
        ("@@ -4 +4 @@\n-four\n+4\n@@ -1 +1 @@\n-one\n+1\n", "part 2 of the diff: it lies before"),
        ("--- a\n+++ b\n@@ -1 +1 @@\n-one\n+1\n--- c\n+++ d\n@@ -1 +1 @@\n-one\n+1\n", "several files"),
    ] {
        let told = patched(TEXT, diff).unwrap_err();
        assert!(told.contains(said), "{diff}: {told}");
    }
    let told = patched("a\nb\na\nb\n", "@@ -2 +2 @@\n-a\n+c\n").unwrap_err();
    assert!(told.contains("several other places"), "{told}");
    assert_eq!(
        patched("--x\ny\n", "@@ -1 +1 @@\n---x\n+z\n").as_deref(),
        Ok("z\ny\n"),
        "a removed line of dashes"
    );
}

proptest! {
    /// What a diff of a changed line makes of the old text is the new text.
    #[test]
    fn a_diff_of_one_line_makes_the_new_text(
        lines in prop::collection::vec("[a-c ]{0,3}", 1..8), at in any::<prop::sample::Index>(), new in "[d-f]{1,3}",
    ) {
        let at = at.index(lines.len());
        let text = format!("{}\n", lines.join("\n"));
        let diff = format!("@@ -{0},1 +{0},1 @@\n-{1}\n+{new}\n", at + 1, lines[at]);
        let mut wanted = lines.clone();
        wanted[at] = new;
        prop_assert_eq!(patched(&text, &diff), Ok(format!("{}\n", wanted.join("\n"))));
    }

    #[test]
    fn no_diff_breaks_it(text in "(?s).{0,80}", diff in "(@@ -[0-9]{1,3} \\+1 @@\n)?([ +\\-\\\\@].{0,5}\n){0,8}") {
        let _ = patched(&text, &diff);
    }
}
