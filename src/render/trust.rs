//! What of a project needs the user's word.

use std::path::Path;

use muster_shared::time::Millis;

use super::figures;
use crate::trust::{Grant, Item, fingerprint, short};

/// What is asked: each thing with where it stands, and what changed since it was trusted.
pub(crate) fn asked(folder: &Path, items: &[Item], changes: Option<&[String]>) -> String {
    let mut lines = vec![format!("The project in {} would", folder.display())];
    lines.extend(items.iter().map(|item| format!("  {item}")));
    if let Some(changes) = changes {
        lines.push("Changed since you trusted it:".to_owned());
        lines.extend(changes.iter().map(|change| format!("  {change}")));
    }
    lines.join("\n")
}

/// Projects that are trusted.
pub(crate) fn list(grants: &[Grant]) -> String {
    let one = |grant: &Grant| {
        let when = figures::date(Millis(grant.at));
        let head = format!("{}, since {when}, {}", grant.folder.display(), short(&fingerprint(&grant.items)));
        let items = grant.items.iter().map(|item| format!("\n  {item}"));
        format!("{head}{}", items.collect::<String>())
    };
    figures::lines(grants.iter().map(one))
}
