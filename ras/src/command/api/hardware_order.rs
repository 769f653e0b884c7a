//! `ras region order`

use super::ask::with_server;
use crate::cli::{
    AddOrders, ApplyOrders, ChangeOrder, HardwareOrderAction, HardwareOrderOf, OneOrder,
};
use crate::client::login::Server;
use crate::client::{Ask, Client, path};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::mistake::{Hinted, with_help};
use anyhow::{Context as _, Result, bail, ensure};
use api_types::hardware_orders::{
    HardwareOrder, HardwareOrderAsked, HardwareOrderPatch, HardwareOrders, HardwareOrdersAdded,
    HardwareOrdersAsked,
};
use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

const PATH: &str = "/ops/v1/hardware-orders";

pub(in crate::command) fn run(options: &HardwareOrderOf, context: &Context) -> Result<Verdict> {
    match &options.action {
        HardwareOrderAction::List { all, server } => {
            let mut listed: HardwareOrders = with_server(Server::of(server)?, async |client| {
                client.get_all(PATH, "orders").await?.read()
            })?;
            listed.orders.retain(|of| *all || of.state == "open");
            context.answer(|| table(&listed.orders), &listed)?;
        }
        HardwareOrderAction::Add(options) => add(options, context)?,
        HardwareOrderAction::Apply(options) => apply(options, context)?,
        HardwareOrderAction::Change(options) => change(options, context)?,
        HardwareOrderAction::Arrived(of) => end(of, "arrive", context)?,
        HardwareOrderAction::Cancel(of) => end(of, "cancel", context)?,
    }
    Ok(Verdict::Fine)
}

/// All orders that a server has, and its time.
pub(in crate::command) async fn all(
    client: &Client,
) -> Result<(Vec<HardwareOrder>, DateTime<Utc>)> {
    let answer = client.get_all(PATH, "orders").await?;
    let all: HardwareOrders = answer.read()?;
    Ok((all.orders, answer.at))
}

fn add(options: &AddOrders, context: &Context) -> Result<()> {
    let AddOrders { hardware_type, datacenter, servers, expected, file, server } = options;
    let orders = match (file, hardware_type, datacenter, servers, expected) {
        (Some(file), ..) => read_csv(file)?,
        (None, Some(hardware_type), Some(datacenter), Some(servers), Some(expected_on)) => {
            vec![HardwareOrderAsked {
                hardware_type: hardware_type.clone(),
                datacenter: datacenter.clone(),
                servers: *servers,
                expected_on: *expected_on,
            }]
        }
        _ => bail!("an order needs a hardware type, a datacenter, --servers and --expected"),
    };
    let added: HardwareOrdersAdded = with_server(Server::of(server)?, async |client| {
        client.ask(&Ask::post(PATH, HardwareOrdersAsked { orders })).await?.read()
    })
    .map_err(|error| with_help(error, "ras region order add"))?;
    context.answer(|| table(&added.orders), &added)
}

fn read_csv(file: &Path) -> Result<Vec<HardwareOrderAsked>> {
    let name = || format!("orders {}", file.display());
    let text = std::fs::read_to_string(file).with_context(name)?;
    let rows = datasets::import::plain_rows(&text).with_context(name)?;
    let mut orders = Vec::new();
    for (line, row) in rows {
        let cell = |column: &str| {
            let cell = row.get(column).map(String::as_str).filter(|cell| !cell.is_empty());
            cell.with_context(|| format!("{}, line {line}: {column} is missing", name()))
        };
        let wrong = |column: &str, what: &str, text: &str| {
            format!("{}, line {line}: {column} {text:?} is not {what}", name())
        };
        let (servers, expected_on) = (cell("servers")?, cell("expected_on")?);
        orders.push(HardwareOrderAsked {
            hardware_type: cell("hardware_type")?.to_owned(),
            datacenter: cell("datacenter")?.to_owned(),
            servers: servers
                .parse()
                .ok()
                .with_context(|| wrong("servers", "a number of servers", servers))?,
            expected_on: expected_on
                .parse()
                .ok()
                .with_context(|| wrong("expected_on", "a date such as 2026-03-04", expected_on))?,
        });
    }
    Ok(orders)
}

fn change(options: &ChangeOrder, context: &Context) -> Result<()> {
    let patch = HardwareOrderPatch { servers: options.servers, expected_on: options.expected };
    let changed: HardwareOrder = with_server(Server::of(&options.server)?, async |client| {
        client.ask(&Ask::patch(place(&options.order), "*", patch)).await?.read()
    })?;
    context.answer(|| table(std::slice::from_ref(&changed)), &changed)
}

fn end(of: &OneOrder, action: &str, context: &Context) -> Result<()> {
    let path = path(&["ops", "v1", "hardware-orders", &of.order, action]);
    let ended: HardwareOrder = with_server(Server::of(&of.server)?, async |client| {
        client.ask(&Ask::post(path, json!({}))).await?.read()
    })?;
    context.answer(|| table(std::slice::from_ref(&ended)), &ended)
}

fn place(order: &str) -> String {
    path(&["ops", "v1", "hardware-orders", order])
}

/// What is read of `ras-forecast-orders/1`.
#[derive(Debug, Deserialize)]
struct Recommended {
    format: String,
    series: Vec<RecommendedOf>,
}

#[derive(Debug, Deserialize)]
struct RecommendedOf {
    name: String,
    /// Its values by column of `--by`.
    #[serde(default)]
    of: BTreeMap<String, String>,
    order: u64,
    arrives_on: Option<NaiveDate>,
    #[serde(default)]
    cancel_on: Vec<CancelOn>,
}

/// Servers on order for a day that are not needed.
#[derive(Debug, Deserialize)]
struct CancelOn {
    expected_on: NaiveDate,
    servers: u64,
}

/// What becomes of an order that is not needed, or not in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Reduced {
    order: String,
    hardware_type: String,
    datacenter: String,
    expected_on: NaiveDate,
    /// Servers before.
    servers: u32,
    /// Servers that stay on order; 0: it is cancelled.
    left: u32,
}

/// What is entered of a forecast.
#[derive(Debug, Serialize)]
struct Applied {
    applied: bool,
    orders: Vec<HardwareOrderAsked>,
    reduced: Vec<Reduced>,
}

fn apply(options: &ApplyOrders, context: &Context) -> Result<()> {
    let answer = read_answer(&options.file)?;
    let orders = ordered(&answer)?;
    let applied = with_server(Server::of(&options.server)?, async |client| {
        let known = all(client).await?.0;
        not_entered(&orders, &known)?;
        if !options.despite_late {
            none_late(&orders, &known)?;
        }
        let reduced = reduced(&answer, &known)?;
        let applied = Applied { applied: !options.preview, orders, reduced };
        if options.preview {
            return Ok(applied);
        }
        // Orders first: of a cancellation that is refused, more is on order than needed, not less.
        if !applied.orders.is_empty() {
            let asked = HardwareOrdersAsked { orders: applied.orders.clone() };
            client.ask(&Ask::post(PATH, asked)).await?.read::<HardwareOrdersAdded>()?;
        }
        for of in &applied.reduced {
            let seen = client.get(&place(&of.order)).await?;
            let now: HardwareOrder = seen.read()?;
            ensure!(
                now.state == "open" && now.servers == of.servers,
                "order {} has changed meanwhile: run ras forecast orders again",
                of.order
            );
            let version = seen.etag.unwrap_or_else(|| "*".to_owned());
            let ask = match of.left {
                0 => {
                    let path = path(&["ops", "v1", "hardware-orders", &of.order, "cancel"]);
                    Ask::post(path, json!({})).of_version(version)
                }
                left => {
                    let patch =
                        HardwareOrderPatch { servers: Some(left), ..HardwareOrderPatch::default() };
                    Ask::patch(place(&of.order), version, patch)
                }
            };
            client.ask(&ask).await?.read::<HardwareOrder>()?;
        }
        Ok(applied)
    })?;
    context.answer(|| applied_text(&applied), &applied)
}

fn read_answer(file: &Path) -> Result<Recommended> {
    let name = || format!("forecast {}", file.display());
    let text = match file.to_str() {
        Some("-") => std::io::read_to_string(std::io::stdin()),
        _ => std::fs::read_to_string(file),
    };
    let text = text.with_context(name)?;
    let answer: Recommended = serde_json::from_str(&text).with_context(|| {
        format!("{}: it must be the answer of ras forecast orders --output json", name())
    })?;
    ensure!(
        answer.format == "ras-forecast-orders/1",
        "{}: its format is {:?}, not ras-forecast-orders/1",
        name(),
        answer.format
    );
    Ok(answer)
}

/// Type and datacenter of a series.
fn of_series(of: &RecommendedOf) -> Result<(&str, &str)> {
    let key = |key: &str| of.of.get(key).map(String::as_str);
    key("hardware_type").zip(key("datacenter")).with_context(|| {
        let what = format!("series {:?} has no hardware_type and datacenter", of.name);
        Hinted::new(what, "run ras forecast orders with --by hardware_type,datacenter")
    })
}

/// The orders that a forecast recommends.
fn ordered(answer: &Recommended) -> Result<Vec<HardwareOrderAsked>> {
    let mut orders = Vec::new();
    for of in answer.series.iter().filter(|of| of.order > 0) {
        let (hardware_type, datacenter) = of_series(of)?;
        orders.push(HardwareOrderAsked {
            hardware_type: hardware_type.to_owned(),
            datacenter: datacenter.to_owned(),
            servers: u32::try_from(of.order).unwrap_or(u32::MAX),
            expected_on: of
                .arrives_on
                .with_context(|| format!("series {:?} has no arrives_on", of.name))?,
        });
    }
    Ok(orders)
}

/// A forecast is entered once: a second time all would be ordered twice.
fn not_entered(orders: &[HardwareOrderAsked], known: &[HardwareOrder]) -> Result<()> {
    for of in orders {
        let is_same = |order: &&HardwareOrder| {
            order.state == "open"
                && (&order.hardware_type, &order.datacenter) == (&of.hardware_type, &of.datacenter)
                && (order.expected_on, order.servers) == (of.expected_on, of.servers)
        };
        if let Some(order) = known.iter().find(is_same) {
            let what = format!(
                "{} of {} in {} for {} are on order already: {}",
                of.servers, of.hardware_type, of.datacenter, of.expected_on, order.order
            );
            bail!(Hinted::new(what, "run ras forecast orders again, which counts them"));
        }
    }
    Ok(())
}

/// A forecast does not count late orders, for their day is not known: what it recommends may be what is late.
fn none_late(orders: &[HardwareOrderAsked], known: &[HardwareOrder]) -> Result<()> {
    let same_place = |of: &HardwareOrderAsked, order: &HardwareOrder| {
        (&order.hardware_type, &order.datacenter) == (&of.hardware_type, &of.datacenter)
    };
    let is_asked = |order: &&HardwareOrder| orders.iter().any(|of| same_place(of, order));
    let Some(late) = known.iter().filter(|order| order.late).find(is_asked) else {
        return Ok(());
    };
    let HardwareOrder { order, hardware_type, datacenter, servers, expected_on, .. } = late;
    let what = format!(
        "{servers} of {hardware_type} in {datacenter} were expected on {expected_on} and are late: {order}; the forecast does not count them"
    );
    let hint = format!(
        "give them another day (ras region order change {order} --expected DAY) and run ras forecast orders again, or order despite them with --despite-late"
    );
    bail!(Hinted::new(what, hint))
}

/// The open orders that a forecast does not need: of each day those that were entered last.
fn reduced(answer: &Recommended, open: &[HardwareOrder]) -> Result<Vec<Reduced>> {
    let mut reduced = Vec::new();
    for of in &answer.series {
        for cancelled in &of.cancel_on {
            let (hardware_type, datacenter) = of_series(of)?;
            let mut rest = u32::try_from(cancelled.servers).unwrap_or(u32::MAX);
            let is_of = |order: &&HardwareOrder| {
                order.state == "open"
                    && (&*order.hardware_type, &*order.datacenter) == (hardware_type, datacenter)
                    && order.expected_on == cancelled.expected_on
            };
            let mut orders: Vec<&HardwareOrder> = open.iter().filter(is_of).collect();
            orders.sort_by(|one, other| other.order.cmp(&one.order));
            for order in orders {
                let taken = rest.min(order.servers);
                rest -= taken;
                if taken > 0 {
                    reduced.push(Reduced {
                        order: order.order.clone(),
                        hardware_type: order.hardware_type.clone(),
                        datacenter: order.datacenter.clone(),
                        expected_on: order.expected_on,
                        servers: order.servers,
                        left: order.servers - taken,
                    });
                }
            }
            ensure!(
                rest == 0,
                "series {:?}: {rest} servers to cancel for {} are not on order: run ras forecast orders again",
                of.name,
                cancelled.expected_on
            );
        }
    }
    Ok(reduced)
}

fn applied_text(of: &Applied) -> String {
    let mut table =
        Table::new(&["hardware type", "datacenter", "expected on", "servers", "before"], 3..5);
    for order in &of.orders {
        table.add_row([
            order.hardware_type.clone(),
            order.datacenter.clone(),
            order.expected_on.to_string(),
            order.servers.to_string(),
            "-".to_owned(),
        ]);
    }
    for order in &of.reduced {
        table.add_row([
            order.hardware_type.clone(),
            order.datacenter.clone(),
            order.expected_on.to_string(),
            order.left.to_string(),
            order.servers.to_string(),
        ]);
    }
    if of.orders.is_empty() && of.reduced.is_empty() {
        return "the forecast recommends no order and no cancellation".to_owned();
    }
    let done = if of.applied { "entered" } else { "nothing was entered" };
    format!("{table}\n\n{done}")
}

fn table(orders: &[HardwareOrder]) -> String {
    if orders.is_empty() {
        return "no servers are on order; `ras region order add` enters an order".to_owned();
    }
    let header =
        ["hardware type", "datacenter", "servers", "expected on", "state", "ordered by", "order"];
    let mut table = Table::new(&header, 2..3);
    for of in orders {
        table.add_row([
            of.hardware_type.clone(),
            of.datacenter.clone(),
            of.servers.to_string(),
            of.expected_on.to_string(),
            if of.late { "late".to_owned() } else { of.state.clone() },
            of.ordered_by.clone(),
            of.order.clone(),
        ]);
    }
    table.to_string()
}
