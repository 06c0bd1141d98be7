//! A document of each kind.

use super::*;

async fn parts(readers: &Readers, name: &str) -> Vec<(String, String)> {
    let found = read(readers, name, file(name)).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    found.parts.into_iter().map(|part| (part.place, part.text)).collect()
}

#[tokio::test]
async fn every_kind_is_read_part_by_part() {
    let readers = readers(ReadLimits::default());
    let expected: &[(&str, &[(&str, &str)])] = &[
        (
            "report.pdf",
            &[
                ("1", "Yearly report\n\nThe committee met four times."),
                (
                    "2",
                    "Results\n\nRevenue grew by 12 percent to 4.8 million.\n\
                     Costs (rent and wages) fell to 3.1 million.",
                ),
                ("3", "Outlook\n\nThe plant in Köln opens in May."),
            ],
        ),
        ("owned.pdf", &[("1", "open to read")]),
        (
            "text.docx",
            &[(
                "",
                "# Leases\nA lease ends after thirty seconds & not later.\n\n## Terms\n- first item\n\n\
                 Name\tDays\nshort\t7\n\nThe end.",
            )],
        ),
        ("text.odt", &[("", "## Bridges\nThe bridge is 420 metres long.\n- steel\n\nspan\t90")]),
        ("sums.ods", &[("Sums", "Water\t42.5")]),
        ("old.xls", &[("Old", "Coal\n\n\t17.5")]),
        (
            "talk.pptx",
            &[
                ("1", "# First\n\nTurbines turn at 50 hertz.\n\nSay why."),
                ("2", "# Second\n\nShown after the other one."),
            ],
        ),
        (
            "book.epub",
            &[
                ("1", "# Arrival\n\nThe keeper came by boat.\n\nHe stayed."),
                ("2", "# Storm\n\nThe storm lasted nine days."),
            ],
        ),
        ("tides.ipynb", &[("1", "# Analysis\nOf the tides."), ("2", "```\ntide.mean()\n```\n3.25")]),
    ];
    for (name, expected) in expected {
        let found = parts(&readers, name).await;
        let found: Vec<(&str, &str)> =
            found.iter().map(|(place, text)| (place.as_str(), text.as_str())).collect();
        assert_eq!(found, *expected, "{name}");
    }
    assert!(readers.waiting() <= 2);
}

#[tokio::test]
async fn rows_of_a_sheet_are_its_lines_however_far() {
    let found = parts(&readers(ReadLimits::default()), "sales.xlsx").await;
    let [(budget, rows), (far, far_rows)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((budget.as_str(), far.as_str()), ("Budget_2026", "Far"));
    let rows: Vec<&str> = rows.split('\n').collect();
    assert_eq!((rows[0], rows[1]), ("Item\t2025\t2026", "Rent\t1200\t1310.5"));
    assert_eq!((rows[6], rows[7], rows.len()), ("Wages\t23000\t24500", "Due\t2026-02-01", 8));
    let far_rows: Vec<&str> = far_rows.split('\n').collect();
    assert_eq!((far_rows.len(), far_rows[0], far_rows[1_048_575]), (1_048_576, "near", "\tXFD: far away"));
}

#[tokio::test]
async fn what_lies_in_mail_and_archives_is_read_with_its_place() {
    let readers = readers(ReadLimits::default());
    let found = read(&readers, "cube.eml", file("cube.eml")).await.unwrap();
    let places: Vec<&str> = found.parts.iter().map(|part| part.place.as_str()).collect();
    assert_eq!(places, ["", "report.pdf:1", "report.pdf:2", "report.pdf:3", "numbers.csv"]);
    assert_eq!(found.title.as_deref(), Some("The würfel"));
    assert!(found.parts[0].text.contains("From: Ada <ada@example.org>\nTo: bob@example.org\n"));
    assert!(found.parts[0].text.contains("The cube weighs 8 kilograms."));
    assert_eq!(found.parts[4].text.trim(), "a\tb\n1\t2");

    let found = parts(&readers, "box.mbox").await;
    assert_eq!((found[0].0.as_str(), found[1].0.as_str()), ("1.eml", "2.eml"));
    assert!(found[1].1.contains("The third message."));

    let found = read(&readers, "bundle.zip", file("bundle.zip")).await.unwrap();
    let places: Vec<&str> = found.parts.iter().map(|part| part.place.as_str()).collect();
    let expected =
        ["docs/guide.md", "docs/page.html", "report.pdf:1", "report.pdf:2", "report.pdf:3", "escape.txt"];
    assert_eq!(places, expected);
    assert_eq!(found.parts[1].text, "# Page\n\nOn the second line.");
    assert_eq!(found.left_out, ["blob.bin: nothing reads files like blob.bin"]);

    let found = parts(&readers, "bundle.tar.gz").await;
    assert_eq!(found[0], ("notes/a.txt".to_owned(), "The pump is green.\n".to_owned()));
    assert_eq!(found[3].0, "notes/report.pdf:3");
}

#[tokio::test]
async fn texts_are_told_by_name_or_media_type() {
    let readers = readers(ReadLimits::default());
    for (name, media_type, bytes, kind, text) in [
        ("page", Some("text/html; charset=utf-8"), &b"<p>a<td>b"[..], "html", "ab"),
        ("t.csv", None, b"a;b\n1;2", "csv", "a\tb\n1\t2"),
        ("a.txt", None, b"gr\xfcn ist die Farbe", "text", "grün ist die Farbe"),
    ] {
        let found = DocumentReader::read(&readers, bytes.to_vec().into(), name, media_type).await.unwrap();
        assert_eq!((found.kind.as_str(), found.parts[0].text.as_str()), (kind, text), "{name}");
    }
}

#[tokio::test]
async fn why_there_is_no_text_is_said() {
    let readers = readers(ReadLimits { max_bytes: 100_000, ..tight() });
    let encrypted_office =
        [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec(), made::utf16("EncryptedPackage")].concat();
    let old_word = [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec(), made::utf16("WordDocument")].concat();
    for (name, bytes, why) in [
        ("locked.pdf", file("locked.pdf"), "it is encrypted"),
        ("locked.xlsx", encrypted_office.clone(), "it is encrypted"),
        ("locked.docx", encrypted_office, "it is encrypted"),
        ("old.doc", old_word, "no reader for office documents of before 2007"),
        ("locked.zip", made::encrypted_zip(), "it is encrypted"),
        ("picture.png", b"\x89PNG\r\n\0".to_vec(), "no reader for files like picture.png"),
        ("large.pdf", vec![b'x'; 100_001], "it passes the limit of 100000 bytes"),
        ("cut.docx", b"PK\x03\x04 no more".to_vec(), "it is broken"),
        ("no.ipynb", b"{\"cells\": 3}".to_vec(), "it is broken: it has no cells"),
        ("no.pdf", b"%PDF-1.7 and nothing".to_vec(), "it is broken"),
    ] {
        let said = read(&readers, name, bytes).await.unwrap_err().to_string();
        assert!(said.starts_with(why), "{name}: {said}");
    }
}
