//! Hardware types: listed, added, renamed, and removed once unused.
//!
//! Tables refer to a type by number, so a new name changes one row, plus the name of its shared buffer, open
//! moves and undecided requests. The audit trail, the archive and stored plans keep the old name.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::log::trail::Seq;
use crate::snapshot::load;
use crate::topology::edit_error::{EditError, version};
use fleet::edit::{WrongField, check_hardware_types};
use fleet::{HardwareTypeName, ReservationName, SHARED_BUFFER_PREFIX};
use sqlx::PgConnection;

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
        THERE = "SELECT NOT removed FROM hardware_types WHERE hardware_type = $1";
        RENAME = "UPDATE hardware_types SET hardware_type = $2 WHERE hardware_type = $1";
        /// A removed type with the new name gets a name that is never used.
        MAKE_ROOM = "UPDATE hardware_types SET hardware_type = 'removed/' || hardware_type_id WHERE hardware_type = $1 \
            AND removed";
        NAMED = "SELECT EXISTS (SELECT FROM reservations WHERE reservation = $1)";
        /// The promise under the old name stays; a copy of it is added under the new name.
        RENAME_BUFFER = "WITH old AS (SELECT r.reservation_id, p.* FROM reservations r JOIN promises p USING (promise_id) \
                WHERE r.reservation = $1), \
            new AS (INSERT INTO promises (reservation, version, kind, owner, capacity_micro, msb_buffer, priority, \
                    msb_alpha, rack_alpha, affinity_theta, host_profile) \
                SELECT $2, 1 + coalesce((SELECT max(p.version) FROM promises p WHERE p.reservation = $2), 0), \
                    kind, owner, capacity_micro, msb_buffer, priority, msb_alpha, rack_alpha, affinity_theta, \
                    host_profile FROM old RETURNING promise_id), \
            worth AS (INSERT INTO rru_values (promise_id, hardware_type_id, value_micro) \
                SELECT new.promise_id, v.hardware_type_id, v.value_micro FROM new, old \
                JOIN rru_values v ON v.promise_id = old.promise_id) \
            UPDATE reservations r SET reservation = $2, promise_id = new.promise_id FROM new, old \
                WHERE r.reservation_id = old.reservation_id";
        RENAME_MOVES = "UPDATE moves SET \
                source_reservation = CASE WHEN source_reservation = $1 THEN $2 ELSE source_reservation END, \
                target_reservation = CASE WHEN target_reservation = $1 THEN $2 ELSE target_reservation END \
            WHERE open AND $1 IN (source_reservation, target_reservation)";
        RENAME_ASKED = "UPDATE capacity_requests SET asked = jsonb_set(asked, '{change,rru}', \
                (asked->'change'->'rru') - $1 || jsonb_build_object($2::text, asked->'change'->'rru'->$1)) \
            WHERE state = 'submitted' AND asked->'change'->'rru' ? $1";
        /// The users of a type, with their owners.
        USES = "SELECT 'servers', NULL, count(*) FROM servers s JOIN hardware_types h USING (hardware_type_id) \
                WHERE h.hardware_type = $1 HAVING count(*) > 0 \
            UNION ALL SELECT 'reservations', string_agg(reservation, ', '), count(*) FROM \
                (SELECT r.reservation FROM reservations r JOIN rru_values v USING (promise_id) \
                    JOIN hardware_types h USING (hardware_type_id) \
                    WHERE h.hardware_type = $1 AND NOT r.made ORDER BY 1) x HAVING count(*) > 0 \
            UNION ALL SELECT 'requests', string_agg(reservation, ', '), count(*) FROM \
                (SELECT reservation FROM capacity_requests WHERE state = 'submitted' AND asked->'change'->'rru' ? $1 \
                    ORDER BY 1) x HAVING count(*) > 0 \
            UNION ALL SELECT 'RRU profiles', string_agg(profile, ', '), count(*) FROM \
                (SELECT p.profile::text FROM rru_profiles p JOIN rru_profile_values USING (profile_id) \
                    JOIN hardware_types h USING (hardware_type_id) \
                    WHERE h.hardware_type = $1 ORDER BY 1) x HAVING count(*) > 0 \
            UNION ALL SELECT 'quotas', string_agg(owner, ', '), count(*) FROM \
                (SELECT q.owner FROM quota_limits q JOIN hardware_types h USING (hardware_type_id) \
                    WHERE h.hardware_type = $1 ORDER BY 1) x HAVING count(*) > 0 \
            UNION ALL SELECT 'open orders', string_agg(order_id::text, ', '), count(*) FROM \
                (SELECT o.order_id FROM hardware_orders o JOIN hardware_types h USING (hardware_type_id) \
                    WHERE h.hardware_type = $1 AND o.state = 'open' ORDER BY 1) x HAVING count(*) > 0";
        REMOVE = "UPDATE hardware_types SET removed = true WHERE hardware_type = $1";
        REMOVE_AUTOSIZE = "DELETE FROM buffer_autosizes a USING hardware_types h WHERE h.hardware_type = $1 \
            AND h.hardware_type_id = a.hardware_type_id";
        REMOVE_BUFFER = "DELETE FROM reservations r USING hardware_types h WHERE h.hardware_type = $1 \
            AND r.buffer_type_id = h.hardware_type_id AND r.made";
    }
}

/// A hardware type and its shared buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardwareType {
    /// The type's name.
    pub hardware_type: HardwareTypeName,
    /// The number of its servers.
    pub servers: u64,
    /// The type's shared buffer, if it has one.
    pub buffer: Option<SharedBuffer>,
}

/// The shared buffer of a hardware type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedBuffer {
    /// The buffer's reservation.
    pub reservation: ReservationName,
    /// The wanted number of servers.
    pub wanted: u64,
    /// The held number of servers.
    pub held: u64,
    /// Whether its size is fixed; else the region's fraction determines it.
    pub listed: bool,
}

impl HardwareType {
    /// A version that changes with every change of the buffer.
    pub fn version(&self) -> String {
        let buffer = self.buffer.as_ref().map(|of| (&of.reservation, of.wanted, of.listed));
        version(&(&self.hardware_type, buffer))
    }
}

/// Locks the region; error: unknown type.
pub(crate) async fn hold(db: &mut PgConnection, name: &HardwareTypeName) -> Result<(), EditError> {
    sqlx::query(load::sql::LOCK).execute(&mut *db).await.doing("locking the region")?;
    let there: Option<bool> = if name.contains('\0') {
        None
    } else {
        let asked = sqlx::query_scalar(sql::THERE).bind(name.as_ref()).fetch_optional(db);
        asked.await.doing("looking for a hardware type")?
    };
    if there == Some(true) {
        return Ok(());
    }
    Err(EditError::UnknownType { name: name.clone() })
}

fn buffer(hardware_type: &HardwareTypeName) -> String {
    format!("{SHARED_BUFFER_PREFIX}{hardware_type}")
}

impl Broker {
    /// Lists hardware types with their servers and shared buffers, by name.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn hardware_types(&self) -> Result<Vec<HardwareType>, DbError> {
        let mut db = self.pool.acquire().await.doing("connecting")?;
        types(&mut db).await
    }

    /// Adds hardware types; existing ones stay unchanged. Returns the new ones.
    ///
    /// # Errors
    /// [`EditError`], with every invalid name.
    pub async fn add_hardware_types(
        &self,
        actor: &str,
        names: &[HardwareTypeName],
    ) -> Result<Vec<HardwareTypeName>, EditError> {
        let wrong = check_hardware_types(names);
        if !wrong.is_empty() {
            return Err(EditError::Wrong(wrong));
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let added = sqlx::query_scalar(sql::ADD_TYPES).bind(names);
        let added: Vec<String> =
            added.fetch_all(change.connection()).await.doing("adding hardware types")?;
        if added.is_empty() {
            change.abandon().await?;
            return Ok(Vec::new());
        }
        for name in &added {
            change.record(name, Event::HardwareTypeAdded {});
        }
        change.commit().await?;
        Ok(added.into_iter().map(Into::into).collect())
    }

    /// Renames a hardware type everywhere.
    ///
    /// # Errors
    /// [`EditError`]: unknown type, or the new name is invalid or in use.
    pub async fn rename_hardware_type(
        &self,
        actor: &str,
        from: &HardwareTypeName,
        to: &HardwareTypeName,
    ) -> Result<Option<Seq>, EditError> {
        let doing = "renaming a hardware type";
        if let Some(wrong) = check_hardware_types(std::slice::from_ref(to)).pop() {
            let wrong = WrongField { field: "name".into(), ..wrong };
            return Err(EditError::Wrong(vec![wrong]));
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        hold(db, from).await?;
        if from == to {
            change.abandon().await?;
            return Ok(None);
        }
        let taken = |what: &str, name: &str| {
            let detail =
                format!("there is {what} {name:?} already: choose a name that is not taken");
            EditError::Wrong(vec![WrongField::new("name", "exists", detail)])
        };
        let there: Option<bool> = sqlx::query_scalar(sql::THERE)
            .bind(to.as_ref())
            .fetch_optional(&mut *db)
            .await
            .doing(doing)?;
        if there == Some(true) {
            return Err(taken("a hardware type", to));
        }
        let (old, new) = (buffer(from), buffer(to));
        let named: bool =
            sqlx::query_scalar(sql::NAMED).bind(&new).fetch_one(&mut *db).await.doing(doing)?;
        if named {
            return Err(taken("a reservation", &new));
        }
        sqlx::query(sql::MAKE_ROOM).bind(to.as_ref()).execute(&mut *db).await.doing(doing)?;
        for statement in [sql::RENAME, sql::RENAME_ASKED] {
            let renamed = sqlx::query(statement).bind(from.as_ref()).bind(to.as_ref());
            renamed.execute(&mut *db).await.doing(doing)?;
        }
        for statement in [sql::RENAME_BUFFER, sql::RENAME_MOVES] {
            let renamed = sqlx::query(statement).bind(&old).bind(&new);
            renamed.execute(&mut *db).await.doing(doing)?;
        }
        change.record(from, Event::HardwareTypeRenamed { name: to });
        Ok(Some(change.commit().await?))
    }

    /// Removes an unused hardware type: it is no longer offered.
    ///
    /// # Errors
    /// [`EditError`]: unknown type, or with everything that uses it.
    pub async fn remove_hardware_type(
        &self,
        actor: &str,
        name: &HardwareTypeName,
    ) -> Result<Seq, EditError> {
        let doing = "removing a hardware type";
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        hold(db, name).await?;
        let uses: Vec<(String, Option<String>, i64)> =
            sqlx::query_as(sql::USES).bind(name.as_ref()).fetch_all(&mut *db).await.doing(doing)?;
        let wrong = |(what, whose, count): &(String, Option<String>, i64)| {
            let first = match (what.as_str(), whose) {
                ("servers", _) => "decommission them, or rename the type".to_owned(),
                ("requests", Some(of)) => {
                    format!("wait until they are decided, or cancel them: {of}")
                }
                ("open orders", Some(of)) => format!("cancel them: {of}"),
                (_, of) => format!("take it out of them first: {}", of.as_deref().unwrap_or("")),
            };
            WrongField::new("hardware_type", "in_use", format!("{count} {what} use it: {first}"))
        };
        if !uses.is_empty() {
            return Err(EditError::Wrong(uses.iter().map(wrong).collect()));
        }
        for statement in [sql::REMOVE_AUTOSIZE, sql::REMOVE_BUFFER, sql::REMOVE] {
            sqlx::query(statement).bind(name.as_ref()).execute(&mut *db).await.doing(doing)?;
        }
        change.record(name, Event::HardwareTypeRemoved {});
        Ok(change.commit().await?)
    }
}

type TypeRow = (String, i64, Option<String>, Option<i64>, Option<bool>, i64);

pub(crate) async fn types(db: &mut PgConnection) -> Result<Vec<HardwareType>, DbError> {
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
