//! The settings pages.

use crate::pages::{page, send, well_formed};
use crate::place::{Place, READER, ROOT};
use crate::who_may::token;
use broker::Role;

#[tokio::test]
async fn settings_page_changes_settings() {
    let place = Place::new().await;
    let (_, seen) = page(&place, "/settings", Some(READER)).await;
    assert!(seen.contains("default rule") && !seen.contains("method=\"post\""), "{seen}");
    let (_, shown) = page(&place, "/settings", Some(ROOT)).await;
    let version = |text: &str, after: &str| {
        let rest = text.split(after).nth(1).expect("a form").to_owned();
        let rest = rest.split("name=\"version\" value=\"").nth(1).expect("a version").to_owned();
        rest.split('"').next().expect("a value").to_owned()
    };
    let prices = format!(
        "version={}&move_in_use=12&move_idle=1&spread_beta=2&buffer_tau=5&msb_alpha=&rack_alpha=0.5\
         &affinity_theta=0.05&shared_buffer_fraction=0",
        version(&shown, "action=\"/settings/prices\"")
    );
    let buffer = format!(
        "hardware_type=type&servers=3&version={}",
        version(&shown, "action=\"/settings/buffers\"")
    );
    let elastic = "reservation=batch&owner=lab&rru=type%3D1.5&share=2".to_owned();
    for (path, form) in [
        ("/settings/prices", &prices),
        ("/settings/hardware-types", &"hardware_type=new".to_owned()),
        ("/settings/buffers", &buffer),
        ("/settings/elastic", &elastic),
    ] {
        assert_eq!(send(&place, path, READER, form).await.status(), 403, "{path}");
        let sent = send(&place, path, ROOT, form).await;
        assert_eq!((sent.status().as_u16(), sent.url().path()), (200, "/settings"), "{path}");
        well_formed(path, &sent.text().await.expect("text"));
    }
    assert_eq!(
        send(&place, "/settings/prices", ROOT, &prices).await.status(),
        412,
        "an outdated version"
    );
    let settings = place.broker.region_settings().await.expect("read").settings;
    assert_eq!((settings.weights.move_in_use, settings.weights.rack_alpha), (12.0, Some(0.5)));
    let types = place.broker.hardware_types().await.expect("read");
    assert_eq!(types.len(), 2);
    let wanted = types.iter().filter_map(|of| of.buffer.as_ref()).map(|of| of.wanted).max();
    assert_eq!(wanted, Some(3));
    let batch = place.broker.elastic_reservations(Some("batch")).await.expect("read").remove(0);
    assert_eq!(
        (batch.share, batch.asked.rru.values().copied().max_by(f64::total_cmp)),
        (Some(2.0), Some(1.5))
    );
    let (_, shown) = page(&place, "/settings", Some(ROOT)).await;
    let end = format!(
        "reservation=batch&version={}",
        version(&shown, "action=\"/settings/elastic/end\"")
    );
    assert_eq!(send(&place, "/settings/elastic/end", ROOT, &end).await.status(), 200);
    assert!(place.broker.elastic_reservations(None).await.expect("read").is_empty());

    let admin = token(&place, "ann", Role::Admin, None).await;
    let quota = "owner=a&rru=&servers=20%2C+type%3D10";
    assert_eq!(send(&place, "/settings/quotas", ROOT, quota).await.status(), 403);
    assert_eq!(send(&place, "/settings/quotas", &admin, quota).await.status(), 200);
    let (_, shown) = page(&place, "/settings", None).await;
    assert!(shown.contains("servers of hardware type &quot;type&quot;"), "{shown}");
    // The page of a rejected form shows its errors.
    let sent = send(&place, "/settings/quotas", &admin, "owner=a&rru=none%3D5&servers=").await;
    assert_eq!(sent.status(), 422);
    let text = sent.text().await.expect("text");
    let wrong = "RRU by profile: none=5: there is no profile &quot;none&quot;";
    assert!(text.contains(wrong) && !text.contains("limits["), "{text}");
    well_formed("/settings/quotas", &text);
    assert!(text.contains("href=\"#quotas\"") && text.contains("id=\"quota-owner\""), "{text}");
    assert_eq!(
        send(&place, "/settings/hardware-types", READER, "hardware_type=x").await.status(),
        403
    );
}

/// Value of a field, and whether it has an error.
fn field(text: &str, id: &str) -> (String, bool) {
    let tag = text.split(&format!("id=\"{id}\"")).nth(1).unwrap_or_else(|| panic!("{id}: {text}"));
    let (tag, after) = tag.split_once('>').expect("an end");
    let value = match tag.split_once(" value=\"") {
        Some((_, value)) => value.split('"').next().expect("an end"),
        None => after.split("</textarea>").next().expect("an end"),
    };
    let wrong = format!("{id}-wrong");
    let described = tag.contains(&wrong) && text.contains(&format!("id=\"{wrong}\""));
    assert_eq!(described, tag.contains("aria-invalid=\"true\""), "{id}: {tag}");
    (value.to_owned(), described)
}

#[tokio::test]
async fn rejected_settings_form_keeps_values_and_errors() {
    let place = Place::new().await;
    let admin = token(&place, "ann", Role::Admin, None).await;
    let before = place.broker.last_seq().await.expect("asked");
    let prices = "version=1&move_in_use=12&move_idle=much&spread_beta=2&buffer_tau=&msb_alpha=&rack_alpha=x\
        &affinity_theta=0.05&shared_buffer_fraction=0";
    let elastic = "reservation=batch&owner=lab&rru=type%3D1.5%2C+other%3D2&share=-1";
    let quota = "owner=a&rru=gold%3D5%2Csilver%3D3&servers=20%2C+type%3D10%2C+type%3D12";
    for (path, form, fields) in [
        (
            "prices",
            prices,
            &[
                ("price-move_in_use", "12", false),
                ("price-move_idle", "much", true),
                ("price-buffer_tau", "", true),
                ("price-rack_alpha", "x", true),
            ][..],
        ),
        (
            "elastic",
            elastic,
            &[
                ("elastic-reservation", "batch", false),
                ("elastic-owner", "lab", false),
                ("elastic-rru", "type=1.5, other=2", true),
                ("elastic-share", "-1", true),
            ],
        ),
        (
            "quotas",
            quota,
            &[
                ("quota-owner", "a", false),
                ("quota-rru", "gold=5,silver=3", true),
                ("quota-servers", "20, type=10, type=12", true),
            ],
        ),
        ("quotas", "owner=+&rru=&servers=nan", &[("quota-servers", "nan", true)]),
        (
            "hardware-types/rename",
            "hardware_type=type&name=",
            &[("rename-name-0", "", true), ("buffer-servers-0", "0", false)],
        ),
        (
            "buffers",
            "hardware_type=type&servers=2.5&version=",
            // An outdated version is an error of the form, not of a field.
            &[("buffer-servers-0", "2.5", false)],
        ),
    ] {
        let path = format!("/settings/{path}");
        let sent = send(&place, &path, &admin, form).await;
        assert!(sent.status().is_client_error(), "{path}: {}", sent.status());
        let text = sent.text().await.expect("text");
        well_formed(&path, &text);
        println!(
            "{path}: {:?}",
            fields.iter().map(|(id, ..)| (id, field(&text, id))).collect::<Vec<_>>()
        );
        for &(id, value, wrong) in fields {
            assert_eq!(field(&text, id), (value.to_owned(), wrong), "{path}: {id}");
        }
        for code in ["limits[", "rru.other", "hardware_types["] {
            assert!(!text.contains(code), "{path} shows {code}");
        }
    }
    // The stored price is shown beside a different one that was typed.
    let text = send(&place, "/settings/prices", &admin, prices).await.text().await.expect("text");
    assert!(text.contains("at least 0; current value: 10"), "{text}");
    assert_eq!(place.broker.last_seq().await.expect("asked"), before, "nothing was written");
}

#[tokio::test]
async fn settings_page_renames_and_removes_hardware_types() {
    let place = Place::new().await;
    let names = async || {
        let all = place.broker.hardware_types().await.expect("read");
        all.into_iter().map(|of| of.hardware_type.to_string()).collect::<Vec<_>>()
    };
    let post = async |path: &str, token: &str, form: &str| {
        let sent = send(&place, &format!("/settings/hardware-types{path}"), token, form).await;
        let status = sent.status().as_u16();
        let text = sent.text().await.expect("text");
        well_formed(path, &text);
        (status, text)
    };
    assert_eq!(post("", ROOT, "hardware_type=new").await.0, 200);
    assert_eq!(names().await, ["new", "type"]);
    for (path, form) in
        [("/rename", "hardware_type=new&name=newer"), ("/remove", "hardware_type=new")]
    {
        assert_eq!(post(path, READER, form).await.0, 403, "{path}");
    }
    // The name of another type is refused; the row stays open with its values.
    let (status, text) = post("/rename", ROOT, "hardware_type=new&name=type").await;
    assert_eq!((status, field(&text, "rename-name-0")), (422, ("type".to_owned(), true)));
    let row = text.split("aria-label=\"Change new\"").next().expect("a row");
    assert!(row.trim_end().ends_with("<details open><summary"), "{row}");
    assert!(text.contains("new: New name: there is a hardware type"), "{text}");
    assert_eq!(post("/rename", ROOT, "hardware_type=new&name=newer").await.0, 200);
    assert_eq!(names().await, ["newer", "type"]);
    assert_eq!(post("/rename", ROOT, "hardware_type=new&name=newest").await.0, 404);

    let (status, text) = post("/remove", ROOT, "hardware_type=type").await;
    assert_eq!(status, 422);
    assert!(text.contains("type: 24 servers use it: decommission them"), "{text}");
    assert_eq!(post("/remove", ROOT, "hardware_type=newer").await.0, 200);
    assert_eq!(names().await, ["type"]);
}

/// Postgres cannot store zero characters: each form refuses them and writes nothing.
#[tokio::test]
async fn form_with_zero_character_is_refused() {
    let place = Place::new().await;
    let admin = token(&place, "ann", Role::Admin, None).await;
    let before = place.broker.last_seq().await.expect("asked");
    for (path, form) in [
        (
            "/settings/prices",
            "version=%00&move_in_use=1&move_idle=1&spread_beta=2&buffer_tau=5&msb_alpha=&rack_alpha=&affinity_theta=&shared_buffer_fraction=0",
        ),
        ("/settings/hardware-types", "hardware_type=ne%00w"),
        ("/settings/hardware-types/rename", "hardware_type=type&name=ne%00w"),
        ("/settings/hardware-types/rename", "hardware_type=ty%00pe&name=new"),
        ("/settings/hardware-types/remove", "hardware_type=ty%00pe"),
        ("/settings/buffers", "hardware_type=ty%00pe&servers=3&version=1"),
        ("/settings/elastic", "reservation=ba%00tch&owner=lab&rru=type%3D1.5&share=2"),
        ("/settings/elastic", "reservation=batch&owner=la%00b&rru=type%3D1.5&share=2"),
        ("/settings/elastic", "reservation=batch&owner=lab&rru=ty%00pe%3D1.5&share=2"),
        ("/settings/elastic/end", "reservation=ba%00tch&version=1"),
        ("/settings/quotas", "owner=a%00&rru=&servers=20"),
        ("/settings/quotas", "owner=a&rru=&servers=20%2C+ty%00pe%3D10"),
        ("/settings/servers", "what=add&list=n%000%2Crack0%2Ctype&really=yes"),
        ("/settings/servers", "what=add&list=n0%2Cra%00ck%2Ctype&really=yes"),
        ("/settings/servers", "what=remove&list=s%000&really=yes"),
        ("/settings/servers", "what=move&list=s00%2Cra%00ck&really=yes"),
    ] {
        let sent = send(&place, path, &admin, form).await;
        let status = sent.status();
        let text = sent.text().await.expect("text");
        println!("{status} {path} {form}");
        assert!(status.is_client_error(), "{status} for {path} {form}: {text}");
        assert!(!text.contains('\0'), "{path} {form}");
    }
    let after = place.broker.last_seq().await.expect("asked");
    assert_eq!(after, before, "nothing was written");
}

#[tokio::test]
async fn servers_page_previews_and_executes_edits() {
    let place = Place::new().await;
    assert_eq!(page(&place, "/settings/servers", Some(READER)).await.0, 403);
    assert_eq!(page(&place, "/settings/servers", Some(ROOT)).await.0, 200);
    let form = "what=add&list=n0%2Crack0%2Ctype%0An1%2Crack9%2Ctype%2Cmsb9%2Cdc%2C300";
    let looked = send(&place, "/settings/servers", ROOT, form).await;
    assert_eq!(looked.status(), 200);
    let text = looked.text().await.expect("text");
    well_formed("/settings/servers", &text);
    for needed in ["2 servers", "New racks: rack9", "New MSBs: msb9", "Execute"] {
        assert!(text.contains(needed), "{needed}: {text}");
    }
    assert_eq!(place.broker.last_seq().await.expect("asked").0, 1, "a preview writes nothing");
    let form = format!("{form}&really=yes");
    assert_eq!(send(&place, "/settings/servers", ROOT, &form).await.status(), 200);
    let servers = async || place.broker.export(None).await.expect("exported").parts.servers.len();
    assert_eq!(servers().await, 26);
    for (form, error) in [
        ("what=remove&list=s00%0As01&really=yes", "in use by"),
        ("what=remove&list=s21%0A%0As00&really=yes", "line 3, server: "),
        ("what=add&list=n2%2Crack0%2Cnone&really=yes", "line 1, type: "),
        ("what=add&list=n2%2Crack0%2Ctype%2C%2C%2Cfew&really=yes", "line 1: the watts"),
        ("what=add&list=n2&really=yes", "server, rack, type"),
        ("what=move&list=none%2Crack1&really=yes", "there is no server"),
    ] {
        let sent = send(&place, "/settings/servers", ROOT, form).await;
        assert_eq!(sent.status(), 422, "{form}");
        let text = sent.text().await.expect("text");
        assert!(text.contains(error) && !text.contains("servers["), "{form}: {text}");
    }
    assert_eq!(servers().await, 26);
    // A rejected list stays in the form, with its errors beside it.
    let sent = send(&place, "/settings/servers", ROOT, "what=remove&list=s00%0As21").await;
    let text = sent.text().await.expect("text");
    well_formed("/settings/servers", &text);
    assert!(text.contains("id=\"wrong\"") && text.contains("s00\ns21</textarea>"), "{text}");

    // A server that is held is drained, listed, and kept.
    let form = "what=drain&list=s00";
    let text = send(&place, "/settings/servers", ROOT, form).await.text().await.expect("text");
    assert!(text.contains("1 server will be moved out") && text.contains("1 server of"), "{text}");
    let sent = send(&place, "/settings/servers", ROOT, &format!("{form}&really=yes")).await;
    assert_eq!((sent.status().as_u16(), sent.url().path()), (200, "/settings/servers"));
    let text = sent.text().await.expect("text");
    well_formed("/settings/servers", &text);
    assert!(text.contains("waits for its move") && text.contains("Keep s00"), "{text}");
    assert_eq!(send(&place, "/settings/servers/keep", READER, "server=s00").await.status(), 403);
    let sent = send(&place, "/settings/servers/keep", ROOT, "server=s00").await;
    assert!(sent.text().await.expect("text").contains("No server is being drained"));
}
