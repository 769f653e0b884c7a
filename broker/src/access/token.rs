//! Tokens: the identity, role and lifetime of HTTP callers. The database stores digests of secrets only.

use crate::access::role::Role;
use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::TokenId;
use crate::infra::words;
use crate::infra::words::optional_name;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use chrono::{DateTime, Utc};
use fleet::{Name, NameError, NewName, OwnerName};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::time::Duration;

/// SHA-256 of a secret.
pub type SecretDigest = [u8; 32];

/// Prefix of the actors that are users of the server's machine. No token's name has it, so the audit trail
/// cannot confuse a token with such a user.
pub const LOCAL_ACTOR_PREFIX: &str = "local:";

/// The longest life of a token: five years.
pub const TOKEN_LIFE_MAX: Duration = Duration::from_secs(5 * 366 * 86_400);

pub(crate) mod sql {
    crate::statements! {
        CREATE = "INSERT INTO tokens (token_id, name, digest, role, owner, created_by, created_at, expires_at) \
            SELECT $1, $2, $3, $4, $5, $6, c.now, c.now + $7 * interval '1 second' \
            FROM (SELECT clock_timestamp() AS now) c \
            RETURNING token_id, name::text, role, owner::text, created_at, created_by::text, expires_at, \
                revoked_at, revoked_by::text, last_used_at, NULL::text";
        /// Valid tokens first, then newest first.
        LIST = "SELECT token_id, name::text, role, owner::text, created_at, created_by::text, expires_at, \
                revoked_at, revoked_by::text, last_used_at, \
                CASE WHEN revoked_at IS NOT NULL THEN 'revoked' \
                    WHEN expires_at <= clock_timestamp() THEN 'expired' END \
            FROM tokens WHERE $1 OR (revoked_at IS NULL AND expires_at > clock_timestamp()) \
            ORDER BY 11 NULLS FIRST, token_id DESC LIMIT $2";
        /// By id or by name; a name refers to a valid token only.
        REVOKE = "UPDATE tokens SET revoked_at = clock_timestamp(), revoked_by = $3 \
            WHERE revoked_at IS NULL AND (token_id = $1 OR name = $2) \
            RETURNING token_id, name::text, role, owner::text, created_at, created_by::text, expires_at, \
                revoked_at, revoked_by::text, last_used_at, 'revoked'";
        FIND = "SELECT token_id, name::text, role, owner::text, expires_at, \
                last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute' \
            FROM tokens WHERE digest = $1 AND revoked_at IS NULL AND expires_at > clock_timestamp()";
        /// At most once a minute, by the first of several processes.
        USED = "UPDATE tokens SET last_used_at = clock_timestamp() WHERE token_id = $1 \
            AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')";
        OWNER_KNOWN = "SELECT EXISTS (SELECT FROM promises WHERE owner = $1)";
        BEGIN_SESSION = "INSERT INTO sessions (digest, token_digest, began_at, expires_at) \
            SELECT $1, $2, c.now, c.now + $3 * interval '1 second' \
            FROM (SELECT clock_timestamp() AS now) c";
        /// Many more rows than one sign-in adds, so that the table does not grow.
        SWEEP_SESSIONS = "DELETE FROM sessions WHERE digest IN \
            (SELECT digest FROM sessions WHERE expires_at <= clock_timestamp() LIMIT 1000)";
        FIND_SESSION = "SELECT token_digest FROM sessions \
            WHERE digest = $1 AND expires_at > clock_timestamp()";
        END_SESSION = "DELETE FROM sessions WHERE digest = $1";
    }
}

/// A token to be created.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// The actor in the audit trail.
    pub name: String,
    /// The digest of the secret.
    pub digest: SecretDigest,
    /// The role.
    pub role: Role,
    /// The only owner it acts for; `None`: all owners.
    pub owner: Option<String>,
    /// The lifetime, in whole seconds.
    pub life: Duration,
}

/// A listed token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Its id.
    pub id: TokenId,
    /// The actor in the audit trail.
    pub name: Name,
    /// The role.
    pub role: Role,
    /// The only owner it acts for; `None`: all owners.
    pub owner: Option<OwnerName>,
    /// The time of its creation.
    pub created_at: DateTime<Utc>,
    /// The actor that created it.
    pub created_by: Name,
    /// The end of its lifetime.
    pub expires_at: DateTime<Utc>,
    /// Its revocation; `None`: not revoked.
    pub revoked: Option<Revocation>,
    /// The time of its last use, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    /// Whether it is valid.
    pub state: TokenState,
}

/// The revocation of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// The time.
    pub at: DateTime<Utc>,
    /// The actor.
    pub by: Name,
}

/// Whether a token is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenState {
    /// It is valid.
    Good,
    /// Its lifetime is over.
    Expired,
    /// It was revoked.
    Revoked,
}

impl TokenState {
    /// Every state.
    pub const ALL: [TokenState; 3] = [TokenState::Good, TokenState::Expired, TokenState::Revoked];

    /// The state's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            TokenState::Good => "good",
            TokenState::Expired => "expired",
            TokenState::Revoked => "revoked",
        }
    }
}

/// A valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoodToken {
    /// Its id.
    pub id: TokenId,
    /// The actor in the audit trail.
    pub name: Name,
    /// The role.
    pub role: Role,
    /// The only owner it acts for; `None`: all owners.
    pub owner: Option<OwnerName>,
    /// The end of its lifetime.
    pub expires_at: DateTime<Utc>,
    /// Whether [`Broker::token_used`] would write.
    pub used_unsaid: bool,
}

/// A token cannot be made or revoked; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum TokenError {
    #[error("name: {0}")]
    BadName(NameError),
    #[error(
        "a token's name does not begin with {LOCAL_ACTOR_PREFIX:?}, which marks users of the server's machine"
    )]
    ReservedName,
    #[error("owner: {0}")]
    BadOwner(NameError),
    #[error("a token of the role owner names the owner it is for")]
    NoOwner,
    #[error("a token of the role {role} is for the whole region and names no owner")]
    HasOwner { role: Role },
    #[error("a token is good for a second at least and five years at most")]
    Life,
    #[error("there is a token {name:?} already; revoke it first, or choose another name")]
    NameTaken { name: String },
    #[error("there is no token {which:?} that could be revoked")]
    Unknown { which: String },
    #[error(transparent)]
    Db(#[from] DbError),
}

/// The rule of an owner's name, unless reservations have this owner already.
async fn check_owner(db: &mut PgConnection, owner: &str) -> Result<(), TokenError> {
    let Err(error) = NewName::parse(owner) else { return Ok(()) };
    let known = !owner.contains('\0')
        && sqlx::query_scalar(sql::OWNER_KNOWN)
            .bind(owner)
            .fetch_one(db)
            .await
            .doing("looking for an owner")?;
    if known { Ok(()) } else { Err(TokenError::BadOwner(error)) }
}

impl NewToken {
    fn check(&self) -> Result<i64, TokenError> {
        NewName::parse(&self.name).map_err(TokenError::BadName)?;
        if self.name.starts_with(LOCAL_ACTOR_PREFIX) {
            return Err(TokenError::ReservedName);
        }
        match &self.owner {
            None if self.role == Role::Owner => return Err(TokenError::NoOwner),
            Some(_) if !self.role.takes_owner() => {
                return Err(TokenError::HasOwner { role: self.role });
            }
            _ => {}
        }
        let seconds = i64::try_from(self.life.as_secs()).unwrap_or(i64::MAX);
        if seconds < 1 || self.life > TOKEN_LIFE_MAX { Err(TokenError::Life) } else { Ok(seconds) }
    }
}

impl Broker {
    /// Creates a token.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn create_token(
        &self,
        actor: &str,
        token: &NewToken,
    ) -> Result<TokenRow, TokenError> {
        let seconds = token.check()?;
        let mut change = AuditedTx::begin(self, actor).await?;
        if let Some(owner) = &token.owner {
            check_owner(change.connection(), owner).await?;
        }
        let made = sqlx::query(sql::CREATE)
            .bind(TokenId::now_v7())
            .bind(&token.name)
            .bind(&token.digest[..])
            .bind(token.role.as_str())
            .bind(&token.owner)
            .bind(actor)
            .bind(seconds)
            .try_map(|row: PgRow| row_of(&row))
            .fetch_one(change.connection())
            .await
            .doing("making a token");
        let made = made.map_err(|error| {
            if error.refused_by("tokens_name") {
                return TokenError::NameTaken { name: token.name.clone() };
            }
            error.into()
        })?;
        let TokenRow { id, role, expires_at, .. } = made;
        let owner = token.owner.as_deref();
        change.record(&made.name, Event::TokenCreated { token: id, role, owner, expires_at });
        change.commit().await?;
        Ok(made)
    }

    /// Revokes a token by id or by name.
    ///
    /// # Errors
    /// [`TokenError::Unknown`] if no valid token matches; errors of Postgres.
    pub async fn revoke_token(&self, actor: &str, which: &str) -> Result<TokenRow, TokenError> {
        let unknown = || TokenError::Unknown { which: which.to_owned() };
        if which.contains('\0') {
            return Err(unknown());
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let revoked = sqlx::query(sql::REVOKE)
            .bind(which.parse::<TokenId>().ok())
            .bind(which)
            .bind(actor)
            .try_map(|row: PgRow| row_of(&row))
            .fetch_all(change.connection())
            .await
            .doing("revoking a token")?;
        let first = revoked.first().cloned().ok_or_else(unknown)?;
        for token in &revoked {
            let event = Event::TokenRevoked { token: token.id, role: token.role };
            change.record(&token.name, event);
        }
        change.commit().await?;
        Ok(first)
    }

    /// Lists tokens, valid ones first, then newest first; `all`: includes invalid ones.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn tokens(&self, all: bool, limit: u32) -> Result<Vec<TokenRow>, DbError> {
        let listed = sqlx::query(sql::LIST).bind(all).bind(i64::from(limit));
        let listed = listed.try_map(|row: PgRow| row_of(&row)).fetch_all(&self.pool).await;
        listed.doing("listing tokens")
    }

    /// The valid token whose secret has this digest, by the database's clock.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn token(&self, digest: &SecretDigest) -> Result<Option<GoodToken>, DbError> {
        let found = sqlx::query(sql::FIND).bind(&digest[..]).try_map(|row: PgRow| {
            Ok(GoodToken {
                id: row.try_get(0)?,
                name: row.try_get::<&str, _>(1)?.into(),
                role: role(&row)?,
                owner: row.try_get::<Option<&str>, _>(3)?.map(Into::into),
                expires_at: row.try_get(4)?,
                used_unsaid: row.try_get(5)?,
            })
        });
        found.fetch_optional(&self.pool).await.doing("looking a token up")
    }

    /// Records the use of a token, at most once a minute. No change of the region, so no entry in the trail.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn token_used(&self, id: TokenId) -> Result<(), DbError> {
        let noted = sqlx::query(sql::USED).bind(id).execute(&self.pool).await;
        noted.map(drop).doing("noting that a token was used")
    }

    /// Begins a session for the secret with this digest, and deletes some expired sessions.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn begin_session(
        &self,
        session: &SecretDigest,
        token: &SecretDigest,
        life: Duration,
    ) -> Result<(), DbError> {
        let doing = "beginning a session";
        sqlx::query(sql::SWEEP_SESSIONS).execute(&self.pool).await.doing(doing)?;
        let seconds = i64::try_from(life.as_secs()).unwrap_or(i64::MAX);
        let begun = sqlx::query(sql::BEGIN_SESSION).bind(&session[..]).bind(&token[..]);
        begun.bind(seconds).execute(&self.pool).await.map(drop).doing(doing)
    }

    /// The digest of the secret that a session was begun with, if the session has not expired.
    /// [`Broker::token`] says whether the secret is still valid.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn session(&self, session: &SecretDigest) -> Result<Option<SecretDigest>, DbError> {
        let found: Option<Vec<u8>> = sqlx::query_scalar(sql::FIND_SESSION)
            .bind(&session[..])
            .fetch_optional(&self.pool)
            .await
            .doing("looking a session up")?;
        Ok(found.and_then(|digest| digest.try_into().ok()))
    }

    /// Ends a session, if it exists.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn end_session(&self, session: &SecretDigest) -> Result<(), DbError> {
        let ended = sqlx::query(sql::END_SESSION).bind(&session[..]).execute(&self.pool).await;
        ended.map(drop).doing("ending a session")
    }
}

fn row_of(row: &PgRow) -> Result<TokenRow, sqlx::Error> {
    let revoked_at: Option<DateTime<Utc>> = row.try_get(7)?;
    Ok(TokenRow {
        id: row.try_get(0)?,
        name: row.try_get::<&str, _>(1)?.into(),
        role: role(row)?,
        owner: optional_name(row, 3)?,
        created_at: row.try_get(4)?,
        created_by: row.try_get::<&str, _>(5)?.into(),
        expires_at: row.try_get(6)?,
        revoked: revoked_at.zip(optional_name(row, 8)?).map(|(at, by)| Revocation { at, by }),
        last_used_at: row.try_get(9)?,
        state: match row.try_get(10)? {
            None => TokenState::Good,
            Some(word) => words::read("tokens.over", TokenState::ALL, TokenState::as_str, word)?,
        },
    })
}

fn role(row: &PgRow) -> Result<Role, sqlx::Error> {
    words::read("tokens.role", Role::ALL, Role::as_str, row.try_get(2)?)
}

#[cfg(test)]
mod tests {
    use super::Role;

    #[test]
    fn roles_are_read_and_ordered() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
            assert!(
                role.includes(role) && role.includes(Role::Viewer) && Role::Admin.includes(role)
            );
            // The rights of included roles are included, too.
            for other in Role::ALL.into_iter().filter(|other| role.includes(*other)) {
                assert!(
                    Role::ALL
                        .into_iter()
                        .all(|third| !other.includes(third) || role.includes(third))
                );
            }
        }
        assert_eq!(Role::parse("king"), None);
        assert!(!Role::Operator.includes(Role::Admin) && Role::Operator.includes(Role::Owner));
        assert!(!Role::Owner.includes(Role::Operator) && !Role::Owner.includes(Role::Emergency));
        assert!(!Role::Health.includes(Role::Emergency) && !Role::Emergency.includes(Role::Health));
    }
}
