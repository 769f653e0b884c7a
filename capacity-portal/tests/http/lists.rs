//! Lists: filters, order, pages and fields, and that no list or route takes a parameter it does not know.

use crate::place::{Place, answer};
use broker::{PoliciesEdition, PolicyChange, PolicyChanges};
use reqwest::Method;
use serde_json::{Value, json};

/// The names of rows, page by page.
async fn names(place: &Place, path: &str, rows: &str, key: &str) -> Vec<String> {
    let (mut all, mut token) = (Vec::new(), None::<String>);
    loop {
        let separator = if path.contains('?') { '&' } else { '?' };
        let after = token.map_or_else(String::new, |token| format!("&page_token={token}"));
        let (status, page) = place.get(&format!("{path}{separator}limit=3{after}")).await;
        assert_eq!(status, 200, "{path}: {page}");
        let listed = page[rows].as_array().expect("a list");
        assert!(listed.len() <= 3, "{page}");
        all.extend(listed.iter().map(|row| row[key].as_str().expect("a name").to_owned()));
        token = page["next_page_token"].as_str().map(str::to_owned);
        if token.is_none() {
            return all;
        }
    }
}

#[tokio::test]
async fn servers_racks_and_msbs_are_filtered_sorted_and_paged() {
    let place = Place::new().await;
    let servers = names(&place, "/ops/v1/servers", "servers", "server").await;
    assert_eq!(servers.len(), 24);
    assert!(servers.is_sorted(), "{servers:?}");
    let path = "/ops/v1/servers?order_by=server%20desc";
    let mut backwards = names(&place, path, "servers", "server").await;
    backwards.reverse();
    assert_eq!(servers, backwards);
    for (filter, count) in [
        ("reservation=a", 8),
        ("reservation=null", 8),
        ("reservation=\"b/ü\" AND available=true", 8),
        ("reservation=a OR reservation=null", 16),
        ("reservation=a AND in_use=false AND moving=true", 0),
    ] {
        let path = format!("/ops/v1/servers?filter={}", filter.replace('/', "%2F"));
        let path = path.replace(' ', "%20").replace('"', "%22");
        assert_eq!(names(&place, &path, "servers", "server").await.len(), count, "{filter}");
    }
    let (_, one) = place.get("/ops/v1/servers?limit=1&fields=server,rack").await;
    let row = one["servers"][0].as_object().expect("a row");
    assert_eq!(row.keys().collect::<Vec<_>>(), ["rack", "server"]);

    // Racks and MSBs count what the servers say.
    assert_eq!(names(&place, "/ops/v1/racks", "racks", "rack").await.len(), 6);
    let (_, racks) = place.get("/ops/v1/racks").await;
    let rack = &racks["racks"][0];
    let path = format!("/ops/v1/servers?filter=rack={}", rack["rack"].as_str().expect("a name"));
    let listed = names(&place, &path, "servers", "server").await;
    assert_eq!(json!(listed.len()), rack["servers"]);
    let (_, msbs) = place.get("/ops/v1/msbs?order_by=servers,msb%20desc").await;
    let msbs = msbs["msbs"].as_array().expect("a list");
    let sum = |member: &str| -> u64 { msbs.iter().filter_map(|of| of[member].as_u64()).sum() };
    assert_eq!((msbs.len(), sum("servers"), sum("free"), sum("racks")), (3, 24, 8, 6));
    let (_, types) = place.get("/ops/v1/hardware-types?filter=servers%3E0").await;
    assert!(!types["hardware_types"].as_array().expect("a list").is_empty(), "{types}");
}

/// Routes that list something: their answer has a token of the next page.
fn lists() -> Vec<(String, Value)> {
    let document: Value = serde_json::from_str(&capacity_portal::openapi()).expect("JSON");
    let schemas = &document["components"]["schemas"];
    let paths = document["paths"].as_object().expect("paths");
    let pages = |operation: &Value| {
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        let name = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next());
        name.is_some_and(|name| schemas[name]["properties"].get("next_page_token").is_some())
    };
    paths
        .iter()
        .filter(|(_, item)| item.get("get").is_some_and(&pages))
        .map(|(path, item)| (path.clone(), item["get"].clone()))
        .collect()
}

#[tokio::test]
async fn every_list_pages_and_documents_it() {
    let place = Place::new().await;
    let changes = [PolicyChange { policy: "a", sql: Some("SELECT 1") }];
    let checked = PoliciesEdition::default();
    let of = PolicyChanges { changes: &changes, why: "", checked, seen: None };
    place.broker.change_policies("test", of, None).await.expect("its versions are a list, too");
    let lists = lists();
    assert!(lists.len() > 20, "{}", lists.len());
    for (path, operation) in lists {
        if path == "/ops/v1/maintenance/{id}" || path.ends_with("/files") {
            continue;
        }
        let parameters = operation["parameters"].as_array().expect("parameters");
        for name in ["limit", "page_token", "filter", "order_by", "fields"] {
            let named = parameters.iter().any(|of| of["name"] == name);
            assert!(named, "{path} does not document {name}");
        }
        let path = path.replace("{name}", "a");
        let path = if path.contains("/servers/") { path.replace("/a/", "/s00/") } else { path };
        let send = async |query: &str| {
            answer(place.send(Method::GET, &format!("{path}?{query}"), None, "").await).await
        };
        if path == "/ops/v1/tokens" || path.contains("/servers/") {
            continue;
        }
        let (status, page) = send("limit=1").await;
        assert_eq!(status, 200, "{path}: {page}");
        // Any member that has an order sorts, in both directions.
        let rows = |page: &Value| -> Vec<Value> {
            let list = page.as_object().expect("a page").values().find_map(Value::as_array);
            list.expect("rows").clone()
        };
        let (_, all) = send("").await;
        let first = rows(&all).into_iter().next();
        let sorts = |value: &Value| value.is_string() || value.is_number();
        let member = first.iter().filter_map(Value::as_object).flatten();
        let member = member.filter(|(_, value)| sorts(value)).map(|(name, _)| name.clone()).next();
        if let Some(member) = member {
            for order in ["", "%20desc"] {
                let (status, sorted) = send(&format!("order_by={member}{order}")).await;
                assert_eq!(status, 200, "{path} by {member}: {sorted}");
                assert_eq!(rows(&sorted).len(), rows(&all).len(), "{path} by {member}");
            }
        }
        for wrong in ["limit=0", "limit=1001", "order_by=nothing", "filter=nothing=1", "fields=x"] {
            let (status, problem) = send(wrong).await;
            assert_eq!(status, 400, "{path}?{wrong}: {problem}");
        }
    }
}

#[tokio::test]
async fn stored_lists_take_their_parameters_as_filter() {
    let place = Place::new().await;
    for (server, to) in [(0, Some("a")), (1, Some("a")), (0, None)] {
        place.publish(server, to).await;
    }
    let (_, by_parameter) = place.get("/ops/v1/trail?action=targets_published").await;
    let (status, by_filter) =
        place.get("/ops/v1/trail?filter=action=%22targets_published%22&order_by=seq%20desc").await;
    assert_eq!((status.as_u16(), &by_parameter), (200, &by_filter));
    // Any other member, operator or order is applied to the rows that match the parameters.
    let seqs = async |query: &str| -> Vec<i64> {
        let (mut all, mut token) = (Vec::new(), String::new());
        loop {
            let path = format!("/ops/v1/trail?limit=2&fields=seq&{query}{token}");
            let (status, page) = place.get(&path).await;
            assert_eq!(status, 200, "{path}: {page}");
            let rows = page["entries"].as_array().expect("entries");
            assert!(rows.len() <= 2, "{page}");
            all.extend(rows.iter().map(|row| row["seq"].as_i64().expect("a number")));
            match page["next_page_token"].as_str() {
                Some(next) => token = format!("&page_token={next}"),
                None => return all,
            }
        }
    };
    let newest_first = seqs("").await;
    let ascending: Vec<i64> = newest_first.iter().rev().copied().collect();
    assert!(ascending.len() > 2 && ascending.is_sorted(), "{ascending:?}");
    assert_eq!(seqs("order_by=seq").await, ascending);
    let published = "action=%22targets_published%22";
    let (of, others) = (seqs(&format!("filter={published}")).await, newest_first.iter().copied());
    let others: Vec<i64> = others.filter(|seq| !of.contains(seq)).collect();
    assert!(!of.is_empty() && !others.is_empty());
    assert_eq!(seqs(&format!("filter=NOT%20{published}")).await, others);
    assert_eq!(seqs(&format!("filter={published}%20AND%20seq%3E0")).await, of);
    let both = format!("filter={published}%20OR%20seq=1");
    let with_first: Vec<i64> =
        newest_first.iter().copied().filter(|seq| *seq == 1 || of.contains(seq)).collect();
    assert_eq!(seqs(&both).await, with_first);
    for wrong in ["filter=size!=1", "order_by=size", "order_by=detail", "filter=action=x%20OR"] {
        let (status, problem) = place.get(&format!("/ops/v1/trail?{wrong}")).await;
        assert_eq!(status, 400, "{wrong}: {problem}");
    }
    let (_, one) = place.get("/ops/v1/trail?limit=1&fields=seq,actor").await;
    assert_eq!(one["entries"][0].as_object().expect("an entry").len(), 2);
}
