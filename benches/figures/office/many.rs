//! Many office documents, different from each other.

use super::made::{docx, pages, xlsx, zip};

/// Words that do not repeat more than words do.
pub(crate) struct Words(pub(crate) u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(crate) fn sentence(&mut self) -> String {
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

/// The name and the bytes of one of many: two of five are PDF, the others one of each kind.
pub(crate) fn document(number: usize, words: &mut Words) -> (String, Vec<u8>) {
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
            (format!("sums-{number}.xlsx"), xlsx(&rows))
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
