//! What is signed, and by whom.
use super::*;
use crate::credentials::{FleetKeys, Holder, HolderKind};

const NOW: Millis = Millis(2_000_000_000_000);

struct Fleet {
    folder: tempfile::TempDir,
    keys: FleetKeys,
}

fn fleet() -> Fleet {
    let folder = tempfile::tempdir().unwrap();
    let keys = FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
    Fleet { folder, keys }
}

impl Fleet {
    fn write(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(format!("{name}.creds"));
        let holder = Holder::Orchestrator { id: name.parse().unwrap() };
        self.keys.issue_to(&path, &holder, None).unwrap();
        path
    }

    fn member(&self, name: &str) -> Signatures {
        Signatures::of(Some(&self.write(name))).unwrap()
    }
}

#[test]
fn what_one_signs_the_others_verify() {
    let fleet = fleet();
    let (one, other) = (fleet.member("o-1"), fleet.member("o-2"));
    let signature = one.sign(Purpose::Control, b"stop").unwrap();
    let signature: Signature = signature.to_string().parse().unwrap();
    for _ in 0..2 {
        let who = other.verify(Purpose::Control, Some(&signature), b"stop", NOW).unwrap().unwrap();
        assert_eq!((who.name.as_str(), who.kind), ("o-1", HolderKind::Orchestrator));
    }
    assert_eq!(other.known().vouched.len(), 1);
    for (purpose, said) in [(Purpose::Control, &b"go"[..]), (Purpose::Order, b"stop")] {
        let refused = other.verify(purpose, Some(&signature), said, NOW);
        assert!(matches!(refused, Err(SignatureError::Wrong { .. })), "{refused:?}");
    }
    assert_eq!(other.verify(Purpose::Control, None, b"stop", NOW), Err(SignatureError::Missing));
}

/// Once, a goal that was asked in the moment after keys were rotated became a dead letter.
#[test]
fn whoever_signs_by_new_keys_is_known_at_once_to_whoever_was_given_them() {
    let mut fleet = fleet();
    let (one, other) = (fleet.member("o-1"), fleet.member("o-2"));
    let until = Millis(crate::bus::now().0 + 60_000);
    fleet.keys = FleetKeys::rotate(fleet.keys.folder(), until).unwrap();
    assert_eq!(fleet.keys.reissue().unwrap(), 2);
    let signature = one.sign(Purpose::Order, b"go").unwrap();
    let who = other.verify(Purpose::Order, Some(&signature), b"go", until);
    assert!(who.is_ok(), "by keys of now, which outlast those of before: {who:?}");
}

#[test]
fn without_keys_of_a_fleet_nothing_is_signed_and_nothing_demanded() {
    let fleet = fleet();
    let path = fleet.write("o-1");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, _) = text.split_once("-----BEGIN MUSTER FLEET KEYS").unwrap();
    std::fs::write(&path, before).unwrap();
    for nobody in [Signatures::of(None).unwrap(), Signatures::of(Some(&path)).unwrap()] {
        assert!(nobody.sign(Purpose::Order, b"x").is_none() && !nobody.demanded());
        assert_eq!(nobody.verify(Purpose::Order, None, b"x", NOW), Ok(None));
    }
    assert!(Signatures::of(Some(Path::new("/nowhere.creds"))).is_err());
}

#[test]
fn the_keys_of_another_fleet_in_ones_credentials_are_refused() {
    let (one, other) = (fleet(), fleet());
    let (path, foreign) = (one.write("o-1"), other.write("o-1"));
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    let mark = "-----BEGIN MUSTER FLEET KEYS";
    let (own, foreign) = (text(&path), text(&foreign));
    let mixed = format!("{}{mark}{}", own.split_once(mark).unwrap().0, foreign.split_once(mark).unwrap().1);
    std::fs::write(&path, mixed).unwrap();
    assert!(Signatures::of(Some(&path)).is_err());
}

#[test]
fn keys_that_changed_are_read_again_and_not_too_often() {
    let fleet = fleet();
    let path = fleet.write("o-1");
    let old = Signatures::of(Some(&path)).unwrap();
    // A new signing key of orchestrators, as after a rotation.
    let seed = nkeys::KeyPair::new_account().seed().unwrap();
    std::fs::write(fleet.folder.path().join("keys/signing-orchestrator.nk"), seed).unwrap();
    let keys = FleetKeys::open_or_make(&fleet.folder.path().join("keys")).unwrap();
    let fleet = Fleet { folder: fleet.folder, keys };
    fleet.write("o-1");
    let new = fleet.member("o-2").sign(Purpose::Order, b"x").unwrap();
    let asked = || old.verify(Purpose::Order, Some(&new), b"x", NOW);
    // As where the clock of files is too coarse to tell.
    old.known().written = written(&path);
    assert!(matches!(asked(), Err(SignatureError::Stranger { .. })), "they were read just now");
    old.known().read = None;
    assert_eq!(asked().unwrap().unwrap().name.as_str(), "o-2");
}

#[test]
fn who_was_given_other_credentials_signs_by_them() {
    let fleet = fleet();
    let (path, reader) = (fleet.write("o-1"), fleet.member("o-2"));
    let one = Signatures::of(Some(&path)).unwrap();
    let before = one.sign(Purpose::Order, b"x").unwrap();
    fleet.write("o-1");
    one.known().written = None;
    let after = one.sign(Purpose::Order, b"x").unwrap();
    assert_ne!(before.by, after.by);
    for signature in [before, after] {
        assert!(reader.verify(Purpose::Order, Some(&signature), b"x", NOW).unwrap().is_some());
    }
}

#[test]
fn a_signature_holds_for_its_subject_alone() {
    let fleet = fleet();
    let (one, other) = (fleet.member("o-1"), fleet.member("o-2"));
    let message = |subject: &str| Message {
        subject: subject.to_owned(),
        headers: crate::backend::Headers::default(),
        payload: bytes::Bytes::from_static(b"{}"),
    };
    let signed = one.sign_message(Purpose::Control, message("ctl.all"));
    assert!(other.sender_of(Purpose::Control, &signed, NOW).unwrap().is_some());
    let moved = Message { subject: "ctl.role.worker".to_owned(), ..signed };
    assert!(other.sender_of(Purpose::Control, &moved, NOW).is_err());
    assert_eq!(other.sender_of(Purpose::Control, &message("ctl.all"), NOW), Err(SignatureError::Missing));
}
