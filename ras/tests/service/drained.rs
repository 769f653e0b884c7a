//! A server that is drained is replaced by a real solve, moved out and decommissioned.

use crate::arrivals::region_of;
use crate::owners::url;
use crate::place::{PATIENCE, Place, until_true};
use crate::solves::{solve_and_wait, status};
use fleet::ServerRow;
use std::fs;
use std::time::Instant;

const ROOT: &str = "0123456789-of-root";

/// The servers of the store as they are now.
pub fn servers(place: &Place) -> Vec<ServerRow> {
    place.ras("snapshot export exported --data data").code(0);
    let parts = datasets::read_parts(&place.path("exported")).expect("read");
    fs::remove_dir_all(place.path("exported")).expect("removed");
    parts.servers
}

/// The names of those that `web` has.
fn of_web(place: &Place) -> Vec<String> {
    let has = |row: &ServerRow| row.current_reservation.as_deref() == Some("web");
    servers(place).into_iter().filter(has).map(|row| row.server_id.to_string()).collect()
}

#[test]
fn solve_replaces_drained_server_before_it_leaves() {
    let place = Place::new();
    // `web` asks for eight and has just these, all in use; sixteen are free.
    let mut held = [None; 24];
    held[..8].fill(Some("web"));
    let region = region_of(&held, [("web", 8.0)]);
    datasets::write_snapshot(&place.path("region"), &region).expect("written");
    fs::write(place.path("root.token"), ROOT).expect("written");
    let settings = "[[portal.tokens]]\nname = \"root\"\nroles = [\"admin\"]\n\
        token_file = \"root.token\"\n";
    fs::write(place.path("ras.toml"), settings).expect("written");
    let up = place.start(
        "up region --data data --listen 127.0.0.1:0 --config ras.toml --schedule never \
         --deadline 5s --agent simulated",
    );
    place.ras(&format!("login --server {} --token-file root.token", url(&up))).code(0);
    // What is in use may not leave yet: the replacement must come first.
    place.ras("ops contract set web --in-use 0% --data data -q").code(0);

    fs::write(place.path("old.csv"), "server\ns03\n").expect("written");
    place.ras("region server remove -f old.csv").fails_with(&["s03", "web"]);
    let said = place.ras("region server remove -f old.csv --drain").code(0).stdout();
    println!("{said}");
    let before = of_web(&place);
    assert_eq!(before.len(), 8, "{before:?}");
    let drained =
        || place.json("region server drained")["servers"].as_array().expect("a list").clone();
    assert_eq!(drained()[0]["reservation"], "web");

    // The real solver, on HiGHS: one more server for `web`, and the drained one is still there.
    let solve = solve_and_wait(&place);
    assert_eq!(solve["state"], "published", "{solve}");
    let mut fewest = before.len();
    until_true("the replacement is there", Instant::now() + PATIENCE, || {
        let now = of_web(&place);
        fewest = fewest.min(now.len());
        now.len() == 9
    });
    let both = of_web(&place);
    assert!(before.iter().all(|server| both.contains(server)), "{before:?} {both:?}");
    let new: Vec<&String> = both.iter().filter(|server| !before.contains(server)).collect();
    println!("{} replaces s03", new[0]);
    assert_eq!(drained()[0]["progress"], "waits for its move");

    // Now it may leave.
    place.ras("ops contract remove web --data data -q").code(0);
    until_true("it is decommissioned", Instant::now() + PATIENCE, || {
        fewest = fewest.min(of_web(&place).len());
        drained().is_empty()
    });
    assert_eq!(fewest, 8, "`web` always had what it asks for");
    let left: Vec<String> = both.iter().filter(|server| *server != "s03").cloned().collect();
    assert_eq!(of_web(&place), left);
    let all = servers(&place);
    assert!(all.len() == 23 && all.iter().all(|row| *row.server_id != *"s03"), "{}", all.len());
    place.ras("get server s03").fails_with(&["unknown_server"]);
    assert_eq!(status(&place)["broken"], serde_json::json!([]));

    // Another solve has nothing to mend.
    assert_eq!(solve_and_wait(&place)["state"], "published");
    assert!(servers(&place).iter().all(|row| !row.target_pending));
    up.stop();
}
