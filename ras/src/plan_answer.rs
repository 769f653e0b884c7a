//! The answer to "could I have this?", for people and for programs.

use crate::number::{amount, count, percent};
use crate::tables::table;
use async_solver::{Alternative, Answer, Concession, Cost};
use fleet::audit::AuditReport;
use fleet::{Move, RegionSnapshot, RequestChange, ReservationIx, ReservationKind, holder_name};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Rows of the table of moves.
const ROWS_MAX: usize = 20;

/// How long it took.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Until snapshot and request were read, from the start of the process.
    pub read: Duration,
    /// In all.
    pub total: Duration,
}

/// Servers that go from one holder to another.
#[derive(Clone, Copy, Default)]
struct Flow {
    in_use: usize,
    idle: usize,
}

/// From, to: how many.
type Flows = BTreeMap<(Option<ReservationIx>, Option<ReservationIx>), Flow>;

fn flows(moves: &[Move]) -> Flows {
    let mut flows = Flows::new();
    for of in moves {
        let flow = flows.entry((of.source, of.target)).or_default();
        *(if of.in_use { &mut flow.in_use } else { &mut flow.idle }) += 1;
    }
    flows
}

/// The answer for people.
pub fn text(answer: &Answer, all: bool) -> String {
    let region = &answer.region;
    let reservation = &region.reservations[answer.reservation.ix()];
    let row = &answer.audit.reservations[answer.reservation.ix()];
    let change = match answer.change {
        RequestChange::New => "new".to_owned(),
        RequestChange::Changed => format!("{} RRU guaranteed today", amount(answer.today)),
        RequestChange::Removed => "ends".to_owned(),
    };
    let mut text = format!("{} ({change})", reservation.id);
    text += &match &answer.refusal {
        None if answer.change == RequestChange::Removed => String::new(),
        None => format!("\n granted in full: {} RRU", amount(answer.granted)),
        Some(_) if answer.granted.0 == 0 => {
            format!("\n refused: nothing of {} RRU can be granted", amount(reservation.capacity))
        }
        Some(_) => format!(
            "\n refused: {} of {} RRU can be granted",
            amount(answer.granted),
            amount(reservation.capacity)
        ),
    };
    if answer.granted.0 > 0 {
        text += &match (&row.holding.largest_msb_id, reservation.msb_buffer) {
            (Some(msb), true) => format!(
                ", whichever MSB is lost; {} RRU on {} servers without a loss, {} RRU of it in {msb}",
                amount(row.holding.assigned),
                count(row.holding.servers),
                amount(row.holding.largest_msb)
            ),
            _ => format!(" on {} servers, while no MSB is lost", count(row.holding.servers)),
        };
    }
    let cost = Cost::of(region, &answer.plan, answer.reservation);
    text += &format!("\n {}", takes(&cost));
    let flows = flows(&answer.plan.moves);
    if !flows.is_empty() {
        text +=
            &format!("\n\n{}", flow_table(region, &flows, if all { usize::MAX } else { ROWS_MAX }));
    }
    if let Some(refusal) = &answer.refusal {
        let shortfall = &refusal.shortfall;
        text += &format!("\n\n {}: {}", shortfall.reason, shortfall.sentence);
        if !refusal.limits.is_empty() {
            text += "\n in the way, together:";
            for limit in &refusal.limits {
                text += &format!("\n   {limit}");
            }
        }
        if refusal.alternatives.is_empty() {
            text += "\n no single concession was found that would be granted in full";
        } else {
            text += "\n each of these would be granted in full:";
            for alternative in &refusal.alternatives {
                let takes = takes(&alternative.cost);
                text += &format!("\n   {}: {takes}", concession(region, alternative));
            }
        }
    }
    text += &format!("\n\n {}", proof(answer));
    text
}

fn proof(answer: &Answer) -> String {
    let plan = &answer.plan;
    let clean = if answer.audit.is_clean() {
        "the audit found nobody worse off than today"
    } else {
        "the audit found broken rules (a bug)"
    };
    let proved = if answer.refusal.is_none() {
        let worth = (plan.primal - plan.shortfall_cost).max(f64::MIN_POSITIVE);
        let open = (plan.primal - plan.dual_bound) / worth;
        format!(
            "; proved: no way to grant it makes the region cost more than {} less",
            percent(open)
        )
    } else if plan.surely_missing > 0.0 {
        format!(
            "; proved: whoever solves, at least {:.1} RRU of it are missing while nobody as important \
             ends worse",
            (10.0 * plan.surely_missing).floor() / 10.0
        )
    } else {
        "; not proved: a longer search may find more".to_owned()
    };
    let end = if plan.complete { "" } else { "; the search was cut short by the clock" };
    format!("{clean}{proved}{end}")
}

/// What a plan takes, in words.
fn takes(cost: &Cost) -> String {
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
    if cost.lent > 0 {
        parts.push(format!("{} of these are lent out and called back", count(cost.lent)));
    }
    format!("{}; price {:+.2}", parts.join("; "), cost.price)
}

fn flow_table(region: &RegionSnapshot, flows: &Flows, rows_max: usize) -> String {
    let mut rows: Vec<_> = flows.iter().collect();
    rows.sort_by_key(|(_, flow)| std::cmp::Reverse((flow.in_use, flow.idle)));
    let mut table = table(&["from", "what it is", "to", "in use", "idle"], 3..5);
    for &((source, target), flow) in rows.iter().take(rows_max) {
        let number = |servers| if servers == 0 { "-".to_owned() } else { count(servers) };
        table.add_row([
            holder_name(region, *source).to_string(),
            kind(region, *source).replace('_', " "),
            holder_name(region, *target).to_string(),
            number(flow.in_use),
            number(flow.idle),
        ]);
    }
    let shown = table.trim_fmt();
    let hidden = rows.len().saturating_sub(rows_max);
    if hidden == 0 { shown } else { format!("{shown}\n… {hidden} more (--all)") }
}

fn kind(region: &RegionSnapshot, holder: Option<ReservationIx>) -> &'static str {
    holder.map_or("free", |holder| region.reservations[holder.ix()].kind.as_str())
}

fn concession(region: &RegionSnapshot, alternative: &Alternative) -> String {
    match &alternative.concession {
        Concession::FewerRru(capacity) => format!("asking for {} RRU", amount(*capacity)),
        Concession::OneMoreType(ty, value) => format!(
            "accepting {} as well, at {} RRU a server",
            region.hardware_types[ty.ix()],
            amount(*value)
        ),
        Concession::LooserAffinity(theta) => {
            format!("a tolerance of {theta:.2} for its datacenter shares")
        }
        Concession::WithoutBuffer => "not surviving the loss of an MSB".to_owned(),
    }
}

/// The answer for programs.
pub fn json(answer: &Answer, times: Times) -> Value {
    let region = &answer.region;
    let reservation = &region.reservations[answer.reservation.ix()];
    let plan = &answer.plan;
    let moves: Vec<Value> = (plan.moves.iter())
        .map(|of| {
            let server = &region.servers[of.server.ix()];
            json!({
                "server_id": server.id,
                "hardware_type": region.hardware_types[server.hardware_type.ix()],
                "msb": region.msbs[region.msb_of(server).ix()].id,
                "from": of.source.map(|of| &region.reservations[of.ix()].id),
                "to": of.target.map(|of| &region.reservations[of.ix()].id),
                "in_use": of.in_use,
            })
        })
        .collect();
    let sources: Vec<Value> = (flows(&plan.moves).iter())
        .map(|((source, target), flow)| {
            json!({
                "from": source.map(|of| &region.reservations[of.ix()].id),
                "from_kind": kind(region, *source),
                "to": target.map(|of| &region.reservations[of.ix()].id),
                "in_use": flow.in_use,
                "idle": flow.idle,
            })
        })
        .collect();
    let refusal = answer.refusal.as_ref().map(|refusal| {
        let alternatives: Vec<Value> = (refusal.alternatives.iter())
            .map(|of| {
                json!({
                    "concession": token(&of.concession),
                    "sentence": concession(region, of),
                    "request": of.request,
                    "cost": cost_json(&of.cost),
                })
            })
            .collect();
        json!({
            "reason": refusal.shortfall.reason,
            "sentence": refusal.shortfall.sentence,
            "missing_rru": refusal.shortfall.missing.to_f64(),
            "hardware": refusal.shortfall.hardware,
            "evidence": refusal.shortfall.evidence,
            "limits": refusal.limits,
            "alternatives": alternatives,
        })
    });
    json!({
        "format": PLAN_FORMAT,
        "reservation_id": reservation.id,
        "change": answer.change,
        "granted": if answer.refusal.is_none() { "in_full" } else { granted_word(answer) },
        "capacity_rru": reservation.capacity.to_f64(),
        "guaranteed_today_rru": answer.today.to_f64(),
        "granted_rru": answer.granted.to_f64(),
        "reservation": row_json(&answer.audit, answer.reservation),
        "cost": cost_json(&Cost::of(region, plan, answer.reservation)),
        "sources": sources,
        "moves": moves,
        "refusal": refusal,
        "primal": plan.primal,
        "shortfall_cost": plan.shortfall_cost,
        "dual_bound": plan.dual_bound,
        "surely_missing_rru": plan.surely_missing,
        "complete": plan.complete,
        "audit_clean": answer.audit.is_clean(),
        "seconds": { "read": times.read.as_secs_f64(), "total": times.total.as_secs_f64() },
    })
}

/// The format of the JSON document.
const PLAN_FORMAT: &str = "ras-plan/1";

const fn granted_word(answer: &Answer) -> &'static str {
    if answer.granted.0 > 0 { "in_part" } else { "nothing" }
}

const fn token(concession: &Concession) -> &'static str {
    match concession {
        Concession::FewerRru(_) => "fewer_rru",
        Concession::OneMoreType(..) => "one_more_type",
        Concession::LooserAffinity(_) => "looser_affinity",
        Concession::WithoutBuffer => "no_buffer",
    }
}

fn cost_json(cost: &Cost) -> Value {
    json!({
        "in_use": cost.in_use, "idle": cost.idle, "acquired": cost.acquired,
        "lent": cost.lent, "own_in_use": cost.own_in_use, "own_idle": cost.own_idle, "price": cost.price,
    })
}

fn row_json(audit: &AuditReport, ix: ReservationIx) -> Value {
    let row = &audit.reservations[ix.ix()];
    debug_assert_eq!(row.kind, ReservationKind::Guaranteed, "others are refused");
    json!({
        "servers": row.holding.servers,
        "assigned_rru": row.holding.assigned.to_f64(),
        "largest_msb": row.holding.largest_msb_id,
        "largest_msb_rru": row.holding.largest_msb.to_f64(),
        "guaranteed_rru": row.holding.guaranteed.to_f64(),
        "datacenters": row.datacenters,
    })
}
