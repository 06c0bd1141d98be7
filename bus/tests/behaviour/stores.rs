use bytes::Bytes;
use muster_bus::{BusError, FilePlace};
use muster_shared::flow::RunLessons;
use muster_shared::time::Millis;

use crate::fixture::{Fixture, agent, next, run};

crate::on_both!(
    objects_are_known_by_their_content,
    named_objects_are_replaced,
    large_objects_come_back_whole,
    too_large_objects_are_refused,
    lessons_are_kept_once_for_each_run,
    answers_serve_the_role_that_had_them_until_there_is_a_newer_one,
    after_a_rest_the_files_of_a_run_are_read_anew,
);

async fn objects_are_known_by_their_content(f: Fixture) {
    let store = f.bus.store();
    let name = store.put(Bytes::from_static(b"abc")).await.unwrap();
    assert_eq!(name, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(store.put(Bytes::from_static(b"abc")).await.unwrap(), name);
    assert_eq!(store.get(&name).await.unwrap().unwrap(), "abc");
    assert!(store.has(&name).await.unwrap());
    store.delete(&name).await.unwrap();
    store.delete(&name).await.unwrap();
    assert!(!store.has(&name).await.unwrap());
    assert_eq!(store.get(&name).await.unwrap(), None);
    assert!(store.get("").await.is_err());
}

async fn after_a_rest_the_files_of_a_run_are_read_anew(f: Fixture) {
    let (run, other) = (run(), f.bus.as_agent(&agent("other")));
    assert!(f.bus.files().glance(run).await.unwrap().files.is_empty());
    let place = FilePlace { run, path: "a.txt", task: "1" };
    other.files().write(place, |_, _| Ok::<_, BusError>(Bytes::from_static(b"text")), false).await.unwrap();
    f.bus.rest();
    assert_eq!(f.bus.files().glance(run).await.unwrap().files.len(), 1);
}

async fn answers_serve_the_role_that_had_them_until_there_is_a_newer_one(f: Fixture) {
    let other = f.bus.as_agent(&agent("other"));
    let [mine, theirs] = [&f.bus, &other].map(|bus| bus.answers("worker".parse().unwrap()));
    let elsewhere = other.answers("researcher".parse().unwrap());
    assert_eq!(theirs.find("tool-ab").await.unwrap(), None);
    for answer in ["one", "two"] {
        mine.keep("tool-ab", Bytes::from(answer)).await.unwrap();
        let found = theirs.find("tool-ab").await.unwrap().unwrap();
        assert_eq!(found.bytes, answer);
        assert!(found.at > Millis(0));
    }
    for (key, role) in [("tool-ab", &elsewhere), ("ab", &theirs), ("tool-abc", &theirs)] {
        assert_eq!(role.find(key).await.unwrap(), None, "{key}");
    }
    mine.keep("tool-ab", vec![b'x'; 300 * 1024].into()).await.unwrap();
    mine.keep("tool-ab", Bytes::from_static(b"the key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"))
        .await
        .unwrap();
    let found = theirs.find("tool-ab").await.unwrap().unwrap();
    assert_eq!(found.bytes, "two", "what is too large or holds a secret takes no place");
}

async fn named_objects_are_replaced(f: Fixture) {
    let store = f.bus.store();
    for content in ["one", "two", ""] {
        store.put_named("snap/run/12", Bytes::from(content)).await.unwrap();
        assert_eq!(store.get("snap/run/12").await.unwrap().unwrap(), content);
    }
}

async fn large_objects_come_back_whole(f: Fixture) {
    let bytes: Bytes = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let name = f.bus.store().put(bytes.clone()).await.unwrap();
    assert_eq!(f.bus.store().get(&name).await.unwrap().unwrap(), bytes);
}

async fn too_large_objects_are_refused(f: Fixture) {
    let refused = f.bus.store().put(vec![0; 5 * 1024 * 1024].into()).await;
    assert!(matches!(refused, Err(BusError::TooLarge { .. })), "{refused:?}");
}

async fn lessons_are_kept_once_for_each_run(f: Fixture) {
    let (lessons, run) = (f.bus.lessons(), run());
    let kept = |lesson: &str| RunLessons {
        run,
        goal: "what is so?".to_owned(),
        ended_at: Millis(7),
        completed: true,
        lessons: vec![lesson.to_owned(), lesson.to_owned()],
    };
    let mut watched = lessons.watch().await.unwrap();
    lessons.keep(kept("first")).await.unwrap();
    lessons.keep(kept("second")).await.unwrap();
    let held = lessons.all().await.unwrap();
    assert_eq!(held, [RunLessons { lessons: vec!["second".to_owned()], ..kept("") }], "once, and bounded");
    let mut last = next(&mut watched).await;
    while last.lessons != ["second"] {
        last = next(&mut watched).await;
    }
}
