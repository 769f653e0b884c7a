//! The response type of a reservation.

use crate::api::views::rollout;
use crate::http::schema;
use api_types::reservations::{Condition, ContractTerms, Reservation, ReservationPart};
use broker::{RequestState, ReservationSummary, State as _};
use control::reservation_status::{CountsBy, ReservationStatus, ServerCount, state_of};
use fleet::audit::{Figures, Standing};
use fleet::{ReservationKind, Rru};
use std::collections::BTreeMap;

/// Names of kinds.
pub(super) fn kinds() -> utoipa::openapi::Schema {
    let all =
        [ReservationKind::Guaranteed, ReservationKind::SharedBuffer, ReservationKind::Elastic];
    schema::words(all.map(ReservationKind::as_str))
}

fn part(of: ServerCount) -> ReservationPart {
    ReservationPart { servers: of.servers, rru: of.rru.to_f64() }
}

fn parts<N: ToString>(of: &CountsBy<N>) -> BTreeMap<String, ReservationPart> {
    of.iter().map(|(name, count)| (name.to_string(), part(*count))).collect()
}

/// A reservation, as it is sent. `status` may be a few seconds older than `card`.
pub(super) fn view(card: ReservationSummary, status: Option<&ReservationStatus>) -> Reservation {
    let none = ReservationStatus::default();
    let guaranteed = card.kind == ReservationKind::Guaranteed;
    let state = match card.kind {
        ReservationKind::Guaranteed => state_of(card.capacity, card.in_force.as_ref(), status),
        ReservationKind::SharedBuffer | ReservationKind::Elastic => RequestState::Granted,
    };
    let has = status.unwrap_or(&none);
    let worst = has.worst_msb.as_ref();
    let in_worst = worst.map_or(Rru::ZERO, |(_, rru)| *rru);
    let figures = figures(&card, has);
    let requested = card.in_force.and_then(|of| of.asked).unwrap_or(card.capacity);
    let contract = card.contract.as_ref().map(|of| ContractTerms {
        in_use_percent: f64::from(of.in_use_micro) / 10_000.0,
        window_seconds: of.window.as_secs(),
        zone: of.zone.clone(),
        quiet: of.quiet.iter().map(ToString::to_string).collect(),
    });
    let terms = &card.terms;
    Reservation {
        conditions: if guaranteed { conditions(&card, has) } else { Vec::new() },
        reservation: card.reservation.to_string(),
        owner: card.owner.to_string(),
        kind: card.kind.as_str().to_owned(),
        state: state.as_str().to_owned(),
        requested_rru: requested.to_f64(),
        promised_rru: card.capacity.to_f64(),
        held_rru: figures.held.to_f64(),
        guaranteed_rru: figures.guaranteed().to_f64(),
        missing_now_rru: figures.missing_now().to_f64(),
        missing_after_loss_rru: figures.missing_after_loss().to_f64(),
        standing: figures.standing().as_str().to_owned(),
        worst_msb: worst.map(|(msb, _)| msb.to_string()),
        embedded_buffer_rru: card.msb_buffer.then(|| in_worst.to_f64()),
        owned: part(has.owned),
        out_of_use: part(has.out_of_use),
        arriving: part(has.arriving),
        leaving: part(has.leaving),
        by_hardware_type: parts(&has.by_type),
        by_msb: parts(&has.by_msb),
        by_datacenter: parts(&has.by_datacenter),
        msb_buffer: card.msb_buffer,
        priority: card.priority,
        msb_alpha: card.msb_alpha,
        rack_alpha: card.rack_alpha,
        affinity_theta: card.affinity_theta,
        host_profile: card.host_profile.as_ref().map(ToString::to_string),
        rollout: card.rollout.map(rollout),
        rru: terms.rru.iter().map(|(ty, rru)| (ty.to_string(), rru.to_f64())).collect(),
        affinity: terms.affinity.iter().map(|(dc, share)| (dc.to_string(), *share)).collect(),
        allowed_datacenters: terms.allowed_datacenters.iter().map(ToString::to_string).collect(),
        survives: terms.survives.iter().map(ToString::to_string).collect(),
        replicas: card.replica_rule.map(|rule| rule.replicas),
        replicas_per_msb: card.replica_rule.map(|rule| rule.per_msb),
        churn_contract: contract,
        promise_version: card.promise_version,
        promised_at: card.promised_at,
        ends_at: card.in_force.and_then(|of| of.ends_at),
        request: card.in_force.map(|of| of.request.to_string()),
        open_request: card.open.map(|of| of.request.to_string()),
        labels: card.labels,
        version: card.version,
    }
}

/// Its figures. The promise is that of the card, which may be newer than the region.
fn figures(card: &ReservationSummary, has: &ReservationStatus) -> Figures {
    Figures { promised: card.capacity, ..has.figures }
}

fn conditions(card: &ReservationSummary, has: &ReservationStatus) -> Vec<Condition> {
    let figures = figures(card, has);
    let (promised, held) = (figures.promised, figures.held);
    let counted = |part: ServerCount| format!("{} servers, {} RRU", part.servers, part.rru);
    let mut all = vec![Condition {
        condition: "promise_kept".to_owned(),
        holds: figures.standing() == Standing::Guaranteed,
        detail: format!(
            "{} of {promised} RRU are guaranteed now; it has {held} RRU now",
            figures.guaranteed()
        ),
    }];
    for (condition, part) in [
        ("servers_arriving", has.arriving),
        ("servers_leaving", has.leaving),
        ("servers_out_of_use", has.out_of_use),
    ] {
        all.push(Condition {
            condition: condition.to_owned(),
            holds: part.servers > 0,
            detail: counted(part),
        });
    }
    let detail = card.open.map_or_else(
        || "no request is open".to_owned(),
        |of| format!("request {} is {}", of.request, of.state.as_str()),
    );
    all.push(Condition {
        condition: "request_open".to_owned(),
        holds: card.open.is_some(),
        detail,
    });
    all
}
