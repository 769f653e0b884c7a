//! The difference between the stored region and a snapshot, as a value that operators can review before the
//! import.

use crate::promises::promise::Promise;
use crate::snapshot::domains;
use crate::snapshot::region_read::Stored;
use fleet::{
    HardwareTypeName, Name, RegionSnapshot, ReservationName, ServerName, ServerRow, SnapshotParts,
    UnavailabilityRow, is_stand_in,
};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The share of stored servers, reservations or bindings that a snapshot may lack. More suggests a truncated
/// snapshot, one of another region or one without a column, and is refused unless forced.
pub const VANISHING_MAX: f64 = 0.05;

/// The treatment of stored things that the snapshot lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// They stay.
    #[default]
    Keep,
    /// They are deleted; their history stays, by name.
    Remove,
}

/// The difference in one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes<N> {
    /// The number of stored rows.
    pub stored: usize,
    /// Names in the snapshot only.
    pub added: Vec<N>,
    /// Names in both, with different rows.
    pub changed: Vec<N>,
    /// Names in the store only.
    pub missing: Vec<N>,
}

impl<N> Default for Changes<N> {
    fn default() -> Self {
        Changes { stored: 0, added: Vec::new(), changed: Vec::new(), missing: Vec::new() }
    }
}

impl<N: Clone + Ord> Changes<N> {
    /// Whether the tables are equal.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.missing.is_empty()
    }

    /// Whether the snapshot has no new and no changed row.
    fn adds_nothing(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty()
    }

    /// Compares two lists, each in order of name.
    fn between<'a, T: PartialEq + 'a>(
        stored: impl Iterator<Item = (&'a N, &'a T)>,
        wanted: impl Iterator<Item = (&'a N, &'a T)>,
    ) -> Changes<N>
    where
        N: 'a,
    {
        let (mut stored, mut wanted) = (stored.peekable(), wanted.peekable());
        let mut changes = Changes::default();
        loop {
            let order = match (stored.peek(), wanted.peek()) {
                (None, None) => return changes,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            let old = (order != Ordering::Greater).then(|| stored.next()).flatten();
            let new = (order != Ordering::Less).then(|| wanted.next()).flatten();
            changes.stored += usize::from(old.is_some());
            match (old, new) {
                (Some((name, old)), Some((_, new))) if old != new => {
                    changes.changed.push(name.clone());
                }
                (Some((name, _)), None) => changes.missing.push(name.clone()),
                (None, Some((name, _))) => changes.added.push(name.clone()),
                _ => {}
            }
        }
    }
}

/// A table of which more than [`VANISHING_MAX`] would be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vanishing {
    /// What: `servers`, `reservations`, `bindings` or `fault domains of servers`.
    pub what: &'static str,
    /// The number that would be gone.
    pub missing: usize,
    /// The number that is stored.
    pub stored: usize,
}

/// A contradiction between the snapshot and the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Elsewhere {
    /// What it is: `server`, `rack`, `MSB`, `hardware type of server`, `kind of reservation`.
    pub what: &'static str,
    /// The name of the thing.
    pub name: Name,
    /// The stored value.
    pub stored: Name,
    /// The snapshot's value.
    pub wanted: Name,
}

/// The changes that an import would make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportPlan {
    /// Whether this is the first import.
    pub first: bool,
    /// Whether prices or limits change.
    pub weights_changed: bool,
    /// Servers that differ in any column, fault domains included.
    pub servers: Changes<ServerName>,
    /// Changed servers of which a fault domain differs.
    pub domains_changed: usize,
    /// Stored fault domains of servers, one for each server and partition.
    pub domains_stored: usize,
    /// Of these, those of servers that are in none in the snapshot.
    pub domains_missing: usize,
    /// Changed servers whose owner, target or loan differs.
    pub bindings_changed: usize,
    /// Stored servers with an owner.
    pub bindings_stored: usize,
    /// Of these, servers without an owner in the snapshot.
    pub bindings_freed: usize,
    /// Of these, servers that are not in the snapshot.
    pub bindings_missing: usize,
    /// Reservations that differ in any term; changed ones get a new version of their promise.
    pub reservations: Changes<ReservationName>,
    /// Unavailability events.
    pub unavailability: Changes<Name>,
    /// Contradictions: servers, racks and MSBs in another place, servers of another type, reservations of
    /// another kind.
    pub contradictions: Vec<Elsewhere>,
    /// Types of stored servers that the snapshot does not know, with the number of servers.
    pub types_missing: Vec<(HardwareTypeName, usize)>,
}

impl ImportPlan {
    /// Whether the import would change nothing, deletions aside.
    pub fn is_empty(&self) -> bool {
        let unchanged = self.servers.adds_nothing()
            && self.reservations.adds_nothing()
            && self.unavailability.adds_nothing();
        !self.first && !self.weights_changed && unchanged
    }

    /// Whether the snapshot lacks anything stored.
    pub fn lacks_something(&self) -> bool {
        !(self.servers.missing.is_empty()
            && self.reservations.missing.is_empty()
            && self.unavailability.missing.is_empty())
    }

    /// Whether the snapshot contradicts the store in rarely changing columns.
    pub fn contradicts(&self) -> bool {
        !self.contradictions.is_empty() || !self.types_missing.is_empty()
    }

    /// The first table of which more than [`VANISHING_MAX`] would be gone. A binding is gone with its server if
    /// that is removed.
    pub fn vanishing(&self, missing: Missing) -> Option<Vanishing> {
        let removed = if missing == Missing::Remove { self.bindings_missing } else { 0 };
        [
            ("servers", self.servers.missing.len(), self.servers.stored),
            ("reservations", self.reservations.missing.len(), self.reservations.stored),
            ("bindings", self.bindings_freed + removed, self.bindings_stored),
            ("fault domains of servers", self.domains_missing, self.domains_stored),
        ]
        .into_iter()
        .map(|(what, missing, stored)| Vanishing { what, missing, stored })
        .find(|of| of.missing as f64 > VANISHING_MAX * of.stored as f64)
    }

    /// Adds reservations that the inventory lacks and that stay because they hold servers.
    pub(crate) fn with_missing<'a>(
        mut self,
        names: impl Iterator<Item = &'a ReservationName>,
    ) -> ImportPlan {
        let missing = &mut self.reservations.missing;
        missing.extend(names.cloned());
        missing.sort_unstable();
        self
    }

    /// Compares the store with a snapshot, given its rows and its promises.
    pub(crate) fn between(
        stored: &Stored,
        snapshot: &RegionSnapshot,
        wanted: &SnapshotParts,
        promises: &BTreeMap<ReservationName, Promise>,
    ) -> ImportPlan {
        let event = |row: &UnavailabilityRow| row.event_id.clone();
        let old_events: Vec<Name> = stored.unavailability.iter().map(event).collect();
        let new_events: Vec<Name> = wanted.unavailability.iter().map(event).collect();
        // Made buffers follow from the fraction and the servers; they have no promise of their own.
        let listed =
            |promises: &BTreeMap<ReservationName, Promise>| -> BTreeMap<ReservationName, Promise> {
                let listed = promises.iter().filter(|(_, promise)| !promise.made);
                listed.map(|(name, promise)| (name.clone(), promise.clone())).collect()
            };
        let mut plan = ImportPlan {
            first: stored.region.is_none(),
            weights_changed: stored.region.as_ref().is_some_and(|region| {
                region.weights != snapshot.weights
                    || region.shared_buffer_fraction != snapshot.shared_buffer_fraction
            }),
            servers: Changes::between(
                stored.servers.iter().map(|(row, _)| (&row.server_id, row)),
                wanted.servers.iter().map(|row| (&row.server_id, row)),
            ),
            reservations: Changes::between(
                listed(&stored.promises).iter(),
                listed(promises).iter(),
            ),
            unavailability: Changes::between(
                old_events.iter().zip(&stored.unavailability),
                new_events.iter().zip(&wanted.unavailability),
            ),
            ..ImportPlan::default()
        };
        plan.domains(stored, wanted);
        plan.contradictions(stored, wanted, promises);
        plan
    }

    /// Counts servers whose fault domains differ among the changed ones.
    fn domains(&mut self, stored: &Stored, wanted: &SnapshotParts) {
        let Changes { added, changed, .. } = &mut self.servers;
        let changes = domains::changes(&stored.partitions, wanted);
        let of: BTreeSet<&ServerName> = (changes.iter().map(|change| change.server))
            .filter(|server| added.binary_search(server).is_err())
            .collect();
        self.domains_changed = of.len();
        self.domains_stored = stored.partitions.iter().map(|column| column.domains.len()).sum();
        self.domains_missing = changes.iter().filter(|change| change.domain.is_none()).count();
        let more: Vec<ServerName> =
            of.into_iter().filter(|of| changed.binary_search(of).is_err()).cloned().collect();
        if !more.is_empty() {
            changed.extend(more);
            changed.sort_unstable();
        }
    }

    fn contradictions(
        &mut self,
        stored: &Stored,
        wanted: &SnapshotParts,
        promises: &BTreeMap<ReservationName, Promise>,
    ) {
        let mut found: BTreeSet<Elsewhere> = BTreeSet::new();
        let mut note = |what, name: &str, stored: &str, wanted: &str| {
            if stored != wanted {
                let (name, stored, wanted) = (name.into(), stored.into(), wanted.into());
                found.insert(Elsewhere { what, name, stored, wanted });
            }
        };
        let (mut msb_of, mut datacenter_of) = (BTreeMap::new(), BTreeMap::new());
        let mut types: BTreeMap<&HardwareTypeName, usize> = BTreeMap::new();
        for (row, _) in &stored.servers {
            msb_of.insert(&row.rack, &row.msb);
            datacenter_of.insert(&row.msb, &row.datacenter);
            *types.entry(&row.hardware_type).or_default() += 1;
        }
        let mut old = stored.servers.iter().map(|(row, _)| row).peekable();
        let held = |row: &ServerRow| usize::from(row.current_reservation.is_some());
        self.bindings_stored = stored.servers.iter().map(|(row, _)| held(row)).sum();
        let mut seen = 0;
        for new in &wanted.servers {
            if let Some(msb) = msb_of.get(&new.rack) {
                note("rack", &new.rack, msb, &new.msb);
            }
            if let Some(datacenter) = datacenter_of.get(&new.msb) {
                note("MSB", &new.msb, datacenter, &new.datacenter);
            }
            while old.next_if(|row| row.server_id < new.server_id).is_some() {}
            if let Some(old) = old.next_if(|row| row.server_id == new.server_id) {
                seen += held(old);
                // A newly known rack is not a move of the server.
                if !(old.msb == new.msb && is_stand_in(&old.rack, &old.msb)) {
                    note("server", &new.server_id, &old.rack, &new.rack);
                }
                let types = (&old.hardware_type, &new.hardware_type);
                note("hardware type of server", &new.server_id, types.0, types.1);
                self.bindings_changed += usize::from(binding(old) != binding(new));
                self.bindings_freed += held(old).saturating_sub(held(new));
            }
        }
        self.bindings_missing = self.bindings_stored - seen;
        for (name, promise) in promises {
            if let Some(old) = stored.promises.get(name) {
                let kinds = (old.kind.as_str(), promise.kind.as_str());
                note("kind of reservation", name, kinds.0, kinds.1);
            }
        }
        self.contradictions = found.into_iter().collect();
        let known: BTreeSet<&HardwareTypeName> =
            (wanted.servers.iter().map(|row| &row.hardware_type))
                .chain(promises.values().flat_map(|promise| promise.rru.iter().map(|(ty, _)| ty)))
                .collect();
        types.retain(|hardware_type, _| !known.contains(hardware_type));
        self.types_missing = types.into_iter().map(|(ty, servers)| (ty.clone(), servers)).collect();
    }
}

fn binding(row: &ServerRow) -> impl PartialEq + '_ {
    (&row.current_reservation, row.target_pending, &row.target_reservation, &row.loaned_to)
}

/// How many names of a kind a plan prints.
const NAMES_SHOWN: usize = 10;

/// A line with the first few names.
fn names<N: AsRef<str>>(out: &mut fmt::Formatter<'_>, what: &str, names: &[N]) -> fmt::Result {
    if names.is_empty() {
        return Ok(());
    }
    let shown: Vec<&str> = names.iter().take(NAMES_SHOWN).map(AsRef::as_ref).collect();
    write!(out, "  {what}: {}", shown.join(", "))?;
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => writeln!(out),
        more => writeln!(out, " and {more} more"),
    }
}

/// The changes of a table: a line of counts, and the first few names of each kind.
fn table<N: AsRef<str>>(
    out: &mut fmt::Formatter<'_>,
    what: &str,
    changes: &Changes<N>,
) -> fmt::Result {
    let Changes { stored, added, changed, missing } = changes;
    write!(out, "{what}: {stored} stored, {} added, ", added.len())?;
    writeln!(out, "{} changed, {} not in the snapshot", changed.len(), missing.len())?;
    names(out, "added", added)?;
    names(out, "changed", changed)?;
    names(out, "not in the snapshot", missing)
}

/// One line per table, and the first few names of each kind of change.
impl fmt::Display for ImportPlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        table(out, "servers", &self.servers)?;
        table(out, "reservations", &self.reservations)?;
        table(out, "unavailability events", &self.unavailability)?;
        writeln!(
            out,
            "bindings: {} stored, {} changed, {} freed",
            self.bindings_stored, self.bindings_changed, self.bindings_freed
        )?;
        if self.domains_changed > 0 {
            writeln!(out, "fault domains: changed for {} servers", self.domains_changed)?;
        }
        if self.weights_changed {
            writeln!(out, "prices and limits: changed")?;
        }
        for Elsewhere { what, name, stored, wanted } in self.contradictions.iter().take(NAMES_SHOWN)
        {
            writeln!(out, "contradiction: {what} {name}: stored {stored}, snapshot {wanted}")?;
        }
        if self.contradictions.len() > NAMES_SHOWN {
            writeln!(out, "and {} more contradictions", self.contradictions.len() - NAMES_SHOWN)?;
        }
        for (hardware_type, servers) in &self.types_missing {
            writeln!(
                out,
                "contradiction: hardware type {hardware_type}: {servers} servers stored, unknown to the snapshot"
            )?;
        }
        Ok(())
    }
}
