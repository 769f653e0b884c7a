//! Finds out whose a secret is: of the settings' tokens, of the database's, of a session.

use crate::ANSWER_WITHIN;
use crate::api::authority::{Authority, Token};
use crate::api::problem::Problem;
use crate::limits::Limits;
use crate::secret::{self, Secret, base32, digest};
use broker::{Broker, DbError, SecretDigest};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{interval, timeout};

/// For how long it is believed what the database said of a token or a session: whoever is revoked or
/// signed out elsewhere is refused after so long at the latest.
const BELIEVED: Duration = Duration::from_secs(2);

/// How long somebody stays signed in: a long day's work.
const SESSION_LIFE: Duration = Duration::from_secs(12 * 3_600);

/// What the database said of late.
#[derive(Debug, Default)]
struct Known {
    tokens: BTreeMap<SecretDigest, Token>,
    /// Digests of tokens by those of sessions.
    sessions: BTreeMap<SecretDigest, SecretDigest>,
}

#[derive(Debug)]
struct Inner {
    authority: Authority,
    broker: Broker,
    limits: Arc<Limits>,
    known: Mutex<Known>,
    /// Whether browsers reach us by TLS.
    secure: bool,
}

/// Whoever asks is looked up here.
#[derive(Clone, Debug)]
pub(crate) struct Guard(Arc<Inner>);

impl Guard {
    /// Starts to forget what was believed, for as long as anybody has it.
    pub(crate) fn start(
        authority: Authority,
        broker: Broker,
        limits: Arc<Limits>,
        secure: bool,
    ) -> Guard {
        let known = Mutex::default();
        let inner = Arc::new(Inner { authority, broker, limits, known, secure });
        let watched = Arc::downgrade(&inner);
        tokio::spawn(async move {
            let mut ticks = interval(BELIEVED);
            loop {
                ticks.tick().await;
                let Some(inner) = watched.upgrade() else { return };
                Guard(inner).forget();
            }
        });
        Guard(inner)
    }

    /// The tokens of the settings, and who may read.
    pub(crate) fn authority(&self) -> &Authority {
        &self.0.authority
    }

    /// Whether browsers reach us by TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.0.secure
    }

    /// What was believed is asked anew.
    pub(crate) fn forget(&self) {
        *self.known() = Known::default();
    }

    /// Nothing is left half-done under this lock.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token with this secret. Whoever is wrong too often is told to wait.
    pub(crate) async fn token(&self, said: &str, from: IpAddr) -> Result<Token, Problem> {
        let digest = digest(said);
        let found = match self.0.authority.find(&digest) {
            Some(token) => Some(token.clone()),
            None if secret::may_be_a_token(said) => self.stored(&digest).await?,
            None => None,
        };
        found.ok_or_else(|| self.wrong(from))
    }

    fn wrong(&self, from: IpAddr) -> Problem {
        if self.0.limits.may_guess(from) {
            Problem::unauthorized("token_unknown", "this is none of the tokens that are good now")
        } else {
            Problem::too_often("too many secrets from this address were none", 5)
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
        if let Some(token) = self.known().tokens.get(digest) {
            return Ok(Some(token.clone()));
        }
        let broker = &self.0.broker;
        let Some(found) = in_time(broker.token(digest)).await? else { return Ok(None) };
        // A role of a newer program allows nothing here, not even reading.
        let Some(role) = found.role else { return Ok(None) };
        let token = Token {
            name: (&*found.name).into(),
            roles: [role].into(),
            owner: found.owner.as_deref().map(Arc::from),
            digest: *digest,
        };
        self.known().tokens.insert(*digest, token.clone());
        if found.used_unsaid
            && let Err(error) = in_time(broker.token_used(found.id)).await
        {
            // The token is good nevertheless: reading goes on where nothing can be written.
            tracing::debug!(?error, "it was not noted that a token was used");
        }
        Ok(Some(token))
    }

    /// Who is signed in with a cookie that says this.
    pub(crate) async fn session(&self, said: &str) -> Result<Option<Token>, Problem> {
        let session = digest(said);
        let known = self.known().sessions.get(&session).copied();
        let token = match known {
            Some(token) => Some(token),
            None => in_time(self.0.broker.session(&session)).await?,
        };
        let Some(token) = token else { return Ok(None) };
        self.known().sessions.insert(session, token);
        self.by_digest(&token).await
    }

    /// Begins a session: what its cookie says.
    pub(crate) async fn sign_in(&self, token: &Token) -> Result<Secret, Problem> {
        let session = Secret::for_session().map_err(|error| {
            tracing::error!(%error, "nobody can sign in");
            Problem::unavailable("no_chance", error.to_string())
        })?;
        let digest = session.digest();
        let begun = self.0.broker.begin_session(&digest, &token.digest, SESSION_LIFE);
        in_time(begun).await?;
        tracing::info!(token = &*token.name, "signed in");
        Ok(session)
    }

    /// Ends the session of a cookie that says this.
    pub(crate) async fn sign_out(&self, said: &str) -> Result<(), Problem> {
        let session = digest(said);
        in_time(self.0.broker.end_session(&session)).await?;
        self.known().sessions.remove(&session);
        Ok(())
    }
}

/// What forms of a session say so that nobody else's page can send them. It follows from the cookie,
/// and the cookie not from it.
pub(crate) fn csrf(session: &str) -> String {
    base32(&digest(&format!("csrf {session}")))
}

async fn in_time<T>(asked: impl Future<Output = Result<T, DbError>>) -> Result<T, Problem> {
    let late = |_| Problem::unavailable("postgres_unavailable", "Postgres does not answer in time");
    Ok(timeout(ANSWER_WITHIN, asked).await.map_err(late)??)
}
