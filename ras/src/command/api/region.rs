//! `ras region`, `buffer`, `elastic`, `quota`, `hardware` and `server`, by a server

use super::ask::with_server;
use super::body;
use crate::cli::{
    BufferAction, ElasticAction, HardwareAction, OrRule, QuotaAction, RegionAction, ServerAction,
    ServerFile, ServerOptions, SetElastic, SetQuota, SetRegion,
};
use crate::client::login::Server;
use crate::client::{Answer, Ask, path, query};
use crate::context::Context;
use crate::exit::Verdict;
use crate::number::amount;
use crate::tables;
use anyhow::{Context as _, Result, bail};
use fleet::Rru;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Maximum size of a file of servers.
const FILE_BYTES_MAX: u64 = 64 << 20;

fn ask(server: &ServerOptions, asked: &Ask) -> Result<Answer> {
    with_server(Server::of(server)?, async |client| client.ask(asked).await)
}

fn word(of: &Value) -> String {
    of.as_str().unwrap_or("-").to_owned()
}

fn rows(of: &Value) -> &[Value] {
    of.as_array().map_or(&[], Vec::as_slice)
}

fn rru(of: &Value) -> String {
    of.as_f64().and_then(Rru::from_f64).map_or_else(|| "-".to_owned(), amount)
}

pub(in crate::command) fn region(action: &RegionAction, context: &Context) -> Result<Verdict> {
    const PATH: &str = "/ops/v1/region";
    let answer = match action {
        RegionAction::Show { server } => ask(server, &Ask::get(PATH))?,
        RegionAction::Set(options) => {
            let asked = Ask::patch(PATH, "*", set_region(options));
            ask(&options.server, &asked)?
        }
    };
    let text = || {
        let mut table = tables::table(&["setting", "value"], 1..2);
        for (name, value) in answer.body.as_object().into_iter().flatten() {
            let value = match value {
                Value::Null => "default rule".to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            table.add_row([name.clone(), value]);
        }
        table.trim_fmt()
    };
    context.answer(text, &answer.body)?;
    Ok(Verdict::Fine)
}

fn set_region(of: &SetRegion) -> Value {
    let share = |of: Option<OrRule>| {
        of.map(|of| match of {
            OrRule::Rule => Value::Null,
            OrRule::Share(share) => json!(share),
        })
    };
    let members = [
        ("move_in_use", of.move_in_use.map(|of| json!(of))),
        ("move_idle", of.move_idle.map(|of| json!(of))),
        ("spread_beta", of.spread_beta.map(|of| json!(of))),
        ("buffer_tau", of.buffer_tau.map(|of| json!(of))),
        ("affinity_theta", of.affinity_theta.map(|of| json!(of))),
        ("shared_buffer_fraction", of.shared_buffer_fraction.map(|of| json!(of))),
        ("msb_alpha", share(of.msb_alpha)),
        ("rack_alpha", share(of.rack_alpha)),
    ];
    let members = members.into_iter().filter_map(|(name, of)| Some((name.to_owned(), of?)));
    Value::Object(members.collect())
}

fn types(server: &ServerOptions, context: &Context) -> Result<Verdict> {
    let answer = ask(server, &Ask::get("/ops/v1/hardware-types"))?;
    let text = || {
        let header = ["hardware type", "servers", "buffer wanted", "has", "by"];
        let mut table = tables::table(&header, 1..4);
        for of in rows(&answer.body["hardware_types"]) {
            let buffer = &of["shared_buffer"];
            let by = match buffer["listed"].as_bool() {
                Some(true) => "listed",
                Some(false) => "fraction",
                None => "-",
            };
            let count = |of: &Value| of.as_u64().map_or_else(|| "-".to_owned(), |n| n.to_string());
            table.add_row([
                word(&of["hardware_type"]),
                count(&of["servers"]),
                count(&buffer["servers"]),
                count(&buffer["held"]),
                by.to_owned(),
            ]);
        }
        table.trim_fmt()
    };
    context.answer(text, &answer.body)?;
    Ok(Verdict::Fine)
}

pub(in crate::command) fn buffer(action: &BufferAction, context: &Context) -> Result<Verdict> {
    let place = |ty: &str| path(&["ops", "v1", "shared-buffers", ty]);
    let (answer, done) = match action {
        BufferAction::List { server } => return types(server, context),
        BufferAction::Set { hardware_type, servers, server } => {
            let asked = Ask::put(place(hardware_type), json!({ "servers": servers }));
            let done = format!("the shared buffer of {hardware_type} is set to {servers} servers");
            (ask(server, &asked)?, done)
        }
        BufferAction::Remove { hardware_type, server } => {
            let asked = Ask::delete(place(hardware_type), "*");
            let done =
                format!("the shared buffer of {hardware_type} follows the region's fraction");
            (ask(server, &asked)?, done)
        }
    };
    context.answer(|| done, &answer.body)?;
    Ok(Verdict::Fine)
}

pub(in crate::command) fn hardware(action: &HardwareAction, context: &Context) -> Result<Verdict> {
    match action {
        HardwareAction::List { server } => types(server, context),
        HardwareAction::Add { names, server } => {
            let asked = Ask::post("/ops/v1/hardware-types", json!({ "hardware_types": names }));
            let answer = ask(server, &asked)?;
            let added: Vec<String> = rows(&answer.body["added"]).iter().map(word).collect();
            let text = || match &added[..] {
                [] => "all exist already".to_owned(),
                added => format!("added: {}", added.join(", ")),
            };
            context.answer(text, &answer.body)?;
            Ok(Verdict::Fine)
        }
        HardwareAction::Rename { from, to, server } => {
            let place = path(&["ops", "v1", "hardware-types", from]);
            let answer = ask(server, &Ask::patch(place, "*", json!({ "name": to })))?;
            context.answer(|| format!("{from} is renamed to {to}"), &answer.body)?;
            Ok(Verdict::Fine)
        }
        HardwareAction::Remove { name, server } => {
            let place = path(&["ops", "v1", "hardware-types", name]);
            let answer = ask(server, &Ask::delete(place, "*"))?;
            context.answer(|| format!("{name} is removed"), &answer.body)?;
            Ok(Verdict::Fine)
        }
    }
}

pub(in crate::command) fn elastic(action: &ElasticAction, context: &Context) -> Result<Verdict> {
    let place = |name: &str| path(&["ops", "v1", "elastic-reservations", name]);
    match action {
        ElasticAction::List { server } => {
            let answer = ask(server, &Ask::get("/ops/v1/elastic-reservations"))?;
            context.answer(|| elastic_table(&answer.body), &answer.body)?;
        }
        ElasticAction::Set(options) => {
            let asked = Ask::put(place(&options.name), elastic_body(options));
            let answer = ask(&options.server, &asked)?;
            context.answer(|| format!("{} is set", options.name), &answer.body)?;
        }
        ElasticAction::End { name, server } => {
            let answer = ask(server, &Ask::delete(place(name), "*"))?;
            let text = || match answer.body["returning"].as_u64() {
                Some(0) | None => format!("{name} is removed"),
                Some(count) => {
                    format!("{name} is removed once the {count} servers it borrows are returned")
                }
            };
            context.answer(text, &answer.body)?;
        }
    }
    Ok(Verdict::Fine)
}

fn elastic_body(of: &SetElastic) -> Value {
    let mut members = Map::new();
    members.insert("owner".to_owned(), json!(of.owner));
    members.insert("hardware_types".to_owned(), json!(of.types));
    members.insert("priority".to_owned(), json!(of.priority));
    members.insert("host_profile".to_owned(), json!(of.host_profile));
    members.insert("share".to_owned(), json!(of.share));
    if let Some(values) = body::by_name(&of.value) {
        members.insert("rru".to_owned(), values);
    }
    Value::Object(members)
}

fn elastic_table(body: &Value) -> String {
    let all = rows(&body["elastic_reservations"]);
    if all.is_empty() {
        return "no elastic reservations; `ras region elastic set` creates one".to_owned();
    }
    let header = ["reservation", "owner", "types", "share", "borrows", "state"];
    let mut table = tables::table(&header, 3..5);
    for of in all {
        let types: Vec<&str> =
            of["rru"].as_object().into_iter().flatten().map(|(ty, _)| ty.as_str()).collect();
        table.add_row([
            word(&of["reservation"]),
            word(&of["owner"]),
            types.join(", "),
            of["share"].as_f64().map_or_else(|| "-".to_owned(), |share| share.to_string()),
            of["borrows"].to_string(),
            if of["ending"] == true { "ending".to_owned() } else { "-".to_owned() },
        ]);
    }
    table.trim_fmt()
}

pub(in crate::command) fn quota(action: &QuotaAction, context: &Context) -> Result<Verdict> {
    let answer = match action {
        QuotaAction::List { server } => ask(server, &Ask::get("/ops/v1/quotas"))?.body,
        QuotaAction::Set(options) => {
            let place = path(&["ops", "v1", "quotas", &options.owner]);
            let asked = Ask::put(place, json!({ "limits": limits(options) }));
            json!({ "quotas": [ask(&options.server, &asked)?.body] })
        }
    };
    context.answer(|| quota_table(&answer), &answer)?;
    Ok(Verdict::Fine)
}

fn limits(of: &SetQuota) -> Vec<Value> {
    let rru = of.rru.iter().map(|(profile, rru)| json!({ "profile": profile, "rru": rru }));
    let servers = of.servers.iter().map(|servers| json!({ "servers": servers }));
    let by_type = (of.servers_of.iter())
        .map(|(ty, servers)| json!({ "servers": servers, "hardware_type": ty }));
    rru.chain(servers).chain(by_type).collect()
}

fn quota_table(body: &Value) -> String {
    let header = ["owner", "unit", "limit", "promised", "set by"];
    let mut table = tables::table(&header, 2..4);
    for of in rows(&body["quotas"]) {
        let owner = word(&of["owner"]);
        let limits = rows(&of["limits"]);
        if limits.is_empty() {
            let none = ["no limit", "-", "-", "-"].map(str::to_owned);
            let [measure, limit, promised, by] = none;
            table.add_row([owner.clone(), measure, limit, promised, by]);
        }
        for limit in limits {
            let measure = match (limit["profile"].as_str(), limit["hardware_type"].as_str()) {
                (Some(profile), _) => format!("RRU of {profile}"),
                (None, Some(ty)) => format!("servers of {ty}"),
                (None, None) => "servers".to_owned(),
            };
            let (most, promised) = (rru(&limit["limit"]), rru(&limit["promised"]));
            table.add_row([owner.clone(), measure, most, promised, word(&limit["set_by"])]);
        }
    }
    table.trim_fmt()
}

pub(in crate::command) fn servers(action: &ServerAction, context: &Context) -> Result<Verdict> {
    let (options, place, numbers): (&ServerFile, &str, &[&str]) = match action {
        ServerAction::Add(options) => (options, "/ops/v1/servers", &["power_watts"]),
        ServerAction::Remove(options) => (&options.of, "/ops/v1/servers/remove", &[]),
        ServerAction::Move(options) => (options, "/ops/v1/servers/move", &[]),
        ServerAction::Drained { server } => {
            let answer = ask(server, &Ask::get("/ops/v1/drained-servers"))?;
            context.answer(|| drained(&answer.body), &answer.body)?;
            return Ok(Verdict::Fine);
        }
        ServerAction::Keep { names, server } => {
            let asked = Ask::post("/ops/v1/servers/keep", json!({ "servers": names }));
            let answer = ask(server, &asked)?;
            context.answer(|| format!("kept: {}", names.join(", ")), &answer.body)?;
            return Ok(Verdict::Fine);
        }
    };
    let drain = matches!(action, ServerAction::Remove(options) if options.drain);
    let mut list = read(&options.file, numbers)?;
    if matches!(action, ServerAction::Remove(_)) {
        // A name, or a row that has one.
        for row in &mut list {
            if let Some(name) = row.get("server").cloned() {
                *row = name;
            }
        }
    }
    let flags = [("preview", options.preview), ("drain", drain)];
    let flags = flags.into_iter().filter(|(_, set)| *set);
    let flags: Vec<(&str, String)> = flags.map(|(name, _)| (name, "true".to_owned())).collect();
    let place = if flags.is_empty() { place.to_owned() } else { query(place, &flags) };
    let answer = ask(&options.server, &Ask::post(place, json!({ "servers": list })))?;
    context.answer(|| edited(&answer.body), &answer.body)?;
    Ok(Verdict::Fine)
}

fn drained(body: &Value) -> String {
    let all = rows(&body["servers"]);
    if all.is_empty() {
        return "no server is being drained".to_owned();
    }
    let mut table = tables::table(&["server", "owner", "progress", "requested by"], 4..4);
    for of in all {
        let far = [&of["refused"], &of["progress"]].into_iter().find_map(Value::as_str);
        table.add_row([
            word(&of["server"]),
            word(&of["reservation"]),
            far.unwrap_or("-").to_owned(),
            word(&of["asked_by"]),
        ]);
    }
    table.trim_fmt()
}

fn edited(body: &Value) -> String {
    let mut table = tables::table(&["hardware type", "MSB", "servers"], 2..3);
    for of in rows(&body["change"]) {
        let count = of["servers"].as_i64().unwrap_or_default();
        table.add_row([word(&of["hardware_type"]), word(&of["msb"]), format!("{count:+}")]);
    }
    let mut text = if rows(&body["change"]).is_empty() {
        String::new()
    } else {
        format!("{}\n\n", table.trim_fmt())
    };
    for (member, what) in [("new_racks", "new racks"), ("new_msbs", "new MSBs")] {
        let names: Vec<String> = rows(&body[member]).iter().map(word).collect();
        if !names.is_empty() {
            text.push_str(&format!("{what}: {}\n", names.join(", ")));
        }
    }
    for (holder, count) in body["held"].as_object().into_iter().flatten() {
        text.push_str(&format!("{count} of them belong to {holder}\n"));
    }
    let draining = rows(&body["draining"]).len();
    if draining > 0 {
        text.push_str(&format!(
            "{draining} of them are drained first: see `ras region server drained`\n"
        ));
    }
    let done = if body["applied"] == true { "done" } else { "nothing was changed" };
    format!("{text}{} servers: {done}", body["servers"])
}

/// Reads the rows of a file: CSV with a header, or JSON.
fn read(file: &Path, numbers: &[&str]) -> Result<Vec<Value>> {
    let name = || format!("servers {}", file.display());
    let size = std::fs::metadata(file).with_context(name)?.len();
    if size > FILE_BYTES_MAX {
        bail!("{}: {size} bytes are too many", name());
    }
    let text = std::fs::read_to_string(file).with_context(name)?;
    let is_json = text.trim_start().starts_with(['{', '[']);
    let rows = if is_json { read_json(&text) } else { read_csv(&text, numbers) };
    rows.with_context(name)
}

fn read_json(text: &str) -> Result<Vec<Value>> {
    match serde_json::from_str(text)? {
        Value::Array(rows) => Ok(rows),
        Value::Object(mut members) => match members.remove("servers") {
            Some(Value::Array(rows)) if members.is_empty() => Ok(rows),
            _ => bail!("expected an object with one member `servers`, a list"),
        },
        _ => bail!("expected a list or an object"),
    }
}

fn read_csv(text: &str, numbers: &[&str]) -> Result<Vec<Value>> {
    let table = datasets::import::plain_rows(text).context("CSV")?;
    let mut read = Vec::new();
    for (line, row) in table {
        let mut members = Map::new();
        for (column, cell) in row {
            if cell.is_empty() {
                continue;
            }
            let value = if numbers.contains(&column.as_str()) {
                let number: f64 = cell
                    .parse()
                    .with_context(|| format!("line {line}: {column} {cell:?} is not a number"))?;
                json!(number)
            } else {
                json!(cell)
            };
            members.insert(column, value);
        }
        read.push(Value::Object(members));
    }
    Ok(read)
}
