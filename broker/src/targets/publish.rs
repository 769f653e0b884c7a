//! Publication of targets: one transaction on top of one parent, or nothing.

use crate::infra::connection::Broker;
use crate::infra::copy::Rows;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{PublicationId, SolveId};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::log::trail::TargetVersion;
use crate::promises::policy::{self, PoliciesEdition};
use crate::promises::promise::{self, Promise};
use crate::queue::cause::Cause;
use crate::queue::job::{self, Lease};
use crate::queue::solve::{self, SolveOutcome};
use crate::snapshot::region_read::{self, Stored};
use crate::targets::awaiting;
use crate::targets::published::{Published, Withheld};
use crate::topology::places::Topology;
use chrono::{DateTime, Utc};
use fleet::audit::{Certified, certificate};
use fleet::{
    KeptBack, RegionSnapshot, ReservationIx, ReservationName, Rru, SHARED_BUFFER_PREFIX, ServerIx,
    ServerName, Targets, Unpublishable, publishable,
};
use sqlx::PgConnection;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) mod sql {
    crate::statements! {
        STAGE_TARGETS = "CREATE TEMPORARY TABLE staged_targets (server text COLLATE \"C\" NOT NULL, \
            generation bigint NOT NULL, target text COLLATE \"C\", target_id integer, kept_because text) ON COMMIT DROP";
        COPY_TARGETS = "COPY staged_targets (server, generation, target, target_id) FROM STDIN";
        ANALYZE_STAGED = "ANALYZE staged_targets";
        ADD_VERSION = "INSERT INTO target_versions (version, parent, origin, publication_id) \
            VALUES ($1 + 1, $1, 'publication', $2)";
        RESERVATION_IDS = "SELECT reservation, reservation_id FROM reservations \
            WHERE reservation = ANY ($1)";
        /// The servers that the publication takes, locked until its end. Same condition as PUBLISH.
        TAKE = "SELECT s.server::text FROM servers s JOIN staged_targets g ON s.server = g.server \
            WHERE s.generation = g.generation \
                AND coalesce(CASE WHEN s.target_pending THEN s.target_reservation_id \
                    ELSE s.current_reservation_id END <> ALL ($1::integer[]), true) \
            ORDER BY s.server_id FOR UPDATE OF s";
        KEEP_BACK = "UPDATE staged_targets g SET kept_because = w.why \
            FROM unnest($1::text[], $2::text[]) AS w (server, why) WHERE g.server = w.server";
        /// A server that already has the wanted owner needs no move any more. Postgres reads concurrently
        /// changed rows again before it writes them, so the compared generation is the last committed one.
        /// Servers held by reservations with a grant after the snapshot ($2) stay theirs: the solve did not
        /// know the grant.
        PUBLISH = "WITH taken AS ( \
            UPDATE servers s SET \
                target_pending = s.current_reservation_id IS DISTINCT FROM g.target_id, \
                target_reservation_id = CASE \
                    WHEN s.current_reservation_id IS DISTINCT FROM g.target_id THEN g.target_id END, \
                target_version = CASE \
                    WHEN s.current_reservation_id IS DISTINCT FROM g.target_id THEN $1::bigint END, \
                target_origin = NULL \
            FROM staged_targets g WHERE s.server = g.server AND s.generation = g.generation \
                AND g.kept_because IS NULL \
                AND coalesce(CASE WHEN s.target_pending THEN s.target_reservation_id \
                    ELSE s.current_reservation_id END <> ALL ($2::integer[]), true) \
            RETURNING g.server) \
            INSERT INTO target_changes (version, server, target_reservation, taken, kept_because) \
            SELECT $1, g.server, g.target, t.server IS NOT NULL, g.kept_because \
            FROM staged_targets g LEFT JOIN taken t USING (server)";
        COUNTS = "SELECT count(*) FILTER (WHERE taken), \
                count(*) FILTER (WHERE NOT taken AND kept_because IS NULL), count(kept_because) \
            FROM target_changes WHERE version = $1";
        SKIPPED = "SELECT server FROM target_changes WHERE version = $1 AND NOT taken \
            AND kept_because IS NULL ORDER BY server LIMIT $2";
        KEPT_BACK = "SELECT server, kept_because FROM target_changes WHERE version = $1 \
            AND kept_because IS NOT NULL ORDER BY server LIMIT $2";
        END_SOLVE = "UPDATE solves SET state = 'published', version = $2, result_url = $3 \
            WHERE solve_id = $1 AND state = 'running' AND parent = $2 - 1";
        SOLVE_SEQ = "SELECT seq FROM solves WHERE solve_id = $1";
        PUBLISHED_AS = "SELECT version FROM target_versions WHERE publication_id = $1";
        /// Servers that were out of use in the snapshot up to entry `$1`, are back in service and belong to a guaranteed
        /// reservation.
        BACK_SINCE = "WITH seen AS (SELECT at FROM audit_trail WHERE seq = $1), \
            ended AS (SELECT u.server_id, u.rack_id, u.msb_id, u.datacenter_id FROM unavailability u, seen \
                WHERE u.kind <> 'planned_maintenance' AND u.started_at <= seen.at AND u.ended_at <= now() \
                    AND (u.ended_at > seen.at OR EXISTS (SELECT FROM audit_trail t WHERE t.subject = u.event_id \
                        AND t.seq > $1 AND t.action = 'unavailability_cleared'))), \
            back AS (SELECT server_id FROM ended WHERE server_id IS NOT NULL \
                UNION SELECT s.server_id FROM ended e JOIN servers s ON s.rack_id = e.rack_id \
                UNION SELECT s.server_id FROM ended e JOIN racks k ON k.msb_id = e.msb_id \
                    JOIN servers s ON s.rack_id = k.rack_id \
                UNION SELECT s.server_id FROM ended e JOIN msbs m ON m.datacenter_id = e.datacenter_id \
                    JOIN racks k ON k.msb_id = m.msb_id JOIN servers s ON s.rack_id = k.rack_id) \
            SELECT s.server::text FROM back b JOIN servers s USING (server_id) \
            JOIN reservations r ON r.reservation_id = s.current_reservation_id AND r.kind = 'guaranteed' \
            WHERE b.server_id NOT IN (SELECT servers_out_of_use(false)) ORDER BY 1";
        /// Reservations with a grant after an entry of the trail.
        GRANTED_SINCE = "SELECT DISTINCT r.reservation_id FROM audit_trail t \
            CROSS JOIN LATERAL jsonb_array_elements_text(t.detail -> 'reservations') AS n (reservation) \
            JOIN reservations r ON r.reservation = n.reservation \
            WHERE t.action = 'plan_applied' AND t.seq > $1";
    }
}

/// The most skipped servers that an answer names; the table `target_changes` has all of them.
const SKIPPED_NAMED: i64 = 100;

/// The most broken rules that an error names.
const BROKEN_NAMED: usize = 10;

/// The wanted holder of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRow {
    /// The server.
    pub server: ServerName,
    /// The server's generation in the snapshot of the decision.
    pub generation: i64,
    /// The wanted holder; `None`: free.
    pub target: Option<ReservationName>,
}

/// Targets to publish: the servers whose holder changes, and the basis of the decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The publisher's own id of this publication. A second publication with the same id changes nothing, so a
    /// client that lost the answer may repeat it.
    pub id: PublicationId,
    /// The version it was decided on.
    pub parent: TargetVersion,
    /// The solve that ends with the publication, if there is one.
    pub solve: Option<SolveEnd>,
    /// The servers whose holder changes.
    pub targets: Vec<TargetRow>,
}

/// The end of a solve, in the same transaction as the publication of its targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SolveEnd {
    /// The worker's lease. If it is lost, nothing is published.
    pub lease: Lease,
    /// The location of the result.
    pub result_url: String,
    /// The solve's report.
    pub report: Document,
}

impl Publication {
    /// Extracts the changes from targets. `version` and `generations` belong to the export that the snapshot
    /// was made of.
    /// export that the snapshot was made of.
    ///
    /// # Panics
    /// If the number of generations is not the number of servers.
    pub fn new(
        id: PublicationId,
        version: TargetVersion,
        generations: &[i64],
        snapshot: &RegionSnapshot,
        targets: &Targets,
    ) -> Publication {
        assert_eq!(generations.len(), snapshot.servers.len(), "one region");
        let rows = targets.diff(snapshot).map(|change| TargetRow {
            server: snapshot.servers[change.server.ix()].id.clone(),
            generation: generations[change.server.ix()],
            target: change.target.map(|r| snapshot.reservations[r.ix()].id.clone()),
        });
        Publication { id, parent: version, solve: None, targets: rows.collect() }
    }
}

/// Targets cannot be published; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum PublishError {
    #[error("the targets were made on version {parent}; the region is at {head}")]
    Stale { parent: TargetVersion, head: TargetVersion },
    #[error(
        "policies have changed since the solve began: it kept edition {}, in force is {}", kept.0, now.0
    )]
    PoliciesChanged { kept: PoliciesEdition, now: PoliciesEdition },
    #[error("server {server:?} has two targets")]
    Twice { server: ServerName },
    #[error("server {server:?}: its target {target:?} is not a reservation of the region")]
    UnknownReservation { server: ServerName, target: ReservationName },
    #[error("solve {solve} is not running on version {parent}; its targets are not taken")]
    SolveNotRunning { solve: SolveId, parent: TargetVersion },
    #[error("solve {solve}: its lease was lost, another worker has it or it was given up")]
    LeaseLost { solve: SolveId },
    #[error(
        "{skipped} servers moved since the snapshot, and without them the targets break a rule: {}",
        broken.join("; ")
    )]
    Refused { skipped: usize, broken: Vec<String> },
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Broker {
    /// Publishes targets as the version after their parent. Servers whose generation changed since the snapshot
    /// are skipped and counted; a target equal to the owner ends the server's move.
    ///
    /// The caller has audited the targets. If servers are skipped, the rest is audited again on the current
    /// region ([`publishable`]): targets that would leave a reservation worse off are withheld. So are those that replace
    /// servers which are back since the snapshot of the solve (`made_up_for`); a new solve is then requested.
    ///
    /// # Errors
    /// [`PublishError`]; [`PublishError::Stale`] if another publication was first, [`PublishError::PoliciesChanged`] if the
    /// solve kept other policies than those in force.
    pub async fn publish(
        &self,
        actor: &str,
        publication: &Publication,
    ) -> Result<Published, PublishError> {
        self.publish_as(actor, publication, None).await
    }

    /// [`Broker::publish`]; of an approved solve with its id.
    pub(crate) async fn publish_as(
        &self,
        actor: &str,
        publication: &Publication,
        approved: Option<SolveId>,
    ) -> Result<Published, PublishError> {
        let mut rows: Vec<&TargetRow> = publication.targets.iter().collect();
        rows.sort_unstable_by(|a, b| a.server.cmp(&b.server));
        if let Some(pair) = rows.windows(2).find(|pair| pair[0].server == pair[1].server) {
            return Err(PublishError::Twice { server: pair[0].server.clone() });
        }
        let version = TargetVersion(publication.parent.0 + 1);
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        // First, because it decides: a concurrent publication waits here for the end of this one.
        let added = sqlx::query(sql::ADD_VERSION).bind(publication.parent.0).bind(publication.id);
        if let Err(error) = added.execute(&mut *db).await.doing("adding a version of the targets") {
            change.abandon().await?;
            return self.explain_refusal(publication, error).await;
        }
        awaiting::supersede(db, approved)
            .await
            .doing("superseding a solve that awaits approval")?;
        let ids = holders(db, &rows).await?;
        stage(db, &rows, &ids).await.doing("staging targets")?;
        let solve = approved.or(publication.solve.as_ref().map(|end| end.lease.job.into()));
        if let Some(solve) = solve {
            let changed = policy::changed_since(db, solve).await;
            if let Some((kept, now)) = changed.doing("comparing policies")? {
                return Err(PublishError::PoliciesChanged { kept, now });
            }
        }
        let granted = granted_since(db, solve).await.doing("looking for what was granted")?;
        let taken = sqlx::query_scalar(sql::TAKE).bind(&granted).fetch_all(&mut *db);
        let taken: Vec<String> = taken.await.doing("locking the servers of a publication")?;
        let back = back_since(db, solve).await.doing("looking for servers that are back")?;
        let mut needless = false;
        if taken.len() < rows.len() || !back.is_empty() {
            needless = keep_back(db, &rows, taken, back).await?;
        }
        let written = sqlx::query(sql::PUBLISH).bind(version.0).bind(granted).execute(&mut *db);
        written.await.doing("publishing targets")?;
        if let Some(end) = &publication.solve {
            end_solve(db, end, version).await?;
        }
        let mut published = outcome(db, version).await.doing("counting targets")?;
        if let Some(solve) = approved {
            if !awaiting::end(db, solve, version).await.doing("ending an approved solve")? {
                return Err(PublishError::SolveNotRunning { solve, parent: publication.parent });
            }
            change.record(&solve.to_string(), Event::SolveApproved { version });
        }
        let Published { taken, skipped, kept_back, .. } = published;
        let publication = publication.id;
        change.record(
            &version.to_string(),
            Event::TargetsPublished { taken, skipped, kept_back, publication, solve },
        );
        published.seq = Some(change.commit().await?);
        tracing::info!(version = version.0, taken, skipped, kept_back, "targets published");
        if needless {
            // Its snapshot was of an outage that has ended; the next one is of the region as it is.
            let again = self.request_solve(actor, SolveId::now_v7(), Cause::Event, None).await;
            if let Err(error) = again {
                tracing::warn!(%error, "cannot ask for a solve after an outage");
            }
        }
        Ok(published)
    }

    /// Explains a refusal by the chain of versions: this publication is already in it, or another is.
    async fn explain_refusal(
        &self,
        publication: &Publication,
        error: DbError,
    ) -> Result<Published, PublishError> {
        let chain = [
            "target_versions_pkey",
            "target_versions_parent_key",
            "target_versions_parent_fkey",
            "target_versions_publication_id_key",
            "target_versions_chain",
            "target_versions_origin",
        ];
        if !chain.iter().any(|constraint| error.refused_by(constraint)) {
            return Err(error.into());
        }
        let doing = "looking a publication up";
        let mut db = self.pool.acquire().await.doing(doing)?;
        let found = sqlx::query_scalar(sql::PUBLISHED_AS).bind(publication.id);
        if let Some(version) = found.fetch_optional(&mut *db).await.doing(doing)? {
            return Ok(outcome(&mut db, TargetVersion(version)).await.doing(doing)?);
        }
        let head = region_read::head(&mut db).await?;
        Err(PublishError::Stale { parent: publication.parent, head })
    }
}

/// Audits the publication without the skipped servers, and marks the targets to be withheld. Reads in the
/// transaction that holds the head, so holders cannot change meanwhile. `back`: servers that are back in service since
/// the snapshot. Returns whether targets are withheld because of them.
async fn keep_back(
    db: &mut PgConnection,
    rows: &[&TargetRow],
    taken: Vec<String>,
    back: Vec<String>,
) -> Result<bool, PublishError> {
    let doing = "auditing what is published";
    let taken: BTreeSet<String> = taken.into_iter().collect();
    let skipped = rows.len() - taken.len();
    let wanted: BTreeMap<ServerName, Option<ReservationName>> = (rows.iter())
        .filter(|row| taken.contains(row.server.as_ref()))
        .map(|row| (row.server.clone(), row.target.clone()))
        .collect();
    let now: DateTime<Utc> =
        sqlx::query_scalar(region_read::sql::NOW).fetch_one(&mut *db).await.doing(doing)?;
    let stored = Stored::read(&mut *db, None).await?;
    // Takes a second for a large region, so it runs on a blocking thread.
    let judged = tokio::task::spawn_blocking(move || judge(stored, now, &wanted, &back)).await;
    let (needless, broken) = judged
        .expect("an audit does not panic")
        .map_err(|broken| PublishError::Refused { skipped, broken })?;
    let kept: BTreeMap<&ServerName, &String> = needless.iter().chain(&broken).collect();
    if kept.is_empty() {
        return Ok(false);
    }
    if !broken.is_empty() && kept.len() == taken.len() {
        let broken: BTreeSet<String> = broken.into_values().collect();
        let broken = broken.into_iter().take(BROKEN_NAMED).collect();
        return Err(PublishError::Refused { skipped, broken });
    }
    tracing::warn!(skipped, kept_back = kept.len(), "targets are kept back");
    let servers: Vec<&str> = kept.keys().map(AsRef::as_ref).collect();
    let reasons: Vec<&str> = kept.values().map(|why| why.as_str()).collect();
    let written = sqlx::query(sql::KEEP_BACK).bind(servers).bind(reasons).execute(db).await;
    written.doing(doing)?;
    Ok(!needless.is_empty())
}

/// Servers whose targets are withheld, with the reasons.
type Reasons = BTreeMap<ServerName, String>;

/// The servers whose targets must be withheld: those that replace servers which are back, and those that would break a
/// rule. Error: the rules that are broken in any case.
fn judge(
    stored: Stored,
    now: DateTime<Utc>,
    wanted: &BTreeMap<ServerName, Option<ReservationName>>,
    back: &[String],
) -> Result<(Reasons, Reasons), Vec<String>> {
    let (parts, _) =
        stored.into_parts(now).ok_or_else(|| vec!["no region is loaded".to_owned()])?;
    let region = RegionSnapshot::new(parts).map_err(|error| vec![error.to_string()])?;
    let mut by_server = BTreeMap::new();
    for (position, server) in region.servers.iter().enumerate() {
        let Some(target) = wanted.get(&server.id) else { continue };
        let target = match target {
            None => None,
            Some(name) => {
                let unknown = || vec![format!("reservation {name:?} is not of the region")];
                Some(region.reservation(name).ok_or_else(unknown)?)
            }
        };
        by_server.insert(ServerIx::new(position), target);
    }
    let named = |server: ServerIx| region.servers[server.ix()].id.clone();
    let needless = made_up_for(&region, &by_server, back);
    by_server.retain(|server, _| !needless.contains_key(server));
    let needless = needless.into_iter().map(|(server, why)| (named(server), why)).collect();
    match publishable(&region, &by_server) {
        Ok(KeptBack(kept)) => {
            let kept = kept.into_iter().map(|(server, why)| (named(server), why.to_string()));
            Ok((needless, kept.collect()))
        }
        Err(Unpublishable(broken)) => {
            Err(broken.iter().take(BROKEN_NAMED).map(ToString::to_string).collect())
        }
    }
}

/// The targets that give a reservation servers in place of those that are `back` in service, with the reason: as much as
/// is back, where the reservation has all that it was promised without them. Servers in use first, which it would cost
/// most to move.
fn made_up_for(
    region: &RegionSnapshot,
    wanted: &BTreeMap<ServerIx, Option<ReservationIx>>,
    back: &[String],
) -> BTreeMap<ServerIx, String> {
    let mut returned: BTreeMap<ReservationIx, Rru> = BTreeMap::new();
    for name in back {
        let found = region.servers.binary_search_by(|server| server.id.as_ref().cmp(name));
        let Ok(found) = found else { continue };
        let server = &region.servers[found];
        let Some(owner) = server.current.filter(|_| server.available) else { continue };
        let value = region.reservations[owner.ix()].value(server.hardware_type);
        *returned.entry(owner).or_default() += value.unwrap_or_default();
    }
    if returned.is_empty() {
        return BTreeMap::new();
    }
    let certificate = certificate(region);
    let mut needless = BTreeMap::new();
    for (reservation, mut rest) in returned {
        let of = &region.reservations[reservation.ix()];
        if !certificate.row(&of.id).is_some_and(Certified::holds) {
            continue;
        }
        let gains = wanted.iter().filter(|(server, target)| {
            **target == Some(reservation) && region.servers[server.ix()].holder() != **target
        });
        let mut gains: Vec<ServerIx> = gains.map(|(server, _)| *server).collect();
        gains.sort_by_key(|server| (!region.servers[server.ix()].in_use, *server));
        for server in gains {
            let value = of.value(region.servers[server.ix()].hardware_type).unwrap_or_default();
            if value > rest {
                continue;
            }
            rest -= value;
            let why = format!(
                "servers of reservation {:?} are back since the solve began, and it has what it was promised",
                of.id
            );
            needless.insert(server, why);
        }
    }
    needless
}

/// Servers in service again since the snapshot of the solve.
async fn back_since(
    db: &mut PgConnection,
    solve: Option<SolveId>,
) -> Result<Vec<String>, sqlx::Error> {
    match snapshot_seq(db, solve).await? {
        Some(seen) => sqlx::query_scalar(sql::BACK_SINCE).bind(seen).fetch_all(db).await,
        None => Ok(Vec::new()),
    }
}

/// The last entry of the trail in the snapshot of the solve; `None`: unknown.
async fn snapshot_seq(
    db: &mut PgConnection,
    solve: Option<SolveId>,
) -> Result<Option<i64>, sqlx::Error> {
    let Some(solve) = solve else { return Ok(None) };
    let seen: Option<Option<i64>> =
        sqlx::query_scalar(sql::SOLVE_SEQ).bind(solve).fetch_optional(db).await?;
    Ok(seen.flatten())
}

/// Reservations with a grant since the snapshot of the solve, from the trail.
async fn granted_since(
    db: &mut PgConnection,
    solve: Option<SolveId>,
) -> Result<Vec<i32>, sqlx::Error> {
    match snapshot_seq(db, solve).await? {
        Some(seen) => sqlx::query_scalar(sql::GRANTED_SINCE).bind(seen).fetch_all(db).await,
        None => Ok(Vec::new()),
    }
}

/// Ends the solve of the targets, if the publisher still has its lease.
async fn end_solve(
    db: &mut PgConnection,
    end: &SolveEnd,
    version: TargetVersion,
) -> Result<(), PublishError> {
    let doing = "ending a solve";
    let solve = SolveId::from(end.lease.job);
    if !job::finish(db, end.lease, &SolveOutcome::Published { version }).await.doing(doing)? {
        return Err(PublishError::LeaseLost { solve });
    }
    let ended = sqlx::query(sql::END_SOLVE).bind(solve).bind(version.0).bind(&end.result_url);
    if ended.execute(&mut *db).await.doing(doing)?.rows_affected() == 0 {
        let parent = TargetVersion(version.0 - 1);
        return Err(PublishError::SolveNotRunning { solve, parent });
    }
    let report = sqlx::query(solve::sql::ADD_REPORT).bind(solve).bind(&end.report);
    report.execute(db).await.doing(doing)?;
    Ok(())
}

/// The numbers of the reservations named as targets. Unlisted shared buffers of known types are created: a
/// solve may be the first to put a server into one.
pub(crate) async fn holders<'a>(
    db: &mut PgConnection,
    rows: &[&'a TargetRow],
) -> Result<BTreeMap<&'a str, i32>, PublishError> {
    let wanted: BTreeMap<&str, &TargetRow> =
        rows.iter().filter_map(|row| Some((row.target.as_deref()?, *row))).collect();
    let mut ids = ids(db, &wanted).await.doing("looking reservations up")?;
    let unknown: Vec<(&str, &TargetRow)> = wanted
        .iter()
        .filter(|(name, _)| !ids.contains_key(**name))
        .map(|(n, r)| (*n, *r))
        .collect();
    if unknown.is_empty() {
        return Ok(ids);
    }
    let topology = Topology::read(db).await?;
    let mut buffers: Vec<(ReservationName, Promise)> = Vec::new();
    for (name, row) in unknown {
        let hardware_type = name.strip_prefix(SHARED_BUFFER_PREFIX);
        match hardware_type.filter(|ty| topology.hardware_types.id(ty).is_some()) {
            Some(ty) => buffers.push((name.into(), Promise::made_buffer(&ty.into()))),
            None => {
                let (server, target) = (row.server.clone(), name.into());
                return Err(PublishError::UnknownReservation { server, target });
            }
        }
    }
    let buffers: Vec<(&ReservationName, &Promise)> =
        buffers.iter().map(|(name, p)| (name, p)).collect();
    promise::add(db, &topology, &buffers).await?;
    ids = self::ids(db, &wanted).await.doing("looking reservations up")?;
    Ok(ids)
}

async fn ids<'a>(
    db: &mut PgConnection,
    wanted: &BTreeMap<&'a str, &TargetRow>,
) -> Result<BTreeMap<&'a str, i32>, sqlx::Error> {
    let names: Vec<&str> = wanted.keys().copied().collect();
    let found: Vec<(String, i32)> =
        sqlx::query_as(sql::RESERVATION_IDS).bind(names).fetch_all(db).await?;
    let found: BTreeMap<String, i32> = found.into_iter().collect();
    Ok(wanted.keys().filter_map(|name| Some((*name, *found.get(*name)?))).collect())
}

async fn stage(
    db: &mut PgConnection,
    rows: &[&TargetRow],
    ids: &BTreeMap<&str, i32>,
) -> Result<(), sqlx::Error> {
    sqlx::query(sql::STAGE_TARGETS).execute(&mut *db).await?;
    let mut copy = Rows::begin(db, sql::COPY_TARGETS).await?;
    for row in rows {
        copy.text(&row.server);
        copy.value(Some(row.generation));
        match row.target.as_deref() {
            Some(target) => {
                copy.text(target);
                copy.value(ids.get(target));
            }
            None => {
                copy.value(None::<i32>);
                copy.value(None::<i32>);
            }
        }
        copy.end_row().await?;
    }
    copy.finish().await?;
    sqlx::query(sql::ANALYZE_STAGED).execute(db).await?;
    Ok(())
}

async fn outcome(db: &mut PgConnection, version: TargetVersion) -> Result<Published, sqlx::Error> {
    let (taken, skipped, kept_back): (i64, i64, i64) =
        sqlx::query_as(sql::COUNTS).bind(version.0).fetch_one(&mut *db).await?;
    let mut names: Vec<String> = Vec::new();
    if skipped > 0 {
        let query = sqlx::query_scalar(sql::SKIPPED).bind(version.0).bind(SKIPPED_NAMED);
        names = query.fetch_all(&mut *db).await?;
    }
    let mut reasons: Vec<(String, String)> = Vec::new();
    if kept_back > 0 {
        let query = sqlx::query_as(sql::KEPT_BACK).bind(version.0).bind(SKIPPED_NAMED);
        reasons = query.fetch_all(db).await?;
    }
    Ok(Published {
        version,
        kept_back: kept_back.unsigned_abs(),
        kept_back_servers: reasons
            .into_iter()
            .map(|(of, why)| Withheld { server: of.into(), why })
            .collect(),
        taken: taken.unsigned_abs(),
        skipped: skipped.unsigned_abs(),
        skipped_servers: names.into_iter().map(Into::into).collect(),
        seq: None,
    })
}
