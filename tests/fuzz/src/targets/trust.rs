//! What says who somebody is, and what was allowed to whom: credentials, invitations, signatures, orders, the ledger of the keys.

use std::fs;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_bus::Signatures;
use muster_bus::credentials::{FleetKeys, Holder, Invitation, Invited, fleet_in, identity};
use muster_bus::partition::Partitions;
use muster_bus::signatures::{Purpose, Signature};
use muster_shared::ids::AgentId;
use muster_shared::time::Millis;
use muster_shared::wire::{Body, Encoding, Envelope, decode};
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::wire::WORDS;
use super::{ensure, golden_message, text_of};
use crate::{Seen, Shape, Target};

/// A time at which what is made here counts.
const UNTIL: Millis = Millis(4_000_000_000_000);
/// Who signs here.
const SIGNER: &str = "signer-1";

/// Keys of a fleet in a folder that goes with the process.
struct Fleet {
    folder: TempDir,
    keys: FleetKeys,
}

static FLEET: LazyLock<Result<Fleet, String>> = LazyLock::new(|| {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let keys = FleetKeys::open_or_make(&folder.path().join("keys")).map_err(|error| error.to_string())?;
    Ok(Fleet { folder, keys })
});

fn fleet() -> Result<&'static Fleet, String> {
    FLEET.as_ref().map_err(Clone::clone)
}

fn name(name: &str) -> Result<AgentId, String> {
    name.parse().map_err(|error| format!("{name}: {error}"))
}

/// Credentials of some kinds, as files have them.
fn files() -> Result<Vec<Vec<u8>>, String> {
    let worker = "worker".parse().map_err(|error| format!("{error}"))?;
    let holders = [
        Holder::Orchestrator { id: name("orchestrator-1")? },
        Holder::Person { name: name("ann")? },
        Holder::Agent { role: worker, id: name("worker-1")? },
        Holder::Guard { guard: "secrets".to_owned(), id: name("guard-1")? },
    ];
    let made = holders.iter().zip([None, Some(UNTIL), Some(Millis(1_000)), None]).map(|(holder, until)| {
        let made = fleet()?.keys.issue(holder, until).map_err(|error| error.to_string())?;
        Ok(made.to_file().expose_secret().as_bytes().to_vec())
    });
    made.collect()
}

/// Credentials files: read, or refused in words that give no secret away.
pub(super) const CREDENTIALS: Target = Target::new("credentials", Shape::Text, |input| {
    let file = fleet()?.folder.path().join("tried.creds");
    fs::write(&file, input).map_err(|error| error.to_string())?;
    let (who, keys, signs) = (identity(&file), fleet_in(&file), Signatures::of(Some(&file)));
    let said = [
        who.as_ref().err().map(ToString::to_string),
        keys.as_ref().err().map(ToString::to_string),
        signs.as_ref().err().map(ToString::to_string),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    let text = text_of(input);
    let seeds = text.lines().filter(|line| line.len() > 50 && line.starts_with("SU"));
    for seed in seeds {
        ensure(!said.iter().any(|said| said.contains(seed)), || "a seed is told".to_owned())?;
    }
    if let Ok(Some(who)) = &who {
        let plain = muster_bus::subject::is_token(who.name.as_str());
        ensure(plain, || format!("{} is no name on the bus", who.name))?;
    }
    // What signs says whose it is, and is believed by whoever has the same fleet's keys.
    if let (Ok(Some(_)), Ok(signatures)) = (&who, &signs)
        && let Some(made) = signatures.sign(Purpose::Order, b"x")
    {
        let again: Signature =
            made.to_string().parse().map_err(|error| format!("not read again: {error}"))?;
        ensure(again == made, || "a signature is read again as another".to_owned())?;
    }
    Ok(Seen::by_several(who.is_ok(), &said))
})
.with_made(files)
.with_words(&[
    "-----BEGIN NATS USER JWT-----",
    "-----BEGIN USER NKEY SEED-----",
    "-----BEGIN MUSTER FLEET KEYS-----",
    ".",
    "e30",
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ",
    "SUA",
]);

/// What a line holds before its sum, so that mutations of it come past the sum.
fn bodies() -> Result<Vec<Vec<u8>>, String> {
    let role = "worker".parse().map_err(|error| format!("{error}"))?;
    let invited = Invited { roles: vec![role], uses: 3, until: UNTIL };
    let print = [7; 32];
    let made = [
        (vec!["127.0.0.1:4222".to_owned()], None),
        (vec!["mill.example.org:65535".to_owned(), "[fd00::1]:4222".to_owned()], Some(print)),
    ];
    let lines = made.into_iter().map(|(addresses, print)| {
        let print = print.map(muster_bus::credentials::Fingerprint);
        let made = fleet()?.keys.invite(&invited, addresses, print).map_err(|error| error.to_string())?;
        let line = made.to_line().map_err(|error| error.to_string())?;
        let body = line.expose_secret().strip_prefix("muster1.").ok_or("another form")?;
        let mut bytes = URL_SAFE_NO_PAD.decode(body).map_err(|error| error.to_string())?;
        bytes.truncate(bytes.len().saturating_sub(4));
        Ok(bytes)
    });
    lines.collect()
}

/// Invitations: who reads one finds what was signed, with addresses that mean what they say.
pub(super) const INVITATIONS: Target = Target::new("invitations", Shape::Json, |input| {
    // As it came, whatever that is; and with a sum that fits.
    let _as_it_is = Invitation::from_line(&text_of(input));
    let sum = Sha256::digest(input);
    let line = format!("muster1.{}", URL_SAFE_NO_PAD.encode([input, &sum[..4]].concat()));
    let read = match Invitation::from_line(&line) {
        Ok(read) => read,
        Err(error) => return Ok(Seen::at_door(error)),
    };
    let who = &read.name;
    ensure(who.as_str().starts_with("guest-"), || format!("{who} is let in by an invitation"))?;
    for url in read.urls() {
        let plain = url.split_once("://").is_some_and(|(scheme, rest)| {
            matches!(scheme, "tls" | "nats") && !rest.contains(['@', '/', '?', '#', ' ', ','])
        });
        ensure(plain, || format!("{url:?} means something else"))?;
    }
    ensure(read.urls().iter().all(|url| url.starts_with("tls://")) == read.authority.is_some(), || {
        "an authority, and no encryption".to_owned()
    })?;
    let written = read.to_line().map_err(|error| format!("not written: {error}"))?;
    let again =
        Invitation::from_line(written.expose_secret()).map_err(|error| format!("not read again: {error}"))?;
    let same = (&again.name, &again.addresses, again.authority, again.until)
        == (&read.name, &read.addresses, read.authority, read.until);
    ensure(same, || "read again it is another".to_owned())?;
    Ok(Seen::Read)
})
.with_made(bodies)
.with_words(&[
    ",",
    ":",
    "[",
    "]",
    "@",
    "/",
    "127.0.0.1:4222",
    "::1",
    "a:1",
    ":0",
    "user:pass@evil:4222",
    "\u{0}",
]);

/// Somebody who signs, and what of it goes in a header.
struct Signing {
    signatures: Signatures,
    order: Vec<u8>,
    made: Signature,
}

static SIGNING: LazyLock<Result<Signing, String>> = LazyLock::new(|| {
    let Fleet { folder, keys } = fleet()?;
    let file = folder.path().join("signer.creds");
    let holder = Holder::Person { name: name(SIGNER)? };
    let made = keys.issue(&holder, None).map_err(|error| error.to_string())?;
    made.write(&file).map_err(|error| error.to_string())?;
    let signatures = Signatures::of(Some(&file)).map_err(|error| error.to_string())?;
    let order = golden_message("command_cancel")?.to_string().into_bytes();
    let made = signatures.sign(Purpose::Order, &order).ok_or("nothing is signed")?;
    Ok(Signing { signatures, order, made })
});

fn signing() -> Result<&'static Signing, String> {
    SIGNING.as_ref().map_err(Clone::clone)
}

fn now() -> Millis {
    Millis(2_000_000_000_000)
}

/// What stands in the header of a signed message: nobody but the signer is believed to have signed.
pub(super) const HEADERS: Target = Target::new("signature_headers", Shape::Text, |input| {
    let Signing { signatures, order, made } = signing()?;
    let text = text_of(input);
    let _kept = Signature::of_kept(&text);
    let read: Signature = match text.parse() {
        Ok(read) => read,
        Err(error) => return Ok(Seen::at_door(error)),
    };
    let again: Signature = read.to_string().parse().map_err(|error| format!("not read again: {error}"))?;
    ensure(again == read, || "read again it is another".to_owned())?;
    let kept = Signature::of_kept(&read.kept()).map_err(|error| format!("not kept: {error}"))?;
    ensure(kept == read, || "what is kept is another".to_owned())?;
    for purpose in [Purpose::Control, Purpose::Rights, Purpose::Seal] {
        let other = signatures.verify(purpose, Some(&read), order, now());
        ensure(!matches!(other, Ok(Some(_))), || format!("it counts as {}", purpose.name()))?;
    }
    match signatures.verify(Purpose::Order, Some(&read), order, now()) {
        Ok(Some(who)) => {
            ensure(who.name.as_str() == SIGNER, || format!("{} is said to have signed", who.name))?;
            ensure(read.signature == made.signature, || "another signature counts".to_owned())?;
            Ok(Seen::Read)
        }
        Ok(None) => Err("nobody's signature is demanded".to_owned()),
        Err(error) => Ok(Seen::at_door(error)),
    }
})
.with_made(|| Ok(vec![signing()?.made.to_string().into_bytes(), signing()?.made.kept().into_bytes()]))
.with_words(&[".", "e30", "AAAA", "=", "-", "_"]);

/// Orders under somebody's signature: of what was changed, he has signed nothing.
pub(super) const ORDERS: Target = Target::new("signed_orders", Shape::Json, |input| {
    let Signing { signatures, order, made } = signing()?;
    let found = signatures.verify(Purpose::Order, Some(made), input, now());
    let counts = matches!(found, Ok(Some(_)));
    ensure(counts == (input == order.as_slice()), || "what was changed counts as signed".to_owned())?;
    let read: Envelope = match decode(input, Encoding::Json) {
        Ok(read) => read,
        Err(error) => return Ok(Seen::at_door(error)),
    };
    match read.body {
        Body::Command(command) => {
            let _may = muster_bus::orders::may_give(muster_shared::run::SignerKind::Person, &command);
        }
        _ => return Ok(Seen::Refused("no order".to_owned())),
    }
    Ok(if counts { Seen::Read } else { Seen::Refused("signed by nobody".to_owned()) })
})
.with_made(|| Ok(vec![signing()?.order.clone()]))
.with_words(WORDS);

/// Lines of the ledger of the keys: what can be read counts, and who is revoked is in it no more.
pub(super) const LEDGER: Target = Target::new("ledger", Shape::Json, |input| {
    let Fleet { folder, .. } = fleet()?;
    let own = folder.path().join("ledger");
    let keys = FleetKeys::open_or_make(&own).map_err(|error| error.to_string())?;
    let write = |file: &str, text: &[u8]| fs::write(own.join(file), text).map_err(|error| error.to_string());
    write("issued.jsonl", input)?;
    write("revoked.json", b"{}")?;
    let known = match keys.issued() {
        Ok(known) => known,
        Err(error) => return Ok(Seen::at_door(error)),
    };
    for one in &known {
        keys.revoke(&one.name).map_err(|error| format!("not revoked: {error}"))?;
        let left = keys.issued().map_err(|error| format!("not read again: {error}"))?;
        ensure(!left.iter().any(|left| left.name == one.name), || format!("{} is let in still", one.name))?;
    }
    keys.server_configuration(&[Partitions::default()])
        .map_err(|error| format!("no configuration: {error}"))?;
    // Who was revoked stands there, or the servers are told nothing: garbage never lets anybody in again.
    write("revoked.json", input)?;
    let _told = keys.server_configuration(&[Partitions::default()]);
    Ok(if known.is_empty() { Seen::Refused("nothing in it counts".to_owned()) } else { Seen::Read })
})
.with_made(|| {
    let Fleet { keys, .. } = fleet()?;
    files()?;
    bodies()?;
    let text = fs::read(keys.folder().join("issued.jsonl")).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&text).lines().map(|line| line.as_bytes().to_vec()).collect())
})
.with_words(&["until", "file", "place", "invitation", "machine", "on", "host"]);
