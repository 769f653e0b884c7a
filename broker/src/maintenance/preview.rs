//! What planned maintenance would take, said before it is planned.

use super::{Batch, Decided, MaintenanceError, MaintenanceRequest, decide, possible};
use crate::infra::connection::Broker;
use crate::infra::error::Doing;
use chrono::{DateTime, TimeDelta, Utc};
use fleet::{MsbName, Name, ReservationName, Rru, Scope};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) mod sql {
    crate::statements! {
        IN_USE = "SELECT count(*) FROM servers WHERE server_id = ANY ($1) \
            AND (in_use OR loan_reservation_id IS NOT NULL)";
    }
}

/// What would be planned, and whom it touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenancePreview {
    /// Where it is.
    pub msb: MsbName,
    /// How many servers that MSB has.
    pub msb_servers: u64,
    /// Millionths of it that may be under maintenance at once.
    pub share_micro: u32,
    /// In order of time.
    pub windows: Vec<PreviewedWindow>,
    /// Servers of all windows.
    pub servers: u64,
    /// Those of them that are in use or lent.
    pub in_use: u64,
    /// The most of them that are out at once.
    pub at_once: u64,
    /// Guaranteed reservations that hold some, in order of name.
    pub holders: Vec<MaintenanceHolder>,
}

/// A window that would be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewedWindow {
    /// A server or a rack.
    pub scope: Scope,
    /// Its name.
    pub name: Name,
    /// When nothing new is put there any more.
    pub drains_at: DateTime<Utc>,
    /// When work begins.
    pub starts_at: DateTime<Utc>,
    /// When it ends.
    pub ends_at: DateTime<Utc>,
}

/// What a reservation would be without, and what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenanceHolder {
    /// The reservation.
    pub reservation: ReservationName,
    /// Its servers of all windows.
    pub servers: u64,
    /// What it is without at most at once.
    pub at_once: Rru,
    /// What is promised to it.
    pub capacity: Rru,
    /// What it holds that is not out of use unplanned.
    pub available: Rru,
}

impl Broker {
    /// Previews this maintenance: the windows it would get now, or why it would be refused. Nothing is
    /// written or locked, so a later plan may differ.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub async fn preview_maintenance(
        &self,
        request: &MaintenanceRequest,
    ) -> Result<MaintenancePreview, MaintenanceError> {
        let doing = "looking what maintenance would take";
        possible(request)?;
        let mut tx = self.begin_reading().await.doing(doing)?;
        let now = sqlx::query_scalar(super::sql::NOW).fetch_one(&mut *tx).await.doing(doing)?;
        let decided = decide(&mut tx, now, request).await?;
        let servers: Vec<i32> = decided.situation.asked.iter().copied().collect();
        let in_use: i64 = sqlx::query_scalar(sql::IN_USE)
            .bind(&servers)
            .fetch_one(&mut *tx)
            .await
            .doing(doing)?;
        tx.commit().await.doing(doing)?;
        let drain = TimeDelta::from_std(request.drain).unwrap_or(TimeDelta::zero());
        Ok(preview(&decided, drain, in_use.unsigned_abs()))
    }
}

fn preview(decided: &Decided, drain: TimeDelta, in_use: u64) -> MaintenancePreview {
    let Decided { situation, msb, share_micro, batches } = decided;
    let window = |batch: &Batch, (scope, name): &(Scope, Name)| PreviewedWindow {
        scope: *scope,
        name: name.clone(),
        drains_at: batch.out.from - drain,
        starts_at: batch.out.from,
        ends_at: batch.out.until,
    };
    let windows =
        batches.iter().flat_map(|batch| batch.parts.iter().map(move |part| window(batch, part)));
    let all: BTreeSet<i32> = batches.iter().flat_map(|batch| &batch.out.servers).copied().collect();
    let mut holders: BTreeMap<ReservationName, MaintenanceHolder> = BTreeMap::new();
    for batch in batches {
        for (reservation, (servers, worth, promised)) in situation.holders(&batch.out.servers) {
            let holder = holders.entry(reservation.clone()).or_insert_with(|| MaintenanceHolder {
                reservation,
                servers: 0,
                at_once: Rru::ZERO,
                capacity: promised.capacity,
                available: promised.available(),
            });
            holder.servers += servers;
            holder.at_once = holder.at_once.max(worth);
        }
    }
    MaintenancePreview {
        msb: msb.clone(),
        msb_servers: situation.servers_of(msb),
        share_micro: *share_micro,
        windows: windows.collect(),
        servers: all.len() as u64,
        in_use,
        at_once: batches.iter().map(|batch| batch.out.servers.len() as u64).max().unwrap_or(0),
        holders: holders.into_values().collect(),
    }
}
