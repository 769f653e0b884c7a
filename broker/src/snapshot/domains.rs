//! Fault domains of servers that cross MSBs: read, compared with a snapshot, and written.

use crate::infra::copy::Rows;
use crate::infra::read_throttle::ReadThrottle;
use crate::topology::places::Topology;
use fleet::{DomainName, PartitionColumn, PartitionName, ServerName, ServerRow, SnapshotParts};
use futures_util::TryStreamExt;
use sqlx::{PgConnection, Row};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) mod sql {
    crate::statements! {
        DOMAINS = "SELECT d.partition_id, s.server::text, d.domain::text \
            FROM server_domains d JOIN servers s USING (server_id)";
        STAGE_DOMAINS = "CREATE TEMPORARY TABLE staged_domains (server text COLLATE \"C\" NOT NULL, \
            partition_id integer NOT NULL, domain text COLLATE \"C\") ON COMMIT DROP";
        COPY_DOMAINS = "COPY staged_domains FROM STDIN";
        ANALYZE_STAGED_DOMAINS = "ANALYZE staged_domains";
        REMOVE_DOMAINS = "DELETE FROM server_domains d USING staged_domains g \
            JOIN servers s ON s.server = g.server \
            WHERE d.server_id = s.server_id AND d.partition_id = g.partition_id AND g.domain IS NULL";
        SET_DOMAINS = "INSERT INTO server_domains (server_id, partition_id, domain) \
            SELECT s.server_id, g.partition_id, g.domain \
            FROM staged_domains g JOIN servers s ON s.server = g.server WHERE g.domain IS NOT NULL \
            ON CONFLICT (server_id, partition_id) DO UPDATE SET domain = excluded.domain";
        /// A solve that is under way does not know their domains.
        COUNT_CHANGES = "UPDATE servers s SET domain_changes = s.domain_changes + 1 \
            FROM (SELECT DISTINCT server FROM staged_domains) g WHERE s.server = g.server \
                AND NOT EXISTS (SELECT FROM staged_servers n WHERE n.server = s.server AND n.added)";
    }
}

/// A server whose domain of a partition differs from what is stored.
pub(crate) struct DomainChange<'a> {
    pub(crate) server: &'a ServerName,
    partition: &'a PartitionName,
    /// `None`: it is in no domain any more.
    pub(crate) domain: Option<&'a DomainName>,
}

/// Servers by name, with their generations.
type Servers = Vec<(ServerRow, i64)>;

/// Reads the domains of these servers, which are in order of name. Partitions without a server in them are left out.
pub(crate) async fn read(
    db: &mut PgConnection,
    topology: &Topology,
    servers: Servers,
    mut pace: ReadThrottle<'_>,
) -> Result<(Servers, Vec<PartitionColumn>), sqlx::Error> {
    let mut columns: BTreeMap<i32, Vec<(String, DomainName)>> = BTreeMap::new();
    // There are few domains, so their names are shared.
    let mut names: BTreeSet<DomainName> = BTreeSet::new();
    let mut rows = sqlx::query(sql::DOMAINS).fetch(db);
    while let Some(row) = rows.try_next().await? {
        let domain: &str = row.try_get(2)?;
        let domain = names.get(domain).cloned().unwrap_or_else(|| {
            let domain: DomainName = domain.into();
            names.insert(domain.clone());
            domain
        });
        columns.entry(row.try_get(0)?).or_default().push((row.try_get(1)?, domain));
        pace.row().await;
    }
    if columns.is_empty() {
        return Ok((servers, Vec::new()));
    }
    let columns: Vec<(PartitionName, Vec<(String, DomainName)>)> = columns
        .into_iter()
        .map(|(id, rows)| (topology.partitions.name(id).clone(), rows))
        .collect();
    // Sorting a million names takes a second, so it runs on a blocking thread.
    let sorted = tokio::task::spawn_blocking(move || {
        let sorted = columns.into_iter().map(|(name, rows)| column(name, rows, &servers));
        let sorted: Vec<PartitionColumn> = sorted.collect();
        (servers, sorted)
    });
    Ok(sorted.await.expect("comparing names does not panic"))
}

/// A column in order of name. A server that is not among the servers was added after they were read.
fn column(
    name: PartitionName,
    mut rows: Vec<(String, DomainName)>,
    servers: &Servers,
) -> PartitionColumn {
    rows.sort_unstable();
    let mut servers = servers.iter().map(|(row, _)| &row.server_id).peekable();
    let domains = rows.into_iter().filter_map(|(server, domain)| {
        while servers.next_if(|of| ***of < *server).is_some() {}
        let server = servers.next_if(|of| ***of == *server)?;
        Some((server.clone(), domain))
    });
    PartitionColumn { domains: domains.collect(), name }
}

/// Adds partitions that reservations survive and that no server is in. The columns are in order of name then.
pub(crate) fn add_survived<'a>(
    columns: &mut Vec<PartitionColumn>,
    survived: impl Iterator<Item = &'a PartitionName>,
) {
    let known: BTreeSet<&PartitionName> = columns.iter().map(|column| &column.name).collect();
    let new: BTreeSet<PartitionName> =
        survived.filter(|name| !known.contains(name)).cloned().collect();
    columns.extend(new.into_iter().map(|name| PartitionColumn { name, domains: Vec::new() }));
    columns.sort_by(|a, b| a.name.cmp(&b.name));
}

/// The servers of a snapshot whose domains differ from what is stored, by partition. All lists are in order of name.
pub(crate) fn changes<'a>(
    stored: &'a [PartitionColumn],
    wanted: &'a SnapshotParts,
) -> Vec<DomainChange<'a>> {
    let partitions = &wanted.crossing.partitions;
    let names: BTreeSet<&PartitionName> =
        stored.iter().chain(partitions).map(|column| &column.name).collect();
    let mut changes = Vec::new();
    for partition in names {
        let mut old = Cursor::new(stored, partition);
        let mut new = Cursor::new(partitions, partition);
        for ServerRow { server_id: server, .. } in &wanted.servers {
            let (old, domain) = (old.domain_of(server), new.domain_of(server));
            if old != domain {
                changes.push(DomainChange { server, partition, domain });
            }
        }
    }
    changes
}

/// What is left of a column, for servers that are asked for in order of name.
struct Cursor<'a>(&'a [(ServerName, DomainName)]);

impl<'a> Cursor<'a> {
    fn new(columns: &'a [PartitionColumn], partition: &PartitionName) -> Cursor<'a> {
        let found = columns.iter().find(|column| column.name == *partition);
        Cursor(found.map_or(&[], |column| &column.domains))
    }

    fn domain_of(&mut self, wanted: &ServerName) -> Option<&'a DomainName> {
        while let [(server, domain), rest @ ..] = self.0 {
            match server.cmp(wanted) {
                Ordering::Less => self.0 = rest,
                Ordering::Equal => return Some(domain),
                Ordering::Greater => return None,
            }
        }
        None
    }
}

/// Writes changes of domains. Servers and partitions are stored before.
pub(crate) async fn write(
    db: &mut PgConnection,
    topology: &Topology,
    changes: &[DomainChange<'_>],
) -> Result<(), sqlx::Error> {
    if changes.is_empty() {
        return Ok(());
    }
    sqlx::query(sql::STAGE_DOMAINS).execute(&mut *db).await?;
    let mut copy = Rows::begin(db, sql::COPY_DOMAINS).await?;
    for DomainChange { server, partition, domain } in changes {
        copy.text(server);
        copy.value(topology.partitions.id(partition));
        match domain {
            Some(domain) => copy.text(domain),
            None => copy.value(None::<i32>),
        }
        copy.end_row().await?;
    }
    copy.finish().await?;
    let statements =
        [sql::ANALYZE_STAGED_DOMAINS, sql::REMOVE_DOMAINS, sql::SET_DOMAINS, sql::COUNT_CHANGES];
    for statement in statements {
        sqlx::query(statement).execute(&mut *db).await?;
    }
    Ok(())
}
