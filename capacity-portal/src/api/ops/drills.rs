//! `POST /ops/v1/drills`: simulates the loss of an MSB on the current region, and writes nothing.

use crate::http::auth::{Caller, Role};
use crate::http::timeout::REGION_WITHIN;
use crate::http::{Problem, Site, body};
use crate::rehearsal::{Rehearse, Rehearsed};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use control::CachedRegion;
use decisions::elastic::Loan;
use decisions::give_way::GiveWay;
use fleet::audit::Certified;
use fleet::{Msb, MsbIx};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::time::timeout;
use utoipa::ToSchema;

/// The MSB to lose.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DrillBody {
    /// The MSB.
    msb: String,
}

/// A reservation after the loss.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Kept)]
struct AfterLoss {
    reservation: String,
    owner: String,
    /// 0 is the highest priority.
    priority: i32,
    /// Promised capacity.
    requested_rru: f64,
    /// Whether it has an embedded buffer, to survive the loss.
    msb_buffer: bool,
    /// Owned capacity in service, servers in maintenance included.
    before_rru: f64,
    /// Of that, in maintenance.
    in_maintenance_rru: f64,
    /// Capacity required at once: the promise less a quarter of the embedded buffer.
    needed_at_once_rru: f64,
    /// Capacity left at once: no server in maintenance counts.
    left_at_once_rru: f64,
    /// Capacity left within 30 minutes: servers in maintenance that can be recalled by then count.
    left_rru: f64,
    /// Shortfall against the promise within 30 minutes.
    missing_rru: f64,
    /// Capacity that its replica rule requires (a quorum); null: no replica rule.
    quorum_rru: Option<f64>,
    /// Whether it keeps what was promised for this case, at once and within 30 minutes: all of its capacity with an
    /// embedded buffer, a quorum with a replica rule, nothing in particular without either.
    kept: bool,
}

/// Servers lent to an elastic reservation.
#[derive(Debug, Serialize, ToSchema)]
struct Recalled {
    /// The elastic reservation.
    borrower: String,
    /// The reservation that owns them.
    owner: String,
    msb: String,
    hardware_type: String,
    servers: u64,
}

impl From<Loan> for Recalled {
    fn from(of: Loan) -> Recalled {
        Recalled {
            borrower: of.borrower.to_string(),
            owner: of.owner.to_string(),
            msb: of.msb.to_string(),
            hardware_type: of.hardware_type.to_string(),
            servers: of.count,
        }
    }
}

/// Servers that preemption would move.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GivesWay)]
pub(super) struct PreemptionView {
    /// The reservation that loses them; null: they are free.
    source: Option<String>,
    /// The reservation that gets them.
    target: String,
    msb: String,
    hardware_type: String,
    in_use: bool,
    servers: u64,
}

impl From<GiveWay> for PreemptionView {
    fn from(of: GiveWay) -> PreemptionView {
        PreemptionView {
            source: of.source.map(|name| name.to_string()),
            target: of.target.to_string(),
            msb: of.msb.to_string(),
            hardware_type: of.hardware_type.to_string(),
            in_use: of.in_use,
            servers: of.count,
        }
    }
}

/// A reservation before and after the preemptions.
#[derive(Debug, Serialize, ToSchema)]
struct StandView {
    reservation: String,
    /// Capacity in service after the loss, with open moves counted as done.
    before_rru: f64,
    after_rru: f64,
}

/// Decisions of the mover, computed by its own functions.
#[derive(Debug, Serialize, ToSchema)]
struct MoverDecisions {
    /// Loans recalled at once.
    recalled: Vec<Recalled>,
    /// Loans recalled within half an hour, if the MSB is still lost.
    recalled_later: Vec<Recalled>,
    /// Preemptions, which an operator starts.
    give_way: Vec<PreemptionView>,
    /// Reservations that are short or lose servers.
    stand: Vec<StandView>,
}

impl From<Rehearsed> for MoverDecisions {
    fn from(of: Rehearsed) -> MoverDecisions {
        let stands = |of: crate::rehearsal::Stand| StandView {
            reservation: of.reservation.to_string(),
            before_rru: of.before.to_f64(),
            after_rru: of.after.to_f64(),
        };
        MoverDecisions {
            recalled: of.recalled.into_iter().map(Recalled::from).collect(),
            recalled_later: of.recalled_later.into_iter().map(Recalled::from).collect(),
            give_way: of.give_way.into_iter().map(PreemptionView::from).collect(),
            stand: of.stand.into_iter().map(stands).collect(),
        }
    }
}

/// Result of a drill.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Drill {
    msb: String,
    /// Time of the region, by the database's clock.
    taken_at: DateTime<Utc>,
    /// Last audit-trail entry at that time.
    seq: i64,
    /// Version of the targets.
    version: i64,
    /// Servers of the MSB in service.
    servers_lost: usize,
    /// Of these, servers in use.
    servers_lost_in_use: usize,
    /// Whether every reservation keeps what was promised.
    all_kept: bool,
    /// Guaranteed reservations, highest priority first.
    reservations: Vec<AfterLoss>,
    /// Decisions of the mover; null: not available in this process.
    mover: Option<MoverDecisions>,
}

fn kept(row: &Certified, lost: MsbIx) -> AfterLoss {
    let left = row.after_loss(lost);
    AfterLoss {
        reservation: row.reservation_id.to_string(),
        owner: row.owner.to_string(),
        priority: row.priority,
        requested_rru: row.capacity.to_f64(),
        msb_buffer: row.msb_buffer,
        before_rru: row.owned.to_f64(),
        in_maintenance_rru: row.maintained.to_f64(),
        needed_at_once_rru: row.needed_at_once().to_f64(),
        left_at_once_rru: row.at_once_after_loss(lost).to_f64(),
        left_rru: left.to_f64(),
        missing_rru: (row.capacity - left).or_zero().to_f64(),
        quorum_rru: row.quorum().map(fleet::Rru::to_f64),
        kept: row.survives(lost),
    }
}

fn drill(held: &CachedRegion, lost: MsbIx, rehearsal: Option<&Arc<dyn Rehearse>>) -> Drill {
    let region = &held.snapshot;
    let servers = region.servers.iter();
    let gone = servers.filter(|server| server.available && region.msb_of(server) == lost);
    let (mut servers_lost, mut servers_lost_in_use) = (0, 0);
    for server in gone {
        servers_lost += 1;
        servers_lost_in_use += usize::from(server.in_use);
    }
    let mut rows: Vec<&Certified> = held.certificate.rows.iter().collect();
    rows.sort_by_key(|row| (row.priority, &row.reservation_id));
    let reservations: Vec<AfterLoss> = rows.into_iter().map(|row| kept(row, lost)).collect();
    Drill {
        msb: region.msbs[lost.ix()].id.to_string(),
        taken_at: region.taken_at,
        seq: held.seq.0,
        version: held.version.0,
        servers_lost,
        servers_lost_in_use,
        all_kept: reservations.iter().all(|row| row.kept),
        reservations,
        mover: rehearsal.map(|of| of.loss(region, lost).into()),
    }
}

/// Simulates the loss of an MSB on the current region, and changes nothing
///
/// Returns the capacity that each reservation would keep, highest priority first, and the decisions of the mover.
/// Servers count if a reservation owns them and they are in service. Servers in maintenance do not count: at once
/// none, and within 30 minutes only those that can be recalled by then.
#[utoipa::path(post, path = "/drills", operation_id = "drill", request_body = DrillBody,
    responses((status = 200, description = "the simulated loss", body = Drill),
        (status = 404, description = "there is no such MSB")))]
pub(super) async fn run(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<Drill>, Problem> {
    caller.needs(Role::Operator)?;
    let DrillBody { msb } = body::json(&body)?;
    let late = |_| Problem::unavailable("postgres_unavailable", "the region was not read in time");
    let held = timeout(REGION_WITHIN, site.region.read_current()).await.map_err(late)??;
    let named = |of: &Msb| *of.id == *msb;
    let lost = held.snapshot.msbs.iter().position(named).map(MsbIx::new).ok_or_else(|| {
        let detail = format!("the region has no MSB {msb:?}");
        Problem::new(StatusCode::NOT_FOUND, "unknown_msb", detail)
    })?;
    let rehearsal = site.rehearsal.clone();
    let played = tokio::task::spawn_blocking(move || drill(&held, lost, rehearsal.as_ref()));
    Ok(Json(played.await.expect("it neither panics nor is cancelled")))
}
