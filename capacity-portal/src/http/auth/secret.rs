//! Secrets of tokens and sessions: 256 random bits each; only digests are stored.

use broker::SecretDigest;
use data_encoding::BASE32_NOPAD;
use sha2::{Digest, Sha256};
use std::fmt;

/// Prefix of the secret of a token, so that people and secret scanners recognize it.
const PREFIX: &str = "ras_";

/// Random bytes of a secret.
const RANDOM_BYTES: usize = 32;

/// Characters of the checksum: 40 bits, so that a truncated or mistyped secret is rejected without a query.
const CHECKSUM: usize = 8;

/// The system returned no random bytes, so no secret can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system returned no random bytes")]
pub struct NoRandomness;

/// A new secret. It is shown once and stored nowhere.
#[derive(Clone)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(..)")
    }
}

impl Secret {
    /// A new secret of a token.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn for_token() -> Result<Secret, NoRandomness> {
        let body = random()?;
        Ok(Secret(format!("{PREFIX}{body}{}", checksum(&body))))
    }

    /// A new secret of a session.
    pub(crate) fn for_session() -> Result<Secret, NoRandomness> {
        random().map(Secret)
    }

    /// The secret as text, to hand to its user.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Its digest, which is stored.
    pub fn digest(&self) -> SecretDigest {
        digest(&self.0)
    }
}

fn random() -> Result<String, NoRandomness> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(base32(&bytes))
}

/// Lower-case letters and digits: a double click selects all of it.
pub(crate) fn base32(bytes: &[u8]) -> String {
    BASE32_NOPAD.encode(bytes).to_ascii_lowercase()
}

/// SHA-256. 256 random bits need neither salt nor a slow hash.
pub(crate) fn digest(secret: &str) -> SecretDigest {
    Sha256::digest(secret.as_bytes()).into()
}

fn checksum(body: &str) -> String {
    let mut checksum = base32(&Sha256::digest(body.as_bytes()));
    checksum.truncate(CHECKSUM);
    checksum
}

/// Whether a text has the form and checksum of [`Secret::for_token`].
pub(crate) fn may_be_a_token(secret: &str) -> bool {
    let body = secret.strip_prefix(PREFIX).filter(|rest| rest.is_ascii() && rest.len() > CHECKSUM);
    body.is_some_and(|rest| {
        let (body, sum) = rest.split_at(rest.len() - CHECKSUM);
        checksum(body) == sum
    })
}

#[cfg(test)]
mod tests {
    use super::{Secret, may_be_a_token};
    use std::collections::BTreeSet;

    #[test]
    fn damaged_secret_fails_its_checksum() {
        let secrets: BTreeSet<String> =
            (0..100).map(|_| Secret::for_token().expect("random").expose().to_owned()).collect();
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
        let session = Secret::for_session().expect("random");
        assert!(!may_be_a_token(session.expose()), "a session is not a token");
        assert_eq!(format!("{session:?}"), "Secret(..)");
    }
}
