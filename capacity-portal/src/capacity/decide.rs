//! What a grant policy makes of a plan, and what is said where it is not granted.

use crate::planner::{Grant, Granted};
use broker::{Asking, GrantPolicy, Quota, RequestChangeKind};
use fleet::explain::ShortfallReason;
use fleet::{RegionSnapshot, Rru};
use serde_json::{Value, json};

/// Every token that says why something is not granted: what `fleet::explain` says, and what stands
/// beside it.
pub(crate) const REASONS: [&str; 16] = [
    ShortfallReason::NoEligibleHardware.as_str(),
    ShortfallReason::HardwareUnavailable.as_str(),
    ShortfallReason::InsufficientHardware.as_str(),
    ShortfallReason::MsbBuffer.as_str(),
    ShortfallReason::Affinity.as_str(),
    ShortfallReason::Priority.as_str(),
    ShortfallReason::NoRegress.as_str(),
    ShortfallReason::NotFoundInTime.as_str(),
    "unavailable_servers",
    "shared_buffers",
    "held_by_others",
    "hardware_types",
    "region",
    "quota_exceeded",
    "request_invalid",
    "region_moved",
];

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As it was asked.
    Grant,
    /// So much of it: to be planned again with that.
    GrantPart(Rru),
    /// Not at all.
    Refuse,
}

/// By the grant policy. Whoever asks for less than is promised gets it in any case.
pub(super) fn verdict(asking: &Asking, granted: Granted, today: Option<Rru>) -> Verdict {
    if granted.grant == Grant::InFull || asks_for_less(asking, today) {
        return Verdict::Grant;
    }
    let enough = match asking.policy {
        GrantPolicy::All => false,
        GrantPolicy::AtLeast(least) => granted.rru >= least,
        GrantPolicy::BestEffort => granted.rru > Rru::ZERO,
    };
    // Less than is promised already is no grant.
    let grows = today.is_none_or(|today| granted.rru > today);
    if enough && grows { Verdict::GrantPart(granted.rru) } else { Verdict::Refuse }
}

/// Whether a change is to the capacity alone, and to less.
fn asks_for_less(asking: &Asking, today: Option<Rru>) -> bool {
    let mut rest = asking.change.clone();
    let capacity = rest.capacity_rru.take().and_then(Rru::from_f64);
    let nothing = fleet::CapacityRequest {
        reservation_id: rest.reservation_id.clone(),
        ..Default::default()
    };
    asking.kind == RequestChangeKind::Remove
        || rest == nothing && capacity.zip(today).is_some_and(|(asked, today)| asked <= today)
}

/// What is promised to a reservation now.
pub(crate) fn promised(region: &RegionSnapshot, name: &str) -> Option<Rru> {
    region.reservation(name).map(|r| region.reservations[r.ix()].capacity)
}

/// What is left of a quota for a reservation that has `today` of it; `None`: there is no quota.
fn quota_left(quota: &Quota, today: Rru) -> Option<Rru> {
    Some(quota.capacity? - (quota.promised - today))
}

/// What is said to what exceeds a quota; `None`: it does not.
pub(crate) fn refused_by_quota(
    asking: &Asking,
    quota: Option<&Quota>,
    today: Option<Rru>,
) -> Option<Value> {
    let (quota, today) = (quota?, today.unwrap_or_default());
    let left = quota_left(quota, today)?;
    let asked = asking.change.capacity_rru.and_then(Rru::from_f64)?;
    if asked <= left || asked <= today {
        return None;
    }
    let mut alternatives = Vec::new();
    if left > today && left > Rru::ZERO {
        let mut request = asking.change.clone();
        request.capacity_rru = Some(left.to_f64());
        alternatives.push(json!({
            "concession": "fewer_rru", "sentence": format!("asking for {left} RRU"),
            "request": request,
        }));
    }
    let limit = quota.capacity.unwrap_or_default();
    let owner = &asking.owner;
    let detail = format!(
        "owner {owner:?} may be promised {limit} RRU and is promised {}; {asked} RRU for {:?} would be \
         more than that",
        quota.promised,
        asking.reservation()
    );
    Some(json!({
        "code": "quota_exceeded", "detail": detail, "reasons": ["quota_exceeded"],
        "quota_rru": limit.to_f64(), "promised_rru": quota.promised.to_f64(),
        "asked_rru": asked.to_f64(), "left_rru": left.or_zero().to_f64(),
        "alternatives": alternatives,
    }))
}

/// What is said to a request that is not granted: the reasons, their numbers, and what would be
/// granted instead, from its answer in the format ras-plan/1.
pub(crate) fn refusal(answer: &Value) -> Value {
    let refusal = &answer["refusal"];
    let limits = refusal["limits"].as_array().map_or(&[][..], Vec::as_slice);
    let mut reasons = vec![refusal["reason"].clone()];
    for limit in limits {
        if !reasons.contains(&limit["limit"]) {
            reasons.push(limit["limit"].clone());
        }
    }
    reasons.retain(|reason| reason.as_str().is_some_and(|word| REASONS.contains(&word)));
    json!({
        "code": "not_granted", "detail": refusal["sentence"], "reasons": reasons,
        "asked_rru": answer["capacity_rru"], "grantable_rru": answer["granted_rru"],
        "missing_rru": refusal["missing_rru"], "limits": limits,
        "evidence": refusal["evidence"], "alternatives": refusal["alternatives"],
        "answer": answer,
    })
}

#[cfg(test)]
mod tests {
    use super::{REASONS, Verdict, verdict};
    use crate::planner::{Grant, Granted};
    use broker::{Asking, GrantPolicy, RequestChangeKind};
    use fleet::explain::ShortfallReason;
    use fleet::{CapacityRequest, Rru};

    fn asking(policy: GrantPolicy, rru: f64) -> Asking {
        Asking {
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
        }
    }

    #[test]
    fn a_policy_says_what_becomes_of_a_part() {
        let rru = |amount: f64| Rru::from_f64(amount).expect("an amount");
        let part = |amount: f64| Granted { grant: Grant::InPart, rru: rru(amount) };
        let full = Granted { grant: Grant::InFull, rru: rru(20.0) };
        let today = Some(rru(10.0));
        let of = |policy, granted| verdict(&asking(policy, 20.0), granted, today);
        assert_eq!(of(GrantPolicy::All, full), Verdict::Grant);
        assert_eq!(of(GrantPolicy::All, part(15.0)), Verdict::Refuse);
        let least = GrantPolicy::AtLeast(rru(15.0));
        assert_eq!(of(least, part(15.0)), Verdict::GrantPart(rru(15.0)));
        assert_eq!(of(least, part(14.0)), Verdict::Refuse);
        assert_eq!(of(GrantPolicy::BestEffort, part(10.5)), Verdict::GrantPart(rru(10.5)));
        assert_eq!(of(GrantPolicy::BestEffort, part(10.0)), Verdict::Refuse, "nothing gained");
        // Less than is promised, of what is short already.
        assert_eq!(verdict(&asking(GrantPolicy::All, 8.0), part(6.0), today), Verdict::Grant);
    }

    #[test]
    fn every_reason_of_a_shortfall_is_one() {
        assert!(ShortfallReason::ALL.iter().all(|reason| REASONS.contains(&reason.as_str())));
    }
}
