//! What operators change of a region beside guaranteed reservations, piece by piece.
//!
//! A piece is changed in the rows that a snapshot of the region would have, the rules of the snapshot
//! format judge them, and what differs is written as an import would write it. So a region is the same
//! whether it was made over HTTP or imported. The whole region is read for that, under the lock of an
//! import: such changes are rare (docs/decisions/0026-an-edit-reads-the-region.md has what it costs).
//!
//! The targets keep their version: a solve under way is published, and skips servers whose generation
//! moved.

use crate::broker::Broker;
use crate::change::Change;
use crate::decommission;
use crate::error::{DbError, Doing};
use crate::idempotency::{self, KeyClaim};
use crate::load::{self, write};
use crate::plan::ImportPlan;
use crate::promise;
use crate::stored::{self, Stored};
use crate::trail::{Action, Seq};
use chrono::{DateTime, Utc};
use fleet::edit::{self, ElasticAsked, RegionSettings, ServerEdit, ServerPlan, WrongField};
use fleet::{Name, ReservationKind, SnapshotParts};
use serde_json::{Value, json};
use sqlx::PgConnection;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

pub(crate) mod sql {
    crate::statements! {
        TYPES = "SELECT h.hardware_type::text, (SELECT count(*) FROM servers s \
                WHERE s.hardware_type_id = h.hardware_type_id), r.reservation, p.capacity_micro, r.made, \
                (SELECT count(*) FROM servers s WHERE s.current_reservation_id = r.reservation_id) \
            FROM hardware_types h LEFT JOIN reservations r ON r.buffer_type_id = h.hardware_type_id \
            LEFT JOIN promises p USING (promise_id) \
            WHERE NOT h.removed OR EXISTS (SELECT FROM servers s WHERE s.hardware_type_id = h.hardware_type_id) \
            ORDER BY 1";
        ADD_TYPES = "INSERT INTO hardware_types (hardware_type) SELECT unnest($1::text[]) \
            ON CONFLICT (hardware_type) DO UPDATE SET removed = false WHERE hardware_types.removed RETURNING hardware_type::text";
        ELASTIC = "SELECT r.reservation, p.owner, p.priority, p.host_profile, r.loan_share, r.ending, p.version, \
                coalesce((SELECT jsonb_object_agg(h.hardware_type, v.value_micro) FROM rru_values v \
                    JOIN hardware_types h USING (hardware_type_id) WHERE v.promise_id = p.promise_id), '{}'), \
                (SELECT count(*) FROM servers s WHERE s.loan_reservation_id = r.reservation_id) \
            FROM reservations r JOIN promises p USING (promise_id) \
            WHERE r.kind = 'elastic' AND ($1::text IS NULL OR r.reservation = $1) ORDER BY 1";
        SET_SHARE = "UPDATE reservations SET loan_share = $2, ending = false WHERE reservation = $1";
        END_ELASTIC = "UPDATE reservations SET ending = true WHERE reservation = $1 AND kind = 'elastic' \
            AND NOT ending";
        /// Elastic reservations that ended and borrow nothing any more.
        REMOVE_ENDED = "DELETE FROM reservations r WHERE r.kind = 'elastic' AND r.ending \
            AND NOT EXISTS (SELECT FROM servers s WHERE s.loan_reservation_id = r.reservation_id) \
            RETURNING reservation";
        /// Servers with a move under way, of whatever origin.
        MOVING = "SELECT s.server::text FROM moves m JOIN servers s USING (server_id) WHERE m.open";
    }
}

/// A region cannot be changed; nothing was.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum EditError {
    #[error("no region is loaded")]
    NothingLoaded,
    #[error("{}", sentence(.0))]
    Wrong(Vec<WrongField>),
    #[error("the region has no hardware type {name:?}")]
    UnknownType { name: Name },
    #[error("there is no elastic reservation {name:?}")]
    UnknownElastic { name: Name },
    #[error("it has changed since it was seen")]
    Stale { current: String },
    #[error("the idempotency key was taken by another request")]
    KeyLost,
    #[error(transparent)]
    Db(#[from] DbError),
}

fn sentence(wrong: &[WrongField]) -> String {
    match wrong {
        [one] => format!("{}: {}", one.field, one.detail),
        many => format!("{} fields are wrong", many.len()),
    }
}

/// The region's prices, limits and buffer fraction, by a version that changes with any of them.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSettings {
    /// The region.
    pub region: Name,
    /// What is set.
    pub settings: RegionSettings,
}

impl StoredSettings {
    /// Changes whenever any of it does.
    pub fn version(&self) -> String {
        version(&json!([self.region, settings_json(&self.settings)]))
    }
}

fn version(of: &Value) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, of.to_string().as_bytes()).to_string()
}

/// All that is said of prices and limits, by the names of `region.json`.
pub fn settings_json(of: &RegionSettings) -> Value {
    let weights = &of.weights;
    json!({
        "move_in_use": weights.move_in_use, "move_idle": weights.move_idle,
        "spread_beta": weights.spread_beta, "buffer_tau": weights.buffer_tau,
        "msb_alpha": weights.msb_alpha, "rack_alpha": weights.rack_alpha,
        "affinity_theta": weights.affinity_theta,
        "shared_buffer_fraction": of.shared_buffer_fraction,
    })
}

/// A hardware type and its shared buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardwareType {
    /// Its name.
    pub hardware_type: Name,
    /// Servers of it.
    pub servers: u64,
    /// Its shared buffer; `None`: it has none.
    pub buffer: Option<SharedBuffer>,
}

/// The shared buffer of a hardware type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedBuffer {
    /// Its reservation.
    pub reservation: Name,
    /// Servers it is to have.
    pub wanted: u64,
    /// Servers it has.
    pub held: u64,
    /// Whether it is listed; else the region's fraction makes it.
    pub listed: bool,
}

impl HardwareType {
    /// Changes whenever its buffer is set.
    pub fn version(&self) -> String {
        let buffer = self.buffer.as_ref().map(|of| json!([of.reservation, of.wanted, of.listed]));
        version(&json!([self.hardware_type, buffer]))
    }
}

/// An elastic reservation.
#[derive(Clone, Debug, PartialEq)]
pub struct Elastic {
    /// Its name.
    pub reservation: Name,
    /// What was asked.
    pub asked: ElasticAsked,
    /// The share by which it is served; `None`: what the mover's settings say, else 1.
    pub share: Option<f64>,
    /// Whether it ends: it goes as soon as it borrows nothing.
    pub ending: bool,
    /// The version of the promise.
    pub promise_version: i32,
    /// Servers it borrows.
    pub borrows: u64,
}

impl Elastic {
    /// Changes whenever it is set or ended.
    pub fn version(&self) -> String {
        version(&json!([self.reservation, self.promise_version, self.share, self.ending]))
    }

    fn json(&self) -> Value {
        json!({
            "owner": self.asked.owner, "rru": self.asked.rru, "priority": self.asked.priority,
            "host_profile": self.asked.host_profile, "share": self.share,
        })
    }
}

/// What became of an elastic reservation that was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElasticEnd {
    /// It borrowed nothing and is gone.
    Gone,
    /// It is removed once that many servers are back.
    Returning(u64),
}

/// The answer of an idempotency key, made of what came of it.
pub type EditAnswer<'a> = (KeyClaim, &'a (dyn Fn(&ServerPlan) -> Value + Sync));

/// A region being edited.
struct Editing {
    stored: Stored,
    parts: SnapshotParts,
    known: BTreeSet<Name>,
}

impl Editing {
    /// Reads the region; `held`: others who would change it wait until the transaction ends.
    async fn begin(db: &mut PgConnection, held: bool) -> Result<Editing, EditError> {
        if held {
            let lock = sqlx::query(load::sql::LOCK).execute(&mut *db).await;
            lock.doing("locking the region")?;
        }
        let now: DateTime<Utc> = sqlx::query_scalar(stored::sql::NOW)
            .fetch_one(&mut *db)
            .await
            .doing("asking for the time")?;
        let stored = Stored::read(db, None).await?;
        let (parts, _) = stored.clone().into_parts(now).ok_or(EditError::NothingLoaded)?;
        let known = types(db).await?.into_iter().map(|of| of.hardware_type).collect();
        Ok(Editing { stored, parts, known })
    }

    /// Changes the rows as an edit of servers says.
    fn plan(
        &mut self,
        servers: &ServerEdit,
        moving: &BTreeSet<Name>,
    ) -> Result<ServerPlan, EditError> {
        let plan = |parts: &mut SnapshotParts, servers: &ServerEdit| {
            edit::plan_servers(parts, servers, &self.known, moving).map_err(EditError::Wrong)
        };
        let ServerEdit::Drain(names) = servers else { return plan(&mut self.parts, servers) };
        // The region without any of them must be one; those that are drained stay so long.
        let mut without = self.parts.clone();
        let planned = plan(&mut without, servers)?;
        edit::snapshot(without).map_err(EditError::Wrong)?;
        let gone = names.iter().filter(|name| !planned.draining.contains(*name));
        let gone: Vec<Name> = gone.cloned().collect();
        if !gone.is_empty() {
            plan(&mut self.parts, &ServerEdit::Remove(gone))?;
        }
        Ok(planned)
    }

    /// Writes what differs.
    async fn write(self, db: &mut PgConnection) -> Result<(), EditError> {
        let Editing { stored, parts, .. } = self;
        let snapshot = edit::snapshot(parts).map_err(EditError::Wrong)?;
        let wanted = snapshot.to_parts();
        load::check_storable(&snapshot, &wanted).map_err(|error| {
            EditError::Wrong(vec![WrongField::new("servers", "rule", error.to_string())])
        })?;
        let promises = promise::of_snapshot(&snapshot);
        let plan = ImportPlan::between(&stored, &snapshot, &wanted, &promises);
        write::write(db, &snapshot, &wanted, &stored, &promises, &plan, stored.version).await?;
        let doing = "removing what is gone";
        write::remove(db, &plan, &promises).await.doing(doing)?;
        let made: Vec<&str> =
            promises.iter().filter(|(_, p)| p.made).map(|(name, _)| name.as_ref()).collect();
        sqlx::query(load::sql::REMOVE_MADE).bind(made).execute(db).await.doing(doing)?;
        Ok(())
    }
}

fn check_seen(seen: Option<&str>, current: String) -> Result<(), EditError> {
    match seen {
        Some(seen) if seen != current => Err(EditError::Stale { current }),
        _ => Ok(()),
    }
}

impl Broker {
    /// The region's prices, limits and buffer fraction.
    ///
    /// # Errors
    /// [`EditError`].
    pub async fn region_settings(&self) -> Result<StoredSettings, EditError> {
        let mut db = self.pool.acquire().await.doing("connecting")?;
        let found = stored::region(&mut db).await.doing("reading the region")?;
        let stored::Region { name, weights, shared_buffer_fraction } =
            found.ok_or(EditError::NothingLoaded)?;
        let settings = RegionSettings { weights, shared_buffer_fraction };
        Ok(StoredSettings { region: name, settings })
    }

    /// Sets prices, limits and the buffer fraction. `seen`: only if they are of this version.
    ///
    /// # Errors
    /// [`EditError`], with every wrong field.
    pub async fn set_region_settings(
        &self,
        actor: &str,
        settings: &RegionSettings,
        seen: Option<&str>,
    ) -> Result<Option<Seq>, EditError> {
        let mut change = Change::begin(self, actor).await?;
        let db = change.connection();
        let mut editing = Editing::begin(db, true).await?;
        let before = StoredSettings {
            region: editing.parts.region.clone(),
            settings: RegionSettings {
                weights: editing.parts.weights,
                shared_buffer_fraction: editing.parts.shared_buffer_fraction.unwrap_or_default(),
            },
        };
        check_seen(seen, before.version())?;
        edit::set_settings(&mut editing.parts, settings).map_err(EditError::Wrong)?;
        if before.settings == *settings {
            change.abandon().await?;
            return Ok(None);
        }
        editing.write(db).await?;
        let detail = json!({
            "before": settings_json(&before.settings), "after": settings_json(settings),
        });
        change.record(Action::RegionSettingsSet, &before.region, detail);
        Ok(Some(change.commit().await?))
    }

    /// Hardware types with their servers and shared buffers, by name.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn hardware_types(&self) -> Result<Vec<HardwareType>, DbError> {
        let mut db = self.pool.acquire().await.doing("connecting")?;
        types(&mut db).await
    }

    /// Adds hardware types; those there are stay as they are. Gives those that are new.
    ///
    /// # Errors
    /// [`EditError`], with every wrong name.
    pub async fn add_hardware_types(
        &self,
        actor: &str,
        names: &[Name],
    ) -> Result<Vec<Name>, EditError> {
        let wrong = edit::check_hardware_types(names);
        if !wrong.is_empty() {
            return Err(EditError::Wrong(wrong));
        }
        let mut change = Change::begin(self, actor).await?;
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let added = sqlx::query_scalar(sql::ADD_TYPES).bind(names);
        let added: Vec<String> =
            added.fetch_all(change.connection()).await.doing("adding hardware types")?;
        if added.is_empty() {
            change.abandon().await?;
            return Ok(Vec::new());
        }
        for name in &added {
            change.record(Action::HardwareTypeAdded, name, json!({}));
        }
        change.commit().await?;
        Ok(added.into_iter().map(Name::from).collect())
    }

    /// Lists the shared buffer of a hardware type with so many servers; `None`: the region's fraction
    /// makes it. `seen`: only if it is of this version.
    ///
    /// # Errors
    /// [`EditError`], with every wrong field.
    pub async fn set_shared_buffer(
        &self,
        actor: &str,
        hardware_type: &Name,
        servers: Option<f64>,
        seen: Option<&str>,
    ) -> Result<Seq, EditError> {
        let mut change = Change::begin(self, actor).await?;
        let db = change.connection();
        let mut editing = Editing::begin(db, true).await?;
        let before = types(db).await?.into_iter().find(|of| of.hardware_type == *hardware_type);
        if let Some(before) = &before {
            check_seen(seen, before.version())?;
        }
        edit::set_shared_buffer(&mut editing.parts, hardware_type, servers, &editing.known)
            .map_err(EditError::Wrong)?;
        editing.write(db).await?;
        let before = before.and_then(|of| of.buffer);
        let detail = json!({
            "before": before.map(|of| json!({ "servers": of.wanted, "listed": of.listed })),
            "servers": servers, "listed": servers.is_some(),
        });
        change.record(Action::SharedBufferSet, hardware_type, detail);
        Ok(change.commit().await?)
    }

    /// Elastic reservations, by name; or the one of a name.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn elastic_reservations(&self, name: Option<&str>) -> Result<Vec<Elastic>, DbError> {
        if name.is_some_and(|name| name.contains('\0')) {
            return Ok(Vec::new());
        }
        let mut db = self.pool.acquire().await.doing("connecting")?;
        elastic(&mut db, name).await
    }

    /// Makes an elastic reservation, or changes the one of this name, and its share of loans. `seen`:
    /// only if it is of this version.
    ///
    /// # Errors
    /// [`EditError`], with every wrong field.
    pub async fn set_elastic(
        &self,
        actor: &str,
        name: &Name,
        asked: &ElasticAsked,
        share: Option<f64>,
        seen: Option<&str>,
    ) -> Result<Seq, EditError> {
        let mut change = Change::begin(self, actor).await?;
        let db = change.connection();
        let mut editing = Editing::begin(db, true).await?;
        let stored_name = if name.contains('\0') { None } else { Some(name.as_ref()) };
        let before = match stored_name {
            Some(name) => elastic(db, Some(name)).await?.pop(),
            None => None,
        };
        match (&before, seen) {
            (Some(before), seen) => check_seen(seen, before.version())?,
            (None, Some(_)) => return Err(EditError::UnknownElastic { name: name.clone() }),
            (None, None) => {}
        }
        let mut wrong = Vec::new();
        if share.is_some_and(|share| !(share > 0.0 && share.is_finite())) {
            let one = WrongField::new("share", "out_of_range", "a share is above 0 and finite");
            wrong.push(WrongField { nearest: Some(1.0), ..one });
        }
        let set = edit::set_elastic(&mut editing.parts, name, asked, &editing.known);
        wrong.extend(set.err().into_iter().flatten());
        if !wrong.is_empty() {
            return Err(EditError::Wrong(wrong));
        }
        editing.write(db).await?;
        let shared = sqlx::query(sql::SET_SHARE).bind(name.as_ref()).bind(share);
        shared.execute(&mut *db).await.doing("setting the share of an elastic reservation")?;
        let after = elastic(db, Some(name)).await?.pop();
        let detail = json!({
            "before": before.as_ref().map(Elastic::json), "after": after.as_ref().map(Elastic::json),
        });
        change.record(Action::ElasticSet, name, detail);
        Ok(change.commit().await?)
    }

    /// Ends an elastic reservation: at once if it borrows nothing, else when what it borrows is back.
    /// `seen`: only if it is of this version.
    ///
    /// # Errors
    /// [`EditError`].
    pub async fn end_elastic(
        &self,
        actor: &str,
        name: &str,
        seen: Option<&str>,
    ) -> Result<ElasticEnd, EditError> {
        let doing = "ending an elastic reservation";
        let unknown = || EditError::UnknownElastic { name: name.into() };
        if name.contains('\0') {
            return Err(unknown());
        }
        let mut change = Change::begin(self, actor).await?;
        let db = change.connection();
        sqlx::query(load::sql::LOCK).execute(&mut *db).await.doing("locking the region")?;
        let found = elastic(db, Some(name)).await?.pop().ok_or_else(unknown)?;
        check_seen(seen, found.version())?;
        let ended = sqlx::query(sql::END_ELASTIC).bind(name).execute(&mut *db).await;
        let ended = ended.doing(doing)?.rows_affected() == 1;
        let gone = sqlx::query_scalar(sql::REMOVE_ENDED).fetch_all(&mut *db).await;
        let gone: Vec<String> = gone.doing(doing)?;
        let end = if gone.iter().any(|gone| gone == name) {
            ElasticEnd::Gone
        } else {
            ElasticEnd::Returning(found.borrows)
        };
        if !ended && end != ElasticEnd::Gone {
            change.abandon().await?;
            return Ok(end);
        }
        let detail = json!({ "before": found.json(), "borrows": found.borrows });
        change.record(Action::ElasticEnded, name, detail);
        for name in gone {
            change.record(Action::ReservationRemoved, &name, json!({ "kind": "elastic" }));
        }
        change.commit().await?;
        Ok(end)
    }

    /// Racks, decommissions or moves servers: all of them or none. `dry`: only says what it would come
    /// to. `key`: a claimed idempotency key and its answer.
    ///
    /// # Errors
    /// [`EditError`], with every wrong field of every server.
    pub async fn edit_servers(
        &self,
        actor: &str,
        servers: &ServerEdit,
        dry: bool,
        key: Option<EditAnswer<'_>>,
    ) -> Result<ServerPlan, EditError> {
        let mut change = Change::begin(self, actor).await?;
        let db = change.connection();
        let mut editing = Editing::begin(db, !dry).await?;
        let moving = sqlx::query_scalar(sql::MOVING).fetch_all(&mut *db).await;
        let moving: Vec<String> = moving.doing("looking for moves under way")?;
        let moving = moving.into_iter().map(Name::from).collect();
        let plan = editing.plan(servers, &moving)?;
        if dry {
            edit::snapshot(editing.parts).map_err(EditError::Wrong)?;
            change.abandon().await?;
            return Ok(plan);
        }
        let region = editing.parts.region.clone();
        editing.write(db).await?;
        if !plan.draining.is_empty() {
            decommission::ask(&mut change, actor, &plan.draining).await?;
            let detail = json!({ "servers": plan.draining });
            change.record(Action::DecommissionAsked, &region, detail);
        }
        let db = change.connection();
        if let Some((claim, answer)) = key
            && !idempotency::answer(db, claim, &answer(&plan)).await?
        {
            return Err(EditError::KeyLost);
        }
        let (action, detail) = match servers {
            ServerEdit::Add(rows) => (Action::ServersRacked, json!({ "servers": rows })),
            ServerEdit::Remove(names) | ServerEdit::Drain(names) => {
                let gone = names.iter().filter(|name| !plan.draining.contains(*name));
                let gone: Vec<&Name> = gone.collect();
                (Action::ServersDecommissioned, json!({ "servers": gone }))
            }
            ServerEdit::Move(rows) => (Action::ServersRelocated, json!({ "servers": rows })),
        };
        if plan.draining.len() < plan.servers {
            change.record(action, &region, detail);
        }
        change.commit().await?;
        Ok(plan)
    }
}

type TypeRow = (String, i64, Option<String>, Option<i64>, Option<bool>, i64);

async fn types(db: &mut PgConnection) -> Result<Vec<HardwareType>, DbError> {
    let rows: Vec<TypeRow> =
        sqlx::query_as(sql::TYPES).fetch_all(db).await.doing("reading hardware types")?;
    let of = |(name, servers, reservation, micro, made, held): TypeRow| HardwareType {
        hardware_type: name.into(),
        servers: servers.unsigned_abs(),
        buffer: reservation.map(|reservation| SharedBuffer {
            reservation: reservation.into(),
            wanted: micro.unwrap_or_default().unsigned_abs() / 1_000_000,
            held: held.unsigned_abs(),
            listed: made == Some(false),
        }),
    };
    Ok(rows.into_iter().map(of).collect())
}

type ElasticRow = (
    String,
    String,
    i32,
    Option<String>,
    Option<f64>,
    bool,
    i32,
    sqlx::types::Json<BTreeMap<String, i64>>,
    i64,
);

async fn elastic(db: &mut PgConnection, name: Option<&str>) -> Result<Vec<Elastic>, DbError> {
    let rows: Vec<ElasticRow> = sqlx::query_as(sql::ELASTIC)
        .bind(name)
        .fetch_all(db)
        .await
        .doing("reading elastic reservations")?;
    let of =
        |(name, owner, priority, profile, share, ending, version, values, borrows): ElasticRow| {
            let value = |(ty, micro): (String, i64)| (ty.into(), fleet::Rru(micro).to_f64());
            Elastic {
                reservation: name.into(),
                asked: ElasticAsked {
                    owner: owner.into(),
                    rru: values.0.into_iter().map(value).collect(),
                    priority,
                    host_profile: profile.map(Into::into),
                },
                share,
                ending,
                promise_version: version,
                borrows: borrows.unsigned_abs(),
            }
        };
    debug_assert_eq!(ReservationKind::Elastic.as_str(), "elastic", "as in the statements");
    Ok(rows.into_iter().map(of).collect())
}
