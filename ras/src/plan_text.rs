//! A plan's answer for people, from its document (`ras-plan/1`): solved here, or by a server.

use crate::number::{amount, count, percent};
use crate::tables::table;
use fleet::Rru;
use serde_json::Value;

/// Rows of the table of moves.
const ROWS_MAX: usize = 20;

/// The answer for people. `all`: every source of servers, however many there are.
pub fn text(answer: &Value, all: bool) -> String {
    let word = |member: &str| answer[member].as_str().unwrap_or_default();
    let removed = word("change") == "removed";
    let change = match word("change") {
        "new" => "new".to_owned(),
        "removed" => "ends".to_owned(),
        _ => format!("{} RRU guaranteed today", rru(&answer["guaranteed_today_rru"])),
    };
    let mut text = format!("{} ({change})", word("reservation_id"));
    let (granted, asked) = (rru(&answer["granted_rru"]), rru(&answer["capacity_rru"]));
    text += &match word("granted") {
        "in_full" if removed => String::new(),
        "in_full" => format!("\n granted in full: {granted} RRU"),
        "nothing" => format!("\n refused: nothing of {asked} RRU can be granted"),
        _ => format!("\n refused: {granted} of {asked} RRU can be granted"),
    };
    if number(&answer["granted_rru"]) > 0.0 {
        text += &holding(answer);
    }
    text += &format!("\n {}", takes(&answer["cost"]));
    if let Some(sources) = answer["sources"].as_array().filter(|sources| !sources.is_empty()) {
        text += &format!("\n\n{}", flows(sources, if all { usize::MAX } else { ROWS_MAX }));
    }
    if !answer["refusal"].is_null() {
        text += &format!("\n\n{}", refusal(&answer["refusal"]));
    }
    text += &format!("\n\n {}", proof(answer));
    text
}

/// What it would hold.
fn holding(answer: &Value) -> String {
    let row = &answer["reservation"];
    let servers = whole(&row["servers"]);
    match (row["largest_msb"].as_str(), answer["msb_buffer"].as_bool()) {
        (Some(msb), Some(true)) => format!(
            ", whichever MSB is lost; {} RRU on {servers} servers without a loss, {} RRU of it in {msb}",
            rru(&row["assigned_rru"]),
            rru(&row["largest_msb_rru"])
        ),
        _ => format!(" on {servers} servers, while no MSB is lost"),
    }
}

/// Why not, what stands in the way, and what would be granted instead.
fn refusal(refusal: &Value) -> String {
    let word = |of: &Value, member: &str| of[member].as_str().unwrap_or_default().to_owned();
    let mut text = format!(" {}: {}", word(refusal, "reason"), word(refusal, "sentence"));
    let limits = refusal["limits"].as_array().map_or(&[][..], Vec::as_slice);
    if !limits.is_empty() {
        text += "\n in the way, together:";
    }
    for limit in limits {
        let without = rru(&limit["without_rru"]);
        let (name, sentence) = (word(limit, "limit"), word(limit, "sentence"));
        text += &format!("\n   {name}: {sentence}; {without} RRU without it");
    }
    let alternatives = refusal["alternatives"].as_array().map_or(&[][..], Vec::as_slice);
    text += if alternatives.is_empty() {
        "\n no single concession was found that would be granted in full"
    } else {
        "\n each of these would be granted in full:"
    };
    for alternative in alternatives {
        let takes = takes(&alternative["cost"]);
        text += &format!("\n   {}: {takes}", word(alternative, "sentence"));
    }
    text
}

fn proof(answer: &Value) -> String {
    let clean = if answer["audit_clean"] == true {
        "the audit found nobody worse off than today"
    } else {
        "the audit found broken rules (a bug)"
    };
    let missing = number(&answer["surely_missing_rru"]);
    let proved = if answer["refusal"].is_null() {
        let primal = number(&answer["primal"]);
        let worth = (primal - number(&answer["shortfall_cost"])).max(f64::MIN_POSITIVE);
        let open = (primal - number(&answer["dual_bound"])) / worth;
        format!(
            "; proved: no way to grant it makes the region cost more than {} less",
            percent(open)
        )
    } else if missing > 0.0 {
        format!(
            "; proved: whoever solves, at least {:.1} RRU of it are missing while nobody as important \
             ends worse",
            (10.0 * missing).floor() / 10.0
        )
    } else {
        "; not proved: a longer search may find more".to_owned()
    };
    let end =
        if answer["complete"] == true { "" } else { "; the search was cut short by the clock" };
    format!("{clean}{proved}{end}")
}

/// What a plan takes, in words.
fn takes(cost: &Value) -> String {
    let part = |member: &str, what: &str| {
        (number(&cost[member]) > 0.0).then(|| format!("{} {what}", whole(&cost[member])))
    };
    let taken: Vec<String> = [
        part("acquired", "free"),
        part("idle", "idle of others"),
        part("in_use", "in use by others"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let left: Vec<String> =
        [part("own_idle", "idle"), part("own_in_use", "in use")].into_iter().flatten().collect();
    let mut parts = Vec::new();
    if !taken.is_empty() {
        parts.push(format!("takes servers: {}", taken.join(", ")));
    }
    if !left.is_empty() {
        parts.push(format!("gives up servers of its own: {}", left.join(", ")));
    }
    if parts.is_empty() {
        parts.push("takes no server".to_owned());
    }
    parts.extend(part("lent", "of these are lent out and called back"));
    format!("{}; price {:+.2}", parts.join("; "), number(&cost["price"]))
}

fn flows(sources: &[Value], rows_max: usize) -> String {
    let servers = |of: &Value, member: &str| of[member].as_u64().unwrap_or_default();
    let mut rows: Vec<&Value> = sources.iter().collect();
    rows.sort_by_key(|of| std::cmp::Reverse((servers(of, "in_use"), servers(of, "idle"))));
    let mut table = table(&["from", "what it is", "to", "in use", "idle"], 3..5);
    let holder = |of: &Value| of.as_str().unwrap_or("free").to_owned();
    for of in rows.iter().take(rows_max) {
        let shown = |member: &str| match servers(of, member) {
            0 => "-".to_owned(),
            _ => whole(&of[member]),
        };
        table.add_row([
            holder(&of["from"]),
            of["from_kind"].as_str().unwrap_or_default().replace('_', " "),
            holder(&of["to"]),
            shown("in_use"),
            shown("idle"),
        ]);
    }
    let shown = table.trim_fmt();
    let hidden = rows.len().saturating_sub(rows_max);
    if hidden == 0 { shown } else { format!("{shown}\n… {hidden} more (--all)") }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn rru(value: &Value) -> String {
    amount(Rru::from_f64(number(value)).unwrap_or(Rru::ZERO))
}

fn whole(value: &Value) -> String {
    count(usize::try_from(value.as_u64().unwrap_or_default()).unwrap_or(usize::MAX))
}
