//! Many documents, and large ones.

use super::*;

/// Text like prose and code: few words often, many words seldom.
fn sample_text(seed: u64, bytes: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::with_capacity(bytes + 64);
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let syllables = [
        "ta", "ker", "mo", "lin", "su", "ver", "po", "dra", "chi", "en", "ras", "o", "bel", "wi", "not",
        "ing",
    ];
    while text.len() < bytes {
        match next() % 60 {
            0 => text.push_str("\n\n"),
            1..6 => text.push('\n'),
            6 => text.push_str("\n\n## Heading of a part\n\n"),
            _ => {}
        }
        let rank = (next() % 1_000).pow(3) / 20_000 % 50_000;
        let mut number = rank + 1;
        while number > 0 {
            text.push_str(syllables[usize::try_from(number % 16).unwrap()]);
            number /= 16;
        }
        text.push(' ');
    }
    text
}

#[tokio::test]
#[ignore = "takes long; run in a release build"]
async fn five_thousand_files_of_100_mb_are_ready_within_30_seconds() {
    let place = Place::new(&[]);
    for n in 0..5_000u64 {
        let extension = ["md", "rs", "txt", "py"][usize::try_from(n % 4).unwrap()];
        place.write(&format!("part{}/file{n}.{extension}", n % 50), sample_text(n + 1, 20_000).as_bytes());
    }
    place.write("needle.md", b"# Needle\n\nThe quokka lives on Rottnest Island.\n");
    let begun = Instant::now();
    let opened = place.open().await;
    let built = begun.elapsed();
    let begun = Instant::now();
    assert_eq!(place.open().await.sent, SentPack::default());
    let again = begun.elapsed();
    let begun = Instant::now();
    assert_eq!(
        opened.corpus.search("where does the quokka live?", 5).await.unwrap()[0].citation(),
        "needle.md:1"
    );
    let rare = begun.elapsed();
    let begun = Instant::now();
    opened.corpus.search("ta mo ker lin su ver po dra", 20).await.unwrap();
    let common = begun.elapsed();
    let index = place.cache().join("corpora").join(opened.corpus.id().as_str()).join("index.sqlite");
    println!(
        "{} files, {} MB: ready in {built:.2?}, unchanged {again:.2?}, index {} MB, rare search {rare:.2?}, common {common:.2?}",
        opened.documents,
        opened.bytes / 1_000_000,
        fs::metadata(index).unwrap().len() / 1_000_000,
    );
    assert!(built < Duration::from_secs(30), "{built:?}");
}

#[tokio::test]
#[ignore = "takes long; run in a release build"]
async fn ten_thousand_small_files_are_no_trouble() {
    let place = Place::new(&[]);
    for n in 0..10_000 {
        place.write(
            &format!("{}/{}/{n}.txt", n % 10, n % 100),
            format!("note number n{n} of many").as_bytes(),
        );
    }
    let begun = Instant::now();
    let opened = place.open().await;
    println!("10,000 files ready in {:.2?}", begun.elapsed());
    assert_eq!(opened.documents, 10_000);
    assert_eq!(opened.corpus.search("n7777", 1).await.unwrap()[0].citation(), "7/77/7777.txt:1");
}
