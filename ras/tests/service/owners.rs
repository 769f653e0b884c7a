//! What owners of capacity do from the command line, against a real server.

use crate::place::{PATIENCE, Place, Running, until_true};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

pub const SHOP: &str = "0123456789-of-the-shop";
pub const ROOT: &str = "0123456789-of-root";

/// A server of the small region, with the token of an owner and an administrator's.
pub fn server(place: &Place, options: &str) -> Running {
    serving(place, "", options)
}

/// The same with more in the section `[portal]` of its settings.
pub fn serving(place: &Place, portal: &str, options: &str) -> Running {
    place.region("region");
    fs::write(place.path("shop.token"), SHOP).expect("written");
    fs::write(place.path("root.token"), ROOT).expect("written");
    fs::write(place.path("bad.token"), "0123456789-of-unknown").expect("written");
    let tokens = "[[portal.tokens]]\nname = \"shop\"\nroles = [\"owner\"]\nowner = \"shop\"\n\
        token_file = \"shop.token\"\n\
        [[portal.tokens]]\nname = \"root\"\nroles = [\"admin\"]\ntoken_file = \"root.token\"\n";
    let settings = format!("[portal]\nread = \"token\"\n{portal}\n{tokens}");
    fs::write(place.path("ras.toml"), settings).expect("written");
    place.start(&format!(
        "up region --data data --listen 127.0.0.1:0 --config ras.toml --schedule never {options}"
    ))
}

pub fn url(up: &Running) -> String {
    let at = up.said.split("http://").nth(1).expect("it says where");
    format!("http://{}", at.split(['/', ' ', '\n']).next().expect("an address"))
}

#[test]
fn login_selects_server_and_keeps_token_private() {
    let place = Place::new();
    let up = server(&place, "--no-worker");
    let url = url(&up);
    let login = place.path(".config/ras/login.toml");
    place.ras("list moves").fails_with(&["no server runs", "ras login"]);

    place.ras(&format!("login --server {url} --token-file bad.token")).fails_with(&["token"]);
    assert!(!login.exists(), "what is no good is not noted");
    let said = place.ras(&format!("login --server {url}/ --token-file root.token")).code(0);
    assert!(said.stdout().contains("root") && said.stdout().contains("admin"), "{}", said.stdout());
    let mode = fs::metadata(&login).expect("it is noted").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    assert_eq!(place.json("list moves")["moves"], serde_json::json!([]));
    let trail = place.json("list trail --limit 3");
    assert_eq!(trail["entries"].as_array().map(Vec::len), Some(1), "{trail}");
    let yaml = place.ras("list trail --output yaml").code(0).stdout();
    assert!(yaml.contains("action: ") && yaml.contains("next_page_token: null"), "{yaml}");
    // The server of the login is asked unless a data folder is named; two places are an error.
    place.ras("ops moves stop by-the-server").code(0);
    assert_eq!(place.json("ops moves --data data")["stopped"]["why"], "by-the-server");
    place.ras(&format!("ops moves --data data --server {url}")).fails_with(&["not both"]);
    place.ras("ops moves resume").code(0);
    place.ras(&format!("list solves --server {url} --token-file bad.token")).fails_with(&["token"]);
    place.ras("get solve nonsense").fails_with(&["nonsense", "unknown_solve"]);

    place.ras("logout").code(0);
    assert!(!login.exists());
    let mut command = place.command(&format!("list solves --server {url} --output json"));
    let output = command.env("RAS_TOKEN", ROOT).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    up.stop();
    place.ras(&format!("list solves --server {url}")).fails_with(&["cannot reach server"]);
}

/// The hardware types that a reservation of the region accepts.
pub fn types(place: &Place) -> Vec<String> {
    let all = place.json("list reservations --token-file root.token");
    let rows = all["reservations"].as_array().expect("rows").clone();
    let with_types = rows.iter().find(|row| row["kind"] == "guaranteed").expect("one");
    with_types["rru"].as_object().expect("values").keys().cloned().collect()
}

#[test]
fn refused_request_has_reasons_and_alternatives() {
    let place = Place::new();
    let up = server(&place, "--agent simulated --deadline 5s");
    let url = url(&up);
    place.ras(&format!("login --server {url} --token-file shop.token")).code(0);
    let types = types(&place);
    let values: String = types.iter().map(|ty| format!(" --value {ty}=1")).collect();

    let wrong = place.ras("request create web --owner shop --rru 4 --value abacus=1 --wait");
    wrong.fails_with(&["rru.abacus", "no hardware type"]);
    let create = format!("request create web --rru 4{values} --label tier=front");
    place.ras(&format!("{create} --dry-run")).code(0);
    assert_eq!(place.json("list reservations")["reservations"], serde_json::json!([]));
    let web = place.ras(&format!("{create} --wait")).code(0).stdout();
    assert!(web.contains("web is granted: 4 RRU") && web.contains("granted in full"), "{web}");
    let shown = place.json("get reservation web");
    assert_eq!((&shown["promised_rru"], &shown["owner"]), (&4.0.into(), &"shop".into()), "{shown}");
    let listed = place.ras("list reservations --label tier=front").code(0).stdout();
    assert!(listed.contains("web") && listed.lines().count() == 3, "{listed}");

    // The same values by a name that operators keep.
    place.ras(&format!("region profile set all{values} --token-file root.token")).code(0);
    assert!(place.ras("region profile list").code(0).stdout().contains("all"));
    place.ras(&format!("region profile set all{values}")).fails_with(&["role"]);
    let named = "request create named --servers 2 --profile all --dry-run";
    place.ras(named).fails_with(&["servers"]);
    place
        .ras("request create named --rru 2 --profile unknown --dry-run")
        .fails_with(&["unknown", "all"]);
    place.ras("request create named --rru 2 --profile all --dry-run").code(0);
    place.ras("region profile remove all --token-file root.token").code(0);

    // More than there is: why not, and what else. What was granted holds.
    let refused = place.ras("request resize web --rru 90000 --wait --output json").code(2);
    let request: Value = serde_json::from_str(&refused.stdout()).expect("the document");
    assert_eq!(request["state"], "refused", "{request}");
    let problem = &request["answer"];
    assert_eq!(problem["code"], "not_granted", "{problem}");
    assert!(problem["reasons"].as_array().is_some_and(|reasons| !reasons.is_empty()));
    let refused = place.ras("request resize web --rru 90000 --wait").code(2);
    assert!(refused.failed_with("each of these would be granted in full"));
    assert_eq!(place.json("get reservation web")["promised_rru"], 4.0);
    let said = place.ras("explain web").code_in(&[0, 2]).stdout();
    assert!(said.contains("\npromised ") && said.contains(": refused:"), "{said}");

    // What it offers is planned, shown and applied. On a machine under load the search for as much as
    // there is may end before it finds that again, and offers less.
    let mut instead = problem["alternatives"][0]["request"].clone();
    for _ in 0..3 {
        fs::write(place.path("instead.json"), instead.to_string()).expect("written");
        let plan = place.json("plan --request instead.json");
        if plan["applicable"] == true {
            break;
        }
        instead = plan["changes"][0]["answer"]["refusal"]["alternatives"][0]["request"].clone();
    }
    place.ras("apply --request instead.json").fails_with(&["--yes"]);
    let applied = place.ras("apply --request instead.json --yes").code(0);
    assert!(applied.stdout().contains("granted"), "{}", applied.stdout());
    let more = place.json("get reservation web")["promised_rru"].as_f64().expect("a number");
    assert!(more > 4.0, "{more}");

    // The same files again change nothing, and say so.
    let stand = || {
        let (status, trail) = place.local("GET", "/ops/v1/trail?actor=shop&limit=1000");
        let trail: Value = serde_json::from_str(&trail).expect("JSON");
        assert_eq!(status, 200, "{trail}");
        let asked = trail["entries"].as_array().expect("a list").len();
        let web = place.json("get reservation web");
        let solves = place.json("list solves --token-file root.token")["solves"].clone();
        (asked, web["version"].clone(), web["promise_version"].clone(), solves)
    };
    let before = stand();
    assert!(before.0 > 0 && before.1.is_string(), "{before:?}");
    let again = place.ras("apply --request instead.json").code(0).stdout();
    assert_eq!(again.trim(), "web: unchanged");
    let again = place.json("apply --request instead.json --yes");
    assert_eq!(again, serde_json::json!({ "unchanged": ["web"] }));
    assert_eq!(stand(), before);

    // A plan that the region has moved on from.
    fs::write(place.path("less.yaml"), "reservation: web\ncapacity_rru: 6\n").expect("written");
    let plan = place.json("plan --request less.yaml");
    let plan = plan["plan"].as_str().expect("an id");
    place.ras("request resize web --rru 5 --wait").code(0);
    place.ras(&format!("apply --plan {plan} --yes")).code(3);
    let old = place.ras("request resize web --rru 7 --if-version 1 --wait").code(3);
    assert!(old.failed_with("version_stale"));

    let said = place.ras("ops drill --msb m01 --token-file root.token").code_in(&[0, 2]).stdout();
    assert!(said.contains("if m01 were lost now"), "{said}");
    // Its servers may be on their way.
    until_true("what it would keep is shown", Instant::now() + PATIENCE, || {
        place.ras("explain web").code_in(&[0, 2]).stdout().contains("without MSB")
    });
    place.ras("request delete web").fails_with(&["--yes"]);
    place.ras("request delete web --yes --wait").code(0);
    let gone = || place.ras("get reservation web").failed_with("unknown_reservation");
    until_true("its servers are free", Instant::now() + PATIENCE, gone);
    up.stop();
}
