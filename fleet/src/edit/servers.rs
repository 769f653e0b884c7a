//! Servers that are racked, decommissioned and moved to other racks: many at once, all or none.

use super::domains::{Connected, ServerDomains, connect};
use super::{WrongField, check_name, listed};
use crate::id::{DatacenterName, HardwareTypeName, MsbName, RackName, ReservationName, ServerName};
use crate::parts::{ReservationRow, ServerRow, SnapshotParts};
use crate::reservation::ReservationKind;
use crate::snapshot::SHARED_BUFFER_PREFIX;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A server that is new.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Racked {
    /// Its name.
    pub server: ServerName,
    /// Its datacenter; left out: that of its MSB.
    #[serde(default)]
    pub datacenter: Option<DatacenterName>,
    /// Its MSB; left out: that of its rack.
    #[serde(default)]
    pub msb: Option<MsbName>,
    /// Its rack.
    pub rack: RackName,
    /// Its hardware type, which is known.
    pub hardware_type: HardwareTypeName,
    /// Its typical draw under load, in watts.
    #[serde(default)]
    pub power_watts: Option<f64>,
    /// Its fault domains; left out: those that all servers of its rack share.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: ServerDomains,
}

/// A server that moves to another rack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relocated {
    /// The server.
    pub server: ServerName,
    /// Its new datacenter; left out: that of the MSB.
    #[serde(default)]
    pub datacenter: Option<DatacenterName>,
    /// Its new MSB; left out: that of the rack.
    #[serde(default)]
    pub msb: Option<MsbName>,
    /// Its new rack.
    pub rack: RackName,
    /// Its new fault domains; left out: those that all servers of the rack share.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: ServerDomains,
}

/// What is done to servers.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEdit {
    /// Servers are racked.
    Add(Vec<Racked>),
    /// Servers are decommissioned.
    Remove(Vec<ServerName>),
    /// Servers are decommissioned; those that cannot leave now are drained first.
    Drain(Vec<ServerName>),
    /// Servers are in other racks.
    Move(Vec<Relocated>),
}

/// The effect of an edit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerPlan {
    /// How many servers.
    pub servers: usize,
    /// Racks that are new.
    pub new_racks: BTreeSet<RackName>,
    /// MSBs that are new.
    pub new_msbs: BTreeSet<MsbName>,
    /// Servers by hardware type and MSB: how many more or fewer there are.
    pub change: BTreeMap<(HardwareTypeName, MsbName), i64>,
    /// Servers that move and have a holder, by holder.
    pub held: BTreeMap<ReservationName, usize>,
    /// Servers that are drained first.
    pub draining: BTreeSet<ServerName>,
}

/// Where racks and MSBs are, as far as that is known.
struct Places {
    msb_of_rack: BTreeMap<RackName, MsbName>,
    datacenter_of_msb: BTreeMap<MsbName, DatacenterName>,
    known_racks: BTreeSet<RackName>,
    known_msbs: BTreeSet<MsbName>,
}

impl Places {
    fn of(parts: &SnapshotParts) -> Places {
        let mut places = Places {
            msb_of_rack: BTreeMap::new(),
            datacenter_of_msb: BTreeMap::new(),
            known_racks: BTreeSet::new(),
            known_msbs: BTreeSet::new(),
        };
        for row in &parts.servers {
            if !places.msb_of_rack.contains_key(&row.rack) {
                places.msb_of_rack.insert(row.rack.clone(), row.msb.clone());
                places.known_racks.insert(row.rack.clone());
            }
            if !places.datacenter_of_msb.contains_key(&row.msb) {
                places.datacenter_of_msb.insert(row.msb.clone(), row.datacenter.clone());
                places.known_msbs.insert(row.msb.clone());
            }
        }
        places
    }

    /// The MSB and datacenter of a rack, by what is said and what is known; notes what is new.
    fn find(
        &mut self,
        wrong: &mut Vec<WrongField>,
        field: &dyn Fn(&str) -> String,
        rack: &RackName,
        msb: Option<&MsbName>,
        datacenter: Option<&DatacenterName>,
    ) -> Option<(MsbName, DatacenterName)> {
        let before = wrong.len();
        if !self.msb_of_rack.contains_key(rack) {
            check_name(wrong, &field("rack"), rack);
        }
        if let Some(msb) = msb.filter(|msb| !self.datacenter_of_msb.contains_key(*msb)) {
            check_name(wrong, &field("msb"), msb);
        }
        let known = |of: &DatacenterName| self.datacenter_of_msb.values().any(|known| known == of);
        if let Some(datacenter) = datacenter.filter(|of| !known(of)) {
            check_name(wrong, &field("datacenter"), datacenter);
        }
        let msb = match (msb, self.msb_of_rack.get(rack)) {
            (Some(said), Some(known)) if said != known => {
                let detail = format!("rack {rack:?} lies in MSB {known:?}, not in {said:?}");
                wrong.push(WrongField::new(field("msb"), "rack_in_other_msb", detail));
                None
            }
            (Some(msb), _) | (None, Some(msb)) => Some(msb.clone()),
            (None, None) => {
                let detail = format!("rack {rack:?} is new: say in which MSB it lies");
                wrong.push(WrongField::new(field("msb"), "missing", detail));
                None
            }
        };
        let known = msb.as_ref().and_then(|msb| self.datacenter_of_msb.get(msb));
        let datacenter = match (datacenter, known, &msb) {
            (Some(said), Some(known), Some(msb)) if said != known => {
                let detail = format!("MSB {msb:?} lies in datacenter {known:?}, not in {said:?}");
                wrong.push(WrongField::new(field("datacenter"), "msb_in_other_datacenter", detail));
                None
            }
            (Some(datacenter), _, _) | (None, Some(datacenter), _) => Some(datacenter.clone()),
            (None, None, Some(msb)) => {
                let detail = format!("MSB {msb:?} is new: say in which datacenter it lies");
                wrong.push(WrongField::new(field("datacenter"), "missing", detail));
                None
            }
            (None, None, None) => None,
        };
        if wrong.len() > before {
            return None;
        }
        let (msb, datacenter) = (msb?, datacenter?);
        self.msb_of_rack.insert(rack.clone(), msb.clone());
        self.datacenter_of_msb.insert(msb.clone(), datacenter.clone());
        Some((msb, datacenter))
    }
}

/// Applies an edit to the rows and returns its effect. `known`: the existing hardware types; `moving`:
/// servers with a move under way, of any origin.
///
/// # Errors
/// Every field of every server that is wrong; the rows are then of no use.
pub fn plan_servers(
    parts: &mut SnapshotParts,
    edit: &ServerEdit,
    known: &BTreeSet<HardwareTypeName>,
    moving: &BTreeSet<ServerName>,
) -> Result<ServerPlan, Vec<WrongField>> {
    let mut wrong = Vec::new();
    let mut places = Places::of(parts);
    let (racks, msbs) = (places.known_racks.clone(), places.known_msbs.clone());
    let index: HashMap<ServerName, usize> =
        parts.servers.iter().enumerate().map(|(at, row)| (row.server_id.clone(), at)).collect();
    // What a shared buffer has left is replaced by a solve: those servers may go.
    let holders: BTreeSet<&ReservationName> =
        parts.servers.iter().filter_map(|row| row.current_reservation.as_ref()).collect();
    let shared = holders.into_iter().filter(|name| {
        let listed = |row: &&ReservationRow| row.reservation_id == **name;
        match parts.reservations.iter().find(listed) {
            Some(row) => *row.kind == *ReservationKind::SharedBuffer.as_str(),
            None => name.starts_with(SHARED_BUFFER_PREFIX),
        }
    });
    let buffers: BTreeSet<ReservationName> = shared.cloned().collect();
    let mut plan = ServerPlan::default();
    let mut twice = BTreeSet::new();
    let names: Vec<&ServerName> = match edit {
        ServerEdit::Add(rows) => rows.iter().map(|of| &of.server).collect(),
        ServerEdit::Remove(names) | ServerEdit::Drain(names) => names.iter().collect(),
        ServerEdit::Move(rows) => rows.iter().map(|of| &of.server).collect(),
    };
    if names.is_empty() {
        wrong.push(WrongField::new("servers", "empty", "which servers? the list is empty"));
    }
    for (nr, name) in names.iter().enumerate() {
        let field = format!("servers[{nr}].server");
        if !twice.insert((*name).clone()) {
            wrong.push(WrongField::new(field, "duplicate", format!("{name:?} is named twice")));
        }
    }
    plan.servers = names.len();
    match edit {
        ServerEdit::Add(rows) => {
            for (nr, of) in rows.iter().enumerate() {
                let field = |name: &str| format!("servers[{nr}].{name}");
                check_name(&mut wrong, &field("server"), &of.server);
                if index.contains_key(&of.server) {
                    let detail = format!("there is a server {:?} already", of.server);
                    wrong.push(WrongField::new(field("server"), "exists", detail));
                }
                if !known.contains(&of.hardware_type) {
                    let detail =
                        format!("the region has no such hardware type; it has {}", listed(known));
                    wrong.push(WrongField::new(
                        field("hardware_type"),
                        "unknown_hardware_type",
                        detail,
                    ));
                }
                if of.power_watts.is_some_and(|watts| !(watts.is_finite() && watts >= 0.0)) {
                    let detail = "watts are finite and not negative";
                    let one = WrongField::new(field("power_watts"), "out_of_range", detail);
                    wrong.push(WrongField { nearest: Some(0.0), ..one });
                }
                let (msb, datacenter) = (of.msb.as_ref(), of.datacenter.as_ref());
                let found = places.find(&mut wrong, &field, &of.rack, msb, datacenter);
                let Some((msb, datacenter)) = found else { continue };
                *plan.change.entry((of.hardware_type.clone(), msb.clone())).or_default() += 1;
                parts.servers.push(ServerRow {
                    server_id: of.server.clone(),
                    datacenter,
                    msb,
                    rack: of.rack.clone(),
                    hardware_type: of.hardware_type.clone(),
                    current_reservation: None,
                    target_reservation: None,
                    target_pending: false,
                    in_use: false,
                    loaned_to: None,
                    power_watts: of.power_watts,
                });
            }
        }
        ServerEdit::Remove(names) | ServerEdit::Drain(names) => {
            for (nr, name) in names.iter().enumerate() {
                let field = format!("servers[{nr}].server");
                let Some(row) = index.get(name).map(|at| &parts.servers[*at]) else {
                    wrong.push(unknown(field, name));
                    continue;
                };
                if let Some((reason, detail)) = held_back(row, moving, &buffers, true) {
                    if matches!(edit, ServerEdit::Drain(_)) {
                        plan.draining.insert(name.clone());
                        if let Some(holder) = &row.current_reservation {
                            *plan.held.entry(holder.clone()).or_default() += 1;
                        }
                    } else {
                        wrong.push(WrongField::new(field, reason, detail));
                    }
                }
                *plan.change.entry((row.hardware_type.clone(), row.msb.clone())).or_default() -= 1;
            }
            parts.servers.retain(|row| !twice.contains(&row.server_id));
            parts
                .unavailability
                .retain(|event| !(*event.scope == *"server" && twice.contains(&*event.scope_id)));
        }
        ServerEdit::Move(rows) => {
            for (nr, of) in rows.iter().enumerate() {
                let field = |name: &str| format!("servers[{nr}].{name}");
                let Some(at) = index.get(&of.server).copied() else {
                    wrong.push(unknown(field("server"), &of.server));
                    continue;
                };
                if let Some((reason, detail)) =
                    held_back(&parts.servers[at], moving, &buffers, false)
                {
                    wrong.push(WrongField::new(field("server"), reason, detail));
                }
                let (msb, datacenter) = (of.msb.as_ref(), of.datacenter.as_ref());
                let found = places.find(&mut wrong, &field, &of.rack, msb, datacenter);
                let Some((msb, datacenter)) = found else { continue };
                let row = &mut parts.servers[at];
                let ty = row.hardware_type.clone();
                *plan.change.entry((ty.clone(), row.msb.clone())).or_default() -= 1;
                *plan.change.entry((ty, msb.clone())).or_default() += 1;
                if let Some(holder) = &row.current_reservation {
                    *plan.held.entry(holder.clone()).or_default() += 1;
                }
                (row.rack, row.msb, row.datacenter) = (of.rack.clone(), msb, datacenter);
            }
        }
    }
    wrong.extend(empty_datacenters(parts, &places));
    let (connected, gone): (Vec<Connected>, &[ServerName]) = match edit {
        ServerEdit::Add(rows) => {
            (rows.iter().map(|of| (&of.server, &of.rack, &of.domains)).collect(), &[])
        }
        ServerEdit::Move(rows) => {
            (rows.iter().map(|of| (&of.server, &of.rack, &of.domains)).collect(), &[])
        }
        ServerEdit::Remove(names) | ServerEdit::Drain(names) => (Vec::new(), names),
    };
    connect(parts, &connected, gone, &mut wrong);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    plan.change.retain(|_, count| *count != 0);
    let now_racks = places.msb_of_rack.into_keys();
    plan.new_racks = now_racks.filter(|name| !racks.contains(name)).collect();
    let now_msbs = places.datacenter_of_msb.into_keys();
    plan.new_msbs = now_msbs.filter(|name| !msbs.contains(name)).collect();
    Ok(plan)
}

/// Datacenters without a server left that reservations are held to.
fn empty_datacenters(parts: &SnapshotParts, before: &Places) -> Vec<WrongField> {
    let left: BTreeSet<&DatacenterName> = parts.servers.iter().map(|row| &row.datacenter).collect();
    let known: BTreeSet<&DatacenterName> = before.datacenter_of_msb.values().collect();
    let mut held: BTreeMap<&DatacenterName, BTreeSet<ReservationName>> = BTreeMap::new();
    for row in &parts.allowed_datacenters {
        let datacenter = &row.datacenter;
        if known.contains(datacenter) && !left.contains(datacenter) {
            held.entry(datacenter).or_default().insert(row.reservation_id.clone());
        }
    }
    let wrong = |(datacenter, reservations): (&DatacenterName, BTreeSet<ReservationName>)| {
        let detail = format!(
            "datacenter {datacenter:?} would have no server left, and {} may have servers there: take it \
             off their allowed datacenters first",
            listed(&reservations)
        );
        WrongField::new("servers", "last_of_datacenter", detail)
    };
    held.into_iter().map(wrong).collect()
}

fn unknown(field: String, name: &ServerName) -> WrongField {
    WrongField::new(field, "unknown_server", format!("there is no server {name:?}"))
}

/// What takes a server out of a reservation.
const DRAIN: &str = "ask for it to be drained (`drain`), or report a failure of it (POST /ops/v1/events), so that a \
                     spare takes its place";

/// Why a server can neither go nor stand elsewhere now, and what must happen first.
fn held_back(
    row: &ServerRow,
    moving: &BTreeSet<ServerName>,
    buffers: &BTreeSet<ReservationName>,
    goes: bool,
) -> Option<(&'static str, String)> {
    let name = &row.server_id;
    if row.in_use {
        let holder = row.current_reservation.as_deref().unwrap_or_default();
        let first = if goes { DRAIN } else { "plan maintenance of it, which drains it" };
        return Some(("in_use", format!("{name:?} is in use by {holder:?}: {first}")));
    }
    if let Some(borrower) = &row.loaned_to {
        let detail = format!("{name:?} is lent to {borrower:?}: it must come back first");
        return Some(("lent", detail));
    }
    if row.target_pending || moving.contains(name) {
        let detail = format!("{name:?} is on its way to another owner: wait until that is done");
        return Some(("moving", detail));
    }
    let owner = row.current_reservation.as_ref().filter(|owner| !buffers.contains(*owner));
    if let Some(owner) = owner.filter(|_| goes) {
        let detail = format!("{name:?} belongs to {owner:?}: {DRAIN}");
        return Some(("held", detail));
    }
    None
}
