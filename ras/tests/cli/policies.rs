//! Policies in SQL, checked and solved.

use crate::folder::Folder;
use serde_json::json;

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
