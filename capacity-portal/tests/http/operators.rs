//! What operators read and switch.

use crate::place::{Place, READER, ROOT, WATCH, answer};
use broker::{JobKind, MoverInstance, Publication, PublicationId, SolveBasis, SolveEnd};
use capacity_portal::{Archive, ArchiveError, ArchivedFile, Chunks};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

async fn post(place: &Place, path: &str, body: &str) -> (StatusCode, Value) {
    answer(place.send(Method::POST, path, Some(ROOT), body.to_owned()).await).await
}

/// Every page of a list, one row at a time.
async fn pages(place: &Place, path: &str, rows: &str) -> Vec<Value> {
    let (mut all, mut token) = (Vec::new(), None::<String>);
    loop {
        let and = if path.contains('?') { '&' } else { '?' };
        let next = token.map_or(String::new(), |token| format!("&page_token={token}"));
        let (status, page) = place.get(&format!("{path}{and}limit=1{next}")).await;
        assert_eq!(status, 200, "{page}");
        all.extend(page[rows].as_array().expect("a list").iter().cloned());
        token = page["next_page_token"].as_str().map(str::to_owned);
        if token.is_none() {
            return all;
        }
    }
}

/// A folder of the file system: the one archive there is of the portal's own.
#[derive(Debug)]
struct Folder(PathBuf);

impl Archive for Folder {
    fn files<'a>(
        &'a self,
        url: &'a str,
    ) -> futures_util::future::BoxFuture<'a, Result<Vec<ArchivedFile>, ArchiveError>> {
        let read = || {
            let entries = std::fs::read_dir(self.0.join(url))?;
            let file = |entry: std::io::Result<std::fs::DirEntry>| {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                Ok(ArchivedFile { name, bytes: entry.metadata()?.len() })
            };
            entries.map(file).collect::<std::io::Result<Vec<_>>>()
        };
        let read = read().map_err(|error| ArchiveError(error.to_string()));
        Box::pin(std::future::ready(read))
    }

    fn read<'a>(
        &'a self,
        url: &'a str,
        name: &'a str,
    ) -> futures_util::future::BoxFuture<'a, Result<Option<Chunks>, ArchiveError>> {
        let content = std::fs::read(self.0.join(url).join(name)).expect("it was listed");
        let chunks = futures_util::stream::iter([Ok(content.into())]);
        Box::pin(std::future::ready(Ok(Some(Box::pin(chunks) as Chunks))))
    }
}

#[tokio::test]
async fn moves_are_listed_filtered_and_stopped() {
    let place = Place::new().await;
    for (server, to) in [(20, Some("a")), (21, Some("b/ü")), (7, None)] {
        place.publish(server, to).await;
    }
    let epoch = place.broker.lease_mover(&MoverInstance::new("m"), Duration::from_secs(60)).await;
    let epoch = epoch.expect("asked").expect("free");
    place.broker.open_moves("m", epoch, broker::Wanted::All).await.expect("opened");
    let all = pages(&place, "/ops/v1/moves", "moves").await;
    assert_eq!(all.len(), 3);
    let of_a = pages(&place, "/ops/v1/moves?reservation=a", "moves").await;
    let mut servers: Vec<&str> = of_a.iter().filter_map(|of| of["server"].as_str()).collect();
    servers.sort_unstable();
    assert_eq!(servers, ["s07", "s20"]);
    let one = &pages(&place, "/ops/v1/moves?server=s07&state=pending&open=true", "moves").await[0];
    assert_eq!(
        (&one["from"], &one["to"], &one["origin"]),
        (&"a".into(), &Value::Null, &"targets".into())
    );
    // A token is of its question.
    let (_, page) = place.get("/ops/v1/moves?limit=1").await;
    let token = page["next_page_token"].as_str().expect("two more");
    for path in [
        format!("/ops/v1/moves?reservation=a&page_token={token}"),
        "/ops/v1/moves?page_token=x".to_owned(),
        format!("/ops/v1/trail?page_token={token}"),
    ] {
        let (status, problem) = place.get(&path).await;
        assert_eq!((status.as_u16(), &problem["code"]), (400, &"page_token".into()), "{path}");
    }
    for path in [
        "moves?state=lost",
        "moves?limit=0",
        "moves?open=maybe",
        "moves?server=%00",
        "trail?action=x",
        "unavailability?scope=roof",
        "unavailability?kind=luck",
        "solves?state=x",
        "solves?cause=x",
    ] {
        let (status, problem) = place.get(&format!("/ops/v1/{path}")).await;
        assert_eq!((status.as_u16(), &problem["code"]), (400, &"malformed".into()), "{path}");
    }
    // The switch.
    let mover = |stopped: Value| {
        json!({ "acting": "m", "give_way_after_seconds": null, "stopped": stopped, "cannot_act": null,
            "round_trip_seconds": null, "pass_seconds": null, "lease_seconds": null })
    };
    assert_eq!(place.get("/ops/v1/mover").await.1, mover(Value::Null));
    for (token, status) in [(None, 401), (Some(READER), 403), (Some(WATCH), 403)] {
        for path in ["/ops/v1/moves/stop", "/ops/v1/moves/resume", "/ops/v1/solves"] {
            let refused = place.send(Method::POST, path, token, r#"{"why": "x"}"#).await;
            assert_eq!(refused.status(), status, "{path}");
        }
    }
    assert_eq!(post(&place, "/ops/v1/moves/stop", r#"{"why": " "}"#).await.0, 422);
    assert_eq!(post(&place, "/ops/v1/moves/stop", r#"{"why": "a\u0000b"}"#).await.0, 400);
    let stopped = mover(json!({ "by": "root", "why": "a drill" }));
    for why in ["a drill", "again"] {
        let body = json!({ "why": why }).to_string();
        assert_eq!(
            post(&place, "/ops/v1/moves/stop", &body).await,
            (StatusCode::OK, stopped.clone())
        );
    }
    assert_eq!(post(&place, "/ops/v1/moves/resume", "").await.1["stopped"], Value::Null);
    let switched = pages(&place, "/ops/v1/trail?subject=mover&actor=root", "entries").await;
    let actions: Vec<_> = switched.iter().filter_map(|entry| entry["action"].as_str()).collect();
    assert_eq!(actions, ["mover_resumed", "mover_stopped"], "once each, the youngest first");
    assert_eq!(place.get("/ops/v1/stuck").await.1, json!({ "stuck": [], "next_page_token": null }));
}

#[tokio::test]
async fn server_and_reservation_have_a_history() {
    let place = Place::new().await;
    place.publish(20, Some("a")).await;
    let event = json!({ "event": "e", "scope": "server", "scope_id": "s20", "kind": "software",
        "started_at": "2026-01-05T10:00:00Z" });
    assert_eq!(place.post("/ops/v1/events", &event).await.0, 200);
    let (status, server) = place.get("/ops/v1/servers/s20").await;
    assert_eq!(status, 200, "{server}");
    assert_eq!((&server["rack"], &server["reservation"]), (&"rack2".into(), &Value::Null));
    assert_eq!(server["target"], json!({ "reservation": "a" }));
    assert_eq!((&server["target_version"], &server["target_origin"]), (&json!(2), &json!(null)));
    assert_eq!((&server["available"], &server["events"][0]["event"]), (&false.into(), &"e".into()));
    let past = pages(&place, "/ops/v1/servers/s20/history", "history").await;
    let kinds: Vec<_> = past.iter().filter_map(|row| row["kind"].as_str()).collect();
    assert_eq!(kinds, ["target", "event"], "the youngest first");
    assert_eq!(place.get("/ops/v1/servers/s00/history").await.1["history"], json!([]));
    for path in ["/ops/v1/servers/unknown", "/ops/v1/servers/unknown/history"] {
        let (status, problem) = place.get(path).await;
        assert_eq!((status.as_u16(), &problem["code"]), (404, &"unknown_server".into()));
    }
    let events = pages(&place, "/ops/v1/unavailability?scope=server&open=true", "events").await;
    assert_eq!((events.len(), &events[0]["active"]), (1, &true.into()));
    assert!(pages(&place, "/ops/v1/unavailability?open=false", "events").await.is_empty());
    let body = json!({ "reservation": "a", "rru": 2.0, "why": "site outage", "max_servers": 9 })
        .to_string();
    post(&place, "/ops/v1/emergencies", &body).await;
    let (_, history) = place.get("/v1/reservations/a/history").await;
    assert_eq!(history["promises"][0]["capacity_rru"], 4.5);
    assert_eq!(history["promises"][0]["rru"], json!({ "type": 1.25 }));
    assert_eq!(history["entries"][0]["action"], "emergency_asked");
    let (status, problem) = place.get("/v1/reservations/unknown/history").await;
    assert_eq!((status.as_u16(), &problem["code"]), (404, &"unknown_reservation".into()));
}

#[tokio::test]
async fn solves_are_requested_and_their_files_read() {
    let kept = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(kept.path().join("snapshot")).expect("made");
    std::fs::create_dir(kept.path().join("result")).expect("made");
    std::fs::write(kept.path().join("snapshot/servers.parquet"), "rows").expect("written");
    std::fs::write(kept.path().join("result/report.json"), "{}").expect("written");
    std::fs::write(kept.path().join("secret"), "no").expect("written");
    let place = Place::keeping(Arc::new(Folder(kept.path().to_owned()))).await;
    let response = place.send(Method::POST, "/ops/v1/solves", Some(ROOT), "").await;
    let location = response.headers()["location"].to_str().expect("text").to_owned();
    let (status, asked) = answer(response).await;
    assert_eq!((status.as_u16(), &asked["new"]), (202, &true.into()));
    let id = asked["solve"].as_str().expect("an id");
    assert_eq!(location, format!("/ops/v1/solves/{id}"));
    let (_, again) = post(&place, "/ops/v1/solves", "").await;
    assert_eq!(again, json!({ "solve": id, "new": false }), "one that waits is it");
    let (_, trail) = place.get(&format!("/ops/v1/trail?subject={id}")).await;
    let entries = trail["entries"].as_array().expect("a list");
    assert_eq!(entries.len(), 1, "a joined solve adds no entry: {trail}");
    assert_eq!(
        (&entries[0]["actor"], &entries[0]["action"], &entries[0]["detail"]),
        (&json!("root"), &json!("solve_requested"), &json!({ "cause": "demand" }))
    );
    assert_eq!(
        place.get(&format!("{location}/files")).await.1,
        json!({ "files": [], "next_page_token": null })
    );
    assert_eq!(place.get(&format!("{location}/report")).await.1["code"], "no_report");
    // A worker has it and ends it.
    let job = place.broker.claim("w", &[JobKind::Solve], Duration::from_secs(60)).await;
    let lease = job.expect("asked").expect("a job").lease;
    let basis = SolveBasis {
        parent: broker::TargetVersion(1),
        seq: broker::Seq(1),
        snapshot_url: "snapshot".to_owned(),
        config: broker::Document::of(&json!({ "seed": 7 })),
        policies: broker::PoliciesEdition::default(),
    };
    assert!(place.broker.describe_solve(lease, &basis).await.expect("described"));
    let report = json!({ "termination": "optimal", "shortfall_rru": 0.0,
        "phase1": { "primal": 1.5, "dual_bound": 1.5, "gap": 0.0 },
        "steps": [{ "phase": 1, "step": "mip", "seconds": 0.25 }],
        "history": [{ "seconds": 0.1, "phase": 1, "step": "mip", "primal": 2.0, "dual_bound": null }] });
    let end =
        SolveEnd { lease, result_url: "result".to_owned(), report: broker::Document::of(&report) };
    let publication = Publication {
        id: PublicationId::now_v7(),
        parent: broker::TargetVersion(1),
        solve: Some(end),
        targets: Vec::new(),
    };
    place.broker.publish("w", &publication).await.expect("published");
    let (_, solve) = place.get(&location).await;
    assert_eq!((&solve["state"], &solve["version"]), (&"published".into(), &2.into()), "{solve}");
    assert_eq!(solve["figures"]["steps"][0]["seconds"], 0.25);
    assert_eq!(solve["figures"]["history"][0]["primal"], 2.0);
    assert_eq!(
        (&solve["figures"]["phase1"]["gap"], &solve["config"]["seed"]),
        (&0.0.into(), &7.into())
    );
    assert_eq!(place.get(&format!("{location}/report")).await.1, report);
    let listed = pages(&place, "/ops/v1/solves?state=published", "solves").await;
    assert_eq!(listed.len(), 1);
    assert!(pages(&place, "/ops/v1/solves?cause=event", "solves").await.is_empty());
    let (_, files) = place.get(&format!("{location}/files")).await;
    let hrefs: Vec<_> = files["files"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|of| of["href"].as_str())
        .collect();
    assert_eq!(hrefs.len(), 2);
    let file = place.send(Method::GET, hrefs[0], None, "").await;
    assert_eq!(
        (file.status().as_u16(), &file.headers()["content-length"]),
        (200, &"4".parse().expect("a value"))
    );
    assert_eq!(file.text().await.expect("text"), "rows");
    let json = place.send(Method::GET, hrefs[1], None, "").await;
    assert_eq!(json.headers()["content-type"], "application/json");
    for wrong in ["snapshot/..%2Fsecret", "snapshot/none", "other/secret", "..%2F/secret"] {
        let (status, problem) = place.get(&format!("{location}/files/{wrong}")).await;
        assert_eq!((status.as_u16(), &problem["code"]), (404, &"unknown_file".into()), "{wrong}");
    }
    let closed = Place::new().await;
    let (status, problem) = closed.get("/ops/v1/solves/7/files").await;
    assert_eq!((status.as_u16(), &problem["code"]), (404, &"unknown_solve".into()));
}

/// A solve whose targets move a server to `a`, and wait.
async fn awaiting(place: &Place, server: usize) -> String {
    let (_, asked) = post(place, "/ops/v1/solves", "").await;
    let id = asked["solve"].as_str().expect("an id").to_owned();
    let broker = &place.broker;
    let job = broker.claim("worker", &[JobKind::Solve], Duration::from_secs(60)).await;
    let lease = job.expect("asked").expect("a job").lease;
    let export = broker.export(None).await.expect("exported");
    let basis = SolveBasis {
        parent: export.version,
        seq: export.seq,
        snapshot_url: "snapshot".to_owned(),
        config: broker::Document::of(&json!({})),
        policies: broker::PoliciesEdition::default(),
    };
    assert!(broker.describe_solve(lease, &basis).await.expect("asked"));
    let target = broker::TargetRow {
        server: export.parts.servers[server].server_id.clone(),
        generation: export.generations[server],
        target: Some("a".into()),
    };
    let targets = vec![target];
    let id_of = PublicationId::now_v7();
    let publication = Publication { id: id_of, parent: export.version, solve: None, targets };
    let end = SolveEnd {
        lease,
        result_url: "result".to_owned(),
        report: broker::Document::of(&json!({})),
    };
    assert!(broker.await_approval("worker", &publication, &end, 7).await.expect("asked"));
    id
}

#[tokio::test]
async fn solve_is_approved_and_rejected_over_http_and_on_its_page() {
    let place = Place::new().await;
    let id = awaiting(&place, 20).await;
    let at = format!("/ops/v1/solves/{id}");
    assert_eq!(place.get(&at).await.1["state"], "awaiting_approval");
    let (_, listed) = place.get("/ops/v1/solves?state=awaiting_approval").await;
    assert_eq!(listed["solves"][0]["solve"], json!(id));
    let (_, told) = place.get("/ops/v1/trail?action=solve_awaits_approval").await;
    assert_eq!(told["entries"][0]["detail"], json!({ "in_use_moves": 7, "servers": 1 }));
    // Shown to readers, decided by operators.
    for path in ["/solves".to_owned(), format!("/solves/{id}")] {
        let (_, read) = crate::pages::page(&place, &path, None).await;
        assert!(read.contains("Awaiting approval") && !read.contains("/approve"), "{path}");
        let (_, page) = crate::pages::page(&place, &path, Some(ROOT)).await;
        for action in ["approve", "reject"] {
            assert!(page.contains(&format!("action=\"/solves/{id}/{action}\"")), "{path}: {page}");
        }
    }
    let (status, approved) = post(&place, &format!("{at}/approve"), "{}").await;
    assert_eq!(
        (status.as_u16(), &approved["state"], &approved["version"]),
        (200, &json!("published"), &json!(2))
    );
    assert_eq!(post(&place, &format!("{at}/approve"), "{}").await.1["version"], 2, "once");
    let server = place.get("/ops/v1/servers/s20").await.1;
    assert_eq!(server["target"]["reservation"], "a");

    let id = awaiting(&place, 21).await;
    let at = format!("/ops/v1/solves/{id}");
    let (status, problem) = post(&place, &format!("{at}/reject"), r#"{"why": " "}"#).await;
    assert_eq!((status.as_u16(), &problem["pointer"]), (422, &json!("#/why")));
    let sent =
        crate::pages::send(&place, &format!("/solves/{id}/reject"), ROOT, "why=the+sale").await;
    assert!(sent.status().is_success() || sent.status().is_redirection(), "{}", sent.status());
    let rejected = place.get(&at).await.1;
    assert_eq!(
        (&rejected["state"], &rejected["failure"]),
        (&json!("rejected"), &json!("the sale"))
    );
    let (status, problem) = post(&place, &format!("{at}/approve"), "{}").await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("not_awaiting")));
    let id = awaiting(&place, 21).await;
    let sent = crate::pages::send(&place, &format!("/solves/{id}/approve"), ROOT, "").await;
    assert!(sent.status().is_success() || sent.status().is_redirection(), "{}", sent.status());
    assert_eq!(place.get(&format!("/ops/v1/solves/{id}")).await.1["state"], "published");
}
