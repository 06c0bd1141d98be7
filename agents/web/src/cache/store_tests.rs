use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn kept(url: &str, body: &[u8]) -> Kept {
    let headers = BTreeMap::from([("etag".to_owned(), "\"1\"".to_owned())]);
    let head = Head { url: url.to_owned(), status: 200, headers, asked_ms: 1, came_ms: 2 };
    Kept { head, body: Bytes::copy_from_slice(body) }
}

fn store(folder: &tempfile::TempDir, most: u64) -> Store {
    Store::new(folder.path().join("web"), most, 64 * 1024)
}

#[test]
fn what_was_kept_is_found_again_by_others_who_may_reach_it_so_and_by_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let answer = kept("https://a.org/", b"line\nand \0 more");
    store(&folder, 1 << 20).keep(&answer, Reach::Named).unwrap();
    let other = store(&folder, 1 << 20);
    assert_eq!(other.find("https://a.org/", Reach::Named), Some(answer));
    assert_eq!(other.find("https://a.org/", Reach::Public), None);
    assert_eq!(other.find("https://a.org/b", Reach::Named), None);
}

#[test]
fn a_file_that_was_damaged_in_any_way_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, 1 << 20);
    let answer = kept("https://a.org/", b"body");
    store.keep(&answer, Reach::Public).unwrap();
    let path = store.path("https://a.org/", Reach::Public);
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let found = store.find("https://a.org/", Reach::Public);
        assert!(found.is_none_or(|found| found.body == answer.body), "byte {at}");
        fs::write(&path, &whole[..at]).unwrap();
        assert_eq!(store.find("https://a.org/", Reach::Public), None, "cut at {at}");
    }
}

#[test]
fn when_there_is_too_much_what_was_used_least_recently_goes() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, 40_000);
    let url = |n: u32| format!("https://a.org/{n}");
    for n in 0..4 {
        store.keep(&kept(&url(n), &[7; 9_000]), Reach::Public).unwrap();
        let used = SystemTime::now() - Duration::from_secs(100 - u64::from(n));
        File::options()
            .append(true)
            .open(store.path(&url(n), Reach::Public))
            .unwrap()
            .set_modified(used)
            .unwrap();
    }
    assert!(store.find(&url(0), Reach::Public).is_some());
    store.keep(&kept(&url(4), &[7; 9_000]), Reach::Public).unwrap();
    let left: Vec<u32> = (0..5).filter(|n| store.find(&url(*n), Reach::Public).is_some()).collect();
    assert_eq!(left, [0, 3, 4]);
}

#[test]
fn what_is_too_large_to_be_worth_it_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, 40_000);
    store.keep(&kept("https://a.org/", &[7; 10_001]), Reach::Public).unwrap();
    assert_eq!(store.find("https://a.org/", Reach::Public), None);
}

proptest! {
    #[test]
    fn any_bytes_in_place_of_a_file_are_no_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, 1 << 20);
        fs::create_dir_all(&store.folder).unwrap();
        fs::write(store.path("https://a.org/", Reach::Public), bytes).unwrap();
        prop_assert_eq!(store.find("https://a.org/", Reach::Public), None);
    }
}
