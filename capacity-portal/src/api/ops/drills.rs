//! `POST /ops/v1/drills`: simulates a loss on the current region, and writes nothing.

use crate::drill::{Drilled, Lost};
use crate::http::auth::{Caller, Role};
use crate::http::timeout::REGION_WITHIN;
use crate::http::{Problem, Site, body};
use crate::rehearsal::{Rehearse, Rehearsed};
use api_types::drills::{
    Drill, DrillBody, FaultDomain, GivesWay, Kept, MoverDecisions, Recalled, StandView,
};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use control::CachedRegion;
use decisions::elastic::Loan;
use decisions::preemption::Preemption;
use fleet::RegionSnapshot;
use fleet::audit::Certified;
use std::sync::Arc;
use tokio::time::timeout;

fn recalled(of: Loan) -> Recalled {
    Recalled {
        borrower: of.borrower.to_string(),
        owner: of.owner.to_string(),
        msb: of.msb.to_string(),
        hardware_type: of.hardware_type.to_string(),
        servers: of.count,
    }
}

/// Servers that preemption moves, as they are sent.
pub(super) fn gives_way(of: Preemption) -> GivesWay {
    GivesWay {
        source: of.source.map(|name| name.to_string()),
        target: of.target.to_string(),
        msb: of.msb.to_string(),
        hardware_type: of.hardware_type.to_string(),
        in_use: of.in_use,
        servers: of.count,
    }
}

fn decisions(of: Rehearsed) -> MoverDecisions {
    let stands = |of: crate::rehearsal::Stand| StandView {
        reservation: of.reservation.to_string(),
        before_rru: of.before.to_f64(),
        after_rru: of.after.to_f64(),
    };
    MoverDecisions {
        recalled: of.recalled.into_iter().map(recalled).collect(),
        recalled_later: of.recalled_later.into_iter().map(recalled).collect(),
        give_way: of.preemptions.into_iter().map(gives_way).collect(),
        stand: of.stand.into_iter().map(stands).collect(),
    }
}

fn kept(row: &Certified, after: &Drilled) -> Kept {
    Kept {
        reservation: row.reservation_id.to_string(),
        owner: row.owner.to_string(),
        priority: row.priority,
        promised_rru: row.capacity.to_f64(),
        held_rru: row.held().to_f64(),
        msb_buffer: row.msb_buffer,
        covered: after.is_covered(row),
        owned_rru: row.owned.to_f64(),
        in_maintenance_rru: row.maintained.to_f64(),
        needed_at_once_rru: row.needed_at_once().to_f64(),
        left_at_once_rru: after.left_at_once(row).to_f64(),
        left_rru: after.left(row).to_f64(),
        missing_rru: after.missing(row).to_f64(),
        quorum_rru: row.quorum().map(fleet::Rru::to_f64),
        kept: after.keeps(row),
    }
}

fn drill(
    held: &CachedRegion,
    asked: DrillBody,
    lost: Lost,
    rehearsal: Option<&Arc<dyn Rehearse>>,
) -> Drill {
    let region = &held.snapshot;
    let after = Drilled::of(region, lost);
    let gone = after.gone();
    let mut rows: Vec<&Certified> = held.certificate.rows.iter().collect();
    rows.sort_by_key(|row| (row.priority, &row.reservation_id));
    let reservations: Vec<Kept> = rows.into_iter().map(|row| kept(row, &after)).collect();
    let mover = lost.as_msb().zip(rehearsal);
    Drill {
        msb: asked.msb,
        domain: asked.domain,
        taken_at: region.taken_at,
        seq: held.seq.0,
        version: held.version.0,
        servers_lost: gone.servers,
        servers_lost_in_use: gone.in_use,
        all_kept: reservations.iter().all(|row| row.kept),
        reservations,
        mover: mover.map(|(msb, of)| decisions(of.loss(region, msb))),
    }
}

/// What a drill is to lose.
///
/// # Errors
/// If it names none or two, or one that the region does not have.
fn find(region: &RegionSnapshot, asked: &DrillBody) -> Result<Lost, Problem> {
    let unknown = |code, detail| Problem::new(StatusCode::NOT_FOUND, code, detail);
    match (&asked.msb, &asked.domain) {
        (Some(msb), None) => Lost::msb(region, msb)
            .ok_or_else(|| unknown("unknown_msb", format!("the region has no MSB {msb:?}"))),
        (None, Some(FaultDomain { partition, domain })) => Lost::domain(region, partition, domain)
            .ok_or_else(|| {
                let detail = format!("the region has no domain {domain:?} of {partition:?}");
                unknown("unknown_domain", detail)
            }),
        _ => {
            let detail = "a drill loses one thing: `msb` or `domain`";
            Err(Problem::bad_request("malformed", detail))
        }
    }
}

/// Simulates the loss of an MSB or of another fault domain on the current region, and changes nothing
///
/// Returns the capacity that each reservation would keep, highest priority first, and the decisions of the mover.
/// Servers count if a reservation owns them and they are in service. Servers in maintenance do not count: at once
/// none, and within 30 minutes only those that can be recalled by then.
#[utoipa::path(post, path = "/drills", operation_id = "drill", request_body = DrillBody,
    responses((status = 200, description = "the simulated loss", body = Drill),
        (status = 404, description = "there is no such MSB or domain"),
        (status = 400, description = "the body names none or both")))]
pub(super) async fn run(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<Drill>, Problem> {
    caller.needs(Role::Operator)?;
    let asked: DrillBody = body::json(&body)?;
    let late = |_| Problem::unavailable("postgres_unavailable", "the region was not read in time");
    let held = timeout(REGION_WITHIN, site.region.read_current()).await.map_err(late)??;
    let lost = find(&held.snapshot, &asked)?;
    let rehearsal = site.rehearsal.clone();
    let played = tokio::task::spawn_blocking(move || drill(&held, asked, lost, rehearsal.as_ref()));
    Ok(Json(played.await.expect("it neither panics nor is cancelled")))
}
