//! What people get wrong: each error says once what is wrong, names it, and has one hint that its reader may follow.

use crate::owners::{server, url};
use crate::place::Place;
use std::fs;

const UNKNOWN: &str = "0198a2c4-7d1e-7000-8000-000000000001";

/// Commands of the owner shop. `web` is its reservation, `other` another owner's.
const MISTAKES: &[&str] = &[
    // Where, and with which token.
    "list reservations --server http://127.0.0.1:1",
    "list reservations --server nonsense",
    "list reservations --server http://SERVER --data data",
    "list reservations --data nowhere",
    "list reservations --token-file bad.token",
    "list reservations --token-file none.token",
    "login --server http://SERVER --token-file bad.token",
    // What only others may do.
    "list tokens",
    "status --check",
    "get server nowhere",
    "ops drill --msb m01",
    "ops emergency ask web --rru 5 --why fire --yes",
    "ops maintenance plan --rack m01-r004 --from now --for 1h --recall-minutes 20 --why fans",
    "request create new --owner team --servers 4 --hardware-types C1-S1",
    // What is not there, or is another owner's.
    "get reservation nowhere",
    "get reservation other",
    "request resize other --rru 5",
    "request cancel UNKNOWN",
    "get plan UNKNOWN",
    "explain nowhere",
    "get server nowhere --token-file root.token",
    "ops drill --msb m99 --token-file root.token",
    "ops emergency end UNKNOWN --token-file root.token",
    "ops maintenance cancel UNKNOWN --token-file root.token",
    "ops maintenance plan --rack nowhere --from now --for 1h --recall-minutes 20 --why fans \
     --token-file root.token",
    "ops contract remove web --token-file root.token",
    "region hardware remove C99 --token-file root.token",
    "token revoke unknown --token-file root.token",
    // Requests that are not valid.
    "request create web --owner shop --servers 4 --hardware-types C1-S1",
    "request create new --owner shop --servers 4 --hardware-types C1-S1,C99",
    "request create new --owner shop --rru 4 --value C99=1",
    "request autosize set web --min 3 --max 2",
    "request create new --owner shop --rru 4",
    "request create new --owner shop --servers 4",
    "request create new --owner shop --rru -4 --value C1-S1=1",
    "request create new --owner shop --rru 4 --value C1-S1",
    "request create new --owner shop --servers 4.5 --hardware-types C1-S1",
    "request create new --owner shop --rru 4 --servers 4 --hardware-types C1-S1",
    "request create new --owner shop --rru 4 --profile nowhere",
    "request create new",
    "request resize web --rru 5 --if-version 0",
    "request cancel nonsense",
    "request delete web",
    // Files.
    "request create new -f none.yaml",
    "request create new -f malformed.yaml",
    "request resize web -f number.yaml",
    "request resize web -f member.yaml",
    "request resize other -f web.yaml",
    "plan --request web.yaml web.yaml",
    // Lists and output.
    "list servers",
    "list nonsense",
    "list reservations --state flying",
    "list reservations --columns nothing",
    "get reservation web --output csv",
    "reqest create web",
];

#[test]
fn mistakes_are_said_once_with_a_hint() {
    let place = Place::new();
    let up = server(&place, "--agent simulated --deadline 5s");
    let url = url(&up);
    place.ras(&format!("login --server {url} --token-file shop.token")).code(0);
    for (owner, name) in [("shop", "web"), ("team", "other")] {
        let line = format!("request create {name} --owner {owner} --servers 4");
        let line = format!("{line} --hardware-types C1-S1,C2-S1 --wait --token-file root.token");
        place.ras(&line).code(0);
    }
    for (name, text) in [
        ("malformed.yaml", "reservation: new\n  capacity_rru: [\n"),
        ("number.yaml", "reservation: web\ncapacity_rru: many\n"),
        ("member.yaml", "reservation: web\ncapacity_rruu: 4\npriorities: 3\n"),
        ("web.yaml", "reservation: web\ncapacity_rru: 4\n"),
    ] {
        fs::write(place.path(name), text).expect("written");
    }
    let (mut table, mut wrong) = (String::new(), Vec::new());
    for mistake in MISTAKES {
        let typed = mistake.replace("http://SERVER", &url).replace("UNKNOWN", UNKNOWN);
        let done = place.ras(&typed);
        let (stdout, stderr) = (done.stdout(), done.stderr());
        let code = done.exit();
        table += &format!("$ ras {mistake}\n{stderr}\n");
        let lines: Vec<&str> = stderr.lines().collect();
        let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
        if code != 1 && code != 3
            || !stdout.is_empty()
            || !stderr.starts_with("ras: ")
            || count("ras: ") != 1
            || count("hint: ") != 1
            || !lines.last().is_some_and(|of| of.starts_with("hint: "))
        {
            wrong.push(format!(
                "$ ras {mistake}: {code}
{stdout}{stderr}"
            ));
            continue;
        }
        // No sentence is repeated.
        let first = lines[0].trim_start_matches("ras: ");
        let said = first.rsplit_once(" (").map_or(first, |(said, _)| said);
        if stderr.matches(said).count() > 1 {
            wrong.push(format!("$ ras {mistake}: twice\n{stderr}"));
        }
        // The reader may run what the hint names, unless a name has to be filled in.
        let hint = lines.last().expect("a hint");
        let token =
            typed.split_once("--token-file root").map_or("", |_| " --token-file root.token");
        let commands = hint.split('`').skip(1).step_by(2).filter_map(|of| of.strip_prefix("ras "));
        let whole = |of: &&str| !of.chars().any(char::is_uppercase);
        for command in
            commands.filter(whole).filter(|of| !of.starts_with("login") && !of.starts_with("up"))
        {
            let role = place.ras(&format!("{command}{token}")).stderr();
            let denied = role.contains("role_missing") || role.contains("other_owner");
            if denied {
                wrong.push(format!("$ ras {mistake}: not for its reader: {hint}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let table = table.replace(&url, "http://SERVER").replace(UNKNOWN, "UNKNOWN");
    let golden = format!("{}/tests/service/mistakes.txt", env!("CARGO_MANIFEST_DIR"));
    expectorate::assert_contents(golden, &table);

    // A refusal is an answer (exit code 2) in the same voice.
    let refused = place.ras("request resize web --rru 90000 --wait").code(2).stderr();
    let of = |start: &str| refused.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((of("ras: "), of("hint: ")), (1, 1), "{refused}");
    assert!(refused.lines().last().is_some_and(|of| of.contains("--policy best-effort")));
    up.stop();
}
