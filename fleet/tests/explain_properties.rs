//! For any region: explanations agree with the audit, reasons are true, and concessions suffice.

use crate::world::{any_assignment, find};
use fleet::audit::audit;
use fleet::explain::{Explainer, Relaxation, ShortfallReason};
use fleet::{
    AllowedDatacenterRow, RegionSnapshot, ReservationIx, ReservationKind, Rru, RruRow, Targets,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Gives a reservation everything that is free and eligible.
fn with_all_free(snapshot: &RegionSnapshot, targets: &Targets, ix: ReservationIx) -> Targets {
    let servers = snapshot.servers.iter().zip(targets.holders());
    let holders = servers.map(|(server, &holder)| {
        let eligible = snapshot.value(server, ix) > Rru::ZERO;
        if holder.is_none() && server.available && eligible { Some(ix) } else { holder }
    });
    Targets::new(snapshot, holders.collect())
}

/// These targets for a snapshot with other reservation rows.
fn carried_over(from: &RegionSnapshot, targets: &Targets, to: &RegionSnapshot) -> Targets {
    let holder = |ix: &Option<ReservationIx>| ix.map(|ix| find(to, &from.reservations[ix.ix()].id));
    Targets::new(to, targets.holders().iter().map(holder).collect())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn explanation_and_audit_agree((snapshot, targets) in any_assignment()) {
        let report = audit(&snapshot, &targets);
        let explainer = Explainer::new(&snapshot, &targets);
        for (row, reservation) in report.reservations.iter().zip(&snapshot.reservations) {
            let found = explainer.explain(find(&snapshot, &reservation.id));
            prop_assert_eq!(found.assigned, row.holding.assigned);
            prop_assert_eq!(found.guaranteed, row.holding.guaranteed);
            let missing = found.shortfall.as_ref().map_or(Rru::ZERO, |short| short.missing);
            prop_assert_eq!(missing, row.holding.shortfall);
            let worst = found.worst_msb.as_ref().map(|worst| &worst.msb);
            prop_assert_eq!(worst, row.holding.largest_msb_id.as_ref());
            prop_assert!(!found.to_string().is_empty());
        }
        let short: Vec<_> = explainer.shortfalls().into_iter().map(|(ix, _)| ix).collect();
        let expected: Vec<_> = report
            .short()
            .map(|row| find(&snapshot, &row.reservation_id))
            .collect();
        prop_assert_eq!(short, expected);
    }

    /// A reason about hardware must be true of the whole region: no assignment at all could
    /// satisfy every reservation in the set.
    #[test]
    fn shortages_are_real((snapshot, targets) in any_assignment()) {
        for (ix, short) in Explainer::new(&snapshot, &targets).shortfalls() {
            let own = &snapshot.reservations[ix.ix()];
            let eligible = |server: &&fleet::Server| {
                own.value(server.hardware_type).is_some()
                    && own.allows(snapshot.datacenter_of(server))
            };
            let there = snapshot.servers.iter().filter(eligible).count();
            match short.reason {
                ShortfallReason::NoEligibleHardware => prop_assert_eq!(there, 0),
                ShortfallReason::InsufficientHardware => {
                    let hardware = &short.hardware;
                    prop_assert!(hardware.with_buffers > hardware.supply, "{hardware:?}");
                }
                ShortfallReason::MsbBuffer => {
                    let hardware = &short.hardware;
                    prop_assert!(hardware.with_buffers > hardware.usable, "{hardware:?}");
                }
                ShortfallReason::AllowedDatacenters => {
                    prop_assert!(!own.allowed_datacenters.is_empty());
                }
                ShortfallReason::ReplicaRule => prop_assert!(own.replica_rule.is_some()),
                _ => prop_assert!(there > 0),
            }
        }
    }

    /// Each relaxation is carried out and audited. Affinity is left out: the audit has its say on
    /// that in other tests.
    #[test]
    fn relaxations_grant((snapshot, targets) in any_assignment()) {
        let mut parts = snapshot.to_parts();
        parts.affinity.clear();
        let plain = RegionSnapshot::new(parts.clone()).expect("valid without affinity");
        let targets = carried_over(&snapshot, &targets, &plain);
        let explainer = Explainer::new(&plain, &targets);
        for (ix, _) in explainer.shortfalls() {
            let reservation = &plain.reservations[ix.ix()];
            for relaxation in explainer.explain(ix).relaxations {
                if reservation.kind != ReservationKind::Guaranteed {
                    let is_fewer = matches!(relaxation, Relaxation::FewerRru { .. });
                    prop_assert!(is_fewer, "{relaxation:?}");
                    continue;
                }
                let mut relaxed = parts.clone();
                let row = relaxed
                    .reservations
                    .iter_mut()
                    .find(|row| row.reservation_id == reservation.id)
                    .expect("it is listed");
                match &relaxation {
                    Relaxation::FewerRru { grantable } => row.capacity_rru = grantable.to_f64(),
                    Relaxation::NoBuffer { .. } => row.msb_buffer = false,
                    Relaxation::OneMoreType { hardware_type, assumed_value, .. } => {
                        relaxed.rru.push(RruRow {
                            reservation_id: reservation.id.clone(),
                            hardware_type: hardware_type.clone(),
                            rru: assumed_value.to_f64(),
                        });
                    }
                    Relaxation::OneMoreDatacenter { datacenter } => {
                        relaxed.allowed_datacenters.push(AllowedDatacenterRow {
                            reservation_id: reservation.id.clone(),
                            datacenter: datacenter.clone(),
                        });
                    }
                    Relaxation::MoreReplicasPerMsb { needed_per_msb, .. } => {
                        row.replicas_per_msb = Some(needed_per_msb.cast_signed());
                    }
                    Relaxation::LooserAffinity { .. } => {
                        prop_assert!(false, "there is no affinity to loosen");
                    }
                }
                let relaxed = RegionSnapshot::new(relaxed).expect("valid when relaxed");
                let carried = carried_over(&plain, &targets, &relaxed);
                let ix = find(&relaxed, &reservation.id);
                let report = audit(&relaxed, &with_all_free(&relaxed, &carried, ix));
                let row = &report.reservations[ix.ix()];
                prop_assert_eq!(row.holding.shortfall, Rru::ZERO, "{:?}", relaxation);
            }
        }
    }
}
