//! Finds the token of a secret or a session: in the settings, the cache or the database.

use super::authority::{Authority, Token};
use super::secret::{self, Secret, base32, digest};
use crate::http::problem::Problem;
use crate::http::rate::RateLimits;
use crate::http::timeout::in_time;
use broker::{Broker, SecretDigest};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::interval;

/// How long tokens and sessions of the database are cached: the longest time that one works after it was
/// revoked or signed out in another process.
const CACHE_TTL: Duration = Duration::from_secs(2);

/// Lifetime of a session: a long working day.
const SESSION_LIFE: Duration = Duration::from_secs(12 * 3_600);

/// Recent answers of the database.
#[derive(Debug, Default)]
struct Entries {
    tokens: BTreeMap<SecretDigest, Token>,
    /// Digests of tokens, by digests of sessions.
    sessions: BTreeMap<SecretDigest, SecretDigest>,
}

#[derive(Debug)]
struct Inner {
    authority: Authority,
    broker: Broker,
    limits: Arc<RateLimits>,
    entries: Mutex<Entries>,
    /// Whether browsers connect over TLS.
    secure: bool,
}

/// Tokens of the settings and, cached, of the database. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct TokenCache(Arc<Inner>);

impl TokenCache {
    /// Starts the task that empties the cache; it stops when the last clone is dropped.
    pub(crate) fn start(
        authority: Authority,
        broker: Broker,
        limits: Arc<RateLimits>,
        secure: bool,
    ) -> TokenCache {
        let entries = Mutex::default();
        let inner = Arc::new(Inner { authority, broker, limits, entries, secure });
        let weak = Arc::downgrade(&inner);
        tokio::spawn(async move {
            let mut ticks = interval(CACHE_TTL);
            loop {
                ticks.tick().await;
                let Some(inner) = weak.upgrade() else { return };
                TokenCache(inner).clear();
            }
        });
        TokenCache(inner)
    }

    /// Tokens of the settings.
    pub(crate) fn authority(&self) -> &Authority {
        &self.0.authority
    }

    /// Whether browsers connect over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.0.secure
    }

    /// Empties the cache.
    pub(crate) fn clear(&self) {
        *self.entries() = Entries::default();
    }

    /// A panic leaves no change half done under this lock.
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token of a secret. An address that sends too many wrong secrets has to wait.
    pub(crate) async fn token(&self, secret: &str, from: IpAddr) -> Result<Token, Problem> {
        let digest = digest(secret);
        let found = match self.0.authority.find(&digest) {
            Some(token) => Some(token.clone()),
            None if secret::may_be_a_token(secret) => self.stored(&digest).await?,
            None => None,
        };
        found.ok_or_else(|| self.wrong(from))
    }

    fn wrong(&self, from: IpAddr) -> Problem {
        if self.0.limits.may_guess(from) {
            Problem::unauthorized("token_unknown", "invalid or expired token")
        } else {
            Problem::too_often("too many invalid tokens from this address", 5)
        }
    }

    /// The token whose secret has this digest.
    pub(crate) async fn by_digest(&self, digest: &SecretDigest) -> Result<Option<Token>, Problem> {
        match self.0.authority.find(digest) {
            Some(token) => Ok(Some(token.clone())),
            None => self.stored(digest).await,
        }
    }

    async fn stored(&self, digest: &SecretDigest) -> Result<Option<Token>, Problem> {
        if let Some(token) = self.entries().tokens.get(digest) {
            return Ok(Some(token.clone()));
        }
        let broker = &self.0.broker;
        let Some(found) = in_time(broker.token(digest)).await? else { return Ok(None) };
        let token = Token {
            name: (&*found.name).into(),
            roles: [found.role].into(),
            owner: found.owner.as_deref().map(Arc::from),
            digest: *digest,
            expires_at: Some(found.expires_at),
        };
        self.entries().tokens.insert(*digest, token.clone());
        if found.used_unsaid
            && let Err(error) = in_time(broker.token_used(found.id)).await
        {
            // The token is valid: reads work while the database is read-only.
            tracing::debug!(?error, "last use of a token not stored");
        }
        Ok(Some(token))
    }

    /// The token that a session cookie was issued for.
    pub(crate) async fn session(&self, cookie: &str) -> Result<Option<Token>, Problem> {
        let session = digest(cookie);
        let cached = self.entries().sessions.get(&session).copied();
        let token = match cached {
            Some(token) => Some(token),
            None => in_time(self.0.broker.session(&session)).await?,
        };
        let Some(token) = token else { return Ok(None) };
        self.entries().sessions.insert(session, token);
        self.by_digest(&token).await
    }

    /// Starts a session; returns the value of its cookie.
    pub(crate) async fn sign_in(&self, token: &Token) -> Result<Secret, Problem> {
        let session = Secret::for_session().map_err(|error| {
            tracing::error!(%error, "sign-in failed");
            Problem::unavailable("no_chance", error.to_string())
        })?;
        let digest = session.digest();
        let begun = self.0.broker.begin_session(&digest, &token.digest, SESSION_LIFE);
        in_time(begun).await?;
        tracing::info!(token = &*token.name, "signed in");
        Ok(session)
    }

    /// Ends the session of a cookie.
    pub(crate) async fn sign_out(&self, cookie: &str) -> Result<(), Problem> {
        let session = digest(cookie);
        in_time(self.0.broker.end_session(&session)).await?;
        self.entries().sessions.remove(&session);
        Ok(())
    }
}

/// The token that forms of a session send, so that pages of other sites cannot send them. It is derived from
/// the cookie, which cannot be derived from it.
pub(crate) fn csrf(session: &str) -> String {
    base32(&digest(&format!("csrf {session}")))
}
