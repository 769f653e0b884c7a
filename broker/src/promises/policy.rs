//! Policies in SQL that the solves of the region keep, in versions. This crate does not read their text.
//!
//! Every change has a number among all of them, its *edition*. The largest edition names the policies in force, so a solve
//! notes the edition that it keeps, and a change says which edition its author has checked it with.

use crate::access::idempotency::{self, KeyClaim};
use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::words;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use chrono::{DateTime, Utc};
use fleet::Name;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::BTreeSet;

pub(crate) mod sql {
    crate::statements! {
        /// Changes take turns, so that each gets the next number.
        ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('policies', 0))";
        EDITION = "SELECT coalesce(max(edition), 0) FROM policy_versions";
        ADD = "INSERT INTO policy_versions (edition, policy, version, sql, why, changed_by) \
            VALUES ($1, $2, $3, $4, $5, $6) RETURNING edition, policy, version, sql, why, changed_by::text, changed_at";
        /// The last version of each policy, or of one.
        LAST = "SELECT DISTINCT ON (policy) edition, policy, version, sql, why, changed_by::text, changed_at \
            FROM policy_versions WHERE $1::text IS NULL OR policy = $1 ORDER BY policy, version DESC";
        VERSIONS = "SELECT edition, policy, version, sql, why, changed_by::text, changed_at \
            FROM policy_versions WHERE policy = $1 ORDER BY version DESC";
        OF_SOLVE = "SELECT policies FROM solves WHERE solve_id = $1";
    }
}

/// Longest name of a policy, in characters.
pub const POLICY_NAME_MAX: usize = 63;

/// Longest text of a policy, in bytes.
pub const POLICY_BYTES_MAX: usize = 262_144;

/// Longest reason for a change of a policy, in characters.
pub const POLICY_WHY_MAX: usize = 1_000;

/// The number of the last change of any policy; 0: there was no change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoliciesEdition(pub i32);

/// A version of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyVersion {
    /// The change that made it.
    pub edition: PoliciesEdition,
    /// The policy's name.
    pub policy: Name,
    /// 1, 2, 3, ... of this policy.
    pub version: i32,
    /// Its statements; `None`: the policy is withdrawn from then on.
    pub sql: Option<String>,
    /// Why it was changed.
    pub why: String,
    /// The actor that changed it.
    pub changed_by: String,
    /// When.
    pub changed_at: DateTime<Utc>,
}

impl PolicyVersion {
    /// For `If-Match`.
    pub fn tag(&self) -> String {
        self.version.to_string()
    }
}

/// The policies of the region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    /// The last change.
    pub edition: PoliciesEdition,
    /// The last version of each, by name, withdrawn ones included.
    pub last: Vec<PolicyVersion>,
}

impl Policies {
    /// Names and texts of the policies in force, by name.
    pub fn in_force(&self) -> impl Iterator<Item = (&Name, &str)> {
        self.last.iter().filter_map(|of| Some((&of.policy, of.sql.as_deref()?)))
    }
}

/// A change of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyChange<'a> {
    /// The policy.
    pub policy: &'a str,
    /// Its new statements; `None` withdraws it.
    pub sql: Option<&'a str>,
}

/// Changes that count together.
#[derive(Clone, Copy, Debug)]
pub struct PolicyChanges<'a> {
    /// The changes, of different policies.
    pub changes: &'a [PolicyChange<'a>],
    /// Why.
    pub why: &'a str,
    /// The edition that they were checked with.
    pub checked: PoliciesEdition,
    /// Only if this is still the last version of the first policy.
    pub seen: Option<&'a str>,
}

/// The answer that is stored with the key of a request that changes policies.
pub type PolicyAnswer<'a> = &'a (dyn Fn(&[PolicyVersion]) -> Document + Sync);

/// Policies cannot be changed; nothing was.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum PolicyError {
    #[error(
        "policy {policy:?}: a name has lower case letters, digits and _, begins with a letter, and has at most {POLICY_NAME_MAX} characters"
    )]
    Name { policy: String },
    #[error("policy {policy:?}: its text has {bytes} bytes; it has 1 to {POLICY_BYTES_MAX}")]
    Length { policy: Name, bytes: usize },
    #[error("policy {policy:?}: its text has a NUL character")]
    Nul { policy: Name },
    #[error("why: it has at most {POLICY_WHY_MAX} characters and no NUL")]
    Why,
    #[error("policy {policy:?} is changed twice")]
    Twice { policy: Name },
    #[error("there is no policy {policy:?} in force")]
    Unknown { policy: Name },
    #[error("it has changed since it was seen")]
    Stale { current: String },
    #[error("other policies were changed meanwhile")]
    Meanwhile,
    #[error("the key of this request has expired")]
    KeyLost,
    #[error(transparent)]
    Db(#[from] DbError),
}

fn version(row: &PgRow) -> Result<PolicyVersion, sqlx::Error> {
    Ok(PolicyVersion {
        edition: PoliciesEdition(row.try_get(0)?),
        policy: words::name(row, 1)?,
        version: row.try_get(2)?,
        sql: row.try_get(3)?,
        why: row.try_get(4)?,
        changed_by: row.try_get(5)?,
        changed_at: row.try_get(6)?,
    })
}

impl PolicyChanges<'_> {
    /// Checks what needs no database.
    ///
    /// # Errors
    /// [`PolicyError`] of a name, a text or the reason.
    pub fn check(&self) -> Result<(), PolicyError> {
        if self.why.chars().count() > POLICY_WHY_MAX || self.why.contains('\0') {
            return Err(PolicyError::Why);
        }
        let mut names = BTreeSet::new();
        for PolicyChange { policy, sql } in self.changes {
            let mut chars = policy.chars();
            let fits = chars.next().is_some_and(|first| first.is_ascii_lowercase())
                && chars.all(|of| of.is_ascii_lowercase() || of.is_ascii_digit() || of == '_')
                && policy.len() <= POLICY_NAME_MAX;
            if !fits {
                return Err(PolicyError::Name { policy: (*policy).to_owned() });
            }
            let name = || Name::from(*policy);
            if !names.insert(policy) {
                return Err(PolicyError::Twice { policy: name() });
            }
            let Some(sql) = sql else { continue };
            if !(1..=POLICY_BYTES_MAX).contains(&sql.len()) {
                return Err(PolicyError::Length { policy: name(), bytes: sql.len() });
            }
            if sql.contains('\0') {
                return Err(PolicyError::Nul { policy: name() });
            }
        }
        Ok(())
    }
}

impl Broker {
    /// Changes policies, all or none: each gets a new version. `key`: a claimed idempotency key with its answer, stored in the
    /// same transaction.
    ///
    /// # Errors
    /// [`PolicyError`]; [`PolicyError::Meanwhile`] if the policies in force are not those of `checked` any more.
    pub async fn change_policies(
        &self,
        actor: &str,
        of: PolicyChanges<'_>,
        key: Option<(KeyClaim, PolicyAnswer<'_>)>,
    ) -> Result<Vec<PolicyVersion>, PolicyError> {
        let doing = "changing policies";
        of.check()?;
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        sqlx::query(sql::ONE_AT_A_TIME).execute(&mut *db).await.doing(doing)?;
        let PoliciesEdition(mut edition) = edition(db).await.doing(doing)?;
        let mut made = Vec::new();
        for (position, PolicyChange { policy, sql }) in of.changes.iter().enumerate() {
            let last = last(db, Some(*policy)).await.doing(doing)?.pop();
            if let Some(seen) = of.seen.filter(|_| position == 0) {
                match &last {
                    None => return Err(PolicyError::Unknown { policy: (*policy).into() }),
                    Some(last) if last.tag() != seen => {
                        return Err(PolicyError::Stale { current: last.tag() });
                    }
                    Some(_) => {}
                }
            }
            if sql.is_none() && last.as_ref().is_none_or(|last| last.sql.is_none()) {
                return Err(PolicyError::Unknown { policy: (*policy).into() });
            }
            if position == 0 && PoliciesEdition(edition) != of.checked {
                return Err(PolicyError::Meanwhile);
            }
            edition += 1;
            let number = last.map_or(0, |last| last.version) + 1;
            let added = sqlx::query(sql::ADD)
                .bind(edition)
                .bind(policy)
                .bind(number)
                .bind(sql)
                .bind(of.why)
                .bind(actor)
                .try_map(|row: PgRow| version(&row));
            made.push(added.fetch_one(&mut *db).await.doing(doing)?);
        }
        if let Some((claim, answer)) = key
            && !idempotency::answer(db, claim, &answer(&made)).await?
        {
            return Err(PolicyError::KeyLost);
        }
        for of in &made {
            let (version, edition, why) = (of.version, of.edition.0, of.why.as_str());
            let event = match of.sql {
                Some(_) => Event::PolicySet { version, edition, why },
                None => Event::PolicyWithdrawn { version, edition, why },
            };
            change.record(&of.policy, event);
        }
        if made.is_empty() {
            change.abandon().await?;
        } else {
            change.commit().await?;
        }
        Ok(made)
    }

    /// The policies of the region: the last version of each.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn policies(&self) -> Result<Policies, DbError> {
        let doing = "reading the policies";
        let mut db = self.pool.acquire().await.doing(doing)?;
        // One statement, so that all are of one instant.
        let last = last(&mut db, None).await.doing(doing)?;
        let edition = last.iter().map(|of| of.edition).max().unwrap_or_default();
        Ok(Policies { edition, last })
    }

    /// Every version of a policy, the last one first; empty: there never was one of this name.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn policy_versions(&self, policy: &str) -> Result<Vec<PolicyVersion>, DbError> {
        if policy.contains('\0') {
            return Ok(Vec::new());
        }
        let rows = sqlx::query(sql::VERSIONS).bind(policy).try_map(|row: PgRow| version(&row));
        rows.fetch_all(&self.pool).await.doing("reading the versions of a policy")
    }
}

async fn edition(db: &mut PgConnection) -> Result<PoliciesEdition, sqlx::Error> {
    sqlx::query_scalar(sql::EDITION).fetch_one(db).await.map(PoliciesEdition)
}

async fn last(
    db: &mut PgConnection,
    policy: Option<&str>,
) -> Result<Vec<PolicyVersion>, sqlx::Error> {
    let rows = sqlx::query(sql::LAST).bind(policy).try_map(|row: PgRow| version(&row));
    rows.fetch_all(db).await
}

/// The editions that a solve kept and that is in force, if they differ.
pub(crate) async fn changed_since(
    db: &mut PgConnection,
    solve: crate::infra::id::SolveId,
) -> Result<Option<(PoliciesEdition, PoliciesEdition)>, sqlx::Error> {
    let kept: Option<i32> =
        sqlx::query_scalar(sql::OF_SOLVE).bind(solve).fetch_optional(&mut *db).await?;
    let now = edition(db).await?;
    Ok(kept.map(PoliciesEdition).filter(|kept| *kept != now).map(|kept| (kept, now)))
}
