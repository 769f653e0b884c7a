//! A plan is applied only as it was stored: a member that is missing or renamed is never read as zero.

use crate::requests::{OWNER_A, place, two};
use reqwest::Method;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use uuid::Uuid;

/// Runs SQL with the `psql` beside Postgres: this crate has no SQL of its own.
pub fn psql(
    (socket, database): &(PathBuf, String),
    variables: &[(&str, &str)],
    sql: &str,
) -> String {
    let mut command = Command::new("psql");
    command.args([
        "-X",
        "-q",
        "-A",
        "-t",
        "-v",
        "ON_ERROR_STOP=1",
        "-U",
        "ras",
        "-d",
        database,
        "-h",
    ]);
    command.arg(socket);
    for (name, value) in variables {
        command.args(["-v", &format!("{name}={value}")]);
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("psql");
    child.stdin.take().expect("piped").write_all(sql.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{sql}: {}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8").trim_end().to_owned()
}

/// Where each member of each object stands, as JSON pointers.
fn members(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members_of) => {
            for (name, value) in members_of {
                let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                found.push(at.clone());
                members(value, &at, found);
            }
        }
        Value::Array(list) => {
            for (number, value) in list.iter().enumerate() {
                members(value, &format!("{at}/{number}"), found);
            }
        }
        _ => {}
    }
}

/// The document without a member, or with another name for it.
fn without(document: &Value, at: &str, renamed: bool) -> Value {
    let mut document = document.clone();
    let (parent, name) = at.rsplit_once('/').expect("a pointer");
    let parent = document.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
    let value = parent.remove(&name.replace("~1", "/").replace("~0", "~")).expect("a member");
    if renamed {
        parent.insert(format!("{name}_"), value);
    }
    document
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_plan_without_a_member_is_rejected() {
    let place = place().await;
    let database = place.socket();
    let plan = place.plan(json!([two()])).await;
    assert_eq!((&plan["applicable"], &plan["servers"]), (&json!(true), &json!(2)), "{plan}");
    let mut much = two();
    much["capacity_rru"] = json!(100);
    let refused = place.plan(json!([much])).await;
    assert_eq!(refused["applicable"], false, "{refused}");

    // Optional members of a request; without one of them the request says something else, which is
    // noticed where it matters (below), and cannot be told from one that never had it.
    let optional = ["/request/", "/labels", "/policy", "/rru/", "/team"];
    let mut wrong = Vec::new();
    for (plan, column) in [(&plan, "answers"), (&plan, "changes"), (&refused, "answers")] {
        let id = plan["plan"].as_str().expect("an id");
        let read = format!("SELECT {column} FROM plans WHERE plan_id = :'id'");
        let stored = psql(&database, &[("id", id)], &read);
        let stored: Value = serde_json::from_str(&stored).expect("JSON");
        let copy = format!(
            "INSERT INTO plans (plan_id, state, made_by, expires_at, owners, base, seq, taken_at, {column}, \
             {rest}) SELECT :'copied'::uuid, 'made', made_by, expires_at, owners, base, seq, taken_at, :'document'::jsonb, {rest} FROM plans \
             WHERE plan_id = :'id'",
            rest = ["answers", "changes", "targets"]
                .into_iter()
                .filter(|of| *of != column)
                .collect::<Vec<_>>()
                .join(", ")
        );
        let mut all = Vec::new();
        members(&stored, "", &mut all);
        assert!(all.len() > 8, "{stored}");
        for (at, renamed) in all.iter().flat_map(|at| [(at, false), (at, true)]) {
            if optional.iter().any(|of| at.contains(of)) && (!renamed || at.contains("/rru/")) {
                continue;
            }
            if at.ends_with("/team") {
                continue;
            }
            let other = without(&stored, at, renamed);
            let copied = Uuid::now_v7().to_string();
            let document = other.to_string();
            psql(&database, &[("id", id), ("copied", &copied), ("document", &document)], &copy);
            let (status, said) = match plan["applicable"] == true {
                true => place.apply(&json!({ "plan": copied })).await,
                false => {
                    let path = format!("/v1/plans/{copied}");
                    place.ask((Method::GET, &path), OWNER_A, &[], &Value::Null).await
                }
            };
            if (status.as_u16(), &said["code"]) != (409, &json!("plan_stale")) {
                wrong.push(format!("{column}{at} renamed={renamed}: {status} {}", said["code"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of them were not refused:\n{}", wrong.len(), wrong.join("\n"));
    let (status, applied) = place.apply(&plan).await;
    assert_eq!(status, 202, "as it was stored it is applied: {applied}");
}
