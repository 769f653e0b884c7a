//! Quotas: limits on the promises of an owner, each in its own measure, and the amounts promised in that
//! measure.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::{Event, LimitSet};
use crate::log::trail::Seq;
use chrono::{DateTime, Utc};
use fleet::quota::Measure;
use fleet::{
    HardwareTypeName, Name, NameError, NewName, OwnerName, PRIORITY_DEFAULT, ReservationName, Rru,
};
use sqlx::PgConnection;
use sqlx::types::Json;
use std::collections::BTreeMap;

pub(crate) mod sql {
    crate::statements! {
        LIMITS = "SELECT q.owner, p.profile::text, h.hardware_type::text, q.limit_micro, q.set_by::text, q.set_at, \
                (SELECT jsonb_object_agg(t.hardware_type, v.value_micro) FROM rru_profile_values v \
                    JOIN hardware_types t USING (hardware_type_id) WHERE v.profile_id = q.profile_id) \
            FROM quota_limits q LEFT JOIN rru_profiles p USING (profile_id) \
            LEFT JOIN hardware_types h ON h.hardware_type_id = q.hardware_type_id \
            WHERE $1::text IS NULL OR q.owner = $1 ORDER BY q.owner, p.profile, h.hardware_type";
        PROMISED = "SELECT p.owner, r.reservation, p.capacity_micro, coalesce((SELECT \
                jsonb_object_agg(h.hardware_type, v.value_micro) FROM rru_values v \
                JOIN hardware_types h USING (hardware_type_id) WHERE v.promise_id = p.promise_id), '{}') \
            FROM reservations r JOIN promises p USING (promise_id) \
            WHERE r.kind = 'guaranteed' AND ($1::text IS NULL OR p.owner = $1) ORDER BY p.owner, r.reservation";
        /// Blocks other changes of quotas until the end of the transaction.
        LOCK = "LOCK TABLE quota_limits IN SHARE ROW EXCLUSIVE MODE";
        REMOVE = "DELETE FROM quota_limits WHERE owner = $1";
        PROFILES = "SELECT profile::text FROM rru_profiles WHERE profile = ANY ($1)";
        TYPES = "SELECT hardware_type::text FROM hardware_types WHERE hardware_type = ANY ($1)";
        ADD = "INSERT INTO quota_limits (owner, profile_id, hardware_type_id, limit_micro, set_by) \
            SELECT $1, p.profile_id, h.hardware_type_id, w.micro, $5 \
            FROM unnest($2::text[], $3::text[], $4::bigint[]) AS w (profile, hardware_type, micro) \
            LEFT JOIN rru_profiles p ON p.profile = w.profile \
            LEFT JOIN hardware_types h ON h.hardware_type = w.hardware_type";
        PRIORITIES = "SELECT owner, max_priority FROM quota_priorities \
            WHERE $1::text IS NULL OR owner = $1 ORDER BY owner";
        PRIORITY = "SELECT max_priority FROM quota_priorities WHERE owner = $1";
        SET_PRIORITY = "INSERT INTO quota_priorities (owner, max_priority, set_by) VALUES ($1, $2, $3)";
        REMOVE_PRIORITY = "DELETE FROM quota_priorities WHERE owner = $1";
        /// Owners with a limit in a profile.
        OWNERS_BY_PROFILE = "SELECT DISTINCT q.owner FROM quota_limits q JOIN rru_profiles p USING (profile_id) \
            WHERE p.profile = $1 ORDER BY 1";
    }
}

/// One limit of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaLimit {
    /// The measure it counts in.
    pub measure: Measure,
    /// The most that the owner's guaranteed reservations may be promised together.
    pub limit: Rru,
    /// The amount promised now.
    pub promised: Rru,
    /// The actor that set it.
    pub set_by: String,
    /// The time it was set.
    pub set_at: DateTime<Utc>,
}

/// A guaranteed reservation of an owner, as quotas count it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaPromise {
    /// The reservation.
    pub reservation: ReservationName,
    /// The capacity C.
    pub capacity: Rru,
    /// RRU values by hardware type.
    pub values: BTreeMap<HardwareTypeName, Rru>,
}

/// The limits and promises of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The owner.
    pub owner: OwnerName,
    /// The limits, all of which must hold; empty: unlimited.
    pub limits: Vec<QuotaLimit>,
    /// The most important priority that the owner may request; `None`: [`fleet::PRIORITY_DEFAULT`].
    pub max_priority: Option<i32>,
    /// The promises by reservation.
    pub promises: Vec<QuotaPromise>,
}

impl Quota {
    /// Whether `more` capacity of a reservation of the owner would exceed a limit.
    pub(crate) fn would_exceed(&self, reservation: &ReservationName, more: Rru) -> bool {
        let Some(of) = self.promises.iter().find(|of| of.reservation == *reservation) else {
            return false;
        };
        self.limits.iter().any(|limit| {
            let grown = limit.measure.of(of.capacity + more, &of.values)
                - limit.measure.of(of.capacity, &of.values);
            grown > Rru::ZERO && limit.promised + grown > limit.limit
        })
    }
}

/// A requested limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaAsked {
    /// In RRU of this profile.
    pub profile: Option<Name>,
    /// In servers of this hardware type; without type and profile, in servers of all types.
    pub hardware_type: Option<HardwareTypeName>,
    /// The limit.
    pub limit: Rru,
}

/// An error in one requested limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaWrong {
    /// The index of the limit, from 0.
    pub nr: usize,
    /// Its field: `profile` or `hardware_type`.
    pub field: &'static str,
    /// A code for programs.
    pub reason: &'static str,
    /// A sentence for people.
    pub detail: String,
}

/// Quotas cannot be set; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum QuotaError {
    #[error("owner: {0}")]
    Owner(NameError),
    #[error("{} limits are wrong", .0.len())]
    Limits(Vec<QuotaWrong>),
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Broker {
    /// Replaces the quota of an owner: its limits, and the most important priority that it may request. An empty list
    /// removes the limits. Existing promises stay, and may shrink.
    ///
    /// # Errors
    /// [`QuotaError`], with every invalid limit.
    pub async fn set_quota(
        &self,
        actor: &str,
        owner: &str,
        limits: &[QuotaAsked],
        max_priority: Option<i32>,
    ) -> Result<Seq, QuotaError> {
        let doing = "setting quotas";
        let rule = NewName::parse(owner).err();
        if let Some(error) = rule.clone().filter(|_| owner.contains('\0')) {
            return Err(QuotaError::Owner(error));
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        sqlx::query(sql::LOCK).execute(&mut *db).await.doing(doing)?;
        check(db, limits).await?;
        let before = read(db, Some(owner)).await?.pop();
        // An owner that is there already keeps its name.
        if let Some(error) = rule.filter(|_| before.is_none()) {
            return Err(QuotaError::Owner(error));
        }
        let (before, before_priority) =
            before.map(|of| (of.limits, of.max_priority)).unwrap_or_default();
        remove(db, owner).await?;
        if let Some(most) = max_priority {
            let set = sqlx::query(sql::SET_PRIORITY).bind(owner).bind(most).bind(actor);
            set.execute(&mut *db).await.doing(doing)?;
        }
        let name = |of: Option<&str>| of.map(ToOwned::to_owned);
        let added = sqlx::query(sql::ADD)
            .bind(owner)
            .bind(limits.iter().map(|of| name(of.profile.as_deref())).collect::<Vec<_>>())
            .bind(limits.iter().map(|of| name(of.hardware_type.as_deref())).collect::<Vec<_>>())
            .bind(limits.iter().map(|of| of.limit.0).collect::<Vec<_>>())
            .bind(actor);
        added.execute(&mut *db).await.doing(doing)?;
        let after = read(db, Some(owner)).await?.pop().map(|of| of.limits).unwrap_or_default();
        let event = Event::QuotaSet {
            before: amounts(&before),
            limits: amounts(&after),
            before_max_priority: before_priority,
            max_priority,
        };
        change.record(owner, event);
        Ok(change.commit().await?)
    }

    /// Removes the quota of an owner; false: it had none.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn remove_quota(&self, actor: &str, owner: &str) -> Result<bool, DbError> {
        if owner.contains('\0') {
            return Ok(false);
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        sqlx::query(sql::LOCK).execute(&mut *db).await.doing("removing quotas")?;
        let any = |of: &Quota| !of.limits.is_empty() || of.max_priority.is_some();
        let before = read(db, Some(owner)).await?.pop().filter(any);
        let Some(before) = before else {
            change.abandon().await?;
            return Ok(false);
        };
        remove(db, owner).await?;
        let event = Event::QuotaSet {
            before: amounts(&before.limits),
            limits: Vec::new(),
            before_max_priority: before.max_priority,
            max_priority: None,
        };
        change.record(owner, event);
        change.commit().await?;
        Ok(true)
    }

    /// The most important priority that an owner may request, by its quota or by default.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn max_priority(&self, owner: &str) -> Result<i32, DbError> {
        let most = sqlx::query_scalar(sql::PRIORITY).bind(owner).fetch_optional(&self.pool).await;
        Ok(most.doing("reading a quota")?.unwrap_or(PRIORITY_DEFAULT))
    }

    /// Quotas and promises by owner: of all owners with either, or of one.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn quotas(&self, owner: Option<&str>) -> Result<Vec<Quota>, DbError> {
        let mut db = self.pool.acquire().await.doing("connecting")?;
        read(&mut db, owner).await
    }
}

/// Removes the limits and the priority of an owner.
async fn remove(db: &mut PgConnection, owner: &str) -> Result<(), DbError> {
    for statement in [sql::REMOVE, sql::REMOVE_PRIORITY] {
        sqlx::query(statement).bind(owner).execute(&mut *db).await.doing("removing quotas")?;
    }
    Ok(())
}

async fn check(db: &mut PgConnection, limits: &[QuotaAsked]) -> Result<(), QuotaError> {
    let doing = "looking limits up";
    let mut wrong = Vec::new();
    type NamedBy = fn(&QuotaAsked) -> Option<&str>;
    let fields: [(_, _, _, NamedBy); 2] = [
        ("profile", "unknown_profile", sql::PROFILES, |of| of.profile.as_deref()),
        ("hardware_type", "unknown_hardware_type", sql::TYPES, |of| of.hardware_type.as_deref()),
    ];
    for (field, reason, statement, of) in fields {
        let names = limits.iter().filter_map(of).filter(|name| !name.contains('\0'));
        let names: Vec<&str> = names.collect();
        let known = sqlx::query_scalar(statement).bind(names).fetch_all(&mut *db).await;
        let known: Vec<String> = known.doing(doing)?;
        for (nr, name) in limits.iter().enumerate().filter_map(|(nr, row)| Some((nr, of(row)?))) {
            if !known.iter().any(|known| known == name) {
                let detail = format!("there is no {} {name:?}", field.replace('_', " "));
                wrong.push(QuotaWrong { nr, field, reason, detail });
            }
        }
    }
    for (nr, row) in limits.iter().enumerate() {
        if row.profile.is_some() && row.hardware_type.is_some() {
            let detail = "a limit is in RRU of a profile or in servers, not both".to_owned();
            wrong.push(QuotaWrong { nr, field: "hardware_type", reason: "two_measures", detail });
        }
        let same = |other: &QuotaAsked| {
            (&other.profile, &other.hardware_type) == (&row.profile, &row.hardware_type)
        };
        if limits[..nr].iter().any(same) {
            let detail = "two limits have the same measure".to_owned();
            wrong.push(QuotaWrong { nr, field: "profile", reason: "duplicate", detail });
        }
    }
    wrong.sort_by_key(|of| of.nr);
    if wrong.is_empty() { Ok(()) } else { Err(QuotaError::Limits(wrong)) }
}

type LimitRow = (
    String,
    Option<String>,
    Option<String>,
    i64,
    String,
    DateTime<Utc>,
    Option<Json<BTreeMap<String, i64>>>,
);

fn values(of: BTreeMap<String, i64>) -> BTreeMap<HardwareTypeName, Rru> {
    of.into_iter().map(|(ty, micro)| (ty.into(), Rru(micro))).collect()
}

/// Reads quotas within a transaction.
pub(crate) async fn read(
    db: &mut PgConnection,
    owner: Option<&str>,
) -> Result<Vec<Quota>, DbError> {
    select(db, owner).await.doing("reading quotas")
}

/// Owner, reservation, promised micro-RRU, and values by hardware type.
type PromiseRow = (String, String, i64, Json<BTreeMap<String, i64>>);

async fn select(db: &mut PgConnection, owner: Option<&str>) -> Result<Vec<Quota>, sqlx::Error> {
    let mut all: BTreeMap<String, Quota> = BTreeMap::new();
    let of = |owner: &str| Quota {
        owner: owner.into(),
        limits: Vec::new(),
        max_priority: None,
        promises: Vec::new(),
    };
    let rows: Vec<PromiseRow> =
        sqlx::query_as(sql::PROMISED).bind(owner).fetch_all(&mut *db).await?;
    for (owner, reservation, micro, Json(worth)) in rows {
        let quota = all.entry(owner).or_insert_with_key(|owner| of(owner));
        let (reservation, capacity) = (reservation.into(), Rru(micro));
        quota.promises.push(QuotaPromise { reservation, capacity, values: values(worth) });
    }
    let rows: Vec<LimitRow> = sqlx::query_as(sql::LIMITS).bind(owner).fetch_all(&mut *db).await?;
    for (owner, profile, hardware_type, limit, set_by, set_at, worth) in rows {
        let quota = all.entry(owner).or_insert_with_key(|owner| of(owner));
        let measure = match (profile, hardware_type) {
            (Some(profile), _) => {
                let rru = worth.map(|Json(worth)| values(worth)).unwrap_or_default();
                Measure::Profile { profile: profile.into(), rru }
            }
            (None, Some(hardware_type)) => Measure::ServersOf(hardware_type.into()),
            (None, None) => Measure::Servers,
        };
        let promised = (quota.promises.iter())
            .map(|of| measure.of(of.capacity, &of.values))
            .fold(Rru::ZERO, |sum, of| Rru(sum.0.saturating_add(of.0)));
        quota.limits.push(QuotaLimit { measure, limit: Rru(limit), promised, set_by, set_at });
    }
    let rows: Vec<(String, i32)> =
        sqlx::query_as(sql::PRIORITIES).bind(owner).fetch_all(&mut *db).await?;
    for (owner, most) in rows {
        all.entry(owner).or_insert_with_key(|owner| of(owner)).max_priority = Some(most);
    }
    Ok(all.into_values().collect())
}

/// The amounts promised to owners, in the measure of each limit.
pub(crate) type Promised = BTreeMap<(OwnerName, Measure), Rru>;

/// The present amounts, for a later comparison.
pub(crate) fn promised(quotas: &[Quota]) -> Promised {
    let limits = quotas.iter().flat_map(|of| of.limits.iter().map(|limit| (&of.owner, limit)));
    limits.map(|(owner, of)| ((owner.clone(), of.measure.clone()), of.promised)).collect()
}

/// The first limit that is exceeded by more than before.
pub(crate) fn exceeded(quotas: Vec<Quota>, before: &Promised) -> Option<(OwnerName, QuotaLimit)> {
    let mut limits = quotas.into_iter().flat_map(|of| {
        let owner = of.owner;
        of.limits.into_iter().map(move |limit| (owner.clone(), limit))
    });
    limits.find(|(owner, of)| {
        let before = before.get(&(owner.clone(), of.measure.clone()));
        of.promised > of.limit && of.promised > before.copied().unwrap_or_default()
    })
}

fn amounts(limits: &[QuotaLimit]) -> Vec<LimitSet> {
    let amount =
        |of: &QuotaLimit| LimitSet { of: of.measure.to_string(), limit: of.limit.to_f64() };
    limits.iter().map(amount).collect()
}
