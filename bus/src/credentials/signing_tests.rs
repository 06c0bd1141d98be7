use std::path::PathBuf;

use nkeys::KeyPair;
use proptest::prelude::*;
use secrecy::SecretString;
use tempfile::TempDir;

use super::claims::{Said, Statement};
use super::signing::{Purpose, Signature, SignatureError, Signer, SigningKeyOf, Trust, Verifier};
use super::*;

const SAID: &[u8] = b"what was said";
const NOW: Millis = Millis(2_000_000_000_000);

/// A fleet whose keys are in a folder.
struct Fleet {
    folder: TempDir,
    keys: FleetKeys,
}

fn fleet() -> Fleet {
    let folder = tempfile::tempdir().unwrap();
    let keys = FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
    Fleet { folder, keys }
}

impl Fleet {
    fn file(&self, credentials: &Credentials) -> PathBuf {
        let path = self.folder.path().join("some.creds");
        credentials.write(&path).unwrap();
        path
    }

    fn signer(&self, holder: &Holder, until: Option<Millis>) -> Signer {
        Signer::from_file(&self.file(&self.keys.issue(holder, until).unwrap())).unwrap()
    }

    fn verifier(&self) -> Verifier {
        Verifier::of(self.keys.public().unwrap())
    }
}

fn holder(scope: Scope) -> Holder {
    scope.holder("worker".parse().unwrap(), "w-1".parse().unwrap())
}

/// Credentials that are made by hand, of `by`.
fn forged(by: &KeyPair, said: Said) -> Credentials {
    let user = KeyPair::new_user();
    let (name, at) = ("w-1".to_owned(), Millis(1_000));
    let jwt = Statement { of: &user, by, name, said, at, until: None }.sign().unwrap();
    Credentials { jwt, seed: SecretString::from(user.seed().unwrap()), fleet: None }
}

fn key_of(fleet: &Fleet, scope: Scope) -> KeyPair {
    let path = fleet.keys.folder().join(format!("signing-{}.nk", scope.name()));
    KeyPair::from_seed(std::fs::read_to_string(path).unwrap().trim()).unwrap()
}

fn account_of(fleet: &Fleet) -> KeyPair {
    KeyPair::from_seed(std::fs::read_to_string(fleet.keys.folder().join("account.nk")).unwrap().trim())
        .unwrap()
}

#[test]
fn what_a_member_signed_is_his() {
    let fleet = fleet();
    for scope in Scope::ALL {
        let signature = fleet.signer(&holder(scope), None).sign(Purpose::Order, SAID).unwrap();
        let who = fleet.verifier().verify(Purpose::Order, &signature, SAID, NOW).unwrap();
        assert_eq!(who, Identity { name: "w-1".parse().unwrap(), kind: holder(scope).kind() });
        let kept = serde_json::to_string(&signature).unwrap();
        assert_eq!(serde_json::from_str::<Signature>(&kept).unwrap(), signature);
        assert_eq!(signature.to_string().parse::<Signature>().unwrap(), signature);
        assert_eq!(Signature::of_kept(&signature.kept()).unwrap(), signature);
        let secrets = muster_shared::secret::Redactor::default();
        assert!(!secrets.hits(signature.kept().as_bytes()));
        let path = fleet.file(&fleet.keys.issue(&holder(scope), None).unwrap());
        let (jwt, _) = parts_of(&path).unwrap();
        let whole = Signature { by: jwt, ..signature };
        assert!(secrets.hits(whole.to_string().as_bytes()) && !secrets.hits(whole.kept().as_bytes()));
        assert_eq!(Signature::of_kept(&whole.kept()).unwrap(), whole);
    }
    let kept = serde_json::to_string(&fleet.keys.public().unwrap()).unwrap();
    assert_eq!(serde_json::from_str::<Trust>(&kept).unwrap(), fleet.keys.public().unwrap());
}

#[test]
fn credentials_that_ended_sign_nothing_more() {
    let fleet = fleet();
    let signature = fleet.signer(&holder(Scope::Agent), Some(NOW)).sign(Purpose::Order, SAID).unwrap();
    let verifier = fleet.verifier();
    assert!(verifier.verify(Purpose::Order, &signature, SAID, Millis(NOW.0 - 1)).is_ok());
    assert_eq!(
        verifier.verify(Purpose::Order, &signature, SAID, NOW),
        Err(SignatureError::Expired { until: NOW })
    );
}

#[test]
fn who_was_revoked_signs_nothing_more() {
    let fleet = fleet();
    let one = fleet.signer(&holder(Scope::Agent), None).sign(Purpose::Order, SAID).unwrap();
    let other = Scope::Agent.holder("worker".parse().unwrap(), "w-2".parse().unwrap());
    let other = fleet.signer(&other, None).sign(Purpose::Order, SAID).unwrap();
    let before = crate::bus::now();
    assert_eq!(fleet.keys.revoke(&"w-1".parse().unwrap()).unwrap(), 1);
    let verifier = fleet.verifier();
    assert!(
        verifier.verify(Purpose::Order, &one, SAID, Millis(before.0 - 1)).is_ok(),
        "what he signed before is his"
    );
    let refused = verifier.verify(Purpose::Order, &one, SAID, NOW);
    assert!(matches!(refused, Err(SignatureError::Revoked { .. })), "{refused:?}");
    assert!(verifier.verify(Purpose::Order, &other, SAID, NOW).is_ok());
}

#[test]
fn what_was_signed_before_keys_rotated_is_signed_and_nothing_by_them_after_their_time() {
    let mut fleet = fleet();
    let before = fleet.signer(&holder(Scope::Agent), None).sign(Purpose::Order, SAID).unwrap();
    let verify =
        |fleet: &Fleet, made: &Signature, at: Millis| fleet.verifier().verify(Purpose::Order, made, SAID, at);
    let until = Millis(NOW.0 + 1_000);
    fleet.keys = FleetKeys::rotate(fleet.keys.folder(), until).unwrap();
    let after = fleet.signer(&holder(Scope::Agent), None).sign(Purpose::Order, SAID).unwrap();
    for made in [&before, &after] {
        assert!(verify(&fleet, made, NOW).is_ok(), "both within the time");
    }
    assert_eq!(verify(&fleet, &before, until), Err(SignatureError::Expired { until }));
    assert!(verify(&fleet, &after, until).is_ok());
    // Ended at once: what was signed before is there to be verified still.
    fleet.keys.drop_retired(true).unwrap();
    assert!(verify(&fleet, &before, Millis(1_000)).is_ok());
    assert!(matches!(verify(&fleet, &before, NOW), Err(SignatureError::Expired { .. })));
    let kept = serde_json::to_string(&fleet.keys.public().unwrap()).unwrap();
    assert_eq!(serde_json::from_str::<Trust>(&kept).unwrap(), fleet.keys.public().unwrap());
}

#[test]
fn another_fleets_member_is_a_stranger() {
    let (fleet, other) = (fleet(), fleet());
    for scope in Scope::ALL {
        let signature = other.signer(&holder(scope), None).sign(Purpose::Order, SAID).unwrap();
        let refused = fleet.verifier().verify(Purpose::Order, &signature, SAID, NOW);
        assert!(matches!(refused, Err(SignatureError::Stranger { .. })), "{refused:?}");
    }
    // Whoever says that he is of this fleet, by a key that it does not have.
    let said = Said::scoped_user(&account_of(&fleet), vec!["muster:operator".to_owned()]);
    let liar = Signer::from_file(&other.file(&forged(&KeyPair::new_account(), said))).unwrap();
    let refused =
        fleet.verifier().verify(Purpose::Order, &liar.sign(Purpose::Order, SAID).unwrap(), SAID, NOW);
    assert!(matches!(refused, Err(SignatureError::Stranger { .. })), "{refused:?}");
}

#[test]
fn a_signing_key_vouches_for_its_own_kind_alone() {
    let fleet = fleet();
    let account = account_of(&fleet);
    for (by, of) in Scope::ALL.into_iter().flat_map(|by| Scope::ALL.map(|of| (by, of))) {
        let kind = holder(of).kind();
        let role = kind.role().map(|role| format!("role:{role}"));
        let tags = std::iter::once(format!("muster:{kind}")).chain(role).collect();
        let made = forged(&key_of(&fleet, by), Said::scoped_user(&account, tags));
        let signature = Signer::from_file(&fleet.file(&made)).unwrap().sign(Purpose::Order, SAID).unwrap();
        let verified = fleet.verifier().verify(Purpose::Order, &signature, SAID, NOW);
        if by == of {
            assert_eq!(verified.unwrap().kind, kind);
        } else {
            assert_eq!(verified, Err(SignatureError::Kind { may: by.name(), kind }));
        }
    }
}

#[test]
fn what_a_server_would_refuse_proves_nothing() {
    let fleet = fleet();
    let (account, agents) = (account_of(&fleet), key_of(&fleet, Scope::Agent));
    let tags = |tags: &[&str]| tags.iter().map(|&tag| tag.to_owned()).collect::<Vec<_>>();
    let agent = ["muster:agent:worker", "role:worker"];
    let cases = [
        ("of no account", &agents, Said::user(Rights::default(), tags(&agent))),
        (
            "of two roles",
            &agents,
            Said::scoped_user(&account, tags(&["muster:agent:worker", "role:planner"])),
        ),
        ("of no role", &agents, Said::scoped_user(&account, tags(&agent[..1]))),
        ("of no kind", &agents, Said::scoped_user(&account, tags(&agent[1..]))),
        ("no user", &account, Said::system()),
    ];
    for (what, by, said) in cases {
        let path = fleet.file(&forged(by, said));
        let signature = Signer::from_file(&path).unwrap().sign(Purpose::Order, SAID).unwrap();
        assert!(fleet.verifier().verify(Purpose::Order, &signature, SAID, NOW).is_err(), "{what}");
    }
}

#[test]
fn an_account_vouches_for_its_users_itself() {
    let fleet = fleet();
    let account = account_of(&fleet);
    let made = forged(&account, Said::user(Rights::default(), vec!["muster:operator".to_owned()]));
    let signature = Signer::from_file(&fleet.file(&made)).unwrap().sign(Purpose::Order, SAID).unwrap();
    let verifier = Verifier::of(Trust {
        account: account.public_key(),
        signing_keys: Vec::new(),
        revoked: std::collections::BTreeMap::new(),
    });
    assert_eq!(verifier.verify(Purpose::Order, &signature, SAID, NOW).unwrap().kind, HolderKind::Operator);
    let scoped = fleet.signer(&holder(Scope::Agent), None).sign(Purpose::Order, SAID).unwrap();
    assert!(verifier.verify(Purpose::Order, &scoped, SAID, NOW).is_err(), "its signing keys are not known");
}

#[test]
fn keys_of_another_fleet_than_ones_own_are_refused() {
    let (fleet, other) = (fleet(), fleet());
    let own = fleet.file(&fleet.keys.issue(&holder(Scope::Agent), None).unwrap());
    assert!(Verifier::of_credentials(&own, fleet.keys.public().unwrap()).is_ok());
    assert!(Verifier::of_credentials(&own, other.keys.public().unwrap()).is_err());
}

#[test]
fn a_file_with_the_key_of_somebody_else_signs_nothing() {
    let fleet = fleet();
    let mut made = fleet.keys.issue(&holder(Scope::Agent), None).unwrap();
    made.seed = SecretString::from(KeyPair::new_user().seed().unwrap());
    assert!(Signer::from_file(&fleet.file(&made)).is_err());
}

/// A client signs whatever text a server gives it: that must prove nothing here.
#[test]
fn what_was_signed_for_a_server_is_no_signature() {
    let fleet = fleet();
    let credentials = fleet.keys.issue(&holder(Scope::Operator), None).unwrap();
    let user = KeyPair::from_seed(credentials.seed.expose_secret()).unwrap();
    let nonce = user.sign(SAID).unwrap();
    let signature = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, nonce);
    let signature = Signature { by: credentials.jwt, signature };
    let refused = fleet.verifier().verify(Purpose::Order, &signature, SAID, NOW);
    assert!(matches!(refused, Err(SignatureError::Wrong { .. })), "{refused:?}");
}

/// A text with one character another one.
fn changed(text: &str, at: prop::sample::Index, to: char) -> String {
    let at = at.index(text.len());
    text.char_indices().map(|(i, old)| if i == at { to } else { old }).collect()
}

/// A member of a fleet, and who knows its keys.
static ONE: std::sync::LazyLock<(Signer, Verifier)> = std::sync::LazyLock::new(|| {
    let fleet = fleet();
    (fleet.signer(&holder(Scope::Agent), None), fleet.verifier())
});

proptest! {
    #[test]
    fn any_change_is_noticed(
        said in prop::collection::vec(any::<u8>(), 1..200),
        at in any::<prop::sample::Index>(),
        bit in 0_u8..8,
        to in "[A-Za-z0-9._=-]",
    ) {
        let (signer, verifier) = &*ONE;
        let signature = signer.sign(Purpose::Order, &said).unwrap();
        prop_assert!(verifier.verify(Purpose::Order, &signature, &said, NOW).is_ok());

        let mut other = said.clone();
        other[at.index(said.len())] ^= 1 << bit;
        prop_assert!(verifier.verify(Purpose::Order, &signature, &other, NOW).is_err());
        for other in [Purpose::Control, Purpose::Rights, Purpose::Seal] {
            prop_assert!(verifier.verify(other, &signature, &said, NOW).is_err());
        }

        let to = to.chars().next().unwrap();
        let by = Signature { by: changed(&signature.by, at, to), ..signature.clone() };
        prop_assert_eq!(verifier.verify(Purpose::Order, &by, &said, NOW).is_ok(), by == signature);
        let by = Signature { signature: changed(&signature.signature, at, to), ..signature.clone() };
        prop_assert_eq!(verifier.verify(Purpose::Order, &by, &said, NOW).is_ok(), by == signature);
    }

    #[test]
    fn nonsense_is_refused_and_nothing_worse(by in ".{0,300}", signature in ".{0,100}") {
        let trust = Trust {
            account: "A".to_owned(),
            signing_keys: vec![SigningKeyOf { kind: Scope::Agent, key: by.clone(), until: None }],
            revoked: std::collections::BTreeMap::new(),
        };
        let refused = Verifier::of(trust).verify(Purpose::Order, &Signature { by, signature }, SAID, NOW);
        prop_assert!(refused.is_err());
    }
}
