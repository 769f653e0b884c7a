//! The maintenance pages: preview, plan, end and cancel, by role.

use crate::pages::{page, send, well_formed};
use crate::place::{Place, READER, ROOT, WATCH};
use crate::sessions::{browser, cookie, csrf};
use reqwest::StatusCode;
use std::time::Duration;

const RACK: &str = "scope=rack&scope_id=rack0&length=60&drain=10&share=100&recall=20&why=new+fans";

#[tokio::test]
async fn planning_is_offered_to_operators_only() {
    let place = Place::new().await;
    for (token, offered) in [(None, false), (Some(READER), false), (Some(ROOT), true)] {
        let (_, list) = page(&place, "/maintenance", token).await;
        assert_eq!(list.contains("/maintenance/plan"), offered, "{token:?}");
    }
    for path in ["/maintenance/plan".to_owned(), format!("/maintenance/plan?{RACK}")] {
        let answer = browser().get(format!("{}{path}", place.base)).send().await.expect("asked");
        assert_eq!(answer.status(), 303, "sign-in comes first: {path}");
        assert_eq!(page(&place, &path, Some(READER)).await.0, 403, "{path}");
        assert_eq!(page(&place, &path, Some(ROOT)).await.0, 200, "{path}");
    }
    let nil = uuid::Uuid::nil();
    for path in [
        "/maintenance/plan".to_owned(),
        format!("/maintenance/{nil}/end"),
        format!("/maintenance/{nil}/cancel"),
    ] {
        for token in [READER, WATCH] {
            assert_eq!(send(&place, &path, token, RACK).await.status(), 403, "{path}");
        }
    }
    assert_eq!(place.broker.last_seq().await.expect("asked").0, 1, "nothing was written");
}

#[tokio::test]
async fn maintenance_is_previewed_planned_and_cancelled() {
    let place = Place::new().await;
    let (status, looked) = page(&place, &format!("/maintenance/plan?{RACK}"), Some(ROOT)).await;
    assert_eq!(status, 200, "{looked}");
    for needed in [
        "4 servers in 1 window",
        "In use or lent: 1.",
        "/reservations/b%2F%C3%BC",
        "value=\"new fans\"",
        "50.0\u{202f}% of the 8 servers",
        "Plan maintenance</button>",
    ] {
        assert!(looked.contains(needed), "{needed}: {looked}");
    }
    assert_eq!(place.broker.last_seq().await.expect("asked").0, 1, "a preview writes nothing");

    let planned = send(&place, "/maintenance/plan", ROOT, RACK).await;
    assert_eq!((planned.status(), planned.url().path()), (StatusCode::OK, "/maintenance"));
    let text = planned.text().await.expect("text");
    well_formed("/maintenance", &text);
    let windows = place.broker.maintenance(false, None, 9).await.expect("listed");
    let plan = windows[0].plan;
    assert!(text.contains(&format!("id=\"{plan}\"")) && text.contains("new fans"), "{text}");
    assert_eq!((windows.len(), &*windows[0].requested_by), (1, "root"));
    assert_eq!(windows[0].share_micro, 1_000_000);
    assert_eq!(windows[0].drain, Duration::from_secs(600));
    // Only operators are offered the buttons.
    let (_, seen) = page(&place, "/maintenance", Some(READER)).await;
    assert!(seen.contains("new fans") && !seen.contains("/cancel"), "{seen}");

    let early = send(&place, &format!("/maintenance/{plan}/end"), ROOT, "").await;
    assert_eq!(early.status(), 409, "it has not begun");
    let path = format!("/maintenance/{plan}/cancel");
    let cancelled = send(&place, &path, ROOT, "").await;
    assert_eq!((cancelled.status(), cancelled.url().path()), (StatusCode::OK, "/maintenance"));
    assert!(place.broker.maintenance(false, None, 9).await.expect("listed").is_empty());
    assert_eq!(send(&place, &path, ROOT, "").await.status(), 409, "once");
    let nil = uuid::Uuid::nil();
    assert_eq!(send(&place, &format!("/maintenance/{nil}/cancel"), ROOT, "").await.status(), 404);
}

#[tokio::test]
async fn maintenance_is_ended_from_its_page() {
    let place = Place::new().await;
    let form = "scope=server&scope_id=s20&length=60&why=x";
    assert_eq!(send(&place, "/maintenance/plan", ROOT, form).await.status(), 200);
    let epoch =
        place.broker.lease_mover(&broker::MoverInstance::new("m"), Duration::from_secs(60)).await;
    let epoch = epoch.expect("asked").expect("free");
    let window = async || place.broker.maintenance(true, None, 9).await.expect("listed").remove(0);
    while window().await.state != broker::MaintenanceState::Active {
        place.broker.advance_maintenance("m", epoch).await.expect("looked");
    }
    let (_, list) = page(&place, "/maintenance", Some(ROOT)).await;
    let plan = window().await.plan;
    for needed in [format!("/maintenance/{plan}/end"), "/servers/s20".to_owned()] {
        assert!(list.contains(&needed), "{needed}: {list}");
    }
    let ended = send(&place, &format!("/maintenance/{plan}/end"), ROOT, "").await;
    assert_eq!((ended.status(), ended.url().path()), (StatusCode::OK, "/maintenance"));
    assert_eq!(window().await.state, broker::MaintenanceState::Done);
}

#[tokio::test]
async fn rejected_maintenance_form_keeps_values_and_errors() {
    let place = Place::new().await;
    for (form, field, status) in [
        ("scope=rack&scope_id=rack0&length=soon&why=x", "length", 400),
        ("scope=rack&scope_id=rack0&length=60&drain=-1&why=x", "drain", 400),
        ("scope=rack&scope_id=rack0&length=60&share=much&why=x", "share", 400),
        ("scope=rack&scope_id=rack0&length=60&share=200&why=x", "share", 400),
        ("scope=rack&scope_id=rack0&length=60&recall=soon&why=x", "recall", 400),
        ("scope=rack&scope_id=rack0&length=60&recall=99999&why=x", "recall", 422),
        ("scope=rack&scope_id=rack0&length=60&starts_at=monday&why=x", "starts_at", 400),
        ("scope=rack&scope_id=rack0&length=60&starts_at=2020-01-01T00:00&why=x", "starts_at", 422),
        ("scope=rack&scope_id=unknown&length=60&why=x", "scope_id", 422),
        ("scope=rack&scope_id=a%00b&length=60&why=x", "scope_id", 400),
        ("scope=rack&scope_id=rack0&length=0&why=x", "length", 422),
        ("scope=rack&scope_id=rack0&length=60&drain=99999&why=x", "drain", 422),
    ] {
        let planned = send(&place, "/maintenance/plan", ROOT, form).await;
        assert_eq!(planned.status(), status, "{form}");
        let planned = planned.text().await.expect("text");
        well_formed(form, &planned);
        if form.contains("%00") {
            assert!(
                planned.contains("zero character")
                    && !planned.contains("Plan maintenance</button>"),
                "{planned}"
            );
            continue;
        }
        let (looked, shown) = page(&place, &format!("/maintenance/plan?{form}"), Some(ROOT)).await;
        assert_eq!(looked, 200, "{form}");
        for text in [shown, planned] {
            assert!(text.contains(&format!("id=\"{field}-wrong\"")), "{form}: {text}");
            assert_eq!(text.matches("aria-invalid").count(), 1, "{form}: {text}");
            assert!(
                text.contains("value=\"x\"") && !text.contains("Plan maintenance</button>"),
                "{form}: {text}"
            );
        }
    }
    for form in ["length=60&more=1", "scope=rack&scope_id=rack0&length=60&why=x&csrf2=1"] {
        let sent = send(&place, "/maintenance/plan", ROOT, form).await;
        assert!(sent.status().is_client_error(), "{form}: no such field");
    }
    // A quarter of the eight servers of an MSB is two; the rack has four.
    let form = "scope=rack&scope_id=rack0&length=60&why=x";
    let refused = send(&place, "/maintenance/plan", ROOT, form).await;
    assert_eq!(refused.status(), 409);
    let refused = refused.text().await.expect("text");
    assert!(refused.contains("4 of the 8 servers of MSB"), "{refused}");
    assert!(!refused.contains("aria-invalid"), "no field is wrong: {refused}");
    assert_eq!(place.broker.last_seq().await.expect("asked").0, 1, "nothing was written");
}

#[tokio::test]
async fn form_without_csrf_token_plans_nothing() {
    let place = Place::new().await;
    let cookie = cookie(&place, ROOT).await;
    let csrf = csrf(&place, &cookie).await;
    let post = async |path: &str, form: String| {
        let request = browser().post(format!("{}{path}", place.base)).header("cookie", &cookie);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.body(form).send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(post("/maintenance/plan", RACK.to_owned()).await, 403);
    assert_eq!(post("/maintenance/plan", format!("{RACK}&csrf=wrong")).await, 403);
    assert_eq!(post("/maintenance/plan", format!("{RACK}&csrf={csrf}")).await, 303);
    let plan = place.broker.maintenance(false, None, 9).await.expect("listed")[0].plan;
    let path = format!("/maintenance/{plan}/cancel");
    assert_eq!(post(&path, String::new()).await, 403);
    assert_eq!(post(&path, format!("csrf={csrf}")).await, 303);
}
