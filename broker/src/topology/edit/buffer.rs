//! Hardware types that are added, and how many servers their shared buffers have.

use super::{EditError, Editing, check_seen, version};
use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::log::change::Change;
use crate::log::trail::{Action, Seq};
use fleet::Name;
use fleet::edit;
use serde_json::json;
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
    }
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

impl Broker {
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

    /// Sets the shared buffer of a hardware type to a fixed number of servers; `None`: to the region's fraction.
    /// `seen`: only if it is of this version.
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
}

type TypeRow = (String, i64, Option<String>, Option<i64>, Option<bool>, i64);

pub(super) async fn types(db: &mut PgConnection) -> Result<Vec<HardwareType>, DbError> {
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
