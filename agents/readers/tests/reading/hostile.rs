//! Files that are made to do harm.

use std::io::Write;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::made::{docx, pages, pdf, xlsx, zip};
use super::*;

/// What became of a file, in words, within its limits of time.
async fn told(readers: &Readers, name: &str, bytes: Vec<u8>) -> String {
    let begun = Instant::now();
    let told = match read(readers, name, bytes).await {
        Ok(found) if found.left_out.is_empty() => format!("read: {} parts", found.parts.len()),
        Ok(found) => format!("read: {} parts; {}", found.parts.len(), found.left_out.join("; ")),
        Err(error) => error.to_string(),
    };
    assert!(begun.elapsed() < Duration::from_secs(30), "{name} took {:?}", begun.elapsed());
    told
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// Zip files in each other, many in each.
fn nested(depth: usize, each: usize) -> Vec<u8> {
    let mut inner = zip(&[("deep.txt", "at the bottom")]);
    for _ in 0..depth {
        let names: Vec<String> = (0..each).map(|n| format!("{n}.zip")).collect();
        let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), inner.as_slice())).collect();
        inner = zip(&files);
    }
    inner
}

/// A zip file whose entries are all the same bytes.
fn overlapping() -> Vec<u8> {
    let mut bytes = zip(&[("aaaa.txt", vec![b'x'; 1_000_000]), ("bbbb.txt", vec![b'y'; 10])]);
    let central: Vec<usize> =
        (0..bytes.len() - 4).filter(|at| &bytes[*at..*at + 4] == b"PK\x01\x02").collect();
    let (first, second) = (central[0], central[1]);
    // What the second entry says of its size and place is what the first one says.
    let (sizes, place) = (bytes[first + 16..first + 28].to_vec(), bytes[first + 42..first + 46].to_vec());
    bytes[second + 16..second + 28].copy_from_slice(&sizes);
    bytes[second + 42..second + 46].copy_from_slice(&place);
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn bombs_cost_one_document() {
    let readers = readers(ReadLimits { max_unpacked: 64 * 1024 * 1024, ..tight() });
    let zeros = vec![0u8; 80 * 1024 * 1024];
    let entities = "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">\
                    <!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY x SYSTEM \"file:///etc/passwd\">]>";
    let entity_bomb = zip(&[(
        "word/document.xml",
        format!("{entities}<w:document><w:p><w:t>before &c;&x; after</w:t></w:p></w:document>"),
    )]);
    let deep = format!("{}x{}", "<w:a>".repeat(200_000), "</w:a>".repeat(200_000));
    for (name, bytes, expected) in [
        (
            "bomb.zip",
            zip(&[("zeros.txt", zeros.as_slice())]),
            "zeros.txt: it passes the limit of what may be unpacked",
        ),
        ("bomb.gz", gzip(&zeros), "it passes the limit of what may be unpacked"),
        ("bomb.docx", zip(&[("word/document.xml", zeros.as_slice())]), "what may be unpacked"),
        ("bomb.xlsx", xlsx(&" ".repeat(80 * 1024 * 1024)), "what may be unpacked"),
        ("nested.zip", nested(6, 3), "it lies too deep"),
        ("overlapping.zip", overlapping(), "it is broken: its entries overlap"),
        ("entities.docx", entity_bomb, "read: 1 parts"),
        ("deep.docx", docx(&deep), "256 elements within each other"),
        ("deep.ipynb", format!("{}1", "[".repeat(1_000_000)).into_bytes(), "it is broken"),
    ] {
        let said = told(&readers, name, bytes).await;
        assert!(said.contains(expected), "{name}: {said}");
        still_reads(&readers).await;
    }
}

#[tokio::test]
async fn entities_that_a_document_declares_are_left_out() {
    let text = "<!DOCTYPE x [<!ENTITY b \"expanded\">]><w:document><w:p><w:t>before &b;&amp;&#65; after</w:t></w:p></w:document>";
    let found = read(&readers(tight()), "a.docx", zip(&[("word/document.xml", text)])).await.unwrap();
    assert_eq!(found.parts[0].text, "before &A after");
}

#[tokio::test]
async fn names_in_archives_lead_nowhere() {
    let readers = readers(tight());
    let bytes = zip(&[("../../x.txt", "a"), ("/etc/y.txt", "b"), ("c/../../z.txt", "c"), ("z.txt", "d")]);
    let found = read(&readers, "a.zip", bytes).await.unwrap();
    let mut places: Vec<&str> = found.parts.iter().map(|part| part.place.as_str()).collect();
    places.sort_unstable();
    assert_eq!(places, ["c/z.txt", "etc/y.txt", "x.txt", "z.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_entries_and_endless_nesting_of_mail_end() {
    let readers = readers(ReadLimits { max_entries: 1_000, ..tight() });
    let names: Vec<String> = (0..1_001).map(|n| format!("{n}.txt")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    assert_eq!(told(&readers, "many.zip", zip(&files)).await, "it passes the limit of 1000 entries");
    let mut mail = "Subject: bottom\n\nthe bottom\n".to_owned();
    for level in 0..500 {
        mail = format!("Subject: {level}\nContent-Type: message/rfc822\n\n{mail}");
    }
    let said = told(&readers, "deep.eml", mail.into_bytes()).await;
    assert!(said.starts_with("read: ") || said.starts_with("it passes the limit"), "{said}");
    let parts: String = (0..2_000)
        .map(|n| format!("--b{n}\nContent-Type: multipart/mixed; boundary=b{}\n\n", n + 1))
        .collect();
    let mail = format!("Subject: x\nContent-Type: multipart/mixed; boundary=b0\n\n{parts}");
    let _ = told(&readers, "boundaries.eml", mail.into_bytes()).await;
    still_reads(&readers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pdf_of_ten_thousand_pages_is_read_and_one_of_more_up_to_its_limit() {
    // Without optimization, that many pages take some time on a busy machine.
    let (time, cpu) = (Duration::from_secs(120), Duration::from_secs(60));
    let readers = readers(ReadLimits { max_pages: 10_000, time, cpu, ..tight() });
    let begun = Instant::now();
    let bytes = pages(10_000, |page| format!("This is page {page}."));
    let found = read(&readers, "long.pdf", bytes).await.unwrap();
    println!("10,000 pages in {:?}", begun.elapsed());
    assert_eq!(found.parts.len(), 10_000);
    assert_eq!(
        (found.parts[7_776].place.as_str(), found.parts[7_776].text.as_str()),
        ("7777", "This is page 7777.")
    );
    let found = read(&readers, "longer.pdf", pages(10_001, |page| page.to_string())).await.unwrap();
    assert_eq!((found.parts.len(), found.left_out.len()), (10_000, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn pdfs_that_lead_back_to_themselves_end() {
    let readers = readers(tight());
    let object = |text: &str| text.to_owned();
    let catalog = || object("<< /Type /Catalog /Pages 2 0 R >>");
    let looping_tree =
        pdf(&[catalog(), object("<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 /Parent 2 0 R >>")]);
    let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources 5 0 R >>";
    let form = |inside: &str| {
        format!(
            "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources 5 0 R /Length {} >>\nstream\n{inside}\nendstream",
            inside.len()
        )
    };
    let looping_form = pdf(&[
        catalog(),
        object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>"),
        object(page),
        object("<< /Length 6 >>\nstream\n/X1 Do\nendstream"),
        object("<< /XObject << /X1 6 0 R >> >>"),
        form("/X1 Do"),
    ]);
    let looping_content = pdf(&[
        catalog(),
        object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>"),
        object(page),
        object("4 0 R"),
        object("5 0 R"),
    ]);
    let parents = pdf(&[
        catalog(),
        object("<< /Type /Pages /Kids [3 0 R] /Count 1 /Parent 3 0 R >>"),
        object("<< /Type /Page /Parent 2 0 R /Contents 3 0 R >>"),
    ]);
    let mut looping_xref = String::from_utf8(looping_tree.clone()).unwrap();
    let at = looping_xref.rfind("startxref\n").unwrap() + 10;
    let xref: String = looping_xref[at..].chars().take_while(char::is_ascii_digit).collect();
    looping_xref = looping_xref.replace("/Root", &format!("/Prev {xref} /Root"));
    for (name, bytes) in [
        ("tree.pdf", looping_tree),
        ("form.pdf", looping_form),
        ("content.pdf", looping_content),
        ("parents.pdf", parents),
        ("xref.pdf", looping_xref.into_bytes()),
    ] {
        let said = told(&readers, name, bytes).await;
        println!("{name}: {said}");
        still_reads(&readers).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn far_cells_in_any_order_and_many_columns_are_bounded() {
    let readers = readers(ReadLimits { max_text: 8 * 1024 * 1024, ..tight() });
    let far: String = (0..200)
        .map(|n| {
            format!(
                "<row r=\"{0}\"><c r=\"A{0}\"><v>1</v></c><c r=\"XFD{0}\"><v>2</v></c></row>",
                1_048_576 - n * 5_000
            )
        })
        .collect();
    let said = told(&readers, "reversed.xlsx", xlsx(&far)).await;
    assert!(said.starts_with("read: 1 parts"), "{said}");
    let rows: String = (1..=300_000)
        .map(|n| format!("<row r=\"{n}\"><c r=\"A{n}\"><v>{n}</v></c><c r=\"ZZ{n}\"><v>{n}</v></c></row>"))
        .collect();
    let said = told(&readers, "long.xlsx", xlsx(&rows)).await;
    assert!(said.starts_with("read: 1 parts"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reading_that_takes_too_long_or_that_nobody_waits_for_is_ended() {
    let slow = || pages(10_000, |page| "words of it ".repeat(60) + &page.to_string());
    let readers = readers(ReadLimits { time: Duration::from_millis(300), ..tight() });
    let said = told(&readers, "slow.pdf", slow()).await;
    assert_eq!(said, "it passes the limit of 0.3 s of time");
    let program = OwnProgram::new();
    let patient = Readers::with_program(&program.path, tight(), PoolLimits::default());
    let reading = tokio::spawn({
        let patient = patient.clone();
        async move { read(&patient, "slow.pdf", slow()).await }
    });
    until("a process reads the document", || !program.children().is_empty()).await;
    reading.abort();
    until("the process has ended", || program.children().is_empty()).await;
    still_reads(&patient).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_is_killed_costs_at_most_its_document() {
    let program = OwnProgram::new();
    let readers = Readers::with_program(&program.path, tight(), PoolLimits::default());
    still_reads(&readers).await;
    assert_eq!(readers.waiting(), 1);
    // One that waits is killed: the next document is given to another.
    let children = program.children();
    assert_eq!(children.len(), 1, "{children:?}");
    kill(children[0]);
    still_reads(&readers).await;
    // One is killed while it reads.
    let reading = tokio::spawn({
        let readers = readers.clone();
        async move {
            read(&readers, "long.pdf", pages(10_000, |page| "words ".repeat(50) + &page.to_string())).await
        }
    });
    let begun = Instant::now();
    while !reading.is_finished() && begun.elapsed() < Duration::from_secs(20) {
        program.children().into_iter().for_each(kill);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let said = reading.await.unwrap().unwrap_err().to_string();
    assert!(said.contains("killed"), "{said}");
    still_reads(&readers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn children_go_when_nothing_is_to_be_read_for_a_while() {
    let pool = PoolLimits { kept_for: Duration::from_millis(200), ..PoolLimits::default() };
    let program = OwnProgram::new();
    let readers = Readers::with_program(&program.path, tight(), pool);
    assert_eq!(program.children().len(), 0);
    still_reads(&readers).await;
    assert_eq!(program.children().len(), 1);
    until("the idle process has ended", || program.children().is_empty()).await;
    still_reads(&readers).await;
}

async fn until(event: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(10), "not within 10 s: {event}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn kill(child: i32) {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(child), nix::sys::signal::Signal::SIGKILL);
}

/// The program that reads under a name of its own, by which its processes are told from those of other tests.
struct OwnProgram {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl OwnProgram {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_read-document"), &path).unwrap();
        Self { path, _folder: folder }
    }

    /// The processes that read, by their numbers.
    fn children(&self) -> Vec<i32> {
        let is_ours = |command: Vec<u8>| command.starts_with(self.path.as_os_str().as_encoded_bytes());
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let numbered =
            entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
        let ours = numbered.filter(|(_, path)| std::fs::read(path.join("cmdline")).is_ok_and(is_ours));
        ours.map(|(number, _)| number).collect()
    }
}

#[tokio::test]
async fn without_the_program_it_is_said() {
    let readers = Readers::with_program("/nowhere/at/all", tight(), PoolLimits::default());
    let said = read(&readers, "a.pdf", file("report.pdf")).await.unwrap_err().to_string();
    assert!(said.contains("/nowhere/at/all cannot be started"), "{said}");
}
