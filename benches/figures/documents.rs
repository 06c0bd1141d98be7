//! A folder of 5,000 files and 100 MB: indexed once, then asked again.

use std::fmt::Write;
use std::time::{Duration, Instant};

use muster_support::figures::{Aim, Figure, Measured};
use muster_support::fleet::Folder;

use crate::print::median;
use crate::runs;

const FILES: usize = 5_000;
const FILE_BYTES: usize = 20_000;

pub(crate) fn measure() -> Vec<Figure> {
    let folder = runs::folder();
    for number in 0..FILES {
        folder.write(&format!("docs/{:02}/{number:04}.md", number % 50), text(number)).unwrap();
    }
    // The first look brings the files into memory.
    read_all(&folder);
    let mut bare: Vec<Duration> = (0..5).map(|_| read_all(&folder)).collect();
    let bare = median(&mut bare);
    let first = ask(&folder);
    let second = ask(&folder);
    vec![
        Figure::new("a goal over 5,000 files, 100 MB, first time (indexed)", Measured::time(first))
            .against("reading the files", Measured::time(bare))
            .aiming(Aim::AtMost(30_000.0)),
        Figure::new("the same again (index and documents are there)", Measured::time(second))
            .against("reading the files", Measured::time(bare)),
    ]
}

fn ask(folder: &Folder) -> Duration {
    let began = Instant::now();
    let goal = "Which quokka of file 4321 guards the zephyr gate?";
    let report = folder.output(&["run", goal, "--docs", "docs", "--quiet"]).unwrap();
    let took = began.elapsed();
    assert!(report.contains("4321.md:"), "the one file that answers is cited:\n{report}");
    took
}

fn read_all(folder: &Folder) -> Duration {
    let began = Instant::now();
    let mut bytes = 0;
    for number in 0..FILES {
        bytes += std::fs::read(folder.path().join(format!("docs/{:02}/{number:04}.md", number % 50)))
            .unwrap()
            .len();
    }
    assert!(bytes >= FILES * FILE_BYTES);
    began.elapsed()
}

/// Prose of made-up words, different in every file, with one line that only one file has.
fn text(number: usize) -> String {
    const SYLLABLES: [&str; 16] =
        ["ba", "ce", "di", "fo", "gu", "ha", "ke", "li", "mo", "nu", "pa", "re", "si", "to", "vu", "wa"];
    let mut seed = number as u64 + 1;
    let mut next = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap()
    };
    let mut text = format!("# File {number}\n\n");
    if number == 4321 {
        text.push_str("The quokka of file 4321 that guards the zephyr gate is called Marigold.\n\n");
    }
    while text.len() < FILE_BYTES {
        for word in 0..12 {
            let syllables = 2 + next() % 3;
            for _ in 0..syllables {
                text.push_str(SYLLABLES[next() % SYLLABLES.len()]);
            }
            let _ = write!(text, "{}", if word == 11 { ".\n" } else { " " });
        }
        if next() % 5 == 0 {
            text.push('\n');
        }
    }
    text
}
