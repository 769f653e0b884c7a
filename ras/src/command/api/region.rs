//! `ras region`, `buffer`, `elastic`, `quota`, `hardware` and `server`, by a server

use super::ask::with_server;
use super::rows::limited;
use crate::cli::{
    ElasticAction, HardwareAction, OrRule, QuotaAction, RegionAction, ServerAction, ServerFile,
    ServerOptions, SetElastic, SetQuota, SetRegion,
};
use crate::client::login::Server;
use crate::client::{Answer, Ask, path, query};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::number::amount;
use anyhow::{Context as _, Result, bail};
use api_types::inventory::{ServerDrained, ServersDrained, ServersEdited};
use api_types::quotas::{Quota, QuotaAsked, QuotaLimitAsked, QuotaRemoved, Quotas};
use api_types::region::{
    ElasticAsked, ElasticEnded, ElasticReservation, ElasticReservations, HardwareType,
    HardwareTypeRemoved, HardwareTypeRenamed, HardwareTypes, HardwareTypesAdded,
    HardwareTypesAsked, RegionSettings, RegionSettingsAsked,
};
use fleet::{DOMAIN_COLUMN_PREFIX, Rru};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Maximum size of a file of servers.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// In a column of domains: the server is in none.
const NO_DOMAIN: &str = "-";

fn ask(server: &ServerOptions, asked: &Ask) -> Result<Answer> {
    with_server(Server::of(server)?, async |client| client.ask(asked).await)
}

/// All pages of a list.
fn all(server: &ServerOptions, path: &str, rows: &str) -> Result<Answer> {
    with_server(Server::of(server)?, async |client| client.get_all(path, rows).await)
}

fn rru(of: f64) -> String {
    Rru::from_f64(of).map_or_else(|| "-".to_owned(), amount)
}

pub(in crate::command) fn region(action: &RegionAction, context: &Context) -> Result<Verdict> {
    const PATH: &str = "/ops/v1/region";
    let answer = match action {
        RegionAction::Show { server } => ask(server, &Ask::get(PATH))?,
        RegionAction::Set(options) => {
            ask(&options.server, &Ask::patch(PATH, "*", set_region(options)))?
        }
    };
    let settings: RegionSettings = answer.read()?;
    context.answer(|| settings_table(&settings), &answer.body)?;
    Ok(Verdict::Fine)
}

fn settings_table(of: &RegionSettings) -> String {
    let or_rule =
        |of: Option<f64>| of.map_or_else(|| "default rule".to_owned(), |of| of.to_string());
    let mut table = Table::new(&["setting", "value"], 1..2);
    for (name, value) in [
        ("region", of.region.clone()),
        ("move_in_use", of.move_in_use.to_string()),
        ("move_idle", of.move_idle.to_string()),
        ("spread_beta", of.spread_beta.to_string()),
        ("buffer_tau", of.buffer_tau.to_string()),
        ("msb_alpha", or_rule(of.msb_alpha)),
        ("rack_alpha", or_rule(of.rack_alpha)),
        ("affinity_theta", of.affinity_theta.to_string()),
        ("shared_buffer_fraction", of.shared_buffer_fraction.to_string()),
    ] {
        table.add_row([name.to_owned(), value]);
    }
    table.to_string()
}

fn set_region(of: &SetRegion) -> RegionSettingsAsked {
    let share = |of: Option<OrRule>| {
        of.map(|of| match of {
            OrRule::Rule => None,
            OrRule::Share(share) => Some(share),
        })
    };
    RegionSettingsAsked {
        move_in_use: of.move_in_use,
        move_idle: of.move_idle,
        spread_beta: of.spread_beta,
        buffer_tau: of.buffer_tau,
        msb_alpha: share(of.msb_alpha),
        rack_alpha: share(of.rack_alpha),
        affinity_theta: of.affinity_theta,
        shared_buffer_fraction: of.shared_buffer_fraction,
    }
}

fn types(server: &ServerOptions, context: &Context) -> Result<Verdict> {
    let answer = all(server, "/ops/v1/hardware-types", "hardware_types")?;
    let HardwareTypes { hardware_types, .. } = answer.read()?;
    let text = || {
        let header = ["hardware type", "servers", "buffer wanted", "has", "by"];
        let mut table = Table::new(&header, 1..4);
        for of in &hardware_types {
            let buffer = of.shared_buffer.as_ref();
            let by = match buffer.map(|of| of.listed) {
                Some(true) => "listed",
                Some(false) => "fraction",
                None => "-",
            };
            let count = |of: Option<u64>| of.map_or_else(|| "-".to_owned(), |of| of.to_string());
            table.add_row([
                of.hardware_type.clone(),
                of.servers.to_string(),
                count(buffer.map(|of| of.servers)),
                count(buffer.map(|of| of.held)),
                by.to_owned(),
            ]);
        }
        table.to_string()
    };
    context.answer(text, &answer.body)?;
    Ok(Verdict::Fine)
}

pub(in crate::command) fn hardware(action: &HardwareAction, context: &Context) -> Result<Verdict> {
    match action {
        HardwareAction::List { server } => types(server, context),
        HardwareAction::Add { names, server } => {
            let asked = HardwareTypesAsked { hardware_types: names.clone() };
            let answer = ask(server, &Ask::post("/ops/v1/hardware-types", asked))?;
            let HardwareTypesAdded { added } = answer.read()?;
            let text = || match &added[..] {
                [] => "all exist already".to_owned(),
                added => format!("added: {}", added.join(", ")),
            };
            context.answer(text, &answer.body)?;
            Ok(Verdict::Fine)
        }
        HardwareAction::Rename { from, to, server } => {
            let place = path(&["ops", "v1", "hardware-types", from]);
            let answer =
                ask(server, &Ask::patch(place, "*", HardwareTypeRenamed { name: to.clone() }))?;
            answer.read::<HardwareType>()?;
            context.answer(|| format!("{from} is renamed to {to}"), &answer.body)?;
            Ok(Verdict::Fine)
        }
        HardwareAction::Remove { name, server } => {
            let place = path(&["ops", "v1", "hardware-types", name]);
            let answer = ask(server, &Ask::delete(place, "*"))?;
            answer.read::<HardwareTypeRemoved>()?;
            context.answer(|| format!("{name} is removed"), &answer.body)?;
            Ok(Verdict::Fine)
        }
    }
}

pub(in crate::command) fn elastic(action: &ElasticAction, context: &Context) -> Result<Verdict> {
    let place = |name: &str| path(&["ops", "v1", "elastic-reservations", name]);
    match action {
        ElasticAction::List { server } => {
            let answer = all(server, "/ops/v1/elastic-reservations", "elastic_reservations")?;
            let ElasticReservations { elastic_reservations, .. } = answer.read()?;
            context.answer(|| elastic_table(&elastic_reservations), &answer.body)?;
        }
        ElasticAction::Set(options) => {
            let asked = Ask::put(place(&options.name), elastic_asked(options));
            let answer = ask(&options.server, &asked)?;
            answer.read::<ElasticReservation>()?;
            context.answer(|| format!("{} is set", options.name), &answer.body)?;
        }
        ElasticAction::End { name, server } => {
            let answer = ask(server, &Ask::delete(place(name), "*"))?;
            let ElasticEnded { returning, .. } = answer.read()?;
            let text = || match returning {
                0 => format!("{name} is removed"),
                count => {
                    format!("{name} is removed once the {count} servers it borrows are returned")
                }
            };
            context.answer(text, &answer.body)?;
        }
    }
    Ok(Verdict::Fine)
}

fn elastic_asked(of: &SetElastic) -> ElasticAsked {
    ElasticAsked {
        owner: of.owner.clone(),
        rru: of.value.iter().cloned().collect(),
        hardware_types: of.types.clone(),
        priority: of.priority,
        host_profile: of.host_profile.clone(),
        share: of.share,
    }
}

fn elastic_table(all: &[ElasticReservation]) -> String {
    if all.is_empty() {
        return "no elastic reservations; `ras region elastic set` creates one".to_owned();
    }
    let header = ["reservation", "owner", "types", "share", "borrows", "state"];
    let mut table = Table::new(&header, 3..5);
    for of in all {
        let types: Vec<&str> = of.rru.keys().map(String::as_str).collect();
        table.add_row([
            of.reservation.clone(),
            of.owner.clone(),
            types.join(", "),
            of.share.map_or_else(|| "-".to_owned(), |share| share.to_string()),
            of.borrows.to_string(),
            if of.ending { "ending" } else { "-" }.to_owned(),
        ]);
    }
    table.to_string()
}

pub(in crate::command) fn quota(action: &QuotaAction, context: &Context) -> Result<Verdict> {
    match action {
        QuotaAction::List { server } => {
            let quotas: Quotas = all(server, "/ops/v1/quotas", "quotas")?.read()?;
            context.answer(|| quota_table(&quotas.quotas), &quotas)?;
        }
        QuotaAction::Remove { owner, server } => return remove_quota(owner, server, context),
        QuotaAction::Set(options) => {
            let place = path(&["ops", "v1", "quotas", &options.owner]);
            let asked = Ask::put(
                place,
                QuotaAsked {
                    limits: Some(limits(options)),
                    max_priority: options.max_priority,
                    capacity_rru: None,
                },
            );
            let quota: Quota = ask(&options.server, &asked)?.read()?;
            context.answer(|| quota_table(std::slice::from_ref(&quota)), &quota)?;
        }
    }
    Ok(Verdict::Fine)
}

fn remove_quota(owner: &str, server: &ServerOptions, context: &Context) -> Result<Verdict> {
    let answer = ask(server, &Ask::delete(path(&["ops", "v1", "quotas", owner]), "*"))?;
    let gone: QuotaRemoved = answer.read()?;
    context.answer(|| format!("quota of {} removed", gone.removed), &answer.body)?;
    Ok(Verdict::Fine)
}

fn limits(of: &SetQuota) -> Vec<QuotaLimitAsked> {
    let rru = of.rru.iter().map(|(profile, rru)| QuotaLimitAsked {
        profile: Some(profile.clone()),
        rru: Some(*rru),
        ..QuotaLimitAsked::default()
    });
    let servers = of
        .servers
        .iter()
        .map(|servers| QuotaLimitAsked { servers: Some(*servers), ..QuotaLimitAsked::default() });
    let by_type = of.servers_of.iter().map(|(ty, servers)| QuotaLimitAsked {
        servers: Some(*servers),
        hardware_type: Some(ty.clone()),
        ..QuotaLimitAsked::default()
    });
    rru.chain(servers).chain(by_type).collect()
}

fn quota_table(quotas: &[Quota]) -> String {
    let header = ["owner", "unit", "limit", "promised", "max priority", "set by"];
    let mut table = Table::new(&header, 2..5);
    for Quota { owner, limits, max_priority, .. } in quotas {
        let most_important = max_priority.map_or_else(|| "-".to_owned(), |of| of.to_string());
        if limits.is_empty() {
            table.add_row([owner, "no limit", "-", "-", &most_important, "-"]);
        }
        for limit in limits {
            let (most, promised) = (rru(limit.limit), rru(limit.promised));
            let (unit, by) = (limited(limit), limit.set_by.clone());
            table.add_row([owner.clone(), unit, most, promised, most_important.clone(), by]);
        }
    }
    table.to_string()
}

pub(in crate::command) fn servers(action: &ServerAction, context: &Context) -> Result<Verdict> {
    let (options, place, numbers): (&ServerFile, &str, &[&str]) = match action {
        ServerAction::Add(options) => (options, "/ops/v1/servers", &["power_watts"]),
        ServerAction::Remove(options) => (&options.of, "/ops/v1/servers/remove", &[]),
        ServerAction::Move(options) => (options, "/ops/v1/servers/move", &[]),
        ServerAction::Drained { server } => {
            let answer = all(server, "/ops/v1/drained-servers", "servers")?;
            let ServersDrained { servers, .. } = answer.read()?;
            context.answer(|| drained(&servers), &answer.body)?;
            return Ok(Verdict::Fine);
        }
        ServerAction::Keep { names, server } => {
            let asked = Ask::post("/ops/v1/servers/keep", json!({ "servers": names }));
            let answer = ask(server, &asked)?;
            answer.read::<ServersDrained>()?;
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
    let effect: ServersEdited = answer.read()?;
    context.answer(|| edited(&effect), &answer.body)?;
    Ok(Verdict::Fine)
}

fn drained(all: &[ServerDrained]) -> String {
    if all.is_empty() {
        return "no server is being drained".to_owned();
    }
    let mut table = Table::new(&["server", "owner", "progress", "requested by"], 4..4);
    for of in all {
        table.add_row([
            of.server.clone(),
            of.reservation.clone().unwrap_or_else(|| "-".to_owned()),
            of.refused.as_ref().unwrap_or(&of.progress).clone(),
            of.asked_by.clone(),
        ]);
    }
    table.to_string()
}

fn edited(effect: &ServersEdited) -> String {
    let mut table = Table::new(&["hardware type", "MSB", "servers"], 2..3);
    for of in &effect.change {
        table.add_row([of.hardware_type.clone(), of.msb.clone(), format!("{:+}", of.servers)]);
    }
    let mut text = if effect.change.is_empty() { String::new() } else { format!("{}\n\n", table) };
    for (names, what) in [(&effect.new_racks, "new racks"), (&effect.new_msbs, "new MSBs")] {
        if !names.is_empty() {
            text.push_str(&format!("{what}: {}\n", names.join(", ")));
        }
    }
    for (holder, count) in &effect.held {
        text.push_str(&format!("{count} of them belong to {holder}\n"));
    }
    let draining = effect.draining.len();
    if draining > 0 {
        text.push_str(&format!(
            "{draining} of them are drained first: see `ras region server drained`\n"
        ));
    }
    let done = if effect.applied { "done" } else { "nothing was changed" };
    format!("{text}{} servers: {done}", effect.servers)
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
        let (mut members, mut domains) = (Map::new(), Map::new());
        for (column, cell) in row {
            if cell.is_empty() {
                continue;
            }
            if let Some(partition) = column.strip_prefix(DOMAIN_COLUMN_PREFIX) {
                domains.insert(partition.to_owned(), json!((cell != NO_DOMAIN).then_some(cell)));
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
        if !domains.is_empty() {
            members.insert("domains".to_owned(), domains.into());
        }
        read.push(Value::Object(members));
    }
    Ok(read)
}
