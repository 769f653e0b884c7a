//! The tables of a region.

use crate::world::{Column, Decided, Table, Type, Unusable, Value, World, WorldError, table};
use fleet::{ExtraCells, ExtraTable, RegionSnapshot, ReservationIx, ReservationKind, Rru};
use std::collections::BTreeMap;

fn text(of: impl AsRef<str>) -> Value {
    Value::Text(of.as_ref().to_owned())
}

/// A float to the nearest millionth, as the formats keep amounts.
fn decimal(amount: f64) -> Result<Value, WorldError> {
    let message = || WorldError { message: format!("{amount} is too large for a decimal") };
    Rru::from_f64(amount).map(|rru| Value::Decimal(rru.0)).ok_or_else(message)
}

fn maybe(amount: Option<f64>) -> Result<Value, WorldError> {
    amount.map_or(Ok(Value::Null), decimal)
}

impl World {
    /// The tables of a region: `servers`, whose `target_reservation` is decided where the server is
    /// available and not pinned, `reservations`, `rru`, `affinity`, `racks`, `msbs`, `datacenters` and
    /// `weights`. A server goes to any reservation but elastic ones, or to none.
    ///
    /// # Errors
    /// If an amount has more than 12 digits before the point.
    pub fn region(snapshot: &RegionSnapshot) -> Result<World, WorldError> {
        World::region_with(snapshot, &[])
    }

    /// The same with columns that the snapshot has beyond its format.
    ///
    /// # Errors
    /// If an amount has more than 12 digits before the point, or an extra column has the name of another
    /// or a row that the region has not.
    pub fn region_with(
        snapshot: &RegionSnapshot,
        extra: &[ExtraTable],
    ) -> Result<World, WorldError> {
        use Type::{Boolean, Decimal, Integer, Text};
        let reservation = |ix: Option<ReservationIx>| {
            ix.map_or(Value::Null, |ix| text(&snapshot.reservations[ix.ix()].id))
        };
        let place = |server: &fleet::Server| {
            let msb = snapshot.msb_of(server);
            let datacenter = snapshot.datacenter_of(server);
            let rack = text(&snapshot.racks[server.rack.ix()].id);
            let msb = text(&snapshot.msbs[msb.ix()].id);
            [text(&snapshot.datacenters[datacenter.ix()].id), msb, rack]
        };
        let mut servers = Vec::with_capacity(snapshot.servers.len());
        for server in &snapshot.servers {
            let [datacenter, msb, rack] = place(server);
            let open = server.available && !server.pinned;
            servers.push(vec![
                text(&server.id),
                datacenter,
                msb,
                rack,
                text(&snapshot.hardware_types[server.hardware_type.ix()]),
                reservation(server.current),
                reservation(server.holder()),
                reservation(if open { server.holder() } else { server.current }),
                Value::Boolean(server.available),
                Value::Boolean(server.in_use),
                maybe(server.power_watts)?,
            ]);
        }
        let open = snapshot.servers.iter().map(|server| server.available && !server.pinned);
        let open = open.collect();
        let mut options = vec![Value::Null];
        let (mut reservations, mut rru, mut affinity) = (Vec::new(), Vec::new(), Vec::new());
        for of in &snapshot.reservations {
            if of.kind != ReservationKind::Elastic {
                options.push(text(&of.id));
            }
            reservations.push(vec![
                text(&of.id),
                text(&of.owner),
                text(of.kind.as_str()),
                Value::Decimal(of.capacity.0),
                Value::Boolean(of.msb_buffer),
                Value::Integer(i64::from(of.priority)),
                maybe(of.msb_alpha.or(snapshot.weights.msb_alpha))?,
                maybe(of.rack_alpha.or(snapshot.weights.rack_alpha))?,
                decimal(of.affinity_theta.unwrap_or(snapshot.weights.affinity_theta))?,
            ]);
            for (hardware_type, value) in &of.rru {
                let hardware_type = text(&snapshot.hardware_types[hardware_type.ix()]);
                rru.push(vec![text(&of.id), hardware_type, Value::Decimal(value.0)]);
            }
            for (datacenter, share) in &of.affinity {
                let datacenter = text(&snapshot.datacenters[datacenter.ix()].id);
                affinity.push(vec![text(&of.id), datacenter, decimal(*share)?]);
            }
        }
        let datacenter_of = |msb: &fleet::Msb| text(&snapshot.datacenters[msb.datacenter.ix()].id);
        let racks = snapshot.racks.iter().map(|rack| {
            let msb = &snapshot.msbs[rack.msb.ix()];
            vec![text(&rack.id), text(&msb.id), datacenter_of(msb)]
        });
        let msbs = snapshot.msbs.iter().map(|msb| vec![text(&msb.id), datacenter_of(msb)]);
        let datacenters = snapshot.datacenters.iter().map(|datacenter| vec![text(&datacenter.id)]);
        let weights = &snapshot.weights;
        let weights = vec![
            decimal(weights.move_in_use)?,
            decimal(weights.move_idle)?,
            decimal(weights.spread_beta)?,
            decimal(weights.buffer_tau)?,
        ];
        let mut tables = vec![
            table(
                "servers",
                &[
                    ("server_id", Text),
                    ("datacenter", Text),
                    ("msb", Text),
                    ("rack", Text),
                    ("hardware_type", Text),
                    ("current_reservation", Text),
                    ("holder", Text),
                    ("target_reservation", Text),
                    ("available", Boolean),
                    ("in_use", Boolean),
                    ("power_watts", Decimal),
                ],
                servers,
            ),
            table(
                "reservations",
                &[
                    ("reservation_id", Text),
                    ("owner", Text),
                    ("kind", Text),
                    ("capacity_rru", Decimal),
                    ("msb_buffer", Boolean),
                    ("priority", Integer),
                    ("msb_alpha", Decimal),
                    ("rack_alpha", Decimal),
                    ("affinity_theta", Decimal),
                ],
                reservations,
            ),
            table(
                "rru",
                &[("reservation_id", Text), ("hardware_type", Text), ("rru", Decimal)],
                rru,
            ),
            table(
                "affinity",
                &[("reservation_id", Text), ("datacenter", Text), ("share", Decimal)],
                affinity,
            ),
            table("racks", &[("rack", Text), ("msb", Text), ("datacenter", Text)], racks.collect()),
            table("msbs", &[("msb", Text), ("datacenter", Text)], msbs.collect()),
            table("datacenters", &[("datacenter", Text)], datacenters.collect()),
            table(
                "weights",
                &[
                    ("move_in_use", Decimal),
                    ("move_idle", Decimal),
                    ("spread_beta", Decimal),
                    ("buffer_tau", Decimal),
                ],
                vec![weights],
            ),
        ];
        let mut unusable = Vec::new();
        for of in extra {
            let name = of.of.table();
            if let Some(table) = tables.iter_mut().find(|table| table.name == name) {
                append(table, of)?;
            }
            unusable.extend(of.unusable.iter().map(|(column, reason)| Unusable {
                table: name.to_owned(),
                column: column.clone(),
                reason: reason.clone(),
            }));
        }
        let (table, column) = ("servers".to_owned(), "target_reservation".to_owned());
        let world = World::new(tables, Decided { table, column, options, open })?;
        Ok(world.with_unusable(unusable))
    }
}

/// Adds the extra columns of a table; rows that they do not name have NULL.
fn append(table: &mut Table, extra: &ExtraTable) -> Result<(), WorldError> {
    let file = extra.of.file();
    let rows = table.rows.iter().enumerate();
    let by_key: BTreeMap<String, usize> =
        rows.map(|(row, cells)| (cells[0].to_string(), row)).collect();
    let mut at = Vec::with_capacity(extra.keys.len());
    for key in &extra.keys {
        let row = by_key.get(&**key).copied().ok_or_else(|| WorldError {
            message: format!("{file}: {} {key:?} is not in the region", extra.of.key()),
        })?;
        at.push(row);
    }
    for column in &extra.columns {
        if table.columns.iter().any(|own| own.name == column.name) {
            let message =
                format!("{file}: column {:?} has the name of a column of policies", column.name);
            return Err(WorldError { message });
        }
        let (of, cells) = values(&column.cells);
        table.columns.push(Column { name: column.name.clone(), of });
        table.rows.iter_mut().for_each(|row| row.push(Value::Null));
        for (&row, value) in at.iter().zip(cells) {
            if let Some(cell) = table.rows[row].last_mut() {
                *cell = value;
            }
        }
    }
    Ok(())
}

fn values(cells: &ExtraCells) -> (Type, Vec<Value>) {
    fn each<T: Clone>(cells: &[Option<T>], of: impl Fn(T) -> Value) -> Vec<Value> {
        cells.iter().map(|cell| cell.clone().map_or(Value::Null, &of)).collect()
    }
    match cells {
        ExtraCells::Text(cells) => (Type::Text, each(cells, text)),
        ExtraCells::Integer(cells) => (Type::Integer, each(cells, Value::Integer)),
        ExtraCells::Decimal(cells) => (Type::Decimal, each(cells, Value::Decimal)),
        ExtraCells::Boolean(cells) => (Type::Boolean, each(cells, Value::Boolean)),
        ExtraCells::Date(cells) => (Type::Date, each(cells, Value::Date)),
    }
}
