//! RRU profiles: named RRU values by hardware type, for use in requests.
//!
//! A request takes the profile's values at its submission, and the promise stores them: later changes of a
//! profile change no promise.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::log::trail::Seq;
use chrono::{DateTime, Utc};
use fleet::{HardwareTypeName, Name, NameError, NewName, Rru};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgConnection, Row};
use std::collections::BTreeMap;

pub(crate) mod sql {
    crate::statements! {
        SET = "INSERT INTO rru_profiles (profile, set_by) VALUES ($1, $2) \
            ON CONFLICT (profile) DO UPDATE SET set_by = excluded.set_by, set_at = clock_timestamp() \
            RETURNING profile_id";
        /// Blocks other changes of the profile until the end of the transaction.
        HOLD = "SELECT set_at FROM rru_profiles WHERE profile = $1 FOR UPDATE";
        CLEAR = "DELETE FROM rru_profile_values WHERE profile_id = $1";
        KNOWN = "SELECT hardware_type::text FROM hardware_types WHERE hardware_type = ANY ($1)";
        SET_VALUES = "INSERT INTO rru_profile_values (profile_id, hardware_type_id, value_micro) \
            SELECT $1, h.hardware_type_id, v.micro FROM unnest($2::text[], $3::bigint[]) AS v (name, micro) \
            JOIN hardware_types h ON h.hardware_type = v.name";
        REMOVE = "DELETE FROM rru_profiles WHERE profile = $1";
        /// All profiles, or one.
        PROFILES = "SELECT p.profile::text, p.set_by::text, p.set_at, \
                coalesce((SELECT jsonb_object_agg(h.hardware_type, v.value_micro) \
                    FROM rru_profile_values v JOIN hardware_types h USING (hardware_type_id) \
                    WHERE v.profile_id = p.profile_id), '{}') \
            FROM rru_profiles p WHERE $1::text IS NULL OR p.profile = $1 ORDER BY p.profile";
    }
}

/// An RRU profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RruProfile {
    /// The profile's name.
    pub profile: Name,
    /// RRU values by hardware type.
    pub rru: BTreeMap<HardwareTypeName, Rru>,
    /// The actor that last set it.
    pub set_by: String,
    /// The time it was last set.
    pub set_at: DateTime<Utc>,
}

impl RruProfile {
    /// A version that changes whenever the profile is set.
    pub fn version(&self) -> String {
        version(self.set_at)
    }
}

fn version(set_at: DateTime<Utc>) -> String {
    set_at.timestamp_micros().to_string()
}

/// An RRU profile cannot be set or removed; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ProfileError {
    #[error("name: {0}")]
    Name(NameError),
    #[error("rru: it names no hardware type")]
    Empty,
    #[error("rru.{hardware_type}: the value must be above 0")]
    Worthless { hardware_type: HardwareTypeName },
    #[error("rru.{hardware_type}: the region has no such hardware type")]
    UnknownType { hardware_type: HardwareTypeName },
    #[error("there is no RRU profile {profile:?}")]
    Unknown { profile: Name },
    #[error("it has changed since it was seen")]
    Stale { current: String },
    #[error("quotas count in profile {profile:?}: of {}; set them otherwise first", owners.join(", "))]
    InUse { profile: Name, owners: Vec<String> },
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Broker {
    /// Sets a profile, replacing an existing one. `seen`: only if this is the current version.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub async fn set_rru_profile(
        &self,
        actor: &str,
        profile: &str,
        rru: &BTreeMap<HardwareTypeName, Rru>,
        seen: Option<&str>,
    ) -> Result<Seq, ProfileError> {
        let doing = "setting an RRU profile";
        let rule = NewName::parse(profile).err();
        if let Some(error) = rule.clone().filter(|_| profile.contains('\0')) {
            return Err(ProfileError::Name(error));
        }
        if rru.is_empty() {
            return Err(ProfileError::Empty);
        }
        if let Some((hardware_type, _)) = rru.iter().find(|(_, value)| **value <= Rru::ZERO) {
            return Err(ProfileError::Worthless { hardware_type: hardware_type.clone() });
        }
        let unknown =
            |ty: &HardwareTypeName| ProfileError::UnknownType { hardware_type: ty.clone() };
        if let Some(ty) = rru.keys().find(|ty| ty.contains('\0')) {
            return Err(unknown(ty));
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        hold(db, profile, seen).await?;
        // A profile that is there already keeps its name.
        if let Some(error) = rule
            && read(db, Some(profile)).await?.is_empty()
        {
            return Err(ProfileError::Name(error));
        }
        let names: Vec<&str> = rru.keys().map(AsRef::as_ref).collect();
        let known = sqlx::query_scalar(sql::KNOWN).bind(&names);
        let known: Vec<String> = known.fetch_all(&mut *db).await.doing(doing)?;
        if let Some(ty) = rru.keys().find(|ty| !known.iter().any(|known| **known == ***ty)) {
            return Err(unknown(ty));
        }
        let set = sqlx::query_scalar(sql::SET).bind(profile).bind(actor);
        let id: i32 = set.fetch_one(&mut *db).await.doing(doing)?;
        let before = read(db, Some(profile)).await?.pop();
        sqlx::query(sql::CLEAR).bind(id).execute(&mut *db).await.doing(doing)?;
        let values: Vec<i64> = rru.values().map(|value| value.0).collect();
        let set = sqlx::query(sql::SET_VALUES).bind(id).bind(&names).bind(values);
        set.execute(&mut *db).await.doing(doing)?;
        let before_rru = before.as_ref().filter(|of| !of.rru.is_empty()).map(|of| amounts(&of.rru));
        change.record(profile, Event::ProfileSet { before_rru, rru: amounts(rru) });
        Ok(change.commit().await?)
    }

    /// Removes a profile. Promises made with it stay. `seen`: only if this is the current version.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub async fn remove_rru_profile(
        &self,
        actor: &str,
        profile: &str,
        seen: Option<&str>,
    ) -> Result<Seq, ProfileError> {
        let unknown = || ProfileError::Unknown { profile: profile.into() };
        if profile.contains('\0') {
            return Err(unknown());
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        hold(db, profile, seen).await?;
        let before = read(db, Some(profile)).await?.pop().ok_or_else(unknown)?;
        let owners =
            sqlx::query_scalar(crate::promises::quota::sql::OWNERS_BY_PROFILE).bind(profile);
        let owners: Vec<String> =
            owners.fetch_all(&mut *db).await.doing("looking for quotas of a profile")?;
        if !owners.is_empty() {
            return Err(ProfileError::InUse { profile: profile.into(), owners });
        }
        let removed = sqlx::query(sql::REMOVE).bind(profile).execute(db).await;
        // Another caller may have removed it first.
        if removed.doing("removing an RRU profile")?.rows_affected() == 0 {
            return Err(unknown());
        }
        change.record(profile, Event::ProfileRemoved { before_rru: amounts(&before.rru) });
        Ok(change.commit().await?)
    }

    /// Lists profiles by name, or reads one.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn rru_profiles(&self, profile: Option<&str>) -> Result<Vec<RruProfile>, DbError> {
        if profile.is_some_and(|profile| profile.contains('\0')) {
            return Ok(Vec::new());
        }
        let mut db = self.pool.acquire().await.doing("connecting")?;
        read(&mut db, profile).await
    }
}

/// Locks a profile and compares its version with the one that was seen.
async fn hold(
    db: &mut PgConnection,
    profile: &str,
    seen: Option<&str>,
) -> Result<(), ProfileError> {
    let held = sqlx::query_scalar(sql::HOLD).bind(profile).fetch_optional(db).await;
    let held: Option<DateTime<Utc>> = held.doing("looking at an RRU profile")?;
    let Some(seen) = seen else { return Ok(()) };
    match held.map(version) {
        None => Err(ProfileError::Unknown { profile: profile.into() }),
        Some(current) if current != seen => Err(ProfileError::Stale { current }),
        Some(_) => Ok(()),
    }
}

async fn read(db: &mut PgConnection, profile: Option<&str>) -> Result<Vec<RruProfile>, DbError> {
    let rows = sqlx::query(sql::PROFILES).bind(profile).try_map(|row: PgRow| {
        let Json(values): Json<BTreeMap<String, i64>> = row.try_get(3)?;
        let values = values.into_iter().map(|(ty, micro)| (ty.into(), Rru(micro)));
        Ok(RruProfile {
            profile: row.try_get::<&str, _>(0)?.into(),
            rru: values.collect(),
            set_by: row.try_get(1)?,
            set_at: row.try_get(2)?,
        })
    });
    rows.fetch_all(db).await.doing("reading RRU profiles")
}

fn amounts(rru: &BTreeMap<HardwareTypeName, Rru>) -> BTreeMap<&HardwareTypeName, f64> {
    rru.iter().map(|(ty, value)| (ty, value.to_f64())).collect()
}
