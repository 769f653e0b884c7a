//! Places, hardware types and partitions: names and numbers.

use crate::infra::error::{DbError, Doing};
use fleet::{DatacenterName, HardwareTypeName, MsbName, PartitionName, RackName, RegionSnapshot};
use sqlx::PgConnection;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

pub(crate) mod sql {
    crate::statements! {
        DATACENTERS = "SELECT datacenter_id, datacenter::text FROM datacenters";
        MSBS = "SELECT msb_id, msb::text, datacenter_id FROM msbs";
        RACKS = "SELECT rack_id, rack::text, msb_id FROM racks";
        HARDWARE_TYPES = "SELECT hardware_type_id, hardware_type::text FROM hardware_types";
        PARTITIONS = "SELECT partition_id, partition::text FROM partitions";
        ADD_PARTITIONS = "INSERT INTO partitions (partition) \
            SELECT w.name FROM unnest($1::text[]) AS w (name) \
            WHERE NOT EXISTS (SELECT FROM partitions h WHERE h.partition = w.name)";
        ADD_DATACENTERS = "INSERT INTO datacenters (datacenter) \
            SELECT w.name FROM unnest($1::text[]) AS w (name) \
            WHERE NOT EXISTS (SELECT FROM datacenters h WHERE h.datacenter = w.name)";
        ADD_HARDWARE_TYPES = "INSERT INTO hardware_types (hardware_type) \
            SELECT w.name FROM unnest($1::text[]) AS w (name) \
            WHERE NOT EXISTS (SELECT FROM hardware_types h WHERE h.hardware_type = w.name)";
        ADD_MSBS = "INSERT INTO msbs (msb, datacenter_id) \
            SELECT w.name, d.datacenter_id FROM unnest($1::text[], $2::text[]) AS w (name, datacenter) \
            JOIN datacenters d ON d.datacenter = w.datacenter \
            WHERE NOT EXISTS (SELECT FROM msbs h WHERE h.msb = w.name)";
        MOVE_MSBS = "UPDATE msbs m SET datacenter_id = d.datacenter_id \
            FROM unnest($1::text[], $2::text[]) AS w (name, datacenter) \
            JOIN datacenters d ON d.datacenter = w.datacenter \
            WHERE m.msb = w.name AND m.datacenter_id <> d.datacenter_id";
        ADD_RACKS = "INSERT INTO racks (rack, msb_id) \
            SELECT w.name, m.msb_id FROM unnest($1::text[], $2::text[]) AS w (name, msb) \
            JOIN msbs m ON m.msb = w.msb \
            WHERE NOT EXISTS (SELECT FROM racks h WHERE h.rack = w.name)";
        MOVE_RACKS = "UPDATE racks r SET msb_id = m.msb_id \
            FROM unnest($1::text[], $2::text[]) AS w (name, msb) JOIN msbs m ON m.msb = w.msb \
            WHERE r.rack = w.name AND r.msb_id <> m.msb_id";
    }
}

/// Names and their numbers in the database, in both directions.
pub(crate) struct Names<N> {
    by_id: HashMap<i32, N>,
    by_name: HashMap<N, i32>,
}

impl<N> Default for Names<N> {
    fn default() -> Self {
        Names { by_id: HashMap::new(), by_name: HashMap::new() }
    }
}

impl<N: Borrow<str> + Clone + Eq + Hash> Names<N> {
    pub(crate) fn insert(&mut self, id: i32, name: N) {
        self.by_name.insert(name.clone(), id);
        self.by_id.insert(id, name);
    }

    /// The name for a foreign key.
    ///
    /// # Panics
    /// If the row is missing, which foreign keys prevent within one transaction.
    pub(crate) fn name(&self, id: i32) -> &N {
        self.by_id.get(&id).expect("a foreign key refers to a row")
    }

    pub(crate) fn id(&self, name: &str) -> Option<i32> {
        self.by_name.get(name).copied()
    }
}

/// The place of a rack.
pub(crate) struct Place {
    pub(crate) rack: RackName,
    pub(crate) msb: MsbName,
    pub(crate) datacenter: DatacenterName,
}

/// All places, hardware types and partitions, with or without servers.
pub(crate) struct Topology {
    pub(crate) datacenters: Names<DatacenterName>,
    pub(crate) racks: Names<RackName>,
    pub(crate) hardware_types: Names<HardwareTypeName>,
    /// Partitions into fault domains that cross MSBs.
    pub(crate) partitions: Names<PartitionName>,
    places: HashMap<i32, Place>,
}

impl Topology {
    pub(crate) async fn read(db: &mut PgConnection) -> Result<Topology, DbError> {
        Topology::select(db).await.doing("reading the topology")
    }

    async fn select(db: &mut PgConnection) -> Result<Topology, sqlx::Error> {
        let mut datacenters = Names::<DatacenterName>::default();
        let rows: Vec<(i32, String)> = sqlx::query_as(sql::DATACENTERS).fetch_all(&mut *db).await?;
        for (id, name) in rows {
            datacenters.insert(id, name.into());
        }
        let mut msbs: HashMap<i32, (MsbName, DatacenterName)> = HashMap::new();
        let rows: Vec<(i32, String, i32)> = sqlx::query_as(sql::MSBS).fetch_all(&mut *db).await?;
        for (id, name, datacenter) in rows {
            msbs.insert(id, (name.into(), datacenters.name(datacenter).clone()));
        }
        let (mut racks, mut places) = (Names::default(), HashMap::new());
        let rows: Vec<(i32, String, i32)> = sqlx::query_as(sql::RACKS).fetch_all(&mut *db).await?;
        for (id, name, msb) in rows {
            let rack: RackName = name.into();
            let (msb, datacenter) = msbs.get(&msb).expect("a foreign key refers to a row").clone();
            racks.insert(id, rack.clone());
            places.insert(id, Place { rack, msb, datacenter });
        }
        let mut hardware_types = Names::default();
        let rows: Vec<(i32, String)> =
            sqlx::query_as(sql::HARDWARE_TYPES).fetch_all(&mut *db).await?;
        for (id, name) in rows {
            hardware_types.insert(id, name.into());
        }
        let mut partitions = Names::<PartitionName>::default();
        let rows: Vec<(i32, String)> = sqlx::query_as(sql::PARTITIONS).fetch_all(&mut *db).await?;
        for (id, name) in rows {
            partitions.insert(id, name.into());
        }
        Ok(Topology { datacenters, racks, hardware_types, partitions, places })
    }

    /// The place of a rack, by foreign key.
    ///
    /// # Panics
    /// If the row is missing, which foreign keys prevent within one transaction.
    pub(crate) fn place(&self, rack: i32) -> &Place {
        self.places.get(&rack).expect("a foreign key refers to a row")
    }
}

fn text<'a, N: ToString + 'a>(names: impl Iterator<Item = &'a N>) -> Vec<String> {
    names.map(ToString::to_string).collect()
}

/// Adds the snapshot's new places, types and partitions, and moves those with a new parent. Removes nothing.
pub(crate) async fn write(db: &mut PgConnection, from: &RegionSnapshot) -> Result<(), DbError> {
    let doing = "storing the topology";
    let datacenters = text(from.datacenters.iter().map(|d| &d.id));
    sqlx::query(sql::ADD_DATACENTERS).bind(datacenters).execute(&mut *db).await.doing(doing)?;
    let types = text(from.hardware_types.iter());
    sqlx::query(sql::ADD_HARDWARE_TYPES).bind(types).execute(&mut *db).await.doing(doing)?;
    let partitions = text(from.partitions.iter().map(|of| &of.name));
    sqlx::query(sql::ADD_PARTITIONS).bind(partitions).execute(&mut *db).await.doing(doing)?;
    let msbs = text(from.msbs.iter().map(|m| &m.id));
    let of = text(from.msbs.iter().map(|m| &from.datacenters[m.datacenter.ix()].id));
    for statement in [sql::ADD_MSBS, sql::MOVE_MSBS] {
        sqlx::query(statement).bind(&msbs).bind(&of).execute(&mut *db).await.doing(doing)?;
    }
    let racks = text(from.racks.iter().map(|r| &r.id));
    let of = text(from.racks.iter().map(|r| &from.msbs[r.msb.ix()].id));
    for statement in [sql::ADD_RACKS, sql::MOVE_RACKS] {
        sqlx::query(statement).bind(&racks).bind(&of).execute(&mut *db).await.doing(doing)?;
    }
    Ok(())
}
