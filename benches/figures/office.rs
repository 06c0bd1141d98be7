//! A folder of 100 MB of PDF, DOCX, XLSX and PPTX: read and indexed once, then asked again.

#[allow(dead_code, reason = "the tests of the readers make more of them")]
#[path = "../../agents/readers/tests/reading/made.rs"]
mod made;
mod many;

use std::time::{Duration, Instant};

use muster_support::figures::{Aim, Figure, Measured};
use muster_support::fleet::Folder;

use self::many::{Words, document};
use crate::runs;

const BYTES: usize = 100_000_000;

pub(crate) fn measure() -> Vec<Figure> {
    let folder = runs::folder();
    let (mut words, mut bytes, mut files) = (Words(7), 0, 0);
    while bytes < BYTES {
        let (name, content) = document(files, &mut words);
        bytes += content.len();
        files += 1;
        folder.write(&format!("docs/{name}"), content).unwrap();
    }
    // Each has words that no other has.
    let goal = format!("What stands in the documents about {}?", words.sentence());
    let (first, second) = (ask(&folder, &goal), ask(&folder, &goal));
    vec![
        Figure::new(
            format!("a goal over 100 MB of office documents ({files} files), first time"),
            Measured::time(first),
        )
        .against("the same again", Measured::time(second))
        .aiming(Aim::AtMost(60_000.0)),
    ]
}

fn ask(folder: &Folder, goal: &str) -> Duration {
    let began = Instant::now();
    folder.output(&["run", goal, "--docs", "docs", "--quiet"]).unwrap();
    began.elapsed()
}
