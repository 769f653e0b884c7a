//! Grant policy, quotas and refusals.

use api_types::plans::{ExceededQuota, OfferedRequest, QuotaRefusal};
use api_types::requests::{InvalidRequest, NotGranted, RequestRefusal};
use broker::{Document, GrantPolicy, Quota, Refused, RequestChangeKind, RequestSpec};
use fleet::explain::ShortfallReason;
use fleet::quote::{Concession, Grant, Quote};
use fleet::{RegionSnapshot, Rru};

/// Code of a request that exceeds a quota.
pub(super) const QUOTA_EXCEEDED: &str = "quota_exceeded";

/// Code of a request that an operator rejected.
const REJECTED: &str = "rejected";

/// All codes of refusals: reasons of `fleet::explain`, limits, and admission's own.
pub const REASONS: [&str; 23] = [
    ShortfallReason::NoEligibleHardware.as_str(),
    ShortfallReason::HardwareUnavailable.as_str(),
    ShortfallReason::AllowedDatacenters.as_str(),
    ShortfallReason::ReplicaRule.as_str(),
    ShortfallReason::InsufficientHardware.as_str(),
    ShortfallReason::MsbBuffer.as_str(),
    ShortfallReason::FaultDomain.as_str(),
    ShortfallReason::Affinity.as_str(),
    ShortfallReason::Priority.as_str(),
    ShortfallReason::NoRegress.as_str(),
    ShortfallReason::Policy.as_str(),
    ShortfallReason::NotFoundInTime.as_str(),
    "unavailable_servers",
    "shared_buffers",
    "held_by_others",
    "hardware_types",
    "fault_domains",
    "region",
    QUOTA_EXCEEDED,
    "request_invalid",
    "region_moved",
    "plan_unreadable",
    REJECTED,
];

/// Decision on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrantDecision {
    /// Grant in full.
    Grant,
    /// Grant this part: plan again with it.
    GrantPart(Rru),
    /// Refuse.
    Refuse,
}

/// Decides by the grant policy. A reduction is always granted.
pub(crate) fn grant_decision(
    asking: &RequestSpec,
    quote: &Quote,
    today: Option<Rru>,
) -> GrantDecision {
    if quote.granted == Grant::InFull || is_reduction(asking, today) {
        return GrantDecision::Grant;
    }
    let enough = match asking.policy {
        GrantPolicy::All => false,
        GrantPolicy::AtLeast(least) => quote.granted_rru >= least,
        GrantPolicy::BestEffort => quote.granted_rru > Rru::ZERO,
    };
    // A grant below the promised capacity would be a loss.
    let grows = today.is_none_or(|today| quote.granted_rru > today);
    if enough && grows {
        GrantDecision::GrantPart(quote.granted_rru)
    } else {
        GrantDecision::Refuse
    }
}

/// Whether a change only reduces capacity.
fn is_reduction(asking: &RequestSpec, today: Option<Rru>) -> bool {
    let mut rest = asking.change.clone();
    let capacity = rest.capacity_rru.take().and_then(Rru::from_f64);
    let nothing = fleet::CapacityRequest {
        reservation_id: rest.reservation_id.clone(),
        ..Default::default()
    };
    asking.kind == RequestChangeKind::Remove
        || rest == nothing && capacity.zip(today).is_some_and(|(asked, today)| asked <= today)
}

/// Capacity promised to a reservation now.
pub fn promised_capacity(region: &RegionSnapshot, name: &str) -> Option<Rru> {
    region.reservation(name).map(|r| region.reservations[r.ix()].capacity)
}

/// Refusal of a request that exceeds a quota of its owner, with every exceeded limit, its numbers and the
/// largest amount within all limits; `None`: within quota.
pub fn check_quota(
    asking: &RequestSpec,
    quota: Option<&Quota>,
    today: Option<Rru>,
) -> Option<QuotaRefusal> {
    let (quota, today) = (quota?, today.unwrap_or_default());
    if asking.change.remove {
        return None;
    }
    let now = quota.promises.iter().find(|of| of.reservation == *asking.reservation());
    let own = now.map(|of| of.values.clone()).unwrap_or_default();
    let values = match &asking.change.rru {
        Some(values) => {
            let values = values.iter().map(|(ty, value)| (ty.clone(), Rru::from_f64(*value)));
            values.filter_map(|(ty, value)| Some((ty, value?))).collect()
        }
        None => own.clone(),
    };
    let asked = asking.change.capacity_rru.map_or(Some(today), Rru::from_f64)?;
    let (mut quotas, mut exceeded, mut left) = (Vec::new(), Vec::new(), None);
    for of in &quota.limits {
        let held = now.map_or(Rru::ZERO, |now| of.measure.of(now.capacity, &own));
        let others = of.promised - held;
        let would_be = others + of.measure.of(asked, &values);
        let fits = of.measure.fits(of.limit - others, &values);
        left = [left, fits].into_iter().flatten().min();
        if would_be > of.limit && would_be > of.promised {
            exceeded.push(format!("{} {}, of which it has {}", of.limit, of.measure, of.promised));
            quotas.push(ExceededQuota {
                quota: of.measure.to_string(),
                limit: of.limit.to_f64(),
                promised: Some(of.promised.to_f64()),
                would_be: would_be.to_f64(),
            });
        }
    }
    if quotas.is_empty() {
        return None;
    }
    let left = left.unwrap_or_default();
    let mut alternatives = Vec::new();
    if left > today {
        let mut request = asking.change.clone();
        request.capacity_rru = Some(left.to_f64());
        let sentence = format!("requesting {left} RRU");
        let concession = Concession::FewerRru;
        alternatives.push(OfferedRequest { concession, sentence, request, cost: None });
    }
    let detail = format!(
        "owner {:?} may be promised {}; {:?} may have at most {left} RRU and requests {asked}",
        asking.owner,
        exceeded.join("; and "),
        asking.reservation()
    );
    Some(QuotaRefusal {
        code: QUOTA_EXCEEDED.to_owned(),
        detail,
        reasons: vec![QUOTA_EXCEEDED.to_owned()],
        quotas,
        asked_rru: asked.to_f64(),
        left_rru: left.to_f64(),
        alternatives,
    })
}

/// Codes of the reasons and limits that keep a quote from being granted in full, without duplicates.
pub fn refusal_codes(quote: &Quote) -> Vec<&'static str> {
    let refusal = quote.refusal.iter();
    let all = refusal.flat_map(|of| {
        let limits = of.limits.iter().map(|limit| limit.limit.as_str());
        std::iter::once(of.reason.as_str()).chain(limits)
    });
    let mut reasons = Vec::new();
    for reason in all {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

/// Refusal of a request that an operator rejected.
pub fn rejection(why: &str) -> Refused {
    refused(&RequestRefusal::Invalid(InvalidRequest {
        code: REJECTED.to_owned(),
        detail: format!("an operator rejected it: {why}"),
        reasons: vec![REJECTED.to_owned()],
        alternatives: Vec::new(),
    }))
}

/// A refusal as it is stored.
pub(crate) fn refused(refusal: &RequestRefusal) -> Refused {
    let (code, reasons) = match refusal {
        RequestRefusal::NotGranted(of) => (&of.code, &of.reasons),
        RequestRefusal::Quota(of) => (&of.code, &of.reasons),
        RequestRefusal::QuotaReduced(of) => (&of.code, &of.reasons),
        RequestRefusal::Invalid(of) => (&of.code, &of.reasons),
    };
    Refused { code: code.clone(), reasons: reasons.clone(), answer: Document::of(refusal) }
}

/// Refusal of a request: reasons, their numbers and alternatives.
pub(crate) fn refusal(quote: &Quote) -> RequestRefusal {
    let refusal = quote.refusal.as_ref();
    RequestRefusal::NotGranted(Box::new(NotGranted {
        code: "not_granted".to_owned(),
        detail: refusal.map(|of| of.sentence.clone()),
        reasons: refusal_codes(quote).into_iter().map(str::to_owned).collect(),
        asked_rru: quote.capacity.to_f64(),
        grantable_rru: quote.granted_rru.to_f64(),
        missing_rru: refusal.map(|of| of.missing.to_f64()),
        limits: refusal.map(|of| of.limits.clone()).unwrap_or_default(),
        evidence: refusal.map(|of| of.evidence),
        held_by: refusal.map(|of| of.held_by.clone()),
        alternatives: refusal.map(|of| of.alternatives.clone()),
        answer: quote.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use super::{GrantDecision, REASONS, grant_decision};
    use broker::{GrantPolicy, RequestChangeKind, RequestSpec};
    use fleet::explain::{LimitName, ShortfallReason};
    use fleet::quote::{Grant, Quote};
    use fleet::{CapacityRequest, Rru};

    fn asking(policy: GrantPolicy, rru: f64) -> RequestSpec {
        RequestSpec {
            kind: RequestChangeKind::Change,
            owner: "owner".into(),
            change: CapacityRequest {
                reservation_id: "web".into(),
                capacity_rru: Some(rru),
                ..CapacityRequest::default()
            },
            policy,
            starts_at: None,
            ends_at: None,
            labels: None,
            contract: None,
            why: None,
        }
    }

    #[test]
    fn partial_plan_is_decided_by_grant_policy() {
        let rru = |amount: f64| Rru::from_f64(amount).expect("an amount");
        let quote = |grant: Grant, amount: f64| -> Quote {
            let moves = serde_json::json!({
                "in_use": 0, "idle": 0, "acquired": 0, "own_in_use": 0, "own_idle": 0, "lent": 0,
                "price": 0.0,
            });
            let document = serde_json::json!({
                "format": "ras-plan/1", "reservation_id": "web", "change": "changed",
                "granted": grant, "capacity_rru": 20.0, "guaranteed_today_rru": 10.0,
                "granted_rru": amount, "msb_buffer": true, "cost": moves, "sources": [], "moves": [],
                "reservation": {
                    "servers": 0, "assigned_rru": amount, "largest_msb": null,
                    "largest_msb_rru": 0.0, "guaranteed_rru": amount, "datacenters": [],
                },
                "arrival": null, "refusal": null, "primal": 0.0, "shortfall_cost": 0.0, "dual_bound": 0.0,
                "surely_missing_rru": 0.0, "complete": true, "audit_clean": true,
                "seconds": { "read": 0.0, "total": 0.0 },
            });
            serde_json::from_value(document).expect("a quote")
        };
        let part = |amount: f64| quote(Grant::InPart, amount);
        let full = quote(Grant::InFull, 20.0);
        let today = Some(rru(10.0));
        let of = |policy, granted: Quote| grant_decision(&asking(policy, 20.0), &granted, today);
        assert_eq!(of(GrantPolicy::All, full), GrantDecision::Grant);
        assert_eq!(of(GrantPolicy::All, part(15.0)), GrantDecision::Refuse);
        let least = GrantPolicy::AtLeast(rru(15.0));
        assert_eq!(of(least, part(15.0)), GrantDecision::GrantPart(rru(15.0)));
        assert_eq!(of(least, part(14.0)), GrantDecision::Refuse);
        assert_eq!(of(GrantPolicy::BestEffort, part(10.5)), GrantDecision::GrantPart(rru(10.5)));
        assert_eq!(
            of(GrantPolicy::BestEffort, part(10.0)),
            GrantDecision::Refuse,
            "nothing gained"
        );
        // Below what is promised, for a reservation already short.
        assert_eq!(
            grant_decision(&asking(GrantPolicy::All, 8.0), &part(6.0), today),
            GrantDecision::Grant
        );
    }

    #[test]
    fn shortfall_reasons_are_refusal_codes() {
        assert!(ShortfallReason::ALL.iter().all(|reason| REASONS.contains(&reason.as_str())));
        assert!(LimitName::ALL.iter().all(|limit| REASONS.contains(&limit.as_str())));
    }
}
