//! What a decision made on an exported region rests on, beside the snapshot in the same folder.
//!
//! The format allows extra columns and members, and other readers ignore them: `version` in
//! `region.json`, `generation` in `servers.parquet`. With them, targets can be published from
//! files alone.

use crate::error::ReadError;
use crate::read::{RegionFile, read_json};
use crate::schema::{GENERATIONS, SNAPSHOT_FORMATS};
use crate::table::{NamePool, read_table};
use fleet::{Name, RegionSnapshot, Table};
use std::path::Path;

/// The version of the targets, and the generation of each server in the snapshot's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    /// The version of the targets: the parent of what is decided on it.
    pub version: i64,
    /// How often each server's binding, rack or type had changed.
    pub generations: Vec<i64>,
}

/// Reads what a snapshot's folder says of the store it was exported from; `None`: it comes from
/// elsewhere.
///
/// # Errors
/// If it has a version and not a generation for every server of the snapshot.
pub fn read_basis(dir: &Path, snapshot: &RegionSnapshot) -> Result<Option<Basis>, ReadError> {
    let region: RegionFile = read_json(&dir.join(Table::Region.file()), SNAPSHOT_FORMATS)?;
    let Some(version) = region.version else { return Ok(None) };
    let mut rows: Vec<(Name, i64)> = Vec::with_capacity(snapshot.servers.len());
    read_table(dir, &GENERATIONS, &mut NamePool::default(), |batch| {
        let ids = batch.ids("server_id")?;
        let generations = batch.optional_counts("generation");
        for (row, (id, generation)) in ids.into_iter().zip(generations).enumerate() {
            let generation = generation.ok_or_else(|| {
                let (file, row) = (batch.file(), batch.label(row));
                ReadError::Null { file, row, column: "generation" }
            })?;
            rows.push((id, generation));
        }
        Ok::<(), ReadError>(())
    })?;
    rows.sort_unstable();
    let named = rows.iter().map(|(name, _)| &**name);
    if !named.eq(snapshot.servers.iter().map(|server| &*server.id)) {
        let file = dir.join(GENERATIONS.file);
        let detail = "it changed while it was being read".to_owned();
        return Err(ReadError::Parquet { file, detail });
    }
    let generations = rows.into_iter().map(|(_, generation)| generation).collect();
    Ok(Some(Basis { version, generations }))
}
