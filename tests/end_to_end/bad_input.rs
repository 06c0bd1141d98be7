//! Wrong input at every door of a fleet that is up: clear errors or dead letters, and no process dies.

use muster_support::fleet::both;
use muster_support::foreign::Stranger;

use super::support::{folder, write_documents};

fn nested(depth: usize) -> Vec<u8> {
    [vec![b'['; depth], vec![b']'; depth]].concat()
}

fn nested_message_pack(depth: usize) -> Vec<u8> {
    // fixarray of one element, over and over, then nil.
    [vec![0x91; depth], vec![0xc0]].concat()
}

#[test]
fn foreign_messages_on_any_subject_kill_nobody() {
    let folder = folder();
    write_documents(&folder);
    let fleet = folder.up(&[]).unwrap();
    let before = fleet.pids();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let run = "0193f0c0c0c07000800000000000dead";
    let subjects = [
        format!("cmd.{run}.submit"),
        format!("cmd.{run}.nonsense"),
        "cmd.not-a-run.submit".to_owned(),
        format!("run.{run}.decided"),
        format!("run.{run}.task.worker.1"),
        format!("run.{run}.task.@nobody.write"),
        format!("evt.{run}.worker.stranger.1.1.outcome"),
        format!("evt.{run}.worker.stranger.1.1.started"),
        format!("evt.{run}.worker.stranger.1.one.outcome"),
        format!("live.{run}.worker.stranger.1"),
        "hb.worker.stranger".to_owned(),
        "ctl.all".to_owned(),
        "ctl.role.worker".to_owned(),
    ];
    let payloads: [&[u8]; 7] = [
        b"",
        b"garbage",
        b"{\"v\":1,\"body\":{\"type\":\"command\"}}",
        b"{\"v\":99,\"id\":\"x\",\"sender\":\"a b\",\"body\":{\"type\":\"unheard_of\",\"content\":{}}}",
        &nested(10_000),
        &nested_message_pack(10_000),
        &[0xff; 4096],
    ];
    for subject in &subjects {
        for payload in payloads {
            stranger.publish(subject, payload).unwrap();
        }
    }
    stranger.flush().unwrap();

    let run = ["run", "How deep may delegation go?", "--docs", "docs", "--json"];
    let summary =
        fleet.folder().json(&run).unwrap_or_else(|error| panic!("{error}\n{}", fleet.folder().logs()));
    assert_eq!(summary["status"], "completed");
    assert_eq!(fleet.pids(), before, "nobody died:\n{}", fleet.folder().logs());
    for command in [&["ps"][..], &["runs"], &["show", "last"], &["trace", "last"]] {
        fleet.folder().output(command).unwrap();
    }
}

#[test]
fn documents_that_cannot_be_used() {
    let folder = folder();
    folder.write("only-binary/a.bin", [0_u8; 2000]).unwrap();
    for (docs, word) in [("missing", "missing"), ("only-binary", "no ")] {
        let output = folder.run(&["run", "What is it?", "--docs", docs]).unwrap();
        assert_eq!(output.status.code(), Some(2), "{docs}: {}", both(&output));
        assert!(both(&output).contains(word), "{docs}: {}", both(&output));
    }
}
