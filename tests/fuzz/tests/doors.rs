//! The corpus, what was found, and a few thousand mutations of each target by a fixed seed.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use muster_fuzz::{Plan, Target, corpus, found, fuzz, replay, targets};
use muster_shared::wire::{Encoding, Envelope, MessageKind, decode};

/// How many inputs of each target are tried: as many as there is time for, where each takes longer.
fn executions(target: &Target) -> u64 {
    match target.name {
        "documents" | "gateway_requests" => 30,
        "templates" | "model_streams" | "citations" | "record_entries" | "record_events" | "snapshots" => 100,
        "answers_native" | "answers_documents" | "plans" | "blueprints" | "text_rules" => 250,
        "calculator" | "agent_files" | "workspace_paths" => 4_000,
        _ => 500,
    }
}

#[test]
fn the_doors_hold() {
    let mut wrong = Vec::new();
    std::thread::scope(|scope| {
        let running: Vec<_> = targets::ALL
            .iter()
            .map(|&target| {
                let plan = Plan { seed: 1, executions: Some(executions(target)), ..Plan::default() };
                scope.spawn(move || (target, fuzz(target, plan).unwrap()))
            })
            .collect();
        for one in running {
            let (target, figures) = one.join().unwrap();
            let told = figures.findings.iter().map(|finding| {
                let input = String::from_utf8_lossy(&finding.input);
                let input: String = input.chars().take(400).collect();
                format!("{}: {:?} {} of {input:?}", target.name, finding.kind, finding.what)
            });
            wrong.extend(told);
            // Where nothing is read, nothing behind the door is tried.
            assert!(figures.read > 0, "{} reads nothing", target.name);
        }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_was_found_stays_mended() {
    for &target in targets::ALL {
        let inputs: Vec<Vec<u8>> = found(target).unwrap().into_values().collect();
        let findings = replay(target, inputs).unwrap();
        assert!(findings.is_empty(), "{}: {findings:#?}", target.name);
    }
}

#[test]
fn every_kind_of_message_is_in_the_corpus() {
    let kinds = |name: &str, encoding| -> BTreeSet<String> {
        let target = targets::ALL.iter().find(|target| target.name == name).unwrap();
        let read = corpus(target)
            .unwrap()
            .into_values()
            .filter_map(|input| decode::<Envelope>(&input, encoding).ok());
        read.map(|envelope| envelope.body.kind().name().to_owned()).collect()
    };
    let (json, packed) =
        (kinds("wire_json", Encoding::Json), kinds("wire_message_pack", Encoding::MessagePack));
    assert_eq!(json, packed);
    assert_eq!(json.len(), MessageKind::ALL.len(), "{json:?}");
}

#[test]
fn names_are_told_apart() {
    let names: BTreeSet<&str> = targets::ALL.iter().map(|target| target.name).collect();
    assert_eq!(names.len(), targets::ALL.len());
    assert!(targets::ALL.iter().all(|target| corpus(target).is_ok_and(|inputs| !inputs.is_empty())));
}
