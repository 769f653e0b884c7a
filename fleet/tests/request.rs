//! A request becomes part of a region, or says which of its members is wrong.

use crate::world::World;
use fleet::{CapacityRequest, RegionSnapshot, RequestChange, RequestError, Rru};
use serde_json::{Value, json};

fn region() -> RegionSnapshot {
    World::new()
        .servers("dc0/m0", "t0", 2)
        .servers("dc1/m1", "t1", 2)
        .valued("web", "guaranteed", 1.5, &[("t0", 1.0)])
        .valued("lent", "elastic", 0.0, &[])
        .build()
}

fn request(members: Value) -> CapacityRequest {
    serde_json::from_value(members).expect("a request")
}

fn applied(members: Value) -> Result<(RegionSnapshot, RequestChange), RequestError> {
    request(members).apply(&region())
}

#[test]
fn members_left_out_stay_and_null_takes_back() {
    let members = json!({"reservation_id": "web", "msb_alpha": 0.5, "affinity": {"dc0": 1.0}});
    let (first, change) = applied(members).expect("fits");
    assert_eq!(change, RequestChange::Changed);
    let web = &first.reservations[first.reservation("web").expect("there").ix()];
    assert_eq!((web.msb_alpha, web.affinity.len()), (Some(0.5), 1));
    assert_eq!(web.capacity, Rru::from_f64(1.5).expect("small"));
    let members = json!({"reservation_id": "web", "msb_alpha": null, "affinity": {}});
    let (again, _) = request(members).apply(&first).expect("fits");
    assert_eq!(again, region(), "everything as it was");
}

#[test]
fn a_new_one_and_the_end_of_one() {
    let members = json!({
        "reservation_id": "feed", "owner": "news", "capacity_rru": 2, "rru": {"t1": 2.0},
    });
    let (with, change) = applied(members).expect("fits");
    assert_eq!(change, RequestChange::New);
    let feed = &with.reservations[with.reservation("feed").expect("there").ix()];
    assert!(feed.msb_buffer, "by default it survives the loss of an MSB");
    assert_eq!((feed.priority, feed.rru.len()), (5, 1), "not the most important by default");
    let (without, change) =
        applied(json!({"reservation_id": "web", "remove": true})).expect("fits");
    assert_eq!(change, RequestChange::Removed);
    let web = &without.reservations[without.reservation("web").expect("still named").ix()];
    assert_eq!(web.capacity, Rru::ZERO);
}

#[test]
fn what_is_wrong_is_named() {
    for (members, message) in [
        (json!({"reservation_id": "web", "remove": true, "priority": 1}), "remove: a request that"),
        (json!({"reservation_id": "gone", "remove": true}), "remove: no reservation is called"),
        (json!({"reservation_id": "lent", "capacity_rru": 1}), "not guaranteed but elastic"),
        (json!({"reservation_id": "new", "owner": "o", "capacity_rru": 1}), "rru: missing"),
        (json!({"reservation_id": "new", "rru": {"t0": 1}, "capacity_rru": 1}), "owner: missing"),
        (json!({"reservation_id": "new", "rru": {"t0": 1}, "owner": "o"}), "capacity_rru: missing"),
        (
            json!({"reservation_id": "web", "rru": {"t9": 1}}),
            "no hardware type \"t9\"; it has t0, t1",
        ),
        (json!({"reservation_id": "web", "affinity": {"dc9": 1}}), "no datacenter \"dc9\""),
        (json!({"reservation_id": "web", "survives": ["switch"]}), "no partition \"switch\""),
        (json!({"reservation_id": "web", "capacity_rru": -1}), "capacity_rru is -1"),
        (json!({"reservation_id": "web", "msb_alpha": 2}), "msb_alpha is 2"),
        (json!({"reservation_id": "web", "rru": {"t0": 0}}), "rru is 0"),
        (json!({"reservation_id": "web", "affinity": {"dc0": 3}}), "share is 3"),
    ] {
        let error = applied(members.clone()).expect_err("it is wrong").to_string();
        assert!(error.contains(message), "{members}: {error}");
    }
    // Slips of the pen are not taken for members left out.
    let slip = json!({"reservation_id": "web", "capacity": 1});
    serde_json::from_value::<CapacityRequest>(slip).expect_err("no such member");
}
