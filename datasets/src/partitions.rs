//! Columns `domain:NAME` of `servers.parquet`: fault domains that cross MSBs.

use crate::error::ReadError;
use crate::schema::{ColumnType, SERVERS, TableSchema};
use crate::table::{NamePool, read_columns, texts};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{Field, Schema, SchemaRef};
use fleet::{DOMAIN_COLUMN_PREFIX, DomainName, PartitionColumn, ServerName, ServerRow};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Reads the partitions of a folder of version 3, in the order of its columns.
pub(crate) fn read_partitions(
    dir: &Path,
    pool: &mut NamePool,
) -> Result<Vec<PartitionColumn>, ReadError> {
    let file = dir.join(SERVERS.file);
    let broken = |rule: String| ReadError::Extra { file: file.clone(), rule };
    let mut partitions: Vec<PartitionColumn> = Vec::new();
    let choose = |found: &Schema| {
        // The table was read: it has this column.
        let id = SERVERS.columns[0].name;
        let mut positions = vec![found.index_of(id).map_err(|e| broken(e.to_string()))?];
        for (at, field) in found.fields().iter().enumerate() {
            let Some(name) = field.name().strip_prefix(DOMAIN_COLUMN_PREFIX) else { continue };
            if !ColumnType::Name.reads(field.data_type(), true) {
                let kind = field.data_type();
                return Err(broken(format!(
                    "column {:?} is of type {kind}; it must be string",
                    field.name()
                )));
            }
            positions.push(at);
            partitions.push(PartitionColumn { name: name.into(), domains: Vec::new() });
        }
        Ok(positions)
    };
    let mut batches: Vec<Vec<ArrayRef>> = Vec::new();
    read_columns(&file, choose, |arrays, _, _| {
        batches.push(arrays);
        Ok::<(), ReadError>(())
    })?;
    for arrays in batches {
        let servers = texts(&arrays[0], &mut |text| text.into());
        for (array, partition) in arrays[1..].iter().zip(&mut partitions) {
            let domains = texts(array, &mut |text| pool.intern(text));
            partition.domains.reserve(array.len() - array.null_count());
            for (server, domain) in servers.iter().zip(domains) {
                if let (Some(server), Some(domain)) = (server, domain) {
                    partition.domains.push((ServerName::from(server.clone()), domain.into()));
                }
            }
        }
    }
    Ok(partitions)
}

/// Partitions to be written beside the columns of a table of servers.
pub(crate) struct Columns<'a>(Vec<(&'a PartitionColumn, HashMap<&'a str, &'a DomainName>)>);

impl<'a> Columns<'a> {
    pub(crate) fn new(partitions: &'a [PartitionColumn]) -> Columns<'a> {
        let by_server = |of: &'a PartitionColumn| {
            let domains = of.domains.iter().map(|(server, domain)| (&**server, domain));
            (of, domains.collect())
        };
        Columns(partitions.iter().map(by_server).collect())
    }

    /// The columns of the table, then one for each partition.
    pub(crate) fn schema(&self, table: &TableSchema) -> SchemaRef {
        let known = table.arrow();
        let mut fields: Vec<Arc<Field>> = known.fields().iter().cloned().collect();
        fields.extend(self.0.iter().map(|(of, _)| {
            let name = format!("{DOMAIN_COLUMN_PREFIX}{}", of.name);
            Arc::new(Field::new(name, ColumnType::Name.arrow(), true))
        }));
        Arc::new(Schema::new(fields))
    }

    /// The domains of some servers, partition by partition.
    pub(crate) fn domains<'s>(
        &self,
        servers: impl Iterator<Item = &'s ServerRow> + Clone,
    ) -> impl Iterator<Item = Vec<Option<&str>>> {
        self.0.iter().map(move |(_, domain_of)| {
            let domain = |row: &ServerRow| domain_of.get(&*row.server_id).map(|name| &***name);
            servers.clone().map(domain).collect()
        })
    }
}
