//! Orders of hardware: servers that are on their way, until they are racked or will not come.
//!
//! An order says when its servers are expected. It changes no snapshot: its servers are part of the region once they are racked.

use crate::access::idempotency::{self, KeyClaim};
use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::HardwareOrderId;
use crate::infra::state::{self, HardwareOrderState, State};
use crate::infra::words;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::{Event, Ordered};
use crate::snapshot::load;
use crate::topology::edit_error::{EditError, check_seen};
use chrono::{DateTime, Datelike, NaiveDate, Utc};
use fleet::edit::WrongField;
use fleet::{DatacenterName, HardwareTypeName};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::HashMap;
use uuid::Uuid;

/// Most servers of one order.
const SERVERS_MAX: u32 = 1_000_000;

pub(crate) mod sql {
    crate::statements! {
        TYPES = "SELECT hardware_type::text, hardware_type_id FROM hardware_types WHERE NOT removed AND hardware_type = ANY($1)";
        DATACENTERS = "SELECT datacenter::text, datacenter_id FROM datacenters WHERE datacenter = ANY($1)";
        ADD = "INSERT INTO hardware_orders (order_id, hardware_type_id, datacenter_id, servers, expected_on, ordered_by) \
            SELECT w.*, $6 FROM unnest($1::uuid[], $2::int[], $3::int[], $4::int[], $5::date[]) AS w";
        /// With ids only these. Those that are expected are open, or arrived today: the history of a day that has ended does
        /// not have their servers.
        ORDERS = "SELECT o.order_id, h.hardware_type::text, d.datacenter::text, o.servers, o.expected_on, o.ordered_by::text, \
                o.ordered_at, o.state, o.state_at, o.changes, \
                o.state = 'open' AND o.expected_on < (clock_timestamp() AT TIME ZONE 'UTC')::date \
            FROM hardware_orders o JOIN hardware_types h USING (hardware_type_id) JOIN datacenters d USING (datacenter_id) \
            WHERE ($1::uuid[] IS NULL OR o.order_id = ANY($1)) AND (NOT $2 OR o.state = 'open' OR (o.state = 'arrived' \
                AND o.state_at >= date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')) \
            ORDER BY o.expected_on, o.order_id";
        HOLD = "SELECT FROM hardware_orders WHERE order_id = $1 FOR NO KEY UPDATE";
        CHANGE = "UPDATE hardware_orders SET servers = $2, expected_on = $3, changes = changes + 1 WHERE order_id = $1";
        END = "UPDATE hardware_orders SET state = $2, changes = changes + 1 WHERE order_id = $1";
    }
}

/// Servers to order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardwareOrderAsked {
    /// What: a hardware type of the region.
    pub hardware_type: HardwareTypeName,
    /// Where they will be racked: a datacenter of the region.
    pub datacenter: DatacenterName,
    /// How many: 1 to 1,000,000.
    pub servers: u32,
    /// The day on which they are expected to be in service, in UTC.
    pub expected_on: NaiveDate,
}

/// An order of hardware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardwareOrder {
    /// Its id.
    pub id: HardwareOrderId,
    /// What it is for.
    pub of: HardwareOrderAsked,
    /// Who entered it.
    pub ordered_by: String,
    /// When.
    pub ordered_at: DateTime<Utc>,
    /// Its state.
    pub state: HardwareOrderState,
    /// Since when.
    pub state_at: DateTime<Utc>,
    /// Whether it is open and its day has passed.
    pub is_late: bool,
    changes: i32,
}

impl HardwareOrder {
    /// Its version, for `If-Match`.
    pub fn version(&self) -> String {
        self.changes.to_string()
    }
}

/// What becomes of an open order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardwareOrderChange {
    /// Another number of servers, or another day.
    Terms {
        /// Servers that have not arrived; `None`: as many as before.
        servers: Option<u32>,
        /// The day; `None`: the same as before.
        expected_on: Option<NaiveDate>,
    },
    /// Its servers are racked.
    Arrived,
    /// Its servers will not come.
    Cancelled,
}

/// The answer that is stored with the key of a request that adds or changes orders.
pub type HardwareOrderAnswer<'a> = &'a (dyn Fn(&[HardwareOrder]) -> Document + Sync);

/// Checks number and day; `prefix` is put before the names of fields.
fn check(servers: u32, expected_on: NaiveDate, prefix: &str) -> Vec<WrongField> {
    let mut wrong = Vec::new();
    let mut add = |field: &str, detail: String| {
        wrong.push(WrongField::new(format!("{prefix}{field}"), "out_of_range", detail));
    };
    if !(1..=SERVERS_MAX).contains(&servers) {
        add("servers", format!("it is {servers}; it must be from 1 to {SERVERS_MAX}"));
    }
    if !(2_000..2_100).contains(&expected_on.year()) {
        add("expected_on", format!("it is {expected_on}; it must be from 2000 to 2099"));
    }
    wrong
}

fn order(row: &PgRow) -> Result<HardwareOrder, sqlx::Error> {
    Ok(HardwareOrder {
        id: row.try_get(0)?,
        of: HardwareOrderAsked {
            hardware_type: words::name(row, 1)?,
            datacenter: words::name(row, 2)?,
            servers: row.try_get::<i32, _>(3)?.unsigned_abs(),
            expected_on: row.try_get(4)?,
        },
        ordered_by: row.try_get(5)?,
        ordered_at: row.try_get(6)?,
        state: state::read(row.try_get(7)?)?,
        state_at: row.try_get(8)?,
        changes: row.try_get(9)?,
        is_late: row.try_get(10)?,
    })
}

fn recorded(of: &HardwareOrderAsked) -> Ordered<'_> {
    let HardwareOrderAsked { hardware_type, datacenter, servers, expected_on } = of;
    Ordered { hardware_type, datacenter, servers: *servers, expected_on: *expected_on }
}

/// Orders by the day on which their servers are expected; with ids only these.
async fn read(
    db: &mut PgConnection,
    ids: Option<&[HardwareOrderId]>,
    only_expected: bool,
) -> Result<Vec<HardwareOrder>, DbError> {
    let ids: Option<Vec<Uuid>> = ids.map(|ids| ids.iter().map(|id| Uuid::from(*id)).collect());
    let rows = sqlx::query(sql::ORDERS).bind(ids).bind(only_expected);
    let rows = rows.try_map(|row: PgRow| order(&row));
    rows.fetch_all(db).await.doing("reading orders of hardware")
}

/// Numbers by name.
async fn known(
    db: &mut PgConnection,
    statement: &'static str,
    names: impl Iterator<Item = &str>,
) -> Result<HashMap<String, i32>, DbError> {
    // A name with a zero character cannot be sent.
    let names: Vec<&str> = names.filter(|name| !name.contains('\0')).collect();
    let rows: Vec<(String, i32)> =
        sqlx::query_as(statement).bind(names).fetch_all(db).await.doing("looking for names")?;
    Ok(rows.into_iter().collect())
}

async fn keep_answer(
    db: &mut PgConnection,
    key: Option<(KeyClaim, HardwareOrderAnswer<'_>)>,
    orders: &[HardwareOrder],
) -> Result<(), EditError> {
    match key {
        Some((claim, answer)) if !idempotency::answer(db, claim, &answer(orders)).await? => {
            Err(EditError::KeyLost)
        }
        _ => Ok(()),
    }
}

impl Broker {
    /// Adds orders: all or none. `key`: a claimed idempotency key with its answer, stored in the same transaction.
    ///
    /// # Errors
    /// [`EditError`], with every wrong field.
    pub async fn add_hardware_orders(
        &self,
        actor: &str,
        orders: &[HardwareOrderAsked],
        key: Option<(KeyClaim, HardwareOrderAnswer<'_>)>,
    ) -> Result<Vec<HardwareOrder>, EditError> {
        let doing = "adding orders of hardware";
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        // A type with an open order is not removed.
        sqlx::query(load::sql::LOCK).execute(&mut *db).await.doing("locking the region")?;
        let types = orders.iter().map(|of| of.hardware_type.as_ref());
        let types = known(db, sql::TYPES, types).await?;
        let datacenters = orders.iter().map(|of| of.datacenter.as_ref());
        let datacenters = known(db, sql::DATACENTERS, datacenters).await?;
        let (mut wrong, mut ids) = (Vec::new(), Vec::new());
        let (mut type_ids, mut datacenter_ids) = (Vec::new(), Vec::new());
        for (position, of) in orders.iter().enumerate() {
            let prefix = format!("orders[{position}].");
            wrong.extend(check(of.servers, of.expected_on, &prefix));
            let mut look =
                |field: &str, found: Option<&i32>, to: &mut Vec<i32>, detail: String| match found {
                    Some(id) => to.push(*id),
                    None => {
                        wrong.push(WrongField::new(format!("{prefix}{field}"), "unknown", detail))
                    }
                };
            let detail =
                format!("the region has no hardware type {:?}: add it first", of.hardware_type);
            let found = types.get(&*of.hardware_type);
            look("hardware_type", found, &mut type_ids, detail);
            let detail = format!("the region has no datacenter {:?}", of.datacenter);
            look("datacenter", datacenters.get(&*of.datacenter), &mut datacenter_ids, detail);
            ids.push(HardwareOrderId::now_v7());
        }
        if orders.is_empty() {
            wrong.push(WrongField::new("orders", "missing", "send at least one order"));
        }
        if !wrong.is_empty() {
            return Err(EditError::Wrong(wrong));
        }
        let servers = orders.iter().map(|of| i32::try_from(of.servers).unwrap_or(i32::MAX));
        sqlx::query(sql::ADD)
            .bind(ids.iter().map(|id| Uuid::from(*id)).collect::<Vec<_>>())
            .bind(type_ids)
            .bind(datacenter_ids)
            .bind(servers.collect::<Vec<_>>())
            .bind(orders.iter().map(|of| of.expected_on).collect::<Vec<_>>())
            .bind(actor)
            .execute(&mut *db)
            .await
            .doing(doing)?;
        let added = read(db, Some(&ids), false).await?;
        keep_answer(db, key, &added).await?;
        for of in &added {
            change.record(&of.id.to_string(), Event::HardwareOrdered { of: recorded(&of.of) });
        }
        change.commit().await?;
        Ok(added)
    }

    /// Changes an open order. `seen`: only if its version is still this one. `key`: as for
    /// [`Broker::add_hardware_orders`].
    ///
    /// # Errors
    /// [`EditError`].
    pub async fn change_hardware_order(
        &self,
        actor: &str,
        id: &str,
        to: HardwareOrderChange,
        seen: Option<&str>,
        key: Option<(KeyClaim, HardwareOrderAnswer<'_>)>,
    ) -> Result<HardwareOrder, EditError> {
        let doing = "changing an order of hardware";
        let unknown = || EditError::UnknownOrder { id: id.to_owned() };
        let order: HardwareOrderId = id.parse().map_err(|_| unknown())?;
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        sqlx::query(sql::HOLD).bind(order).fetch_optional(&mut *db).await.doing(doing)?;
        let before = read(db, Some(&[order]), false).await?.pop().ok_or_else(unknown)?;
        check_seen(seen, before.version())?;
        if before.state.is_terminal() {
            return Err(EditError::OrderEnded { id: order, state: before.state });
        }
        let ended = match to {
            HardwareOrderChange::Arrived => Some(HardwareOrderState::Arrived),
            HardwareOrderChange::Cancelled => Some(HardwareOrderState::Cancelled),
            HardwareOrderChange::Terms { servers, expected_on } => {
                let servers = servers.unwrap_or(before.of.servers);
                let expected_on = expected_on.unwrap_or(before.of.expected_on);
                let wrong = check(servers, expected_on, "");
                if !wrong.is_empty() {
                    return Err(EditError::Wrong(wrong));
                }
                let set = sqlx::query(sql::CHANGE)
                    .bind(order)
                    .bind(i32::try_from(servers).unwrap_or(i32::MAX))
                    .bind(expected_on);
                set.execute(&mut *db).await.doing(doing)?;
                None
            }
        };
        if let Some(state) = ended {
            let ended = sqlx::query(sql::END).bind(order).bind(state.as_str());
            ended.execute(&mut *db).await.doing(doing)?;
        }
        let after = read(db, Some(&[order]), false).await?.pop().ok_or_else(unknown)?;
        keep_answer(db, key, std::slice::from_ref(&after)).await?;
        let of = recorded(&after.of);
        let event = match to {
            HardwareOrderChange::Terms { .. } => {
                Event::HardwareOrderChanged { before: recorded(&before.of), after: of }
            }
            HardwareOrderChange::Arrived => Event::HardwareOrderArrived { of },
            HardwareOrderChange::Cancelled => Event::HardwareOrderCancelled { of },
        };
        change.record(&order.to_string(), event);
        change.commit().await?;
        Ok(after)
    }

    /// Every order, by the day on which its servers are expected.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn hardware_orders(&self) -> Result<Vec<HardwareOrder>, DbError> {
        let mut db = self.pool.acquire().await.doing("connecting")?;
        read(&mut db, None, false).await
    }

    /// One order; `None`: there is no order with this id.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn hardware_order(&self, id: &str) -> Result<Option<HardwareOrder>, DbError> {
        let Ok(id) = id.parse() else { return Ok(None) };
        let mut db = self.pool.acquire().await.doing("connecting")?;
        Ok(read(&mut db, Some(&[id]), false).await?.pop())
    }

    /// Orders whose servers are not in the history of the days that have ended: open ones, and those that arrived today.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn expected_hardware(&self) -> Result<Vec<HardwareOrder>, DbError> {
        let mut db = self.pool.acquire().await.doing("connecting")?;
        read(&mut db, None, true).await
    }
}
