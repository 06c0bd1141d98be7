//! Whom a program runs as, where root starts it: never root, and nobody who has files or processes.

use nix::unistd::{Gid, Uid, getpid, setgroups, setresgid, setresuid};

use crate::wire::Failure;

/// Where users are that no system gives to people, services or containers.
const FIRST_UNUSED: u32 = 0x6B00_0000;

/// `nobody`, where users are few, such as in a container.
const NOBODY: u32 = 65_534;

/// A user for one sandbox; none where we are not root. No two that run at the same time have the same, so that the kernel
/// counts their processes apart.
pub(super) fn for_program() -> Option<u32> {
    let own = FIRST_UNUSED.saturating_add(u32::try_from(getpid().as_raw()).unwrap_or_default());
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    Uid::effective().is_root().then(|| if is_mapped(&map, own) { own } else { NOBODY })
}

/// Becomes a user, for good.
///
/// # Errors
/// When the kernel does not let us.
pub(super) fn become_user(user: u32) -> Result<(), Failure> {
    let failed = Failure::of("becoming another user");
    setgroups(&[]).map_err(&failed)?;
    let group = Gid::from_raw(user);
    setresgid(group, group, group).map_err(&failed)?;
    let user = Uid::from_raw(user);
    setresuid(user, user, user).map_err(&failed)
}

/// Whether there is such a user here: each line of a map has the first one inside, the first one outside, and how many.
fn is_mapped(map: &str, user: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(first)), Some(Ok(_)), Some(Ok(count))) => {
                (first..first.saturating_add(count)).contains(&u64::from(user))
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_taken_only_where_there_is_one() {
        let table = [
            ("         0          0 4294967295\n", FIRST_UNUSED, true),
            ("0 100000 65536\n", FIRST_UNUSED, false),
            ("0 100000 65536\n", NOBODY, true),
            ("0 1000 1\n1 100000 65536\n", NOBODY, true),
            ("0 1000 1\n", NOBODY, false),
            ("", NOBODY, false),
            ("no numbers here", 0, false),
        ];
        for (map, user, expected) in table {
            assert_eq!(is_mapped(map, user), expected, "{map:?} {user}");
        }
    }
}
