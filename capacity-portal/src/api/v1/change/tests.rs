//! Reading of changes.

use super::{ChangeContext, ParsedChange, parse};
use broker::{GrantPolicy, RequestChangeKind};
use serde_json::{Value, json};

fn create(body: Value) -> Result<ParsedChange, Vec<String>> {
    let context =
        ChangeContext { kind: Some(RequestChangeKind::Create), ..ChangeContext::default() };
    let parsed = parse(body, context, None, None);
    parsed.map_err(|errors| errors.into_iter().map(|error| error.field).collect())
}

#[test]
fn parse_reports_every_invalid_field() {
    let wrong = create(json!({
        "reservation": "", "capacity_rru": -1, "rru": { "a": 0, "b": "x" }, "priority": -3,
        "msb_alpha": 2, "labels": { "a=b": "c" }, "grant_policy": "some", "colour": "red",
        "starts_at": "2026-01-02T00:00:00Z", "ends_at": "2026-01-01T00:00:00Z",
        "churn_contract": { "window_seconds": 1, "quiet": ["noon"] },
    }));
    let mut wrong = wrong.expect_err("invalid");
    wrong.sort_unstable();
    assert_eq!(
        wrong,
        [
            "capacity_rru",
            "churn_contract.in_use_percent",
            "churn_contract.quiet[0]",
            "churn_contract.window_seconds",
            "colour",
            "ends_at",
            "grant_policy",
            "labels.a=b",
            "msb_alpha",
            "owner",
            "priority",
            "reservation",
            "rru.a",
            "rru.b",
        ]
    );
    assert_eq!(create(json!([])).expect_err("not an object"), [""]);
    let missing = create(json!({ "reservation": "a" })).expect_err("members are missing");
    assert_eq!(missing, ["owner", "capacity_rru", "rru"]);
}

#[test]
fn profile_is_replaced_by_its_current_values() {
    let values = |of: f64| std::collections::BTreeMap::from([("x".into(), of)]);
    let profiles = std::collections::BTreeMap::from([("web".into(), values(1.5))]);
    let rru = |body: Value| {
        let context = ChangeContext {
            kind: Some(RequestChangeKind::Create),
            reservation: Some("a".into()),
            owner: Some("o".into()),
            prefix: String::new(),
        };
        let parsed = parse(body, context, None, Some(&profiles));
        parsed.map(|parsed| parsed.asking.change.rru).map_err(|errors| {
            errors.into_iter().map(|error| (error.field, error.detail)).collect::<Vec<_>>()
        })
    };
    let values_read = rru(json!({ "capacity_rru": 3, "profile": "web" })).expect("valid");
    assert_eq!(values_read, Some(values(1.5)));
    let wrong = rru(json!({ "capacity_rru": 3, "profile": "db" })).expect_err("unknown");
    let detail = "there is no RRU profile \"db\"; there are web".to_owned();
    assert_eq!(wrong, [("profile".to_owned(), detail)]);
    for both in [json!({ "rru": { "x": 1 } }), json!({ "hardware_types": ["x"] })] {
        let mut body = json!({ "capacity_rru": 3, "profile": "web" });
        body.as_object_mut().expect("one").extend(both.as_object().expect("one").clone());
        assert_eq!(rru(body).expect_err("both set").len(), 1);
    }
}

#[test]
fn servers_count_one_rru_each() {
    let read = create(json!({
        "reservation": "a", "owner": "o", "servers": 12, "hardware_types": ["x", "y"],
        "grant_policy": { "at_least_rru": 3.5 },
    }));
    let asking = read.expect("valid").asking;
    assert_eq!(asking.change.capacity_rru, Some(12.0));
    assert_eq!(asking.change.rru.expect("values")["x"], 1.0);
    assert_eq!(asking.policy, GrantPolicy::AtLeast(fleet::Rru(3_500_000)));
}

#[test]
fn amounts_have_at_most_six_places() {
    let body = |rru: f64| json!({ "reservation": "a", "owner": "o", "capacity_rru": rru, "rru": { "x": 1 } });
    assert!(create(body(1.000_001)).is_ok());
    assert_eq!(create(body(1.000_000_1)).expect_err("seven"), ["capacity_rru"]);
    assert_eq!(create(body(1e-7)).expect_err("seven"), ["capacity_rru"]);
}
