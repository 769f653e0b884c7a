//! Policies in SQL, checked and solved.

use crate::folder::Folder;
use fleet::ServerRow;
use serde_json::json;
use testkit::rows;

/// Three servers in two MSBs; web wants two servers, db one.
const WORLD: &str = "\
table servers: server_id text, msb text, target_reservation text
  s0 m0 web
  s1 m0 web
  s2 m1 -
table needs: reservation_id text, servers integer
  web 2
  db 1
decide servers.target_reservation: web, db, -
";

const NEEDS: &str = "\
-- @hard_constraint
CREATE VIEW needs_met AS
SELECT n.reservation_id FROM needs n
WHERE (SELECT count(*) FROM servers s WHERE s.target_reservation = n.reservation_id) >= n.servers;
";

const IN_M0: &str = "\
-- @hard_constraint
CREATE VIEW web_in_m0 AS
SELECT s.server_id FROM servers s WHERE s.msb = 'm0' OR s.target_reservation IS DISTINCT FROM 'web';
";

const POWER: &str = "\
-- @hard_constraint
CREATE VIEW power AS
SELECT s.msb FROM servers s WHERE s.target_reservation IS NOT NULL GROUP BY s.msb HAVING count(*) <= 1;
";

#[test]
fn policies_are_checked_and_a_small_world_is_solved() {
    let folder = Folder::new();
    folder.write("small.txt", WORLD);
    folder.write("needs.sql", NEEDS);
    folder.write("m0.sql", IN_M0);
    // db has no server today.
    let done = folder.ras("policy check needs.sql m0.sql --world small.txt").code(2);
    let text = done.stdout();
    assert!(text.contains("needs_met fails at reservation_id=db"), "{text}");
    assert!(text.contains("integer program: 9 columns"), "{text}");
    let answer = folder.ras_json("policy solve needs.sql m0.sql --world small.txt");
    assert_eq!(answer["outcome"], "solved");
    assert_eq!(answer["assignment"][2]["decided"], json!("db"), "{answer}");
    let text = folder.ras("policy solve needs.sql m0.sql --world small.txt").code(0).stdout();
    assert!(text.contains("decided"), "{text}");
}

#[test]
fn contradicting_policies_are_named_down_to_their_rows() {
    let folder = Folder::new();
    folder.write("small.txt", WORLD);
    folder.write("all.sql", &format!("{NEEDS}{IN_M0}{POWER}"));
    let text = folder.ras("policy solve all.sql --world small.txt").code(2).stdout();
    for row in ["needs_met: reservation_id=web", "web_in_m0: server_id=s2", "power: msb=m0"] {
        assert!(text.contains(row), "{text}");
    }
    for relaxed in [
        "needs_met: reservation_id=web: at least 1 instead of 2",
        // With at most one server in each MSB, three are too many anyway.
        "web_in_m0: server_id=s2: not enough by itself",
        "power: msb=m0: at most 2 instead of 1",
    ] {
        assert!(text.contains(relaxed), "{text}");
    }
}

#[test]
fn policies_of_regions_and_clusters_are_checked() {
    let folder = Folder::new();
    folder.region("region");
    folder.write(
        "some.sql",
        "-- @hard_constraint\nCREATE VIEW some_hold AS\nSELECT r.reservation_id FROM reservations r\nWHERE (SELECT count(*) FROM servers s WHERE s.target_reservation = r.reservation_id) >= 0;\n",
    );
    let answer = folder.ras_json("policy check some.sql --snapshot region");
    assert_eq!(answer["policies"][0]["kind"], "hard", "{answer}");
    assert_eq!(answer["policies"][0]["fails"], json!([]));
    let cluster = json!({
        "format": "ras-cluster/1", "name": "two", "metrics": [{"name": "cpu"}],
        "nodes": [{"name": "a", "capacity": {"cpu": 1}}, {"name": "b", "capacity": {"cpu": 1}}],
        "services": [{"name": "web", "partitions": [[{"name": "w0"}], [{"name": "w1"}]]}],
    });
    folder.write("cluster.json", &cluster.to_string());
    folder.write(
        "one.sql",
        "-- @hard_constraint\nCREATE VIEW one_on_a_node AS\nSELECT p.node FROM replicas p GROUP BY p.node HAVING count(*) <= 1;\n",
    );
    let answer = folder.ras_json("policy solve one.sql --cluster cluster.json");
    let of = |at: usize| answer["assignment"][at]["decided"].as_str().expect("text");
    assert_ne!(of(0), of(1), "{answer}");
}

/// Four servers in two MSBs; web has those of m0.
fn write_region(folder: &Folder) {
    let mut parts = rows::parts();
    for (number, place) in
        [("d0", "m0", "k0"), ("d0", "m0", "k1"), ("d1", "m1", "k2"), ("d1", "m1", "k3")]
            .into_iter()
            .enumerate()
    {
        let current_reservation = (number < 2).then(|| "web".into());
        let row = rows::server(&format!("s{number}"), place, "t0");
        parts.servers.push(ServerRow { current_reservation, in_use: number == 0, ..row });
    }
    let (msb_alpha, rack_alpha) = (Some(1.0), Some(1.0));
    let web = rows::reservation("web", 2.0);
    parts.reservations.push(fleet::ReservationRow {
        msb_buffer: false,
        msb_alpha,
        rack_alpha,
        ..web
    });
    parts.rru.push(rows::rru("web", "t0", 1.0));
    let snapshot = rows::snapshot(&parts);
    datasets::write_snapshot(&folder.path("region"), &snapshot).expect("writes");
}

const AWAY: &str = "\
-- @hard_constraint
CREATE VIEW web_away AS
SELECT s.server_id FROM servers s WHERE s.msb <> 'm0' OR s.target_reservation IS DISTINCT FROM 'web';
-- @soft_constraint [weight=0.5]
CREATE VIEW free AS
SELECT count(*) FROM servers s WHERE s.target_reservation IS NULL;
";

#[test]
fn policies_of_a_snapshot_are_read_by_default() {
    let folder = Folder::new();
    write_region(&folder);
    folder.ras("policy check --snapshot region").fails_with(&["policies/*.sql"]);
    std::fs::create_dir(folder.path("region/policies")).expect("a folder");
    folder.write("region/policies/away.sql", AWAY);
    folder.write("region/policies/notes.txt", "no policy");
    let answer = folder.ras_json("policy check --snapshot region");
    assert_eq!(answer["policies"][0]["policy"], "web_away", "{answer}");
    assert_eq!(answer["policies"][0]["fails"], json!(["server_id=s0", "server_id=s1"]));
    // Two are free, and each is worth a half.
    assert_eq!(answer["policies"][1]["cost"], json!(-1.0), "{answer}");
    // A FILE is read instead.
    folder.write("free.sql", "CREATE VIEW nothing AS SELECT 1 AS one;");
    let answer = folder.ras_json("policy check free.sql --snapshot region");
    assert_eq!(answer["policies"][0]["policy"], "nothing", "{answer}");
    folder.ras("solve region --out result").code(0);
}

#[test]
fn what_a_policy_would_cost_is_tried_beside_todays() {
    let folder = Folder::new();
    write_region(&folder);
    folder.write("away.sql", AWAY);
    let answer = folder.ras_json("policy try away.sql --snapshot region");
    let (without, with) = (&answer["without"], &answer["with"]);
    assert_eq!((&without["cost"], &without["moves"]), (&json!(0.0), &json!(0)), "{answer}");
    // One server in use and one idle leave web: 10 + 1; two others come; two are free.
    assert_eq!((&with["cost"], &with["moves"]), (&json!(10.0), &json!(4)), "{answer}");
    let text = folder.ras("policy try away.sql --snapshot region").code(0).stdout();
    for line in ["cost of free", "cost of stability", "moves"] {
        assert!(text.contains(line), "{text}");
    }
    // m1 alone has two servers, and web may have one there.
    folder.write(
        "few.sql",
        "-- @hard_constraint\nCREATE VIEW few AS\nSELECT s.msb FROM servers s WHERE s.target_reservation IS NOT NULL GROUP BY s.msb HAVING count(*) <= 1;\n",
    );
    let text = folder.ras("policy try away.sql few.sql --snapshot region").code(2).stdout();
    assert!(text.contains("few: msb=m1: at most 2 instead of 1"), "{text}");
    folder.region("large");
    folder
        .ras("policy try away.sql --snapshot large")
        .fails_with(&["too large to be solved exactly", "pairs"]);
}

#[test]
fn two_versions_of_a_policy_are_compared() {
    let folder = Folder::new();
    folder.write("small.txt", WORLD);
    folder.write("old.sql", &format!("{NEEDS}{POWER}"));
    folder.write("new.sql", &format!("{NEEDS}{}", POWER.replace("<= 1", "<= 2")));
    let answer = folder.ras_json("policy diff old.sql new.sql --world small.txt");
    assert_eq!(answer["broken"], json!([]), "{answer}");
    assert_eq!(answer["mended"], json!([{"policy": "power", "kind": "hard", "row": "msb=m0"}]));
    let text = folder.ras("policy diff new.sql old.sql --world small.txt").code(2).stdout();
    assert!(text.contains("newly broken") && !text.contains("needs_met"), "{text}");
    let free = |weight: &str| {
        format!(
            "-- @soft_constraint [weight={weight}]\nCREATE VIEW free AS SELECT count(*) FROM servers s WHERE s.target_reservation IS NULL;\n"
        )
    };
    folder.write("light.sql", &free("1"));
    folder.write("heavy.sql", &free("2.5"));
    let answer = folder.ras_json("policy diff light.sql heavy.sql --world small.txt");
    assert_eq!(answer["costs"], json!([{"policy": "free", "old": -1.0, "new": -2.5}]), "{answer}");
    let text = folder.ras("policy diff old.sql old.sql --world small.txt").code(0).stdout();
    assert!(text.contains("no row"), "{text}");
}

#[test]
fn tests_of_policies_pass_or_show_what_differs() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("tests")).expect("a folder");
    folder.write("power.sql", POWER);
    let cases = "\
policies ../power.sql
table servers: server_id text, msb text, target_reservation text
  s0 m0 web
  s1 m0 -
decide servers.target_reservation: web, -
case one is held
case two are held
  set s1 web
";
    folder.write("tests/good.txt", &format!("{cases}  fails power msb=m0\n"));
    folder.write("tests/bad.txt", cases);
    let text = folder.ras("policy test tests/good.txt").code(0).stdout();
    assert!(text.contains("passed: 2 cases"), "{text}");
    let text = folder.ras("policy test tests/good.txt tests/bad.txt").code(2).stdout();
    assert!(text.contains("tests/bad.txt, case two are held: fails"), "{text}");
    assert!(text.contains("+ fails power msb=m0"), "{text}");
    folder.write("tests/broken.txt", &format!("{cases}  sets s1 web\n"));
    folder.ras("policy test tests/broken.txt").fails_with(&["tests/broken.txt", "line 9"]);
}

#[test]
fn policy_that_cannot_be_compiled_is_refused_with_its_place() {
    let folder = Folder::new();
    folder.write("small.txt", WORLD);
    folder.write(
        "bad.sql",
        "-- @hard_constraint\nCREATE VIEW bad AS\nSELECT nothing FROM servers;\n",
    );
    folder.ras("policy check bad.sql --world small.txt").fails_with(&["bad.sql:3:", "nothing"]);
    folder
        .ras("policy check none.sql --world small.txt")
        .fails_with(&["none.sql", "cannot be read"]);
    folder.ras("policy check bad.sql").fails_with(&["--snapshot"]);
}

#[test]
fn policies_of_a_large_region_are_checked_as_limits_of_groups() {
    let folder = Folder::new();
    folder
        .ras("snapshot generate --servers 20000 --reservations 300 --state cold --seed 1 --out large")
        .code(0);
    folder.write("per_msb.sql", PER_MSB);
    let checked =
        folder.ras("policy check per_msb.sql --snapshot large --output json").code(0).json();
    let compiled = &checked["compiled_to"]["limits_of_groups"];
    assert_eq!(compiled, &json!({ "classes": 36, "rows": 36 }), "{checked}");
    assert_eq!(checked["policies"][0]["rows"], 36);
    let text = folder.ras("policy check per_msb.sql --snapshot large").code(0).stdout();
    assert!(text.contains("36 rows over 36 classes"), "{text}");
    // What the solver of a region does not know is said by check already.
    folder.write(
        "least.sql",
        "-- @hard_constraint\nCREATE VIEW least AS SELECT s.msb FROM servers s WHERE s.target_reservation IS NOT NULL GROUP BY s.msb HAVING count(*) >= 1;\n",
    );
    folder.ras("policy check least.sql --snapshot large").fails_with(&["least.sql:2:"]);
}

/// At most 100 servers of reservations in an MSB.
const PER_MSB: &str = "\
-- @hard_constraint
CREATE VIEW per_msb AS
SELECT s.msb FROM servers s WHERE s.target_reservation IS NOT NULL GROUP BY s.msb HAVING count(*) <= 100;
";

/// The MSBs that break the policy in a snapshot, as plain SQL finds them.
fn failing(folder: &Folder, snapshot: &str) -> usize {
    let done = folder.ras(&format!("policy check per_msb.sql --snapshot {snapshot} --output json"));
    done.code_in(&[0, 2]).json()["policies"][0]["fails"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_solve_keeps_policies_that_it_would_break_without() {
    let folder = Folder::new();
    folder.region("region");
    folder.write("per_msb.sql", PER_MSB);
    let today = failing(&folder, "region");
    let solved = |options: &str| {
        let line = format!("solve region --out result --gap 1% --deadline 60s {options}");
        let report = folder.ras_json(&line);
        folder.ras("snapshot next region result --out settled").code(0);
        (failing(&folder, "settled"), report)
    };
    let (without, report) = solved("");
    assert!(without > today, "{without} MSBs, {today} today");
    assert!(report["limits"].is_null(), "{report}");
    let (with, report) = solved("--policies per_msb.sql");
    assert!(with <= today, "{with} MSBs, {today} today");
    let state = &report["policies"][0];
    let counts = [&state["policy"], &state["file"], &state["fails_before"], &state["fails"]];
    assert_eq!(counts, [&json!("per_msb"), &json!("per_msb"), &json!(today), &json!(with)]);
    let limits = report["limits"].as_array().expect("limits");
    assert_eq!(limits.len(), 9, "one for each MSB: {report}");
    for of in limits {
        let [most, before, after] = ["most", "before", "after"].map(|name| of[name].as_i64());
        assert!(after <= most.max(before), "{of}");
    }
    folder.write("soft.sql", &PER_MSB.replace("hard", "soft"));
    let said = folder.ras("solve region --out refused --policies soft.sql").code(5).stderr();
    assert!(said.contains("soft.sql:2") && said.contains("hard"), "{said}");
    assert!(!folder.names().contains(&"refused".to_owned()), "nothing is written");
}

/// Eight servers are asked for, and a policy leaves six: a group that only the request makes.
#[test]
fn a_plan_of_a_snapshot_keeps_policies_and_names_the_group_without_room() {
    let folder = Folder::new();
    folder.region("region");
    let of_shop = "-- @hard_constraint\nCREATE VIEW of_shop AS\nSELECT r.owner FROM servers s \
        JOIN reservations r ON r.reservation_id = s.target_reservation WHERE r.owner = 'shop' \
        GROUP BY r.owner HAVING count(*) <= 6;\n";
    folder.write("of_shop.sql", of_shop);
    let snapshot = datasets::read_snapshot(&folder.path("region")).expect("a snapshot");
    let rru = snapshot.hardware_types.iter().map(|of| (of.to_string(), json!(1.0)));
    let asked = json!({
        "reservation_id": "till", "owner": "shop", "capacity_rru": 8.0, "msb_buffer": false,
        "rru": rru.collect::<serde_json::Map<_, _>>(),
    });
    folder.write("till.json", &asked.to_string());
    let plan = |options: &str| {
        let line = format!("snapshot plan region --request till.json --output json {options}");
        folder.ras(&line).code_in(&[0, 2]).json()
    };
    assert_eq!(plan("")["granted"], "in_full", "without a policy");
    let refused = plan("--policies of_shop.sql");
    assert_eq!(refused["granted_rru"], 6.0, "{refused}");
    assert_eq!(refused["refusal"]["reason"], "policy", "{refused}");
    let sentence = refused["refusal"]["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("policy of_shop, owner=shop: 6 of 6"), "{sentence}");
    folder.write("roomy.sql", &of_shop.replace("<= 6", "<= 8"));
    assert_eq!(plan("--policies roomy.sql")["granted"], "in_full");
    // What cannot be kept is not planned within.
    folder.write("soft.sql", &PER_MSB.replace("hard", "soft"));
    let line = "snapshot plan region --request till.json --policies roomy.sql soft.sql";
    folder.ras(line).fails_with(&["soft.sql:2:", "hard constraints only"]);
    let line = "snapshot plan region --request till.json --policies none.sql";
    folder.ras(line).fails_with(&["none.sql", "cannot be read"]);
}
