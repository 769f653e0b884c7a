//! `ras policy apply`, `list`, `show` and `withdraw`: policies of a running region.

use super::ask::{confirmed, with_server};
use crate::cli::{ApplyPolicies, ServerOptions};
use crate::client::login::Server;
use crate::client::{Ask, path, query};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::{Table, facts};
use crate::number;
use crate::terminal;
use anyhow::{Context as _, Result, bail, ensure};
use api_types::policies::{
    Policies, PoliciesAsked, PoliciesChanged, Policy, PolicyOutlook, PolicyRow, PolicySearch,
    PolicyText, PolicyVersions, PolicyView, PolicyWithdrawn,
};
use chrono::{DateTime, Utc};
use fleet::number::counted;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Rows that are listed of each view.
const LISTED: usize = 10;

/// What `ras policy show` says.
#[derive(Serialize, Deserialize)]
struct Shown {
    #[serde(flatten)]
    policy: Policy,
    versions: Vec<PolicyRow>,
}

fn asked<T: DeserializeOwned>(server: &ServerOptions, ask: &Ask) -> Result<T> {
    with_server(Server::of(server)?, async |client| client.ask(ask).await?.read())
}

pub(in crate::command) fn apply(options: &ApplyPolicies, context: &Context) -> Result<Verdict> {
    let policies = read(options)?;
    let why = options.why.clone();
    let search_seconds = Some(options.search.as_secs_f64());
    let trial = PoliciesAsked { policies, why, dry_run: true, search_seconds };
    let mut answer: PoliciesChanged = asked(&options.server, &Ask::post("/v1/policies", &trial))?;
    let fails: usize = answer.outlook.views.iter().map(|of| of.fails).sum();
    let verdict = Verdict::fine_if(fails == 0);
    if options.dry_run {
        context.answer(|| text_of(&answer.outlook), &answer)?;
        return Ok(verdict);
    }
    if fails > 0 {
        if !options.yes {
            terminal::tell(&text_of(&answer.outlook));
        }
        let question = format!(
            "{} {} today. Apply? What is broken may not get worse from then on",
            counted(fails, "row"),
            if fails == 1 { "breaks" } else { "break" }
        );
        if !confirmed(&question, options.yes)? {
            bail!("nothing was done");
        }
    }
    let change = PoliciesAsked { dry_run: false, search_seconds: None, ..trial };
    let made: PoliciesChanged = asked(&options.server, &Ask::post("/v1/policies", &change))?;
    answer.changed = made.changed;
    context.answer(|| applied(&answer), &answer)?;
    Ok(verdict)
}

/// Files by their names.
fn read(options: &ApplyPolicies) -> Result<Vec<PolicyText>> {
    let mut names = BTreeSet::new();
    let mut policies = Vec::new();
    for file in &options.policies {
        let shown = file.display();
        let sql =
            std::fs::read_to_string(file).with_context(|| format!("{shown}: cannot be read"))?;
        let name = file.file_stem().and_then(|name| name.to_str());
        let policy = name.with_context(|| format!("{shown}: it has no name"))?.to_owned();
        ensure!(names.insert(policy.clone()), "{shown}: another file has this name, too");
        policies.push(PolicyText { policy, sql });
    }
    Ok(policies)
}

fn applied(of: &PoliciesChanged) -> String {
    let mut text = text_of(&of.outlook);
    text.push('\n');
    for PolicyRow { policy, version, .. } in &of.changed {
        text.push_str(&format!("\npolicy {policy} is in force, version {version}"));
    }
    text + "\nthe next solve keeps it: `ras ops solve --wait`"
}

fn text_of(outlook: &PolicyOutlook) -> String {
    if outlook.views.is_empty() {
        return "no policy says what must hold".to_owned();
    }
    let header = ["policy", "view", "fail today", "nearest limit", "today", "at most"];
    let mut table = Table::new(&header, 2..3);
    table.right(4);
    table.right(5);
    let mut below = String::new();
    for of in &outlook.views {
        let nearest = of.groups.first();
        let amount = |of: Option<i64>| of.map(|of| of.to_string()).unwrap_or_default();
        table.add_row([
            of.policy.clone(),
            of.view.clone(),
            number::count(of.fails),
            nearest.map(|of| of.group.clone()).unwrap_or_default(),
            amount(nearest.map(|of| of.today)),
            amount(nearest.map(|of| of.most)),
        ]);
        below.push_str(&failing(of));
    }
    let space = if below.is_empty() { "" } else { "\n" };
    let search =
        outlook.search.as_ref().map_or_else(String::new, |of| format!("\n\n{}", found(of)));
    format!("{table}{space}{below}{search}")
}

/// A line for each row of a view that fails, with the fewest servers that have to leave.
fn failing(of: &PolicyView) -> String {
    let mut text = String::new();
    for row in of.rows.iter().take(LISTED) {
        let group = of.groups.iter().find(|group| group.group == *row);
        let leave = match group.map(|group| group.leave) {
            Some(Some(servers)) => format!(": at least {} must leave", counted(servers, "server")),
            Some(None) => ": servers that cannot move exceed it".to_owned(),
            None => String::new(),
        };
        text.push_str(&format!("\n{} fails at {row}{leave}", of.view));
    }
    if of.fails > of.rows.len().min(LISTED) {
        let more = number::count(of.fails - of.rows.len().min(LISTED));
        text.push_str(&format!("\n{} fails at {more} more", of.view));
    }
    text
}

fn found(of: &PolicySearch) -> String {
    let (in_use, idle) = (counted(of.moves_in_use, "server"), number::count(of.moves_idle));
    let moves = format!("{in_use} in use and {idle} idle");
    let seconds = format!("{:.1} s", of.seconds);
    let holds = if of.holds {
        format!("all hold in an assignment found in {seconds}, which moves {moves}")
    } else {
        format!("no assignment in which all hold was found in {seconds}; the nearest moves {moves}")
    };
    let (then, today) =
        (number::count(of.shortfall_servers), number::count(of.shortfall_today_servers));
    format!("{holds}\nreservations lack at least {then} servers in it, today {today}")
}

pub(in crate::command) fn list(server: &ServerOptions, context: &Context) -> Result<Verdict> {
    let all: Policies = with_server(Server::of(server)?, async |client| {
        client.get_all("/v1/policies", "policies").await?.read()
    })?;
    let text = || {
        if all.policies.is_empty() {
            return "no policies; `ras policy apply` sets some".to_owned();
        }
        rows(&all.policies)
    };
    context.answer(text, &all)?;
    Ok(Verdict::Fine)
}

fn rows(of: &[PolicyRow]) -> String {
    let header = ["policy", "version", "state", "exceeded groups", "changed", "by", "why"];
    let mut table = Table::new(&header, 1..2);
    table.right(3);
    for row in of {
        table.add_row([
            row.policy.clone(),
            row.version.to_string(),
            row.state.replace('_', " "),
            row.exceeded.map(number::count).unwrap_or_default(),
            minute(row.changed_at),
            row.changed_by.clone(),
            row.why.clone(),
        ]);
    }
    table.to_string()
}

fn minute(of: DateTime<Utc>) -> String {
    of.format("%Y-%m-%d %H:%M").to_string()
}

pub(in crate::command) fn show(
    name: &str,
    version: Option<i32>,
    server: &ServerOptions,
    context: &Context,
) -> Result<Verdict> {
    let mut at = vec!["v1", "policies", name];
    let number = version.map(|version| version.to_string());
    at.extend(number.iter().flat_map(|number| ["versions", number]));
    let shown = with_server(Server::of(server)?, async |client| {
        let policy: Policy = client.get(&path(&at)).await?.read()?;
        let versions = path(&["v1", "policies", name, "versions"]);
        let versions: PolicyVersions = client.get_all(&versions, "versions").await?.read()?;
        Ok(Shown { policy, versions: versions.versions })
    })?;
    let text = || {
        let row = &shown.policy.row;
        let top = facts(&[
            ("policy", row.policy.clone()),
            ("version", format!("{}, {}", row.version, row.state.replace('_', " "))),
            ("changed", format!("{} by {}", minute(row.changed_at), row.changed_by)),
            ("why", row.why.clone()),
        ]);
        let sql = shown.policy.sql.as_deref().unwrap_or("(withdrawn)").trim_end();
        format!("{top}\n\n{sql}\n\n{}", rows(&shown.versions))
    };
    context.answer(text, &shown)?;
    Ok(Verdict::Fine)
}

pub(in crate::command) fn withdraw(
    name: &str,
    why: Option<&str>,
    server: &ServerOptions,
    context: &Context,
) -> Result<Verdict> {
    let why: Vec<_> = why.map(|why| ("why", why.to_owned())).into_iter().collect();
    let policy = query(&path(&["v1", "policies", name]), &why);
    let withdrawn: PolicyWithdrawn = asked(server, &Ask::delete(policy, "*"))?;
    let text =
        || format!("policy {name} is withdrawn; its versions stay: `ras policy show {name}`");
    context.answer(text, &withdrawn)?;
    Ok(Verdict::Fine)
}
