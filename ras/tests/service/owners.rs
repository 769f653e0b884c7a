//! What owners of capacity do from the command line, against a real server.

use crate::place::{Place, Running};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const SHOP: &str = "0123456789-of-the-shop";
const ROOT: &str = "0123456789-of-root";

/// A server of the small region, with a token of an owner and one of somebody who may do everything.
fn server(place: &Place, options: &str) -> Running {
    place.region("region");
    fs::write(place.path("shop.token"), SHOP).expect("written");
    fs::write(place.path("root.token"), ROOT).expect("written");
    fs::write(place.path("bad.token"), "0123456789-of-nobody").expect("written");
    let settings = "[portal]\nread = \"token\"\n\
        [[portal.tokens]]\nname = \"shop\"\nroles = [\"owner\"]\nowner = \"shop\"\n\
        token_file = \"shop.token\"\n\
        [[portal.tokens]]\nname = \"root\"\nroles = [\"admin\"]\ntoken_file = \"root.token\"\n";
    fs::write(place.path("ras.toml"), settings).expect("written");
    place.start(&format!(
        "up region --data data --listen 127.0.0.1:0 --config ras.toml --schedule never {options}"
    ))
}

fn url(up: &Running) -> String {
    let at = up.said.split("http://").nth(1).expect("it says where");
    format!("http://{}", at.split(['/', ' ', '\n']).next().expect("an address"))
}

#[test]
fn who_is_logged_in_is_asked_and_nobody_else_reads_the_token() {
    let place = Place::new();
    let up = server(&place, "--no-worker");
    let url = url(&up);
    let login = place.path(".config/ras/login.toml");
    place.ras("list moves").fails_with(&["no server is named", "ras login"]);

    place.ras(&format!("login --server {url} --token-file bad.token")).fails_with(&["token"]);
    assert!(!login.exists(), "what is no good is not noted");
    let said = place.ras(&format!("login --server {url}/ --token-file root.token")).code(0);
    assert!(said.stdout().contains("root") && said.stdout().contains("admin"), "{}", said.stdout());
    let mode = fs::metadata(&login).expect("it is noted").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    assert_eq!(place.json("list moves")["moves"], serde_json::json!([]));
    let trail = place.json("list trail --limit 3");
    assert_eq!(trail["trail"].as_array().map(Vec::len), Some(1), "{trail}");
    let yaml = place.ras("list trail --output yaml").code(0).stdout();
    assert!(yaml.contains("action: ") && yaml.contains("more: false"), "{yaml}");
    // A server that is named wins, a store that is named does otherwise, and it is one or the other.
    place.ras("moves stop by-the-server").code(0);
    assert_eq!(place.json("moves --data data")["stopped"]["why"], "by-the-server");
    place.ras(&format!("moves --data data --server {url}")).fails_with(&["one or the other"]);
    place.ras("moves resume").code(0);
    place.ras(&format!("solves --server {url} --token-file bad.token")).fails_with(&["token"]);
    place.ras("get solve nonsense").fails_with(&["nonsense", "unknown_solve"]);

    place.ras("logout").code(0);
    assert!(!login.exists());
    let mut command = place.command(&format!("list solves --server {url} --output json"));
    let output = command.env("RAS_TOKEN", ROOT).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    up.stop();
    place.ras(&format!("list solves --server {url}")).fails_with(&["cannot be reached"]);
}
