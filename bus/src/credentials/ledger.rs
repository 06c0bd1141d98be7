//! What credentials were made, and which of them count no more: two files beside the keys.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use muster_shared::ids::{AgentId, Role};
use muster_shared::time::Millis;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::files::replace;
use super::{CredentialsError, HolderKind};

const ISSUED: &str = "issued.jsonl";
const REVOKED: &str = "revoked.json";
/// Held by whoever changes one of them.
const LOCK: &str = "ledger.lock";

/// Credentials that were made and have not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// What their holder is called on the bus.
    pub name: AgentId,
    /// What they are for.
    #[serde(with = "as_text")]
    pub kind: HolderKind,
    /// The public key of the holder.
    pub key: String,
    /// When they were made.
    pub issued: Millis,
    /// Until when they count; for ever when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
    /// The file that they are in, where it is known: the next that come there replace them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// What there is to know of it where other machines are concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// What is known of credentials that have to do with machines that join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// They are an invitation.
    Invitation {
        /// Of which roles a machine may start agents that joins by it.
        roles: Vec<Role>,
        /// How many machines may join by it.
        uses: u16,
        /// How many still may.
        left: u16,
    },
    /// They are those of a machine.
    Machine {
        /// Of which roles it may start agents.
        roles: Vec<Role>,
        /// The invitation that it joined by.
        invitation: AgentId,
    },
    /// They are those of a process on a machine.
    On {
        /// What the machine is called.
        host: AgentId,
        /// What the process is called there.
        member: AgentId,
    },
}

impl Issued {
    /// The machine that the process runs on, where it is one that joined.
    #[must_use]
    pub const fn host(&self) -> Option<&AgentId> {
        if let Some(Place::On { host, .. }) = &self.place { Some(host) } else { None }
    }
}

/// Credentials that count no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// Since when.
    pub at: Millis,
    /// When they would have ended; never when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
}

/// Credentials of a kind that this version does not know, as a later one wrote them down: they are kept, can be listed and can be
/// revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// What their holder is called.
    pub name: String,
    /// What they are for, in the words of that version.
    pub kind: String,
    /// The public key of the holder.
    pub key: String,
    /// Until when they count; for ever when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
    /// The machine that the process runs on, where it is said.
    #[serde(skip)]
    host: Option<String>,
    /// The line as it stands.
    #[serde(skip)]
    line: String,
}

impl Unread {
    /// Reads what matters; nothing of what names no key, such as the part of a line that somebody left who was killed.
    fn of(line: &str) -> Option<Self> {
        let said: Value = serde_json::from_str(line).ok()?;
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            name: text(said.get("name"))?,
            kind: text(said.get("kind")).unwrap_or_default(),
            key: text(said.get("key"))?,
            until: said.get("until").and_then(Value::as_u64).map(Millis),
            host: text(said.pointer("/place/on/host")),
            line: line.to_owned(),
        })
    }
}

mod as_text {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::HolderKind;

    pub(super) fn serialize<S: Serializer>(kind: &HolderKind, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(kind)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<HolderKind, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Those that count at a time, with new ones: what has ended goes, and so does what the new ones replace in a folder of the
/// fleet's own. A file elsewhere was handed to somebody, who may have a copy: what stood in it can be revoked still.
fn with(known: Vec<Issued>, new: Issued, own: &Path, now: Millis) -> Vec<Issued> {
    let keep = |old: Issued| {
        let is_replaced = old.file.is_some() && old.file == new.file;
        match is_replaced {
            false => Some(old),
            true if old.file.as_ref().is_some_and(|file| file.starts_with(own)) => None,
            true => Some(Issued { file: None, ..old }),
        }
    };
    let counts = known.into_iter().filter(|old| !ended(old.until, now));
    let mut kept: Vec<Issued> = counts.filter_map(keep).collect();
    kept.push(new);
    kept
}

/// What both files say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Books {
    /// What was made and has not ended.
    pub(super) issued: Vec<Issued>,
    /// The same of what this version cannot read.
    pub(super) unread: Vec<Unread>,
    /// What counts no more, by public key.
    pub(super) revoked: BTreeMap<String, Revoked>,
}

impl Books {
    /// Those that count, of a holder of this name and kind.
    pub(super) fn of(&self, name: &AgentId, kind: &HolderKind) -> Option<&Issued> {
        self.issued.iter().find(|one| one.name == *name && one.kind == *kind)
    }

    /// Has those count no more of which this says so; says how many they are.
    pub(super) fn revoke(&mut self, now: Millis, whose: impl Fn(&Issued) -> bool) -> usize {
        let (gone, kept): (Vec<Issued>, Vec<Issued>) = self.issued.drain(..).partition(whose);
        self.issued = kept;
        self.revoked.retain(|_, old| !ended(old.until, now));
        self.count_no_more(now, gone.into_iter().map(|old| (old.key, old.until)))
    }

    /// The same of what this version cannot read, by what a holder or his machine is called.
    fn revoke_unread(&mut self, now: Millis, name: &str) -> usize {
        let whose = |old: &Unread| old.name == name || old.host.as_deref() == Some(name);
        let (gone, kept): (Vec<Unread>, Vec<Unread>) = self.unread.drain(..).partition(whose);
        self.unread = kept;
        self.count_no_more(now, gone.into_iter().map(|old| (old.key, old.until)))
    }

    fn count_no_more(
        &mut self,
        now: Millis,
        gone: impl ExactSizeIterator<Item = (String, Option<Millis>)>,
    ) -> usize {
        let count = gone.len();
        self.revoked.extend(gone.map(|(key, until)| (key, Revoked { at: now, until })));
        count
    }
}

pub(super) fn ended(until: Option<Millis>, now: Millis) -> bool {
    until.is_some_and(|until| until <= now)
}

/// The two files of a folder of keys.
pub(super) struct Ledger<'a> {
    folder: &'a Path,
}

impl<'a> Ledger<'a> {
    pub(super) const fn of(folder: &'a Path) -> Self {
        Self { folder }
    }

    /// What was made, ended or not.
    pub(super) fn issued(&self) -> Result<Vec<Issued>, CredentialsError> {
        Ok(self.lines()?.0)
    }

    /// The same of what a later version wrote, that this one cannot read.
    pub(super) fn unread(&self) -> Result<Vec<Unread>, CredentialsError> {
        Ok(self.lines()?.1)
    }

    fn lines(&self) -> Result<(Vec<Issued>, Vec<Unread>), CredentialsError> {
        let text = read(&self.folder.join(ISSUED))?;
        let (mut known, mut unread) = (Vec::new(), Vec::new());
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(issued) => known.push(issued),
                Err(_) => unread.extend(Unread::of(line)),
            }
        }
        Ok((known, unread))
    }

    /// What counts no more, by public key.
    pub(super) fn revoked(&self) -> Result<BTreeMap<String, Revoked>, CredentialsError> {
        let path = self.folder.join(REVOKED);
        let text = read(&path)?;
        // Unreadable is not empty: somebody would be let in again.
        if text.is_empty() { Ok(BTreeMap::new()) } else { parse(&path, &text) }
    }

    /// Takes note of credentials that were made.
    pub(super) fn note(&self, new: Issued, now: Millis) -> Result<(), CredentialsError> {
        let _alone = self.lock()?;
        let (known, unread) = self.lines()?;
        let kept = with(known, new, self.folder, now);
        self.write_issued(&kept, &unread)
    }

    /// Has what is made anew count until a time besides, apart from its file: it can be revoked as long as it does.
    pub(super) fn outlive(&self, key: &str, until: Millis) -> Result<(), CredentialsError> {
        let _alone = self.lock()?;
        let (mut known, unread) = self.lines()?;
        for one in known.iter_mut().filter(|one| one.key == key) {
            one.until = Some(one.until.map_or(until, |own| own.min(until)));
            one.file = None;
        }
        self.write_issued(&known, &unread)
    }

    /// Revokes what a holder of this name has, and all that a machine of this name was given; says how much that is.
    pub(super) fn revoke(&self, name: &AgentId, now: Millis) -> Result<usize, CredentialsError> {
        self.change(now, |books| {
            let known = books.revoke(now, |old| old.name == *name || old.host() == Some(name));
            known + books.revoke_unread(now, name.as_str())
        })
    }

    /// Changes both at once: nobody else does meanwhile.
    pub(super) fn change<T>(
        &self,
        now: Millis,
        change: impl FnOnce(&mut Books) -> T,
    ) -> Result<T, CredentialsError> {
        let _alone = self.lock()?;
        let (mut issued, mut unread) = self.lines()?;
        issued.retain(|old| !ended(old.until, now));
        unread.retain(|old| !ended(old.until, now));
        let before = Books { issued, unread, revoked: self.revoked()? };
        let mut after = before.clone();
        let came = change(&mut after);
        // Revoked first: what is in neither could not be revoked any more.
        if after.revoked != before.revoked {
            let text = serde_json::to_string_pretty(&after.revoked).map_err(CredentialsError::key)?;
            replace(&self.folder.join(REVOKED), &text)?;
        }
        if (&after.issued, &after.unread) != (&before.issued, &before.unread) {
            self.write_issued(&after.issued, &after.unread)?;
        }
        Ok(came)
    }

    fn write_issued(&self, all: &[Issued], unread: &[Unread]) -> Result<(), CredentialsError> {
        let lines = all.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        let mut lines = lines.map_err(CredentialsError::key)?;
        lines.extend(unread.iter().map(|one| one.line.clone()));
        replace(&self.folder.join(ISSUED), &lines.iter().map(|line| format!("{line}\n")).collect::<String>())
    }

    /// Waits until nobody else changes them.
    pub(super) fn lock(&self) -> Result<File, CredentialsError> {
        let path = self.folder.join(LOCK);
        let wrong = |error| CredentialsError::file(&path, error);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let lock = lock.map_err(wrong)?;
        lock.lock().map_err(wrong)?;
        Ok(lock)
    }
}

fn read(path: &Path) -> Result<String, CredentialsError> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        found => found.map_err(|error| CredentialsError::file(path, error)),
    }
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, CredentialsError> {
    serde_json::from_str(text).map_err(|error| CredentialsError::file(path, error))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn made(name: &str, until: Option<u64>, file: Option<&str>) -> Issued {
        Issued {
            name: name.parse().unwrap(),
            kind: HolderKind::Agent("worker".parse().unwrap()),
            key: format!("U{name}"),
            issued: Millis(1),
            until: until.map(Millis),
            file: file.map(PathBuf::from),
            place: None,
        }
    }

    fn names(all: &[Issued]) -> Vec<&str> {
        all.iter().map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn what_ended_or_was_replaced_is_forgotten() {
        let own = Path::new("keys");
        let known = vec![
            made("a", None, None),
            made("ended", Some(10), None),
            made("lasts", Some(11), None),
            made("before", None, Some("keys/worker-1.creds")),
            made("other", None, Some("keys/worker-2.creds")),
            made("given", None, Some("ann/ann.creds")),
        ];
        let kept = with(known, made("now", None, Some("keys/worker-1.creds")), own, Millis(10));
        assert_eq!(names(&kept), ["a", "lasts", "other", "given", "now"]);
        let kept = with(kept, made("b", None, None), own, Millis(10));
        assert_eq!(names(&kept), ["a", "lasts", "other", "given", "now", "b"]);
        let kept = with(kept, made("again", None, Some("ann/ann.creds")), own, Millis(10));
        assert_eq!(names(&kept), ["a", "lasts", "other", "given", "now", "b", "again"]);
        assert_eq!(kept[3].file, None, "it can be revoked, and is not made anew");
    }

    #[test]
    fn who_is_revoked_is_in_one_file_and_not_in_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::of(folder.path());
        assert_eq!((ledger.issued().unwrap(), ledger.revoked().unwrap()), (Vec::new(), BTreeMap::new()));
        for one in [made("a", Some(50), None), made("b", None, None), made("a", None, None)] {
            ledger.note(one, Millis(10)).unwrap();
        }
        assert_eq!(ledger.revoke(&"nobody".parse().unwrap(), Millis(20)).unwrap(), 0);
        assert_eq!(ledger.revoke(&"a".parse().unwrap(), Millis(20)).unwrap(), 2);
        assert_eq!(ledger.revoke(&"a".parse().unwrap(), Millis(20)).unwrap(), 0);
        assert_eq!(names(&ledger.issued().unwrap()), ["b"]);
        assert_eq!(ledger.revoked().unwrap().keys().collect::<Vec<_>>(), ["Ua"]);
    }

    #[test]
    fn a_torn_line_hides_nothing_else_and_a_torn_list_of_the_revoked_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::of(folder.path());
        ledger.note(made("a", None, None), Millis(10)).unwrap();
        let mut torn = OpenOptions::new().append(true).open(folder.path().join(ISSUED)).unwrap();
        torn.write_all(b"{\"name\":\"b\",").unwrap();
        ledger.note(made("c", None, None), Millis(10)).unwrap();
        assert_eq!(names(&ledger.issued().unwrap()), ["a", "c"]);
        fs::write(folder.path().join(REVOKED), "{").unwrap();
        assert!(ledger.revoked().is_err());
    }

    #[test]
    fn what_a_later_version_wrote_is_kept_as_it_is_and_can_be_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::of(folder.path());
        let later = r#"{"name":"z","kind":"wizard/of:oz","key":"UZ","issued":1,"new":[1, 2]}"#;
        let on =
            r#"{"name":"y","kind":"wizard","key":"UY","issued":1,"place":{"on":{"host":"mill","since":3}}}"#;
        fs::write(folder.path().join(ISSUED), format!("{later}\n{on}\n")).unwrap();
        ledger.note(made("a", None, None), Millis(10)).unwrap();
        ledger.outlive("Ua", Millis(50)).unwrap();
        assert_eq!((names(&ledger.issued().unwrap()), ledger.unread().unwrap().len()), (vec!["a"], 2));
        let text = || fs::read_to_string(folder.path().join(ISSUED)).unwrap();
        assert!(text().contains(later), "{}", text());
        assert_eq!(ledger.revoke(&"z".parse().unwrap(), Millis(20)).unwrap(), 1);
        assert_eq!(ledger.revoke(&"mill".parse().unwrap(), Millis(20)).unwrap(), 1);
        assert_eq!(ledger.revoked().unwrap().keys().collect::<Vec<_>>(), ["UY", "UZ"]);
        assert!(!text().contains("wizard") && names(&ledger.issued().unwrap()) == ["a"]);
    }
}
