//! Tokens with roles, from the settings of this process.

use super::secret::digest;
pub use broker::Role;
use broker::{LOCAL_ACTOR_PREFIX, SecretDigest};
use chrono::{DateTime, Utc};
use fleet::{NameError, NewName};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// Shortest secret, in characters: 16 of base64 are 96 bits, too many to guess.
const SECRET_CHARS_MIN: usize = 16;

/// A token cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum TokenError {
    #[error("token {name:?}: {error}")]
    BadName { name: String, error: NameError },
    #[error("token {name:?}: an owner has 1 to 128 characters, none of them zero")]
    BadOwner { name: String },
    #[error(
        "token {name:?}: names that begin with {LOCAL_ACTOR_PREFIX:?} are those of users of this machine"
    )]
    ReservedName { name: String },
    #[error(
        "token {name:?}: the secret must have at least {SECRET_CHARS_MIN} printable ASCII characters"
    )]
    BadSecret { name: String },
    #[error("token {name:?} has no roles")]
    NoRoles { name: String },
    #[error("token {name:?}: the role owner needs an owner")]
    NoOwner { name: String },
    #[error(
        "token {name:?}: only the roles viewer and owner can be limited to an owner, not {role}"
    )]
    HasOwner { name: String, role: Role },
    #[error("two tokens have the name {name:?}")]
    Twice { name: String },
}

/// A token: its name, which is the actor in the audit trail, its roles and the digest of its secret.
#[derive(Clone)]
pub struct Token {
    pub(crate) name: Arc<str>,
    pub(crate) roles: BTreeSet<Role>,
    /// The only owner whose objects it may use; `None`: all owners.
    pub(crate) owner: Option<Arc<str>>,
    /// Digest of the secret; the secret itself is not stored.
    pub(crate) digest: SecretDigest,
    /// When it expires; `None`: never, as tokens of the settings and users of this machine.
    pub(crate) expires_at: Option<DateTime<Utc>>,
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("Token");
        shown.field("name", &self.name).field("roles", &self.roles).field("owner", &self.owner);
        shown.finish()
    }
}

fn is_stored(text: &str) -> bool {
    (1..=fleet::NAME_CHARS_MAX).contains(&text.chars().count()) && !text.contains('\0')
}

impl Token {
    /// A token for the objects of all owners.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn new(name: &str, roles: &[Role], secret: &str) -> Result<Token, TokenError> {
        Token::scoped(name, roles, None, secret)
    }

    /// A token for the objects of one owner; `None`: of all owners.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn scoped(
        name: &str,
        roles: &[Role],
        owner: Option<&str>,
        secret: &str,
    ) -> Result<Token, TokenError> {
        let named = || name.to_owned();
        NewName::parse(name).map_err(|error| TokenError::BadName { name: named(), error })?;
        // The owner may be one of before the rule of names.
        if owner.is_some_and(|owner| !is_stored(owner)) {
            return Err(TokenError::BadOwner { name: named() });
        }
        if name.starts_with(LOCAL_ACTOR_PREFIX) {
            return Err(TokenError::ReservedName { name: named() });
        }
        let printable = secret.bytes().all(|byte| byte.is_ascii_graphic());
        if secret.len() < SECRET_CHARS_MIN || !printable {
            return Err(TokenError::BadSecret { name: named() });
        }
        if roles.is_empty() {
            return Err(TokenError::NoRoles { name: named() });
        }
        if owner.is_none() && roles.contains(&Role::Owner) {
            return Err(TokenError::NoOwner { name: named() });
        }
        if let Some(role) = roles.iter().find(|role| owner.is_some() && !role.takes_owner()) {
            return Err(TokenError::HasOwner { name: named(), role: *role });
        }
        let (roles, owner) = (roles.iter().copied().collect(), owner.map(Arc::from));
        Ok(Token { name: name.into(), roles, owner, digest: digest(secret), expires_at: None })
    }

    /// Whether one of its roles includes this role.
    pub(crate) fn may(&self, role: Role) -> bool {
        self.roles.iter().any(|has| has.includes(role))
    }
}

/// Tokens of the settings, beside those of the database.
#[derive(Clone, Debug, Default)]
pub struct Authority {
    tokens: Vec<Token>,
    closed: bool,
}

impl Authority {
    /// `read_needs_token`: reads need a token, too.
    ///
    /// # Errors
    /// [`TokenError::Twice`].
    pub fn new(tokens: Vec<Token>, read_needs_token: bool) -> Result<Authority, TokenError> {
        let mut names = BTreeSet::new();
        if let Some(token) = tokens.iter().find(|token| !names.insert(token.name.clone())) {
            return Err(TokenError::Twice { name: token.name.to_string() });
        }
        Ok(Authority { tokens, closed: read_needs_token })
    }

    /// Whether reads need a token.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether a token has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.tokens.iter().any(|token| &*token.name == name)
    }

    /// Finds a token by the digest of its secret. Compares every token in constant time, so that the duration
    /// reveals nothing.
    pub(crate) fn find(&self, digest: &SecretDigest) -> Option<&Token> {
        let mut found = None;
        for token in &self.tokens {
            if bool::from(token.digest.ct_eq(digest)) {
                found = Some(token);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{Authority, Role, Token, TokenError};
    use crate::http::auth::secret::digest;

    #[test]
    fn token_is_found_only_by_its_secret() {
        let token = |name: &str, secret: &str| Token::new(name, &[Role::Health], secret);
        let one = token("one", "0123456789abcdef").expect("a token");
        let two = token("two", "0123456789abcdeg").expect("a token");
        assert!(!format!("{one:?}").contains("0123"), "{one:?}");
        let authority = Authority::new(vec![one.clone(), two], false).expect("two tokens");
        let name = |secret| authority.find(&digest(secret)).map(|token| token.name.to_string());
        assert_eq!(name("0123456789abcdef").as_deref(), Some("one"));
        assert_eq!(name("0123456789abcdeg").as_deref(), Some("two"));
        assert_eq!(name("0123456789abcde"), None);
        assert_eq!(name(""), None);
        let twice = Authority::new(vec![one.clone(), one], false).expect_err("twice");
        assert_eq!(twice, TokenError::Twice { name: "one".into() });
        assert!(matches!(token("short", "0123"), Err(TokenError::BadSecret { .. })));
        assert!(matches!(token("blank", "0123456789 abcdef"), Err(TokenError::BadSecret { .. })));
        assert!(matches!(token("", "0123456789abcdef"), Err(TokenError::BadName { .. })));
        assert!(Token::new("none", &[], "0123456789abcdef").is_err());
        let reserved = token("local:root", "0123456789abcdef");
        assert!(matches!(reserved, Err(TokenError::ReservedName { .. })), "{reserved:?}");
    }

    #[test]
    fn owner_limits_only_viewer_and_owner_roles() {
        let token = |roles: &[Role], owner| Token::scoped("t", roles, owner, "0123456789abcdef");
        let web = token(&[Role::Owner], Some("web")).expect("a token");
        assert!(web.may(Role::Owner) && web.may(Role::Viewer) && !web.may(Role::Operator));
        token(&[Role::Viewer], Some("web")).expect("a token");
        assert!(matches!(token(&[Role::Owner], None), Err(TokenError::NoOwner { .. })));
        assert!(matches!(token(&[Role::Viewer], Some("")), Err(TokenError::BadOwner { .. })));
        for role in [Role::Operator, Role::Admin, Role::Health, Role::Emergency] {
            let error = token(&[Role::Viewer, role], Some("web")).expect_err("the whole region's");
            assert_eq!(error, TokenError::HasOwner { name: "t".into(), role });
        }
    }
}
