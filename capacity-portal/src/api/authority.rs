//! Who may do what: bearer tokens with roles.

use super::Site;
use super::problem::Problem;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// The fewest characters of a secret: 16 of base64 are 96 bits, which nobody guesses.
const SECRET_CHARS_MIN: usize = 16;

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Report unavailability and use.
    Health,
    /// Run the region: maintenance, limits, switches.
    Operator,
    /// Take capacity at once.
    Emergency,
    /// Read. Whoever has any role may.
    Viewer,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 4] = [Role::Health, Role::Operator, Role::Emergency, Role::Viewer];

    /// The word of the settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Health => "health",
            Role::Operator => "operator",
            Role::Emergency => "emergency",
            Role::Viewer => "viewer",
        }
    }

    /// Reads the word of the settings.
    pub fn parse(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A token cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum TokenError {
    #[error("a token's name has 1 to 128 characters, none of them zero")]
    BadName,
    #[error(
        "token {name:?}: a secret has at least {SECRET_CHARS_MIN} characters, all of them printable ASCII"
    )]
    BadSecret { name: String },
    #[error("token {name:?} has no roles")]
    NoRoles { name: String },
    #[error("two tokens are named {name:?}")]
    Twice { name: String },
}

/// A token: a name, which stands in the audit trail, what it may do, and a secret.
#[derive(Clone)]
pub struct Token {
    name: Arc<str>,
    roles: BTreeSet<Role>,
    /// Of the secret, which is not kept.
    digest: [u8; 32],
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Token").field("name", &self.name).field("roles", &self.roles).finish()
    }
}

impl Token {
    /// Makes one.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn new(name: &str, roles: &[Role], secret: &str) -> Result<Token, TokenError> {
        let named = || name.to_owned();
        if name.is_empty() || name.chars().count() > fleet::NAME_CHARS_MAX || name.contains('\0') {
            return Err(TokenError::BadName);
        }
        let printable = secret.bytes().all(|byte| byte.is_ascii_graphic());
        if secret.len() < SECRET_CHARS_MIN || !printable {
            return Err(TokenError::BadSecret { name: named() });
        }
        if roles.is_empty() {
            return Err(TokenError::NoRoles { name: named() });
        }
        let roles = roles.iter().copied().collect();
        Ok(Token { name: name.into(), roles, digest: digest(secret) })
    }
}

fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Who may do what.
#[derive(Clone, Debug, Default)]
pub struct Authority {
    tokens: Vec<Token>,
    closed: bool,
}

impl Authority {
    /// With these tokens. Without any nobody may write. `read_needs_token`: nor read without one.
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

    /// Looks at every token and at all of each digest, so that the time it takes says nothing.
    fn find(&self, secret: &str) -> Option<&Token> {
        let digest = digest(secret);
        let mut found = None;
        for token in &self.tokens {
            if bool::from(token.digest.ct_eq(&digest)) {
                found = Some(token);
            }
        }
        found
    }
}

/// Who asks.
pub(crate) struct Caller {
    token: Option<Token>,
    authority: Arc<Authority>,
}

impl Caller {
    /// The name for the audit trail, if this caller may act in this role.
    pub(crate) fn needs(&self, role: Role) -> Result<Arc<str>, Problem> {
        match &self.token {
            Some(token) if role == Role::Viewer || token.roles.contains(&role) => {
                Ok(token.name.clone())
            }
            Some(token) => {
                let detail = format!("token {:?} does not have the role {role}", token.name);
                Err(Problem::new(StatusCode::FORBIDDEN, "role_missing", detail))
            }
            None if self.authority.tokens.is_empty() => Err(Problem::new(
                StatusCode::FORBIDDEN,
                "tokens_not_configured",
                "nobody may do this: no tokens are configured. Add a section [[portal.tokens]] with \
                 name, roles and token_file to ras.toml and start again",
            )),
            None => Err(unauthorized("token_missing", "send `Authorization: Bearer` and a token")),
        }
    }

    /// Whether this caller may read.
    pub(crate) fn reads(&self) -> Result<(), Problem> {
        if self.authority.closed { self.needs(Role::Viewer).map(drop) } else { Ok(()) }
    }
}

fn unauthorized(code: &'static str, detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, code, detail)
}

impl FromRequestParts<Site> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, site: &Site) -> Result<Caller, Problem> {
        let authority = site.authority.clone();
        let Some(header) = parts.headers.get(AUTHORIZATION) else {
            return Ok(Caller { token: None, authority });
        };
        if authority.tokens.is_empty() {
            return Ok(Caller { token: None, authority });
        }
        let said = header.to_str().ok().and_then(|said| said.split_once(' '));
        let secret = said.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let token = secret.and_then(|(_, secret)| authority.find(secret.trim())).cloned();
        match token {
            Some(token) => Ok(Caller { token: Some(token), authority }),
            None => Err(unauthorized("token_unknown", "this is none of the tokens")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Authority, Role, Token, TokenError};

    #[test]
    fn a_token_is_found_by_its_secret_alone() {
        let token = |name: &str, secret: &str| Token::new(name, &[Role::Health], secret);
        let one = token("one", "0123456789abcdef").expect("a token");
        let two = token("two", "0123456789abcdeg").expect("a token");
        assert!(!format!("{one:?}").contains("0123"), "{one:?}");
        let authority = Authority::new(vec![one.clone(), two], false).expect("two tokens");
        let name = |secret| authority.find(secret).map(|token| token.name.to_string());
        assert_eq!(name("0123456789abcdef").as_deref(), Some("one"));
        assert_eq!(name("0123456789abcdeg").as_deref(), Some("two"));
        assert_eq!(name("0123456789abcde"), None);
        assert_eq!(name(""), None);
        let twice = Authority::new(vec![one.clone(), one], false).expect_err("twice");
        assert_eq!(twice, TokenError::Twice { name: "one".into() });
        assert!(matches!(token("short", "0123"), Err(TokenError::BadSecret { .. })));
        assert!(matches!(token("blank", "0123456789 abcdef"), Err(TokenError::BadSecret { .. })));
        assert!(matches!(token("", "0123456789abcdef"), Err(TokenError::BadName)));
        assert!(Token::new("none", &[], "0123456789abcdef").is_err());
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
    }
}
