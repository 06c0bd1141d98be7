//! How long 100 MB of mixed office documents take, and how much memory. Printed:
//! `cargo nextest run --release -p muster-readers --run-ignored only --no-capture -E 'test(office_documents)'`.

use std::sync::Arc;
use std::time::Instant;

use muster_corpus::{Corpus, CorpusOptions, MemoryBlobs};
use nix::sys::resource::{UsageWho, getrusage};

use super::made::{docx, pages, zip};
use super::*;

const MEGABYTES: usize = 100;

/// Words that do not repeat more than words do.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn sentence(&mut self) -> String {
        const SYLLABLES: [&str; 16] = [
            "ba", "ro", "ten", "li", "mor", "sa", "du", "ke", "vin", "po", "gra", "shi", "el", "an", "tor",
            "um",
        ];
        let words = (0..8 + self.next() % 10).map(|_| {
            let syllables = (0..2 + self.next() % 2).map(|_| SYLLABLES[(self.next() % 16) as usize]);
            syllables.collect::<String>()
        });
        words.collect::<Vec<_>>().join(" ") + "."
    }

    /// As pictures in documents: they cannot be packed any further.
    fn noise(&mut self, bytes: usize) -> Vec<u8> {
        (0..bytes).map(|_| u8::try_from(self.next() & 0xff).unwrap_or(0)).collect()
    }
}

fn document(number: usize, words: &mut Words) -> (String, Vec<u8>) {
    match number % 5 {
        0 | 1 => {
            let all: Vec<String> = (0..40)
                .map(|_| (0..25).map(|_| words.sentence()).collect::<Vec<_>>().join(") Tj 0 -14 Td ("))
                .collect();
            (format!("report-{number}.pdf"), pages(40, |page| all[page - 1].clone()))
        }
        2 => {
            let text: String = (0..1_500)
                .map(|_| format!("<w:p><w:r><w:t>{}</w:t></w:r></w:p>", words.sentence()))
                .collect();
            (format!("text-{number}.docx"), docx(&text))
        }
        3 => {
            let rows: String = (1..=4_000)
                .map(|row| {
                    let cell = |column: &str, value: u64| format!("<c r=\"{column}{row}\"><v>{value}</v></c>");
                    let name = words.sentence();
                    let cells: String = ["B", "C", "D", "E"].map(|column| cell(column, words.next())).concat();
                    format!("<row r=\"{row}\"><c r=\"A{row}\" t=\"inlineStr\"><is><t>{name}</t></is></c>{cells}</row>")
                })
                .collect();
            (format!("sums-{number}.xlsx"), made::xlsx(&rows))
        }
        _ => {
            let slide = |words: &mut Words| {
                let lines: String = (0..12)
                    .map(|_| format!("<a:p><a:r><a:t>{}</a:t></a:r></a:p>", words.sentence()))
                    .collect();
                format!("<p:sld><p:sp>{lines}</p:sp></p:sld>").into_bytes()
            };
            let mut files: Vec<(String, Vec<u8>)> =
                (1..=30).map(|n| (format!("ppt/slides/slide{n}.xml"), slide(words))).collect();
            files.push(("ppt/media/image1.png".to_owned(), words.noise(60_000)));
            let files: Vec<(&str, &[u8])> =
                files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
            (format!("talk-{number}.pptx"), zip(&files))
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn a_hundred_megabytes_of_office_documents() {
    let folder = tempfile::tempdir().unwrap();
    let docs = folder.path().join("docs");
    std::fs::create_dir(&docs).unwrap();
    let (mut words, mut bytes, mut files) = (Words(7), 0, 0);
    while bytes < MEGABYTES * 1_000_000 {
        let (name, content) = document(files, &mut words);
        bytes += content.len();
        files += 1;
        std::fs::write(docs.join(name), content).unwrap();
    }
    let mut options = CorpusOptions::new(folder.path().join("cache"), vec![docs]);
    options.extractor = Some(Arc::new(readers(ReadLimits::default())));
    let begun = Instant::now();
    let store = MemoryBlobs::default();
    let opened = Corpus::open_or_build(options.clone(), &store).await.unwrap();
    let first = begun.elapsed();
    let begun = Instant::now();
    let again = Corpus::open_or_build(options, &store).await.unwrap();
    let peak = |who| getrusage(who).map(|usage| usage.max_rss() / 1024).unwrap_or(0);
    println!(
        "{files} files, {} MB: {first:?}, again {:?}; {} documents, {} MB of text; most memory {} MB here, {} MB in a child; {}",
        bytes / 1_000_000,
        begun.elapsed(),
        opened.documents,
        opened.bytes / 1_000_000,
        peak(UsageWho::RUSAGE_SELF),
        peak(UsageWho::RUSAGE_CHILDREN),
        opened.skipped,
    );
    assert_eq!(again.corpus.id(), opened.corpus.id());
    assert_eq!(opened.documents as usize, files);
}
