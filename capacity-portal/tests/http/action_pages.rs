//! Actions of pages: the request form, tokens, RRU profiles, churn contracts, the end of a reservation.

use crate::pages::{page, send, well_formed};
use crate::place::{Place, READER, ROOT};
use crate::requests::{self, ADMIN, OWNER_A};
use crate::stored_plans::psql;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// The part of a page after a text, up to another.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let rest = text.split(from).nth(1).unwrap_or_else(|| panic!("no {from}: {text}"));
    rest.split(to).next().expect("a part")
}

async fn text(place: &Place, path: &str, token: &str, form: &str) -> (u16, String, String) {
    let answer = send(place, path, token, form).await;
    let (status, path) = (answer.status().as_u16(), answer.url().path().to_owned());
    (status, path, answer.text().await.expect("text"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_form_submits_servers_labels_dates_and_policy() {
    let place = requests::place().await;
    let form = "reservation=batch&owner=a&count=servers&servers=2&type.type=on&capacity_rru=&rru.type=\
        &grant_policy=best_effort&ends_at=2199-01-31T18:30&labels=team%3Dgreen&starts_at=\
        &churn_contract.in_use_percent=5&churn_contract.window_seconds=24&churn_contract.quiet=08:00-18:00";
    let (status, path, shown) = text(&place, "/request/submit", OWNER_A, form).await;
    assert_eq!(status, 200, "{shown}");
    let id = path.strip_prefix("/requests/").expect("the page of the request").to_owned();
    let (_, asked) =
        place.ask((Method::GET, &format!("/v1/requests/{id}")), OWNER_A, &[], &Value::Null).await;
    assert_eq!(asked["asked"]["capacity_rru"], 2.0, "{asked}");
    assert_eq!(asked["asked"]["rru"]["type"], 1.0, "{asked}");
    assert_eq!(
        (&asked["grant_policy"], &asked["labels"]["team"], &asked["ends_at"]),
        (&"best_effort".into(), &"green".into(), &"2199-01-31T18:30:00Z".into()),
        "{asked}"
    );
    // The form of the reservation has what was asked for; other owners cannot change it.
    place
        .ended((
            reqwest::StatusCode::ACCEPTED,
            serde_json::json!({ "operation": asked["operation"] }),
        ))
        .await;
    let mut form = String::new();
    for _ in 0..100 {
        // The page reads the region from its cache.
        form = page(&place, "/request?reservation=batch", Some(OWNER_A)).await.1;
        if form.contains("name=\"filled_from\" value=\"batch\"") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for needed in ["value=\"2199-01-31T18:30\"", ">team=green</textarea>", "08:00-18:00"] {
        assert!(form.contains(needed), "{needed}: {form}");
    }
    let stolen = "reservation=batch&capacity_rru=3";
    let answer = text(&place, "/request/submit", requests::OWNER_B, stolen).await;
    assert_eq!(answer.0, 404, "{}", answer.2);
}

#[tokio::test]
async fn request_form_shows_each_error_at_its_field() {
    let place = requests::place().await;
    let form = "reservation=a&filled_from=a&capacity_rru=4&rru.type=x&labels=%3Dgreen&ends_at=2001-01-01T00:00\
        &starts_at=2199-01-01T00:00&churn_contract.in_use_percent=200&churn_contract.window_seconds=24&grant_policy=all";
    for path in ["/request", "/request/submit"] {
        let (status, _, shown) = text(&place, path, OWNER_A, form).await;
        assert_eq!(status, 422, "{shown}");
        well_formed(path, &shown);
        for field in ["rru-type", "labels", "churn_contract-in_use_percent", "ends_at"] {
            let error = format!("id=\"{field}-wrong\"");
            assert!(shown.contains(&error), "{path}: no error at {field}: {shown}");
            let input = shown.split(&format!("id=\"{field}\"")).nth(1).expect("the field");
            let tag = input.split('>').next().expect("a tag");
            assert!(tag.contains("aria-invalid=\"true\""), "{path}, {field}: {tag}");
        }
        assert!(!shown.contains("id=\"owner-wrong\""), "{shown}");
    }
}

#[tokio::test]
async fn plan_hides_other_owners_from_owners() {
    let place = requests::place().await;
    // More than is free: it takes servers of the other owner's reservation, or names it as the holder.
    let most_important = json!({ "limits": [], "max_priority": 0 });
    let quota = (Method::PUT, "/ops/v1/quotas/a");
    assert_eq!(place.ask(quota, ADMIN, &[], &most_important).await.0, 200);
    let asked = "reservation=a&capacity_rru=19&msb_buffer=on&rru.type=1.25&priority=0";
    let (status, path, shown) = text(&place, "/request", OWNER_A, asked).await;
    assert_eq!(status, 200, "{shown}");
    assert!(!shown.contains("b/ü") && !shown.contains("b%2F"), "{shown}");
    let id = path.strip_prefix("/plans/").expect("a plan");
    let (_, own) =
        place.ask((Method::GET, &format!("/v1/plans/{id}")), OWNER_A, &[], &Value::Null).await;
    let (_, whole) =
        place.ask((Method::GET, &format!("/v1/plans/{id}")), ROOT, &[], &Value::Null).await;
    let holder = |plan: &Value| plan["changes"][0]["answer"]["refusal"]["held_by"][0].clone();
    assert_eq!(
        holder(&whole)["reservation_id"],
        "b/ü",
        "an operator sees it: {}",
        whole["changes"][0]["answer"]["refusal"]
    );
    assert!(!own.to_string().contains("b/ü"), "{own}");
}

#[tokio::test]
async fn tokens_are_created_listed_and_revoked() {
    let place = requests::place().await;
    assert_eq!(page(&place, "/settings/tokens", Some(ROOT)).await.0, 403);
    assert_eq!(send(&place, "/settings/tokens", ROOT, "name=x&role=viewer").await.status(), 403);
    let form = "name=laptop&role=owner&owner=a&days=7";
    let (status, _, made) = text(&place, "/settings/tokens", ADMIN, form).await;
    assert_eq!(status, 201, "{made}");
    well_formed("/settings/tokens", &made);
    let secret = between(&made, "data-copy=\"", "\"").to_owned();
    assert_eq!(page(&place, "/reservations", Some(&secret)).await.0, 200, "it works");
    let (_, listed) = page(&place, "/settings/tokens", Some(ADMIN)).await;
    assert!(listed.contains("laptop") && !listed.contains(&secret), "{listed}");
    let id = between(&listed, "name=\"token\" value=\"", "\"");
    let (status, _, left) =
        text(&place, "/settings/tokens/revoke", ADMIN, &format!("token={id}")).await;
    assert!(status == 200 && !left.contains("laptop"), "{left}");
    assert_eq!(place.send(Method::GET, "/v1/whoami", Some(&secret), "").await.status(), 401);
    let (_, all) = page(&place, "/settings/tokens?all=true", Some(ADMIN)).await;
    assert!(all.contains("laptop") && all.contains("revoked"), "{all}");
    // What was typed stays.
    for wrong in ["name=&role=viewer", "name=typed&role=owner", "name=typed&role=viewer&days=x"] {
        let (status, _, shown) = text(&place, "/settings/tokens", ADMIN, wrong).await;
        assert!((400..500).contains(&status) && shown.contains("role=\"alert\""), "{shown}");
        assert!(wrong.contains("name=&") || shown.contains("value=\"typed\""), "{shown}");
    }
}

#[tokio::test]
async fn profiles_and_contracts_are_set_and_removed() {
    let place = requests::place().await;
    let (status, _, shown) =
        text(&place, "/settings/profiles", ROOT, "profile=web&rru=type%3D1.5").await;
    assert!(status == 200 && shown.contains("type=1.5"), "{shown}");
    let wrong = text(&place, "/settings/profiles", ROOT, "profile=web&rru=unknown%3D1").await;
    assert!(wrong.0 == 422 && wrong.2.contains("unknown"), "{}", wrong.2);
    assert_eq!(send(&place, "/settings/profiles", OWNER_A, "profile=x&rru=").await.status(), 403);
    let section = between(&shown, "id=\"profiles\"", "</section>");
    let version = between(section, "name=\"version\" value=\"", "\"").to_owned();
    let form = format!("profile=web&version={version}");
    let (status, _, left) = text(&place, "/settings/profiles/remove", ROOT, &form).await;
    assert!(status == 200 && left.contains("There are no RRU profiles"), "{left}");

    let form = "churn_contract.in_use_percent=5&churn_contract.window_seconds=24\
        &churn_contract.quiet=08:00-18:00&churn_contract.zone=Europe/Berlin";
    let (status, path, shown) = text(&place, "/reservations/a/contract", ROOT, form).await;
    assert_eq!((status, path.as_str()), (200, "/reservations/a"), "{shown}");
    assert!(shown.contains("Europe/Berlin") && shown.contains("value=\"5\""), "{shown}");
    for wrong in [
        "churn_contract.in_use_percent=x&churn_contract.window_seconds=24",
        "churn_contract.in_use_percent=5&churn_contract.window_seconds=0",
        "churn_contract.in_use_percent=",
        "churn_contract.in_use_percent=5&churn_contract.window_seconds=24&churn_contract.zone=Nowhere",
    ] {
        assert_eq!(send(&place, "/reservations/a/contract", ROOT, wrong).await.status(), 422);
    }
    assert_eq!(send(&place, "/reservations/a/contract", OWNER_A, form).await.status(), 403);
    let section = between(&shown, "id=\"churn\"", "</section>");
    let version = between(section, "name=\"version\" value=\"", "\"").to_owned();
    let form = format!("version={version}");
    let (_, _, left) = text(&place, "/reservations/a/contract/remove", ROOT, &form).await;
    assert!(left.contains("There is no churn contract"), "{left}");
    // Nothing is paused where no profile changed.
    assert_eq!(send(&place, "/reservations/a/rollout/pause", ROOT, "why=x").await.status(), 409);
}

#[tokio::test]
async fn a_request_follows_demand_from_its_page() {
    const PATH: &str = "/reservations/a/autosize";
    let place = requests::place().await;
    let section = |text: &str| between(text, "id=\"autosize\"", "</section>").to_owned();
    let version = |of: &str| between(of, "name=\"version\" value=\"", "\"").to_owned();
    let form = |version: &str, max: &str| {
        format!(
            "version={version}&metric=used_rru&quantile=99.5&min_rru=2&max_rru={max}&cooldown_seconds=48"
        )
    };
    let (_, off) = page(&place, "/reservations/a", Some(OWNER_A)).await;
    let first = version(&section(&off));
    assert!(section(&off).contains("Off: the request stays"), "{off}");
    let (status, path, on) = text(&place, PATH, OWNER_A, &form(&first, "9")).await;
    assert_eq!((status, path.as_str()), (200, "/reservations/a"), "{on}");
    let set = place.look("/v1/reservations/a/autosize").await;
    let settings = &set["settings"];
    assert_eq!(
        (&settings["quantile"], &settings["max_rru"], &settings["cooldown_seconds"]),
        (&json!(0.995), &json!(9.0), &json!(172_800)),
        "{set}"
    );
    let shown = section(&on);
    assert!(shown.contains("value=\"99.5\"") && shown.contains("value=\"48\""), "{shown}");
    // Who has an older page overwrites nothing.
    for stale in [PATH.to_owned(), format!("{PATH}/remove")] {
        assert_eq!(
            send(&place, &stale, OWNER_A, &form(&first, "7")).await.status(),
            412,
            "{stale}"
        );
    }
    let now = version(&shown);
    for (wrong, field) in [
        (form(&now, "1"), "max_rru"),
        (form(&now, "x"), "max_rru"),
        (form(&now, "9").replace("99.5", "100"), "quantile"),
        (form(&now, "9").replace("=48", "=0.5"), "cooldown_seconds"),
    ] {
        let (status, _, refused) = text(&place, PATH, OWNER_A, &wrong).await;
        assert_eq!(status, 422, "{refused}");
        assert!(refused.contains(field), "{field}: {refused}");
    }
    assert_eq!(send(&place, PATH, requests::OWNER_B, &form(&now, "9")).await.status(), 404);
    // Who only reads sees no form.
    let (_, read) = page(&place, "/reservations/a", Some(READER)).await;
    assert!(section(&read).contains("99.5") && !section(&read).contains("<form"), "{read}");
    let (_, _, left) =
        text(&place, &format!("{PATH}/remove"), OWNER_A, &format!("version={now}")).await;
    assert!(section(&left).contains("Off: the request stays"), "{left}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reservation_is_ended_from_its_page_after_its_plan() {
    let place = requests::place().await;
    let (_, shown) = page(&place, "/reservations/a", Some(OWNER_A)).await;
    let change = between(&shown, "name=\"change\" value=\"", "\"").replace("&quot;", "\"");
    let form = format!("change={}", change.replace('"', "%22"));
    let (_, path, plan) = text(&place, "/request", OWNER_A, &form).await;
    assert!(plan.contains("a can be deleted"), "{plan}");
    assert_eq!(page(&place, "/reservations/a", Some(OWNER_A)).await.0, 200, "nothing was changed");
    let (status, _, applied) = text(&place, &format!("{path}/apply"), OWNER_A, "").await;
    assert!(status == 200 && applied.contains("Applied"), "{applied}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plan_that_moves_servers_in_use_of_others_is_applied_only_when_confirmed() {
    let place = requests::place().await;
    let plan = place.plan(serde_json::json!([requests::two()])).await;
    let id = plan["plan"].as_str().expect("an id");
    // The planner of these tests takes only what is free, so a move of the stored plan is made one from `b/ü`.
    let from_other =
        "UPDATE plans SET answers = jsonb_set(jsonb_set(answers, '{0,moves,0,from}', '\"b/ü\"'),
        '{0,moves,0,in_use}', 'true') WHERE plan_id = :'id'";
    psql(&place.socket(), &[("id", id)], from_other);
    let path = format!("/plans/{id}");
    let (_, shown) = page(&place, &path, Some(OWNER_A)).await;
    let field = "name=\"others_in_use\" value=\"1\" required";
    assert!(shown.contains(field) && shown.contains("another reservation"), "{shown}");
    assert!(!shown.contains("b/ü"), "{shown}");
    let apply = format!("{path}/apply");
    for unconfirmed in ["", "others_in_use=", "others_in_use=0", "others_in_use=2"] {
        let (status, _, refused) = text(&place, &apply, OWNER_A, unconfirmed).await;
        assert!((400..500).contains(&status), "{unconfirmed}: {refused}");
        assert_eq!(place.look(&format!("/v1/plans/{id}")).await["state"], "made", "{unconfirmed}");
    }
    let (status, _, applied) = text(&place, &apply, OWNER_A, "others_in_use=1").await;
    assert!(status == 200 && applied.contains("Applied"), "{applied}");
}
