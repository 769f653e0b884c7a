//! What is written is what is read, to the byte and to the bit.

use crate::common::{self, bytes_of, midnight, small, small_snapshot};
use arrow_array::{Array, ArrayRef, LargeStringArray, StringArray, StringViewArray};
use chrono::{DateTime, Utc};
use datasets::schema::{SERVERS, SNAPSHOT_TABLES, UNAVAILABILITY};
use datasets::{
    Basis, read_assignment, read_basis, read_parts, read_report, read_snapshot, write_export,
    write_parts, write_result, write_snapshot,
};
use fleet::{
    AffinityRow, AllowedDatacenterRow, Name, ReservationIx, ReservationRow, RruRow, ServerRow,
    SnapshotParts, Targets, UnavailabilityRow, Weights,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::json;
use std::sync::Arc;

#[test]
fn rows_survive() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("new/deeper/snapshot");
    write_parts(&folder, &small()).unwrap();
    assert_eq!(read_parts(&folder).unwrap(), small());
    assert_eq!(read_snapshot(&folder).unwrap(), small_snapshot());
}

#[test]
fn a_snapshot_survives_and_is_written_alike_from_shuffled_rows() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    write_snapshot(&first, &small_snapshot()).unwrap();
    assert_eq!(read_snapshot(&first).unwrap(), small_snapshot());
    let mut shuffled = small();
    shuffled.servers.reverse();
    shuffled.reservations.rotate_left(2);
    shuffled.rru.reverse();
    shuffled.unavailability.rotate_left(1);
    write_snapshot(&second, &fleet::RegionSnapshot::new(shuffled).unwrap()).unwrap();
    assert_eq!(bytes_of(&first), bytes_of(&second));
}

#[test]
fn what_a_decision_rests_on_survives_beside_the_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, plain) = (dir.path().join("exported"), dir.path().join("plain"));
    let parts = small_snapshot().to_parts();
    let generations = (0..parts.servers.len() as i64).map(|n| (1 << 40) + n).collect();
    let basis = Basis { version: 7, generations };
    write_export(&folder, &parts, &basis).unwrap();
    // For readers that do not know of it, it is a snapshot like any other.
    assert_eq!(read_snapshot(&folder).unwrap(), small_snapshot());
    assert_eq!(read_basis(&folder, &small_snapshot()).unwrap(), Some(basis));
    write_snapshot(&plain, &small_snapshot()).unwrap();
    assert_eq!(read_basis(&plain, &small_snapshot()).unwrap(), None);
    // A version without generations is no ground to publish on.
    std::fs::copy(plain.join("servers.parquet"), folder.join("servers.parquet")).unwrap();
    let error = read_basis(&folder, &small_snapshot()).unwrap_err().to_string();
    assert!(error.contains("0 columns \"generation\""), "{error}");
}

#[test]
fn tables_without_rows_survive() {
    let dir = tempfile::tempdir().unwrap();
    let mut parts = small();
    parts.servers.clear();
    parts.reservations.clear();
    parts.rru.clear();
    parts.affinity.clear();
    parts.allowed_datacenters.clear();
    parts.unavailability.clear();
    parts.ahead.budgets.clear();
    write_parts(&dir.path().join("s"), &parts).unwrap();
    assert_eq!(read_parts(&dir.path().join("s")).unwrap(), parts);
    assert_eq!(read_snapshot(&dir.path().join("s")).unwrap().servers, vec![]);
}

#[test]
fn region_json_may_leave_out_weights_and_carry_more() {
    let dir = tempfile::tempdir().unwrap();
    write_parts(dir.path(), &small()).unwrap();
    let text = r#"{"format": "ras-snapshot/2", "region": "r", "made_by": "us",
        "taken_at": "2026-01-01T01:00:00+01:00", "weights": {"buffer_tau": 0, "rack_alpha": null}}"#;
    std::fs::write(dir.path().join("region.json"), text).unwrap();
    let parts = read_parts(dir.path()).unwrap();
    assert_eq!(parts.weights, Weights { buffer_tau: 0.0, ..Weights::default() });
    assert_eq!(parts.shared_buffer_fraction, None);
    assert_eq!(parts.taken_at, midnight());
    let text = r#"{"format": "ras-snapshot/2", "region": "r", "taken_at": "2026-01-01T00:00:00Z"}"#;
    std::fs::write(dir.path().join("region.json"), text).unwrap();
    assert_eq!(read_parts(dir.path()).unwrap().weights, Weights::default());
}

/// The strings of an array of ours, as plain options.
fn strings(array: &ArrayRef) -> Vec<Option<String>> {
    use arrow_array::cast::AsArray;
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let values = dictionary.values().as_string::<i32>();
        let keys = dictionary.normalized_keys().into_iter().enumerate();
        return keys
            .map(|(row, key)| (!array.is_null(row)).then(|| values.value(key).to_owned()))
            .collect();
    }
    array.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
}

#[test]
fn other_writers_strings_and_extra_columns_read_the_same() {
    let is_text = |array: &ArrayRef| {
        use arrow_schema::DataType::{Dictionary, Utf8};
        matches!(array.data_type(), Utf8 | Dictionary(_, _))
    };
    type Make = fn(Vec<Option<String>>) -> ArrayRef;
    let makes: [Make; 3] = [
        |values| Arc::new(StringArray::from(values)),
        |values| Arc::new(LargeStringArray::from(values)),
        |values| Arc::new(values.into_iter().collect::<StringViewArray>()),
    ];
    for make in makes {
        let dir = tempfile::tempdir().unwrap();
        write_parts(dir.path(), &small()).unwrap();
        for schema in SNAPSHOT_TABLES {
            common::rewrite(dir.path(), schema, |name, array| {
                let extra = (format!("extra_{name}"), array.clone());
                let array = if is_text(&array) { make(strings(&array)) } else { array };
                vec![extra, (name.to_owned(), array)]
            });
        }
        assert_eq!(read_parts(dir.path()).unwrap(), small());
    }
}

#[test]
fn an_untyped_column_of_nulls_is_a_column_of_nulls() {
    let dir = tempfile::tempdir().unwrap();
    let mut parts = small();
    parts.servers.iter_mut().for_each(|server| {
        server.loaned_to = None;
        server.power_watts = None;
    });
    write_parts(dir.path(), &parts).unwrap();
    common::rewrite(dir.path(), &SERVERS, |name, array| {
        let untyped: ArrayRef = Arc::new(arrow_array::NullArray::new(array.len()));
        let replace = ["loaned_to", "power_watts"].contains(&name);
        vec![(name.to_owned(), if replace { untyped } else { array })]
    });
    assert_eq!(read_parts(dir.path()).unwrap(), parts);
}

#[test]
fn times_of_other_units_are_read_where_exact() {
    use arrow_array::TimestampNanosecondArray;
    let dir = tempfile::tempdir().unwrap();
    write_parts(dir.path(), &small()).unwrap();
    common::rewrite(dir.path(), &UNAVAILABILITY, |name, array| {
        let nanos = |event: &UnavailabilityRow| event.started_at.timestamp_nanos_opt();
        let started: Vec<Option<i64>> = small().unavailability.iter().map(nanos).collect();
        let started = TimestampNanosecondArray::from(started).with_timezone("+00:00");
        let array = if name == "started_at" { Arc::new(started) } else { array };
        vec![(name.to_owned(), array)]
    });
    assert_eq!(read_parts(dir.path()).unwrap(), small());
}

#[test]
fn a_result_survives_and_replaces_an_earlier_one() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("result");
    let snapshot = small_snapshot();
    let report = json!({"format": "ras-solve/1", "objective": {"total": 0.1 + 0.2}});
    let unchanged = Targets::unchanged(&snapshot);
    write_result(&folder, &snapshot, &unchanged, &report, None).unwrap();
    assert_eq!(read_assignment(&folder, &snapshot).unwrap(), unchanged);
    let first = bytes_of(&folder);
    write_result(&folder, &snapshot, &unchanged, &report, None).unwrap();
    assert_eq!(bytes_of(&folder), first);

    let web = snapshot.reservation("web");
    let holders: Vec<Option<ReservationIx>> =
        (0..snapshot.servers.len()).map(|n| if n % 3 == 0 { web } else { None }).collect();
    let targets = Targets::new(&snapshot, holders);
    std::fs::write(folder.join("report.html"), "a page of the earlier result").unwrap();
    write_result(&folder, &snapshot, &targets, &report, None).unwrap();
    assert_eq!(read_assignment(&folder, &snapshot).unwrap(), targets);
    assert_eq!(read_report(&folder).unwrap(), report);
    assert!(!folder.join("report.html").exists(), "a page of another result stayed");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "temporary folders stayed");
}

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![
        "[a-c]{1,2}".prop_map(Name::from),
        any::<String>().prop_filter("not empty", |s| !s.is_empty()).prop_map(Name::from),
    ]
}

fn instant() -> impl Strategy<Value = DateTime<Utc>> {
    (-62_135_596_800_000_000_i64..253_402_300_799_000_000)
        .prop_map(|micros| DateTime::from_timestamp_micros(micros).expect("years 1 to 9999"))
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..1.0_f64, any::<f64>().prop_filter("equal to itself", |x| !x.is_nan())]
}

fn finite() -> impl Strategy<Value = f64> {
    number().prop_filter("finite", |x| x.is_finite())
}

prop_compose! {
    fn server()(
        names in (name(), name(), name(), name(), name()),
        holders in proptest::option::of(name()).prop_flat_map(|a| (Just(a), proptest::option::of(name()), proptest::option::of(name()))),
        flags in any::<(bool, bool)>(),
        power_watts in proptest::option::of(number()),
    ) -> ServerRow {
        let (server_id, datacenter, msb, rack, hardware_type) = names;
        let (current_reservation, target_reservation, loaned_to) = holders;
        let (target_pending, in_use) = flags;
        ServerRow { server_id: server_id.into(), datacenter: datacenter.into(), msb: msb.into(), rack: rack.into(), hardware_type: hardware_type.into(), current_reservation: current_reservation.map(Into::into),
            target_reservation: target_reservation.map(Into::into), target_pending, in_use, loaned_to: loaned_to.map(Into::into), power_watts }
    }
}

prop_compose! {
    fn reservation()(
        names in (name(), name(), name()),
        host_profile in proptest::option::of(name()),
        capacity_rru in number(),
        msb_buffer in any::<bool>(),
        priority in any::<i32>(),
        limits in proptest::collection::vec(proptest::option::of(number()), 3),
        rule in (any::<Option<i32>>(), any::<Option<i32>>()),
    ) -> ReservationRow {
        let (reservation_id, owner, kind) = names;
        ReservationRow { reservation_id: reservation_id.into(), owner: owner.into(), kind, capacity_rru, msb_buffer, priority,
            msb_alpha: limits[0], rack_alpha: limits[1], affinity_theta: limits[2], host_profile,
            replicas: rule.0, replicas_per_msb: rule.1 }
    }
}

prop_compose! {
    fn event()(
        names in (name(), name(), name(), name()),
        started_at in instant(),
        ended_at in proptest::option::of(instant()),
        recall_minutes in proptest::option::of(any::<i32>()),
    ) -> UnavailabilityRow {
        let (event_id, scope, scope_id, kind) = names;
        UnavailabilityRow { event_id, scope, scope_id, kind, started_at, ended_at, recall_minutes }
    }
}

fn values() -> impl Strategy<Value = RruRow> {
    (name(), name(), number()).prop_map(|(reservation_id, hardware_type, rru)| RruRow {
        reservation_id: reservation_id.into(),
        hardware_type: hardware_type.into(),
        rru,
    })
}

fn shares() -> impl Strategy<Value = AffinityRow> {
    (name(), name(), number()).prop_map(|(reservation_id, datacenter, share)| AffinityRow {
        reservation_id: reservation_id.into(),
        datacenter: datacenter.into(),
        share,
    })
}

fn weights() -> impl Strategy<Value = Weights> {
    let prices = proptest::array::uniform5(finite());
    (prices, proptest::option::of(finite()), proptest::option::of(finite())).prop_map(
        |(
            [move_in_use, move_idle, spread_beta, buffer_tau, affinity_theta],
            msb_alpha,
            rack_alpha,
        )| {
            Weights {
                move_in_use,
                move_idle,
                spread_beta,
                buffer_tau,
                msb_alpha,
                rack_alpha,
                affinity_theta,
            }
        },
    )
}

prop_compose! {
    fn any_parts()(
        region in name(),
        taken_at in instant(),
        weights in weights(),
        shared_buffer_fraction in proptest::option::of(finite()),
        servers in proptest::collection::vec(server(), 0..20),
        reservations in proptest::collection::vec(reservation(), 0..6),
        rru in proptest::collection::vec(values(), 0..6),
        affinity in proptest::collection::vec(shares(), 0..4),
        allowed in proptest::collection::vec((name(), name()), 0..4),
        unavailability in proptest::collection::vec(event(), 0..6),
    ) -> SnapshotParts {
        let allowed_datacenters = (allowed.into_iter())
            .map(|(reservation_id, datacenter)| AllowedDatacenterRow { reservation_id: reservation_id.into(), datacenter: datacenter.into() })
            .collect();
        SnapshotParts { region, taken_at, weights, shared_buffer_fraction, servers, reservations,
            rru, affinity, allowed_datacenters, unavailability, ahead: fleet::AheadParts::default(),
            crossing: fleet::PartitionParts::default() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    /// Rows survive whether or not they make a valid region, and are written alike each time.
    #[test]
    fn any_rows_survive(parts in any_parts()) {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        write_parts(&first, &parts).unwrap();
        let read = read_parts(&first).unwrap();
        prop_assert_eq!(&read, &parts);
        write_parts(&second, &read).unwrap();
        prop_assert_eq!(bytes_of(&first), bytes_of(&second));
    }
}
