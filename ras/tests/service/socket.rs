//! The unix socket of a server: its caller is the user of the operating system, with the role admin.

use crate::place::Place;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The actor of this user in the audit trail.
pub fn actor() -> Value {
    let name = Command::new("id").arg("-un").output().expect("coreutils have it").stdout;
    format!("local:{}", String::from_utf8_lossy(&name).trim()).into()
}

const UP: &str = "up region --data data --listen none --schedule never --no-worker";

#[test]
fn socket_caller_is_the_user_of_the_system() {
    let place = Place::new();
    place.region("region");
    let up = place.start(UP);
    assert!(up.said.contains("data/server/ras.sock"), "{}", up.said);
    let (code, who) = place.local("GET", "/v1/whoami");
    let who: Value = serde_json::from_str(&who).expect("JSON");
    assert_eq!((code, &who["name"], &who["roles"][0]), (200, &actor(), &"admin".into()));

    place.ras("ops moves stop trouble --data data").code(0);
    let trail = place.json("list trail --data data");
    let rows = trail["entries"].as_array().expect("rows");
    let by = |action: &str| {
        let row = rows.iter().find(|row| row["action"] == action);
        row.unwrap_or_else(|| panic!("no {action} in {trail}"))["actor"].clone()
    };
    assert_eq!((by("mover_stopped"), by("snapshot_loaded")), (actor(), actor()));

    // A token says more than the socket: its caller has its roles only.
    let made = place.json("token create --data data --name eve --role viewer");
    fs::write(place.path("eve.token"), made["secret"].as_str().expect("a secret"))
        .expect("written");
    let resume = "ops moves resume --data data --token-file eve.token";
    place.ras(resume).fails_with(&["role operator"]);
    place
        .ras("token create --data data --name local:root --role admin")
        .fails_with(&["does not begin with \"local:\""]);
    up.stop();
    assert!(!place.path("data/server/ras.sock").exists(), "it is removed");
    place.ras("ops moves --data data").fails_with(&["no server runs", "ras up --data data"]);
}

#[test]
fn socket_refuses_another_user() {
    let place = Place::new();
    place.region("region");
    let up = place.start(UP);
    let (folder, socket) = (place.path("data/server"), place.path("data/server/ras.sock"));
    let mode = |of| fs::metadata(of).expect("it exists").permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&socket)), (0o700, 0o600));
    // Only root can become another user; who is admitted is tested in `capacity-portal/src/local.rs`.
    if fs::metadata(&socket).expect("it exists").uid() == 0 {
        const NOBODY: u32 = 65_534;
        let id = uuid::Uuid::now_v7().to_string();
        fs::copy(env!("CARGO_BIN_EXE_ras"), place.path("ras")).expect("copied");
        let ask = |words: &str| {
            let mut command = place.program(&place.path("ras").display().to_string());
            // A request that is not repeated.
            command.args(["ops", "emergency", "end", &id, "--data", "data"]);
            let output = command.uid(NOBODY).gid(NOBODY).output().expect("it starts");
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success() && error.contains(words), "{error}");
        };
        ask("belongs to another user");
        // Even where the modes let it in, the server closes the connection.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("set");
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).expect("set");
        ask("does not answer");
        let errors = fs::read_to_string(&up.errors).expect("a log");
        assert!(errors.contains("another user is refused"), "{errors}");
    }
    up.stop();
}

#[test]
fn options_that_bypassed_the_server_name_their_successor() {
    let place = Place::new();
    for (line, parts) in [
        ("ops moves --database-url postgres://db/r", &["asks a server", "--data"][..]),
        ("ops contract list --config ras.toml", &["asks a server", "--server"]),
        ("ops solve --actor ann", &["audit trail", "local:"]),
        ("ops emergency --database-url postgres://db/r list", &["asks a server", "--data"]),
        ("ops contract --actor=ann list", &["audit trail", "local:"]),
        ("snapshot load region --actor ann", &["audit trail", "local:"]),
    ] {
        place.ras(line).fails_with(parts);
    }
}
