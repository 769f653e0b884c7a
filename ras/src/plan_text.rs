//! A plan as text, from its document (`ras-plan/1`), made locally or by a server.

use crate::layout::{Rows, Table};
use crate::number::{amount, count};
use fleet::RequestChange;
use fleet::Rru;
use fleet::explain::LimitName;
use fleet::number::compared;
use fleet::quote::{Grant, HolderKind, MoveCost, Quote, QuotedFlow, Refusal};

/// Difference of prices that is not shown.
const PRICE_SHOWN: f64 = 0.005;

/// Rows of the table of moves.
const ROWS_MAX: usize = 20;

/// The answer as text. `shown`: how many sources of servers.
pub fn text(answer: &Quote, shown: Rows) -> String {
    let removed = answer.change == RequestChange::Removed;
    let change = match answer.change {
        RequestChange::New => "new".to_owned(),
        RequestChange::Removed => "ends".to_owned(),
        RequestChange::Changed => {
            format!("{} RRU guaranteed today", amount(answer.guaranteed_today))
        }
    };
    let mut text = format!("{} ({change})", answer.reservation_id);
    let [granted, asked] = compared([answer.granted_rru, answer.capacity]);
    text += &match answer.granted {
        Grant::InFull if removed => String::new(),
        Grant::InFull => format!("\n granted in full: {granted} RRU"),
        Grant::Nothing => format!("\n refused: nothing of {asked} RRU can be granted"),
        Grant::InPart => format!("\n refused: {granted} of {asked} RRU can be granted"),
    };
    if answer.granted_rru > Rru::ZERO {
        text += &holding(answer);
    }
    text += &format!("\n {}", takes(&answer.cost));
    if let Some(destinations) = answer.destinations() {
        text += &format!("\n {destinations}");
    }
    if let Some(arrival) = answer.arrival.as_ref().filter(|arrival| arrival.servers > 0) {
        text += &format!("\n arrives {arrival}");
    }
    if !answer.sources.is_empty() {
        text += &format!("\n\n{}", flows(&answer.sources, shown));
    }
    if let Some(of) = &answer.refusal {
        text += &format!("\n\n{}", refusal(of));
    }
    text += &format!("\n\n {}", proof(answer));
    text
}

/// The capacity it would have.
fn holding(answer: &Quote) -> String {
    let row = &answer.reservation;
    let servers = count(row.servers);
    let msb = answer.msb_buffer.then_some("MSB");
    let survived: Vec<&str> =
        msb.into_iter().chain(answer.survives.iter().map(|of| &**of)).collect();
    match &row.largest_msb_id {
        Some(msb) if !survived.is_empty() => format!(
            ", whichever {} is lost; {} RRU on {servers} servers without a loss, {} RRU of it in {msb}",
            survived.join(" or "),
            amount(row.assigned),
            amount(row.largest_msb)
        ),
        _ => format!(" on {servers} servers, while no MSB is lost"),
    }
}

/// Maximum number of holders shown.
const HOLDERS: usize = 12;

/// The reason for a refusal, its limits, and the alternatives.
fn refusal(refusal: &Refusal) -> String {
    let mut text = format!(" {}: {}", refusal.reason, refusal.sentence);
    if !refusal.held_by.is_empty() {
        text += "\n reservations that hold servers of its types:";
    }
    for holder in refusal.held_by.iter().take(HOLDERS) {
        text += &format!("\n   {holder}");
    }
    if !refusal.limits.is_empty() {
        text += "\n in its way; each with what could be granted if it alone were gone:";
    }
    for limit in &refusal.limits {
        let (name, without) = (limit.limit.as_str(), amount(limit.without));
        text += &format!("\n   {name}: {} ({without} RRU)", limit.sentence);
    }
    text += if refusal.alternatives.is_empty() {
        "\n no smaller or more flexible request was found that would be granted in full"
    } else {
        "\n each of these would be granted in full:"
    };
    for alternative in &refusal.alternatives {
        text += &format!("\n   {}: {}", alternative.sentence, takes(&alternative.cost));
    }
    text
}

fn proof(answer: &Quote) -> String {
    let clean = if answer.audit_clean {
        "checked: no reservation ends worse off than today"
    } else {
        "the check of the plan found broken rules (a bug)"
    };
    let missing = answer.surely_missing_rru;
    let proved = if answer.refusal.is_none() {
        // The price of any other way to grant it is at least that.
        let least = answer.cost.price - (answer.primal - answer.dual_bound);
        if least + PRICE_SHOWN >= answer.cost.price {
            "; proved: no plan that grants it is cheaper".to_owned()
        } else {
            format!("; a cheaper plan may exist, but none below {least:+.2} (proved)")
        }
    } else if missing > 0.0 {
        let mut limits = answer.refusal.iter().flat_map(|of| &of.limits);
        let by_policy = limits.any(|of| of.limit == LimitName::Policy);
        format!(
            "; proved: at least {:.1} RRU of it are out of reach while {}reservations that are as important keep what \
             they have",
            (10.0 * missing).floor() / 10.0,
            if by_policy { "policies hold and " } else { "" }
        )
    } else {
        "; a longer search may find more".to_owned()
    };
    let end = if answer.complete { "" } else { "; the search was ended by its deadline" };
    format!("{clean}{proved}{end}")
}

/// The sources of the servers, as text.
fn takes(cost: &MoveCost) -> String {
    let part =
        |servers: usize, what: &str| (servers > 0).then(|| format!("{} {what}", count(servers)));
    let taken: Vec<String> = [
        part(cost.acquired, "free"),
        part(cost.idle, "idle of others"),
        part(cost.in_use, "in use by others"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let left: Vec<String> = [part(cost.own_idle, "idle"), part(cost.own_in_use, "in use")]
        .into_iter()
        .flatten()
        .collect();
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
    parts.extend(part(cost.lent, "of these are on loan and recalled"));
    format!("{}; price {:+.2}", parts.join("; "), cost.price)
}

fn flows(sources: &[QuotedFlow], shown: Rows) -> String {
    let mut rows: Vec<&QuotedFlow> = sources.iter().collect();
    rows.sort_by_key(|of| std::cmp::Reverse((of.in_use, of.idle)));
    let mut table = Table::new(&["from", "what it is", "to", "in use", "idle"], 3..5);
    let number = |servers: usize| match servers {
        0 => "-".to_owned(),
        _ => count(servers),
    };
    for of in rows.iter().take(shown.most(ROWS_MAX)) {
        table.add_row([
            of.from.as_deref().unwrap_or(HolderKind::Free.as_str()).to_owned(),
            of.from_kind.as_str().replace('_', " "),
            of.to.as_deref().unwrap_or(HolderKind::Free.as_str()).to_owned(),
            number(of.in_use),
            number(of.idle),
        ]);
    }
    shown.below(&table, rows.len())
}
