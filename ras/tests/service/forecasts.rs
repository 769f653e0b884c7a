//! Forecasts of a region's own history, through the binary.

use crate::place::Place;
use broker::Address;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use testkit::postgres::{connect, execute};
use tokio::runtime::Runtime;

/// Ninety days with a sample at noon. Of A in x, one more server is held each day and twelve are free on the last; of B half a
/// server more each day, of C none. D is held in full, and E has been there for a week.
const HISTORY: &str = "
    CREATE TEMP TABLE days AS SELECT n, to_timestamp(floor(extract(epoch FROM clock_timestamp()) / 86400) * 86400 \
        - n * 86400 + 43200) AS at FROM generate_series(1, 90) n;
    INSERT INTO usage_samples SELECT at FROM days;
    INSERT INTO usage_cells (reservation, owner, hardware_type, datacenter, value_micro)
        SELECT of, of, name, 'x', 0 FROM unnest(ARRAY['A', 'B', 'C', 'D', 'E']) name, unnest(ARRAY['web', '']) of;
    INSERT INTO usage_changes (cell_id, at, promised_micro, held, used, lent)
        SELECT cell_id, at, 0, CASE hardware_type || reservation
            WHEN 'Aweb' THEN 200 - n WHEN 'A' THEN 11 + n WHEN 'Bweb' THEN 200 - n / 2 WHEN 'B' THEN 8 WHEN 'Cweb' THEN 50
            WHEN 'C' THEN 9 WHEN 'Dweb' THEN 70 WHEN 'D' THEN 0 ELSE CASE WHEN n > 7 THEN 0 ELSE 30 - n END END, 0, 0
        FROM days, usage_cells WHERE datacenter = 'x'";

#[test]
fn orders_of_a_region_have_the_dates_that_its_server_names() {
    let place = Place::new();
    place.region("region");
    let up = place.start("up region --data data --listen 127.0.0.1:0 --schedule never --no-worker");
    let socket = place.path("data/postgres/socket");
    let url = format!("postgres://ras@localhost/region?host={}", socket.display());
    let address = Address::from_url(&url).expect("an address");
    Runtime::new().expect("a runtime").block_on(async {
        execute(&mut connect(&address).await, HISTORY).await;
    });
    for (option, query) in [("", ""), ("--quantile 90%", "?quantile=0.9")] {
        let (code, served) = up.get(&format!("/ops/v1/supply{query}"));
        let served: Value = serde_json::from_str(&served).expect("JSON");
        assert_eq!(code, 200, "{served}");
        let orders = place.json(&format!("forecast orders --data data {option}"));
        let orders: BTreeMap<&str, &Value> = (orders["series"].as_array().expect("series").iter())
            .map(|of| (of["name"].as_str().expect("a name"), of))
            .collect();
        let mut states = Vec::new();
        for of in served["supply"].as_array().expect("rows") {
            let word = |member: &str| of[member].as_str().expect("text");
            let name = format!("{}/{}", word("hardware_type"), word("datacenter"));
            // The types that the region has, and its history not yet.
            let Some(order) = orders.get(name.as_str()) else {
                assert_eq!((&of["known_days"], &of["runs_out_on"]), (&0.into(), &Value::Null));
                continue;
            };
            assert_eq!(order["supply"]["state"], of["state"], "{name}: {order}");
            assert_eq!(order["runs_out_on"], of["runs_out_on"], "{name}: {order}");
            assert_eq!(order["free"].as_f64(), of["free"].as_f64(), "{name}: {order}");
            states.push((name, word("state")));
        }
        states.sort();
        let states: Vec<&str> = states.iter().map(|(_, state)| *state).collect();
        assert_eq!(states, ["runs_out", "runs_out", "lasts", "out", "unknown"], "{served}");
    }
    let text = place.ras("forecast orders --data data").code(0).stdout();
    assert!(text.contains("none free") && text.contains("unknown"), "{text}");
    // Free servers belong to no reservation.
    place
        .ras("forecast orders --data data --by reservation")
        .fails_with(&["free servers have no reservation", "--stock"]);
    let moved = place.json("forecast orders --data data --moves-by hardware_type");
    assert_eq!(moved["moves"], serde_json::json!([]), "each type is in one place: {moved}");
    up.stop();
}

/// Enters what was recommended, and what the server then says of the type.
#[test]
fn what_a_forecast_recommends_is_entered_in_one_command() {
    let place = Place::new();
    place.region("region");
    let up = place.start("up region --data data --listen 127.0.0.1:0 --schedule never --no-worker");
    let socket = place.path("data/postgres/socket");
    let url = format!("postgres://ras@localhost/region?host={}", socket.display());
    let address = Address::from_url(&url).expect("an address");
    let names = "; INSERT INTO hardware_types (hardware_type) VALUES ('A'), ('B'), ('C'), ('D'), ('E'); \
        INSERT INTO datacenters (datacenter) VALUES ('x')";
    Runtime::new().expect("a runtime").block_on(async {
        execute(&mut connect(&address).await, &format!("{HISTORY}{names}")).await;
    });
    // Of C, which is level, nothing is needed: an order for it is to be cancelled.
    #[expect(clippy::disallowed_methods, reason = "the server counts days from its own clock")]
    let soon = (chrono::Utc::now() + chrono::TimeDelta::days(5)).date_naive();
    place.ras(&format!("region order add C x --servers 9 --expected {soon} --data data")).code(0);
    let before = place.json("forecast orders --data data");
    let of = |answer: &Value, name: &str| {
        let all = answer["series"].as_array().expect("series");
        all.iter().find(|of| of["name"] == name).cloned().expect("a series")
    };
    let (a, c) = (of(&before, "A/x"), of(&before, "C/x"));
    let ordered = a["order"].as_u64().expect("a number");
    assert!(ordered > 0, "{a}");
    assert_eq!(a["of"], serde_json::json!({ "hardware_type": "A", "datacenter": "x" }));
    assert_eq!((&c["ordered"], &c["cancel_on"][0]["servers"]), (&9.0.into(), &9.into()), "{c}");
    std::fs::write(place.path("orders.json"), before.to_string()).expect("written");

    // What is late may be what the forecast misses: nothing is ordered in its place unasked.
    let late = place.json("region order add A x --servers 2 --expected 2020-01-01 --data data");
    let late = late["orders"][0]["order"].as_str().expect("an id").to_owned();
    place.ras("region order apply -f orders.json --preview --data data").fails_with(&[
        "2 of A in x were expected on 2020-01-01 and are late",
        &late,
        "--despite-late",
    ]);
    let text = place.ras("forecast report --data data --out page").code(0).stdout();
    assert!(text.contains("2 servers on order are late and do not count."), "{text}");
    let all = place.json("region order apply -f orders.json --despite-late --preview --data data");
    place.ras(&format!("region order cancel {late} --data data")).code(0);

    let preview = place.json("region order apply -f orders.json --preview --data data");
    assert_eq!(preview["applied"], false, "{preview}");
    assert_eq!(preview["orders"], all["orders"]);
    let applied = place.json("region order apply -f orders.json --data data");
    assert_eq!(
        (&applied["orders"], &applied["reduced"]),
        (&preview["orders"], &preview["reduced"])
    );
    let (_, listed) = up.get("/ops/v1/hardware-orders?filter=state=open");
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let open = listed["orders"].as_array().expect("orders");
    let sum = |name: &str| -> u64 {
        let of = open.iter().filter(|of| of["hardware_type"] == name);
        of.map(|of| of["servers"].as_u64().expect("a number")).sum()
    };
    assert_eq!((sum("A"), sum("C")), (ordered, 0), "{listed}");
    let after = place.json("forecast orders --data data");
    let (a, c) = (of(&after, "A/x"), of(&after, "C/x"));
    assert_eq!((&a["order"], a["ordered"].as_f64()), (&0.into(), Some(ordered as f64)), "{a}");
    assert_eq!(c["ordered"].as_f64(), Some(0.0), "{c}");
    // Server and command line still have the same dates.
    let (_, served) = up.get("/ops/v1/supply?filter=hardware_type=A");
    let served: Value = serde_json::from_str(&served).expect("JSON");
    assert_eq!(served["supply"][0]["runs_out_on"], a["runs_out_on"], "{served}");
    assert_eq!(served["supply"][0]["on_order"].as_u64(), Some(ordered), "{served}");

    // Nothing is ordered twice, and what was to be cancelled is not on order any more.
    place
        .ras("region order apply -f orders.json --data data")
        .fails_with(&["are on order already", "run ras forecast orders again"]);
    let mut cancelled = before.clone();
    cancelled["series"]
        .as_array_mut()
        .expect("series")
        .iter_mut()
        .for_each(|of| of["order"] = 0.into());
    std::fs::write(place.path("cancelled.json"), cancelled.to_string()).expect("written");
    place
        .ras("region order apply -f cancelled.json --data data")
        .fails_with(&["are not on order", "run ras forecast orders again"]);
    std::fs::write(place.path("other.json"), "{}").expect("written");
    place
        .ras("region order apply -f other.json --data data")
        .fails_with(&["other.json", "ras forecast orders --output json"]);
    std::fs::write(
        place.path("orders.csv"),
        "hardware_type,datacenter,servers,expected_on\nB,x,many,2098-01-01\n",
    )
    .expect("written");
    place
        .ras("region order add -f orders.csv --data data")
        .fails_with(&["orders.csv, line 2", "servers \"many\" is not a number of servers"]);
    let text = place.ras("region order list --all --data data").code(0).stdout();
    assert!(text.contains("cancelled") && text.contains("open"), "{text}");
    up.stop();
}

/// Shared buffers beside what failures need, and one that follows them.
#[test]
fn a_shared_buffer_follows_failures_on_the_command_line() {
    let place = Place::new();
    place.region("region");
    let up = place.start("up region --data data --listen 127.0.0.1:0 --schedule never --no-worker");
    let listed = place.json("region buffer list --data data");
    let row = &listed["shared_buffers"][0];
    let name = row["hardware_type"].as_str().expect("a name").to_owned();
    let wanted = row["wanted"].as_u64().expect("a buffer");
    assert_eq!((&row["follows"], &row["listed"]), (&false.into(), &false.into()), "{row}");

    let (min, max) = (wanted + 3, wanted + 3);
    let set = format!("region buffer autosize set {name} --min {min} --max {max} --data data");
    let text = place.ras(&set).code(0).stdout();
    assert!(text.contains(&format!("from {min} to {max} servers")), "{text}");
    let show = format!("region buffer autosize show {name} --data data");
    let deadline = Instant::now() + Duration::from_secs(60);
    let shown = loop {
        let shown = place.json(&show);
        if shown["decision"]["action"] == "grow" {
            break shown;
        }
        assert!(Instant::now() < deadline, "{shown}");
        std::thread::sleep(Duration::from_millis(200));
    };
    assert_eq!(shown["decision"]["to_servers"], min, "{shown}");
    let listed = place.json("region buffer list --data data");
    let row = &listed["shared_buffers"][0];
    assert_eq!((&row["wanted"], &row["follows"]), (&min.into(), &true.into()), "{row}");
    let text = place.ras("region buffer list --chance 0.1% --data data").code(0).stdout();
    assert!(text.contains("needs at 0.1") && text.contains(&name), "{text}");
    place.ras("region buffer list --chance 2% --data data").fails_with(&["chance must be one of"]);
    place
        .ras(&format!("region buffer autosize set {name} --min 5 --max 4 --data data"))
        .fails_with(&["max_servers", "min must be at most max"]);
    let text = place.ras(&show).code(0).stdout();
    assert!(text.contains("last decision: grow to"), "{text}");
    place.ras(&format!("region buffer autosize remove {name} --data data")).code(0);
    let text = place.ras(&show).code(0).stdout();
    assert!(text.contains("does not follow failures"), "{text}");

    // Servers are counted, and too little of their use is known to say how it grows.
    let headroom = place.json("forecast headroom --data data");
    let rows = headroom["headroom"].as_array().expect("rows");
    let servers = |of: &Value, name: &str| of[name].as_u64().expect("a number");
    let all: u64 =
        rows.iter().flat_map(|of| ["used", "idle", "free"].map(|name| servers(of, name))).sum();
    assert!(
        (700..=1_000).contains(&all),
        "all but shared buffers, what is lent and what is out: {all}"
    );
    assert!(rows.iter().all(|of| of["growth"].is_null()), "{headroom}");
    up.stop();
}
