//! RRU profiles: set, replaced, removed.

use crate::jobs::with_small;
use broker::{ProfileError, Seq};
use fleet::{HardwareTypeName, Rru};
use serde_json::json;
use std::collections::BTreeMap;
use testkit::postgres::json_of;

fn values(of: &[(&str, i64)]) -> BTreeMap<HardwareTypeName, Rru> {
    of.iter().map(|(ty, micro)| ((*ty).into(), Rru(*micro))).collect()
}

#[tokio::test]
async fn profile_is_the_last_one_set() {
    let database = with_small().await;
    let broker = &database.broker;
    let both = values(&[("even", 1_000_000), ("odd", 1_600_000)]);
    broker.set_rru_profile("ann", "web", &both, None).await.expect("set");
    broker.set_rru_profile("ann", "db", &values(&[("odd", 1)]), None).await.expect("set");
    let one = values(&[("even", 2_000_000)]);
    broker.set_rru_profile("bob", "web", &one, None).await.expect("set");
    let all = broker.rru_profiles(None).await.expect("read");
    let brief: Vec<(&str, &str)> = all.iter().map(|of| (&*of.profile, &*of.set_by)).collect();
    assert_eq!(brief, [("db", "ann"), ("web", "bob")]);
    assert_eq!(broker.rru_profiles(Some("web")).await.expect("read")[0].rru, one);
    broker.remove_rru_profile("ann", "web", None).await.expect("removed");
    assert!(broker.rru_profiles(Some("web")).await.expect("read").is_empty());
    let gone = broker.remove_rru_profile("ann", "web", None).await.expect_err("gone");
    assert!(matches!(gone, ProfileError::Unknown { .. }), "{gone}");
    let trail = broker.trail_of("web", Seq(0), 10).await.expect("read");
    let web: Vec<_> =
        trail.iter().filter(|entry| entry.action.as_str().starts_with("profile_")).collect();
    let actions: Vec<&str> = web.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["profile_set", "profile_set", "profile_removed"]);
    assert_eq!(
        json_of(&web[1].detail),
        json!({ "before_rru": { "even": 1.0, "odd": 1.6 }, "rru": { "even": 2.0 } })
    );
}

#[tokio::test]
async fn invalid_profile_is_refused() {
    let database = with_small().await;
    let broker = &database.broker;
    let before = broker.last_seq().await.expect("asked");
    let fine = values(&[("even", 1_000_000)]);
    for name in ["", "a\0b", &"n".repeat(129)] {
        let error = broker.set_rru_profile("ann", name, &fine, None).await.expect_err("no name");
        assert!(matches!(error, ProfileError::Name(_)), "{error}");
    }
    let error = broker.set_rru_profile("ann", "web", &values(&[]), None).await.expect_err("empty");
    assert!(matches!(error, ProfileError::Empty), "{error}");
    let error = broker.set_rru_profile("ann", "web", &values(&[("even", 0)]), None).await;
    assert!(matches!(error, Err(ProfileError::Worthless { .. })), "{error:?}");
    for ty in ["abacus", "a\0b"] {
        let wrong = values(&[("even", 1), (ty, 1)]);
        let error = broker.set_rru_profile("ann", "web", &wrong, None).await.expect_err("unknown");
        assert!(matches!(error, ProfileError::UnknownType { .. }), "{error}");
    }
    assert!(broker.rru_profiles(None).await.expect("read").is_empty());
    assert!(broker.rru_profiles(Some("a\0b")).await.expect("read").is_empty());
    assert_eq!(broker.last_seq().await.expect("asked"), before, "nothing was changed");
}

#[tokio::test]
async fn outdated_profile_version_is_refused() {
    let database = with_small().await;
    let broker = &database.broker;
    let (one, two) = (values(&[("even", 1_000_000)]), values(&[("even", 2_000_000)]));
    let error = broker.set_rru_profile("ann", "web", &one, Some("1")).await.expect_err("none");
    assert!(matches!(error, ProfileError::Unknown { .. }), "{error}");
    broker.set_rru_profile("ann", "web", &one, None).await.expect("set");
    let seen = broker.rru_profiles(Some("web")).await.expect("read")[0].version();
    broker.set_rru_profile("bob", "web", &two, Some(&seen)).await.expect("as seen");
    let now = broker.rru_profiles(Some("web")).await.expect("read")[0].version();
    assert_ne!(seen, now);
    for error in [
        broker.set_rru_profile("ann", "web", &one, Some(&seen)).await,
        broker.remove_rru_profile("ann", "web", Some(&seen)).await,
    ] {
        assert!(
            matches!(&error, Err(ProfileError::Stale { current }) if *current == now),
            "{error:?}"
        );
    }
    assert_eq!(broker.rru_profiles(Some("web")).await.expect("read")[0].rru, two);
    broker.remove_rru_profile("ann", "web", Some(&now)).await.expect("as seen");
}
