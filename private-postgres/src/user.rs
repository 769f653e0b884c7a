//! The system user that runs Postgres.

use crate::error::PrivateError;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// A system user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl User {
    /// Makes a program run as this user, without supplementary groups.
    pub(crate) fn runs(&self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }
}

/// The user to run Postgres as; `None`: ourselves, if we are not root.
pub(crate) fn unprivileged() -> Result<Option<User>, PrivateError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let path = Path::new("/etc/passwd");
    let users = fs::read_to_string(path).map_err(PrivateError::system(path, "cannot be read"))?;
    let found = ["postgres", "nobody"].into_iter().find_map(|name| find(&users, name));
    found.map(Some).ok_or(PrivateError::NoUser)
}

/// Finds a user in the text of `/etc/passwd`: name, password, uid, gid, ...
fn find(users: &str, name: &str) -> Option<User> {
    users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [found, _, uid, gid, ..] = fields[..] else { return None };
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        (found == name && uid != 0).then(|| User { name: name.to_owned(), uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::{User, find};

    #[test]
    fn user_is_found_by_name() {
        let users = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533::/:/bin/false\nshort\n";
        let nobody = User { name: "nobody".to_owned(), uid: 65534, gid: 65533 };
        assert_eq!(find(users, "nobody"), Some(nobody));
        assert_eq!(find(users, "postgres"), None);
        assert_eq!(find(users, "root"), None, "root is what we run from");
    }
}
