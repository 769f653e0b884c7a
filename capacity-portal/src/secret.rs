//! Secrets: of tokens, and of sessions. 256 bits of chance each; what is stored is a digest.

use broker::SecretDigest;
use data_encoding::BASE32_NOPAD;
use sha2::{Digest, Sha256};
use std::fmt;

/// What the secret of a token begins with, so that people and scanners of repositories know it.
const PREFIX: &str = "ras_";

/// Bytes of chance.
const CHANCE: usize = 32;

/// Characters of the check: 40 bits, so that what was cut or mistyped is known without a look-up.
const CHECK: usize = 8;

/// The system gives no random bytes, so there is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoChance;

/// A secret that was just made. It is shown once and kept nowhere.
#[derive(Clone)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(..)")
    }
}

impl Secret {
    /// One for a token.
    ///
    /// # Errors
    /// [`NoChance`].
    pub fn for_token() -> Result<Secret, NoChance> {
        let body = chance()?;
        Ok(Secret(format!("{PREFIX}{body}{}", check(&body))))
    }

    /// One for a session.
    pub(crate) fn for_session() -> Result<Secret, NoChance> {
        chance().map(Secret)
    }

    /// The secret itself, for whoever is given it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    pub fn digest(&self) -> SecretDigest {
        digest(&self.0)
    }
}

fn chance() -> Result<String, NoChance> {
    let mut bytes = [0; CHANCE];
    getrandom::fill(&mut bytes).map_err(|_| NoChance)?;
    Ok(base32(&bytes))
}

/// Letters and digits, which a double click selects whole.
pub(crate) fn base32(bytes: &[u8]) -> String {
    BASE32_NOPAD.encode(bytes).to_ascii_lowercase()
}

/// SHA-256. No salt and no slow hash: nobody tries 2^256 secrets.
pub(crate) fn digest(secret: &str) -> SecretDigest {
    Sha256::digest(secret.as_bytes()).into()
}

fn check(body: &str) -> String {
    let mut check = base32(&Sha256::digest(body.as_bytes()));
    check.truncate(CHECK);
    check
}

/// Whether it may be a secret of [`Secret::for_token`]: whatever else is said is none.
pub(crate) fn may_be_a_token(secret: &str) -> bool {
    let body = secret.strip_prefix(PREFIX).filter(|rest| rest.is_ascii() && rest.len() > CHECK);
    body.is_some_and(|rest| {
        let (body, said) = rest.split_at(rest.len() - CHECK);
        check(body) == said
    })
}

#[cfg(test)]
mod tests {
    use super::{Secret, may_be_a_token};
    use std::collections::BTreeSet;

    #[test]
    fn secrets_differ_and_show_where_they_are_damaged() {
        let secrets: BTreeSet<String> =
            (0..100).map(|_| Secret::for_token().expect("chance").expose().to_owned()).collect();
        assert_eq!(secrets.len(), 100);
        let secret = secrets.first().expect("some");
        assert!(secret.starts_with("ras_") && secret.len() == 64, "{secret}");
        assert!(may_be_a_token(secret));
        for (at, found) in secret.char_indices() {
            let other = if found == 'a' { "b" } else { "a" };
            let mut damaged = secret.clone();
            damaged.replace_range(at..=at, other);
            assert!(!may_be_a_token(&damaged), "{damaged}");
            assert!(!may_be_a_token(&secret[..at]));
        }
        for other in ["", "ras_", "ras_12345678", "ras_\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}"] {
            assert!(!may_be_a_token(other), "{other}");
        }
        let session = Secret::for_session().expect("chance");
        assert!(!may_be_a_token(session.expose()), "a session is no token");
        assert_eq!(format!("{session:?}"), "Secret(..)");
    }
}
