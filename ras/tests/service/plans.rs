//! Plans made by workers, which may be killed.

use crate::place::{PATIENCE, Place, Running, until_true};
use serde_json::{Value, json};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

const ROOT: &str = "0123456789-of-root";

/// A server that has no worker of its own.
fn server(place: &Place) -> Running {
    place.region("region");
    fs::write(place.path("root.token"), ROOT).expect("written");
    let settings = "[[portal.tokens]]\nname = \"root\"\nroles = [\"admin\"]\n\
        token_file = \"root.token\"\n";
    fs::write(place.path("ras.toml"), settings).expect("written");
    place.start(
        "up region --data data --listen 127.0.0.1:0 --config ras.toml --schedule never --no-worker",
    )
}

fn worker(place: &Place) -> Running {
    place.start("worker --data data --config ras.toml --log info")
}

/// Plans that a worker took, by its log.
fn taken(worker: &Running) -> usize {
    let log = fs::read_to_string(&worker.errors).expect("a log");
    log.lines().filter(|line| line.contains("job taken") && line.contains("plan")).count()
}

/// New reservations, planned together: each on the region that the previous ones leave.
fn changes(up: &Running, count: usize) -> Value {
    let (_, body) = up.get("/v1/reservations?kind=guaranteed");
    let region: Value = serde_json::from_str(&body).expect("JSON");
    let values = &region["reservations"][0]["rru"];
    let change = |number: usize| {
        json!({ "reservation": format!("new-{number}"), "owner": "team", "capacity_rru": 3,
            "rru": values, "msb_buffer": true })
    };
    json!({ "changes": (0..count).map(change).collect::<Vec<_>>() })
}

/// Has changes planned; how many were answered. Asks again while the queue is full, as it is on a busy machine.
fn planned(up: &Running, body: &Value) -> usize {
    let until = Instant::now() + PATIENCE;
    let ask = || up.post("/v1/plans", ROOT, &body.to_string());
    let (mut code, mut plan) = ask();
    while code == 429 && Instant::now() < until {
        thread::sleep(Duration::from_secs(1));
        (code, plan) = ask();
    }
    assert_eq!(code, 201, "{plan}");
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    plan["changes"].as_array().expect("changes").len()
}

#[test]
fn large_and_queued_plans_are_made_by_workers() {
    let place = Place::new();
    let up = server(&place);
    let large = changes(&up, 12);
    // No worker is there: the portal makes it, after it was on offer for two seconds.
    assert_eq!(planned(&up, &large), 12);
    // For a while none is asked.
    thread::sleep(Duration::from_secs(16));

    let worker = worker(&place);
    assert_eq!(planned(&up, &large), 12);
    assert_eq!(taken(&worker), 1, "a plan of 12 changes is large");
    // A small one is made at once by the portal; of many at once some would wait.
    let small = changes(&up, 1);
    planned(&up, &small);
    assert_eq!(taken(&worker), 1, "a small one is not a worker's");
    thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| planned(&up, &small));
        }
    });
    assert!(taken(&worker) > 1, "the desk was full");
    // Nothing stays in the queue.
    until_true("the queue is empty", Instant::now() + PATIENCE, || {
        let (_, page) = up.get("/metrics");
        page.contains("ras_queue_jobs{kind=\"plan\",state=\"waiting\"} 0\n")
            && page.contains("ras_queue_jobs{kind=\"plan\",state=\"running\"} 0\n")
    });
    worker.stop();
    up.stop();
}

#[test]
fn plan_of_killed_worker_is_made_by_another() {
    let place = Place::new();
    let up = server(&place);
    let large = changes(&up, 20);
    let mut workers = vec![worker(&place), worker(&place)];
    for _ in 0..5 {
        let before: Vec<usize> = workers.iter().map(taken).collect();
        let killed = thread::scope(|scope| {
            let answer = scope.spawn(|| planned(&up, &large));
            let mut at = None;
            until_true("it is planned", Instant::now() + 2 * PATIENCE, || {
                at = workers.iter().zip(&before).position(|(of, before)| taken(of) > *before);
                at.is_some() || answer.is_finished()
            });
            let killed = at.map(|at| workers.remove(at));
            if let Some(killed) = &killed {
                killed.signal("-KILL");
            }
            assert_eq!(answer.join().expect("answered"), 20);
            killed
        });
        let Some(mut killed) = killed else {
            // None was quick enough on a busy machine, so none is asked for a while.
            thread::sleep(Duration::from_secs(16));
            continue;
        };
        killed.child.wait().expect("it ended");
        let survivor = fs::read_to_string(&workers[0].errors).expect("a log");
        if survivor.contains("attempt=2") {
            return;
        }
        // It was done before the signal came.
        workers.push(worker(&place));
    }
    panic!("no worker was killed while it planned");
}
