//! `POST /ops/v1/drills`: the loss of an MSB, played through on the region as it is. It reads and computes,
//! and writes nothing anywhere.

use crate::api::asked;
use crate::api::authority::Role;
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::api::{FRESH_WITHIN, Site};
use crate::rehearsal::{Rehearse, Rehearsed};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use control::HeldRegion;
use decisions::elastic::Loan;
use decisions::give_way::GiveWay;
use fleet::audit::Certified;
use fleet::{Msb, MsbIx};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::time::timeout;
use utoipa::ToSchema;

/// What is to be lost.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DrillAsked {
    /// The MSB.
    msb: String,
}

/// What a reservation would keep.
#[derive(Debug, Serialize, ToSchema)]
struct Kept {
    reservation: String,
    owner: String,
    /// 0 is the most important.
    priority: i32,
    /// What was promised.
    requested_rru: f64,
    /// Whether that is to survive this.
    msb_buffer: bool,
    /// What it owns and no unplanned event takes out of use; servers in maintenance included.
    before_rru: f64,
    /// What of that is in maintenance.
    in_maintenance_rru: f64,
    /// What must be left at once: what was promised less a quarter of the embedded buffer.
    needed_at_once_rru: f64,
    /// What is left at once: servers in maintenance elsewhere count as gone.
    left_at_once_rru: f64,
    /// What is left within 30 minutes: maintenance that can be recalled by then counts as back.
    left_rru: f64,
    /// What is missing within 30 minutes to what was promised.
    missing_rru: f64,
    /// What of it is to be left by its replica rule, a quorum; null: it has none.
    quorum_rru: Option<f64>,
    /// Whether it has what was promised for this case, at once and within 30 minutes: all of it with an
    /// embedded buffer, a quorum with a replica rule, nothing in particular without either.
    kept: bool,
}

/// Servers lent to an elastic reservation.
#[derive(Debug, Serialize, ToSchema)]
struct Recalled {
    /// The elastic reservation.
    borrower: String,
    /// Who owns them.
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

/// Servers that could change hands, if somebody says so.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GivesWay {
    /// Who gives them; null: they are nobody's.
    source: Option<String>,
    /// Who gets them.
    target: String,
    msb: String,
    hardware_type: String,
    in_use: bool,
    servers: u64,
}

impl From<GiveWay> for GivesWay {
    fn from(of: GiveWay) -> GivesWay {
        GivesWay {
            source: of.source.map(|name| name.to_string()),
            target: of.target.to_string(),
            msb: of.msb.to_string(),
            hardware_type: of.hardware_type.to_string(),
            in_use: of.in_use,
            servers: of.count,
        }
    }
}

/// What a reservation would have once others gave way to it, or it did.
#[derive(Debug, Serialize, ToSchema)]
struct Stands {
    reservation: String,
    /// What works of what it holds after the loss, moves under way counted as done.
    before_rru: f64,
    after_rru: f64,
}

/// What the mover would decide, by its own functions.
#[derive(Debug, Serialize, ToSchema)]
struct MoverSays {
    /// Loans that come back at once.
    recalled: Vec<Recalled>,
    /// Loans that come back within half an hour, if the MSB is still lost.
    recalled_later: Vec<Recalled>,
    /// Who could give way to whom. It is done when somebody says so.
    give_way: Vec<GivesWay>,
    /// Those who are short, and those who gave way.
    stand: Vec<Stands>,
}

impl From<Rehearsed> for MoverSays {
    fn from(of: Rehearsed) -> MoverSays {
        let stands = |of: crate::rehearsal::Stand| Stands {
            reservation: of.reservation.to_string(),
            before_rru: of.before.to_f64(),
            after_rru: of.after.to_f64(),
        };
        MoverSays {
            recalled: of.recalled.into_iter().map(Recalled::from).collect(),
            recalled_later: of.recalled_later.into_iter().map(Recalled::from).collect(),
            give_way: of.give_way.into_iter().map(GivesWay::from).collect(),
            stand: of.stand.into_iter().map(stands).collect(),
        }
    }
}

/// What came of a drill.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Drill {
    msb: String,
    /// When the region was like this, by the database's clock.
    taken_at: DateTime<Utc>,
    /// The last entry of the audit trail at that instant.
    seq: i64,
    /// The version of the targets.
    version: i64,
    /// Servers of the MSB that are not out of use already.
    servers_lost: usize,
    /// Of those, the ones with running containers.
    servers_lost_in_use: usize,
    /// Whether everybody keeps what was promised.
    all_kept: bool,
    /// Guaranteed reservations, the most important first.
    reservations: Vec<Kept>,
    /// What the mover would decide; null: nobody here can say.
    mover: Option<MoverSays>,
}

fn kept(row: &Certified, lost: MsbIx) -> Kept {
    let left = row.after_loss(lost);
    Kept {
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

fn drill(held: &HeldRegion, lost: MsbIx, rehearsal: Option<&Arc<dyn Rehearse>>) -> Drill {
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
    let reservations: Vec<Kept> = rows.into_iter().map(|row| kept(row, lost)).collect();
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

/// Plays the loss of an MSB through on the region as it is, and changes nothing
///
/// Who would keep what of what was promised, the most important first, and what the mover would decide.
/// What counts is what reservations own now and is not out of use already. Planned maintenance is taken
/// off: all of it at once, and within 30 minutes what cannot be recalled by then.
#[utoipa::path(post, path = "/drills", operation_id = "drill", request_body = DrillAsked,
    responses((status = 200, description = "what would be", body = Drill),
        (status = 404, description = "there is no such MSB")))]
pub(super) async fn run(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<Drill>, Problem> {
    caller.needs(Role::Operator)?;
    let DrillAsked { msb } = asked::json(&body)?;
    let late = |_| Problem::unavailable("postgres_unavailable", "the region is not read in time");
    let held = timeout(FRESH_WITHIN, site.region.fresh()).await.map_err(late)??;
    let named = |of: &Msb| *of.id == *msb;
    let lost = held.snapshot.msbs.iter().position(named).map(MsbIx::new).ok_or_else(|| {
        let detail = format!("the region has no MSB {msb:?}");
        Problem::new(StatusCode::NOT_FOUND, "unknown_msb", detail)
    })?;
    let rehearsal = site.rehearsal.clone();
    let played = tokio::task::spawn_blocking(move || drill(&held, lost, rehearsal.as_ref()));
    Ok(Json(played.await.expect("it neither panics nor is cancelled")))
}
