//! Moves: opened for wanted targets, advanced step by step, bound or given up.
//!
//! The row of a move says how far it certainly is; the host may be further. A move serves one
//! target: where a newer one differs, it is superseded and another is opened. All of it is done by
//! the mover that acts ([`Epoch`]).

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::MoveId;
use crate::infra::state::{self, MoveState, State};
use crate::infra::text::storable;
use crate::infra::words;
use crate::infra::words::{name, optional_name};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::log::trail::TargetVersion;
use crate::moves::mover::{Epoch, MoverError, check_fence, check_fence_at_head};
use crate::moves::origin::MoveReason;
use crate::moves::rollout;
use crate::moves::unfinished;
use crate::snapshot::region_read;
use chrono::{DateTime, Utc};
use decisions::admission::MoveView;
use fleet::pace::MoveKind;
use fleet::{MoveOrigin, MsbName, Name, RackName, ReservationName, ServerName};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::BTreeMap;
use std::time::Duration;

/// The most characters stored of a host's message.
const SAID_MAX: usize = 2_000;

/// Servers that need a move and have none: their targets match a condition, or they are to be restored or to
/// get another host profile. A server that is drained for decommission is not restored.
macro_rules! wanted {
    ($targets:literal) => {
        concat!(
            "WITH wanted AS (SELECT s.server_id, NULL AS origin FROM servers s WHERE ",
            $targets,
            " UNION ALL SELECT f.server_id, 'restore' FROM unfinished f JOIN servers s USING (server_id) \
                WHERE f.state = 'unfinished' AND f.retry_at <= clock_timestamp() AND NOT s.target_pending \
                    AND NOT EXISTS (SELECT FROM decommissions d WHERE d.server_id = f.server_id) \
            UNION ALL SELECT o.server_id, 'reconfigure' FROM outdated_profiles o JOIN servers s USING (server_id) \
                WHERE o.refused IS NULL AND s.current_reservation_id = o.reservation_id \
                    AND NOT s.target_pending AND s.loan_reservation_id IS NULL \
                    AND NOT EXISTS (SELECT FROM servers_out_of_use(true) AS u WHERE u = o.server_id) \
                    AND NOT EXISTS (SELECT FROM cordoned_servers c WHERE c.server_id = o.server_id) \
                    AND NOT EXISTS (SELECT FROM rollouts k WHERE k.reservation_id = o.reservation_id \
                        AND k.paused_by IS NOT NULL)) \
            SELECT w.server_id, w.origin FROM wanted w WHERE NOT EXISTS \
                (SELECT FROM moves m WHERE m.open AND m.server_id = w.server_id) ORDER BY w.server_id"
        )
    };
}

use wanted;

pub(crate) mod sql {
    crate::statements! {
        /// Ends moves whose target is not wanted any more. Returns the servers that keep their owner although a
        /// step may have been done: their host profile must be set again. One server at a time (OFFSET 0): for
        /// some thousand moves the planner would scan all servers.
        SUPERSEDE = "WITH moot AS (SELECT m.move_id, m.server_id, m.state, s.target_pending \
                FROM moves m CROSS JOIN LATERAL (SELECT target_pending, target_reservation_id \
                    FROM servers WHERE server_id = m.server_id OFFSET 0) s \
                LEFT JOIN reservations t ON t.reservation_id = s.target_reservation_id \
                WHERE m.open AND CASE WHEN m.stays THEN s.target_pending \
                    ELSE NOT s.target_pending OR t.reservation IS DISTINCT FROM m.target_reservation END \
                ORDER BY m.move_id FOR UPDATE OF m), \
            ended AS (UPDATE moves m SET state = 'superseded', reason = 'newer_target' \
                FROM moot WHERE m.move_id = moot.move_id) \
            SELECT server_id, NOT target_pending AND state <> 'pending' FROM moot";
        /// Servers that need a move and have none, with the move's origin; null: from their target. Scans all
        /// servers: an index on columns that publications write would cost each publication more than this
        /// scan.
        WANTED = super::wanted!("s.target_pending");
        /// Only targets that were set between two solves, through an index.
        WANTED_BETWEEN = super::wanted!("s.target_origin IS NOT NULL");
        OPEN = "INSERT INTO moves (move_id, server_id, server, source_reservation, target_reservation, \
                target_version, state, origin, in_use) \
            SELECT w.move_id, s.server_id, s.server, c.reservation, \
                CASE WHEN s.target_pending THEN t.reservation ELSE c.reservation END, \
                coalesce(s.target_version, (SELECT max(version) FROM target_versions)), 'pending', \
                CASE WHEN s.target_pending THEN coalesce(s.target_origin, 'targets') ELSE w.origin END, s.in_use \
            FROM unnest($1::uuid[], $2::integer[], $3::text[]) AS w (move_id, server_id, origin) \
            JOIN servers s USING (server_id) \
            LEFT JOIN reservations c ON c.reservation_id = s.current_reservation_id \
            LEFT JOIN reservations t ON t.reservation_id = s.target_reservation_id \
            WHERE s.target_pending = (w.origin IS NULL) AND NOT EXISTS \
                (SELECT FROM moves m WHERE m.open AND m.server_id = s.server_id) \
            RETURNING (SELECT max(version) FROM target_versions)";
        UNDER_WAY = "SELECT m.move_id, m.server, k.rack::text, b.msb::text, m.source_reservation, \
                m.target_reservation, \
                CASE WHEN m.state = 'reconfiguring' THEN m.host_profile ELSE p.host_profile END, \
                m.target_version, m.state, m.state_at, \
                m.opened_at, m.origin, m.in_use, o IS NOT NULL \
            FROM moves m CROSS JOIN LATERAL \
                (SELECT rack_id FROM servers WHERE server_id = m.server_id OFFSET 0) s \
            JOIN racks k USING (rack_id) JOIN msbs b USING (msb_id) \
            LEFT JOIN reservations t ON t.reservation = m.target_reservation \
            LEFT JOIN promises p USING (promise_id) \
            LEFT JOIN servers_under_repair() AS o ON o = m.server_id \
            WHERE m.open ORDER BY m.opened_at, m.move_id";
        /// Servers with a target between solves, or bound since a minute before an instant, each through an index.
        HELD_SINCE = "WITH changed AS (SELECT server_id FROM servers WHERE target_origin IS NOT NULL \
                UNION SELECT server_id FROM moves WHERE state = 'bound' AND state_at > $1::timestamptz - interval '1 minute') \
            SELECT s.server::text, r.reservation FROM changed c CROSS JOIN LATERAL \
                (SELECT * FROM servers WHERE server_id = c.server_id OFFSET 0) s \
            LEFT JOIN reservations r ON r.reservation_id = CASE WHEN s.target_pending \
                THEN s.target_reservation_id ELSE s.current_reservation_id END ORDER BY 1";
        /// In any final state: a move that was superseded half-way had begun as well.
        RECENTLY_BEGUN = "SELECT k.rack::text, b.msb::text, m.source_reservation, m.in_use, count(*) \
            FROM moves m JOIN servers s USING (server_id) JOIN racks k USING (rack_id) \
            JOIN msbs b USING (msb_id) \
            WHERE NOT m.open AND m.begun_at IS NOT NULL AND m.state_at > clock_timestamp() - make_interval(secs => $1) \
            GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4";
        /// The host profile is fixed when the host is told, even if the promise changes. No reconfiguration of a
        /// paused rollout begins. The mover's lease is checked as in `mover::check_fence`, before any move: one
        /// round trip for a frequent decision.
        ADVANCE = "WITH ours AS MATERIALIZED (SELECT epoch FROM mover WHERE epoch = $4 FOR KEY SHARE), \
            advanced AS (UPDATE moves m SET state = w.target, host_profile = CASE \
                WHEN w.target = 'reconfiguring' THEN (SELECT p.host_profile FROM reservations t \
                    JOIN promises p USING (promise_id) WHERE t.reservation = m.target_reservation) \
                ELSE m.host_profile END \
            FROM unnest($1::uuid[], $2::text[], $3::text[]) AS w (move_id, source, target) \
            WHERE EXISTS (SELECT FROM ours) AND m.move_id = w.move_id AND m.state = w.source \
                AND NOT (w.source = 'pending' AND m.origin = 'reconfigure' AND EXISTS \
                    (SELECT FROM rollouts k JOIN reservations t USING (reservation_id) \
                        WHERE t.reservation = m.target_reservation AND k.paused_by IS NOT NULL)) \
            RETURNING m.move_id, m.host_profile) \
            SELECT a.move_id, a.host_profile FROM ours LEFT JOIN advanced a ON true";
        /// Publications refer to the head, so none can begin or run while it is locked: rows of servers are
        /// locked by one side at a time.
        HOLD_HEAD = "SELECT version FROM target_versions ORDER BY version DESC LIMIT 1 FOR UPDATE";
        LOCK_SERVERS = "SELECT server_id FROM servers WHERE server = ANY ($1) ORDER BY server_id FOR UPDATE";
        BIND = "WITH ready AS (SELECT m.move_id, m.server_id, m.server, m.source_reservation, \
                    m.target_reservation, m.target_version, m.origin, m.stays, m.state \
                FROM moves m JOIN servers s USING (server_id) \
                LEFT JOIN reservations t ON t.reservation_id = s.target_reservation_id \
                WHERE m.move_id = ANY ($1) AND m.open AND CASE \
                    WHEN m.stays THEN NOT s.target_pending \
                    ELSE s.target_pending AND t.reservation IS NOT DISTINCT FROM m.target_reservation END \
                ORDER BY m.server_id FOR UPDATE OF m, s), \
            ended AS (UPDATE moves m SET state = 'bound' FROM ready WHERE m.move_id = ready.move_id), \
            settled AS (UPDATE replacements p SET state = 'bound' FROM ready \
                WHERE p.spare_id = ready.server_id AND p.state = 'swapped' AND NOT ready.stays \
                    AND p.reservation = ready.target_reservation), \
            bound AS (UPDATE servers s SET \
                    current_reservation_id = CASE WHEN s.target_pending \
                        THEN s.target_reservation_id ELSE s.current_reservation_id END, \
                    target_pending = false, target_reservation_id = NULL, target_version = NULL, \
                    target_origin = NULL, loan_reservation_id = NULL, \
                    in_use = s.in_use AND ready.origin = 'recall' \
                FROM ready WHERE s.server_id = ready.server_id RETURNING s.server_id), \
            finished AS (UPDATE unfinished f SET state = CASE WHEN ready.stays THEN 'restored' \
                    ELSE 'handed_over' END \
                FROM ready WHERE f.server_id = ready.server_id AND f.state = 'unfinished' \
                    AND ready.origin NOT IN ('recall', 'drain') RETURNING f.server_id, f.event_id), \
            in_use_again AS (UPDATE unavailability u SET ended_at = greatest(u.started_at, clock_timestamp()) \
                FROM finished f WHERE u.event_id = f.event_id AND u.ended_at IS NULL) \
            SELECT r.move_id, r.server, r.source_reservation, r.target_reservation, r.target_version, \
                r.origin, f.event_id::text, r.state = 'reconfiguring' FROM ready r JOIN bound USING (server_id) \
            LEFT JOIN finished f USING (server_id) ORDER BY r.server";
        GIVE_UP = "WITH before AS (SELECT move_id, state FROM moves WHERE move_id = $1 AND open FOR UPDATE), \
            ended AS (UPDATE moves m SET state = $2, reason = $3, detail = $4 FROM before \
                WHERE m.move_id = before.move_id RETURNING m.server_id, m.server, m.target_reservation, \
                    m.stays, m.origin, before.state AS was) \
            SELECT server, target_reservation, stays, server_id, origin, was FROM ended";
        /// The server stays with its owner, and the next solve decides again.
        UNTARGET = "UPDATE servers s SET target_pending = false, target_reservation_id = NULL, \
                target_version = NULL, target_origin = NULL \
            WHERE s.server_id = $1 AND s.target_pending AND $2 IS NOT DISTINCT FROM \
                (SELECT t.reservation FROM reservations t WHERE t.reservation_id = s.target_reservation_id)";
        ENDED = "SELECT state, reason, count(*) FROM moves WHERE NOT open GROUP BY 1, 2 ORDER BY 1, 2";
    }
}

/// How many moves ended in one state, for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedMoves {
    /// The state.
    pub state: MoveState,
    /// Why they ended without being bound; `None`: they were bound.
    pub reason: Option<MoveReason>,
    /// The number of moves.
    pub count: i64,
}

/// An open move.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenMove {
    /// The move's id, ordered by time.
    pub id: MoveId,
    /// The server.
    pub server: ServerName,
    /// The server's rack.
    pub rack: RackName,
    /// The server's MSB.
    pub msb: MsbName,
    /// The owner; `None`: free.
    pub source: Option<ReservationName>,
    /// The next owner; `None`: the server becomes free.
    pub target: Option<ReservationName>,
    /// The host profile of the next owner.
    pub host_profile: Option<Name>,
    /// The version of the targets that it serves.
    pub version: TargetVersion,
    /// The move's state, a lower bound of its progress.
    pub state: MoveState,
    /// The time of the last change of state.
    pub state_at: DateTime<Utc>,
    /// The time it was opened.
    pub opened_at: DateTime<Utc>,
    /// The origin of the move.
    pub origin: MoveOrigin,
    /// Whether containers ran on the server when it was opened.
    pub in_use: bool,
    /// Whether the server is out of use, so that no step can be asked of its host.
    pub out_of_use: bool,
}

impl OpenMove {
    /// Whether the move has exceeded the longest stay in its state. A move that waits for a repair is not
    /// stuck: the repair is.
    pub fn is_stuck(&self, now: DateTime<Utc>) -> bool {
        let longest = self.state.longest_stay().filter(|_| !self.out_of_use);
        longest.is_some_and(|longest| (now - self.state_at).to_std().is_ok_and(|age| age > longest))
    }

    /// The move as admission sees it.
    pub fn view(&self) -> MoveView<MoveId> {
        MoveView {
            id: self.id,
            kind: MoveKind {
                rack: self.rack.clone(),
                msb: self.msb.clone(),
                source: self.source.clone(),
                in_use: self.in_use,
            },
            origin: self.origin,
            pending: self.state == MoveState::Pending,
            out_of_service: self.out_of_use,
            opened_at: self.opened_at,
        }
    }
}

/// A bound move: id, server, owner before and after, version, origin, the event of a server that an earlier
/// move left half-way, and whether the move set a host profile.
type BoundRow = (MoveId, String, Option<String>, Option<String>, i64, String, Option<String>, bool);

/// A failed move: server, wanted owner, whether the server was to stay, the server's number, origin, state
/// before.
type GivenUpRow = (String, Option<String>, bool, i32, String, String);

/// The targets that moves are opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All targets: a scan of all servers.
    All,
    /// Targets that were set between two solves: an index lookup.
    BetweenSolves,
}

/// The result of opening moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The number of opened moves.
    pub opened: u64,
    /// The number of superseded moves.
    pub superseded: u64,
}

impl Broker {
    /// Supersedes moves whose target is not wanted any more, and opens a move for every server with a target
    /// and no move. Idempotent.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn open_moves(
        &self,
        actor: &str,
        epoch: Epoch,
        wanted: Wanted,
    ) -> Result<Opened, MoverError> {
        let doing = "opening moves";
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        check_fence(db, epoch).await?;
        let superseded: Vec<(i32, bool)> =
            sqlx::query_as(sql::SUPERSEDE).fetch_all(&mut *db).await.doing(doing)?;
        let withdrawn = rollout::withdraw(&mut *db).await?;
        let wanted = match wanted {
            Wanted::All => sql::WANTED,
            Wanted::BetweenSolves => sql::WANTED_BETWEEN,
        };
        let wanted: Vec<(i32, Option<String>)> =
            sqlx::query_as(wanted).fetch_all(&mut *db).await.doing(doing)?;
        // A server to be restored gets the host profile of its owner.
        let restore = Some(MoveOrigin::Restore.as_str());
        let half_done = superseded.iter().filter(|(_, half_done)| *half_done);
        let mut moves: BTreeMap<i32, Option<&str>> =
            half_done.map(|(server, _)| (*server, restore)).collect();
        for (server, origin) in &wanted {
            let origin = origin.as_deref();
            if origin == restore {
                moves.insert(*server, origin);
            } else {
                moves.entry(*server).or_insert(origin);
            }
        }
        let (opened, version) = open_each(db, &moves).await?;
        let done = Opened { opened, superseded: superseded.len() as u64 + withdrawn };
        if done == Opened::default() {
            change.abandon().await?;
            return Ok(done);
        }
        let version = match version {
            Some(version) => version,
            None => region_read::head(db).await?,
        };
        let superseded = done.superseded;
        change.record(
            &version.to_string(),
            Event::MovesOpened { opened, superseded, maintenance: None },
        );
        change.commit().await?;
        Ok(done)
    }

    /// The open moves, oldest first.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn moves_under_way(&self) -> Result<Vec<OpenMove>, DbError> {
        let rows = sqlx::query(sql::UNDER_WAY).try_map(|row: PgRow| open_move(&row));
        rows.fetch_all(&self.pool).await.doing("listing moves under way")
    }

    /// Moves that had begun and ended within a duration before now, bound or not, counted by kind.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn recently_begun(&self, within: Duration) -> Result<Vec<(MoveKind, u64)>, DbError> {
        let kind = |row: PgRow| {
            let kind = MoveKind {
                rack: row.try_get::<&str, _>(0)?.into(),
                msb: row.try_get::<&str, _>(1)?.into(),
                source: row.try_get::<Option<&str>, _>(2)?.map(ReservationName::from),
                in_use: row.try_get(3)?,
            };
            Ok((kind, row.try_get::<i64, _>(4)?.unsigned_abs()))
        };
        let rows = sqlx::query(sql::RECENTLY_BEGUN).bind(within.as_secs_f64()).try_map(kind);
        rows.fetch_all(&self.pool).await.doing("counting moves that began recently")
    }

    /// Servers whose holder may have changed since an instant, publications and loads aside, and their holders.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn held_since(
        &self,
        at: DateTime<Utc>,
    ) -> Result<Vec<(ServerName, Option<ReservationName>)>, DbError> {
        let held = |row: PgRow| {
            let holder = row.try_get::<Option<&str>, _>(1)?.map(ReservationName::from);
            Ok((row.try_get::<&str, _>(0)?.into(), holder))
        };
        let rows = sqlx::query(sql::HELD_SINCE).bind(at).try_map(held);
        rows.fetch_all(&self.pool).await.doing("reading who holds what since")
    }

    /// Advances moves to later steps. Returns the moves that were in the expected state, with the host profile
    /// to set; others were superseded or had advanced.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn advance_moves(
        &self,
        epoch: Epoch,
        steps: &[(MoveId, MoveState, MoveState)],
    ) -> Result<BTreeMap<MoveId, Option<Name>>, MoverError> {
        let rows: Vec<(Option<MoveId>, Option<String>)> = sqlx::query_as(sql::ADVANCE)
            .bind(steps.iter().map(|(id, ..)| *id).collect::<Vec<_>>())
            .bind(steps.iter().map(|(_, source, _)| source.as_str()).collect::<Vec<_>>())
            .bind(steps.iter().map(|(.., target)| target.as_str()).collect::<Vec<_>>())
            .bind(epoch.0)
            .fetch_all(&self.pool)
            .await
            .doing("taking moves a step further")?;
        // The epoch is valid if there is a row, even if no move was advanced.
        if rows.is_empty() {
            return Err(MoverError::TakenOver);
        }
        let advanced = rows.into_iter().filter_map(|(id, profile)| Some((id?, profile)));
        Ok(advanced.map(|(id, profile)| (id, profile.map(Into::into))).collect())
    }

    /// Binds servers whose moves have done all steps: the target becomes the owner. Returns the bound moves;
    /// others serve a target that is not wanted any more.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn bind_moves(
        &self,
        actor: &str,
        epoch: Epoch,
        moves: &[MoveId],
    ) -> Result<Vec<MoveId>, MoverError> {
        let doing = "binding servers";
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        check_fence_at_head(db, epoch).await?;
        let rows: Vec<BoundRow> =
            sqlx::query_as(sql::BIND).bind(moves).fetch_all(&mut *db).await.doing(doing)?;
        if rows.is_empty() {
            change.abandon().await?;
            return Ok(Vec::new());
        }
        let ids: Vec<MoveId> = rows.iter().map(|(id, ..)| *id).collect();
        let configured: Vec<MoveId> = rows.iter().filter(|row| row.7).map(|(id, ..)| *id).collect();
        rollout::record_profiles(db, &ids, &configured).await?;
        let mut bound = Vec::with_capacity(rows.len());
        for (id, server, source, target, version, origin, unfinished, _) in rows {
            let event = Event::ServerBound {
                r#move: id,
                source: source.as_deref(),
                target: target.as_deref(),
                version: TargetVersion(version),
                origin: &origin,
            };
            change.record(&server, event);
            if let Some(event) = unfinished {
                unfinished::record_end(&mut change, &event, &server);
            }
            bound.push(id);
        }
        change.commit().await?;
        Ok(bound)
    }

    /// Gives a move up: the server stays with its owner, and the next solve decides again. A server that was
    /// already cleaned up stays out of use until it is restored or handed over ([`crate::Unfinished`]). False:
    /// the move had ended.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn give_move_up(
        &self,
        actor: &str,
        epoch: Epoch,
        id: MoveId,
        reason: MoveReason,
        said: &str,
    ) -> Result<bool, MoverError> {
        let doing = "giving a move up";
        let said = &*storable(said, SAID_MAX);
        let state = match reason {
            MoveReason::NewerTarget
            | MoveReason::SnapshotLoaded
            | MoveReason::ServerRemoved
            | MoveReason::MaintenanceOver
            | MoveReason::RolloutPaused => MoveState::Superseded,
            MoveReason::HostRefused => MoveState::Failed,
            MoveReason::TookTooLong => MoveState::Expired,
        };
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        check_fence_at_head(db, epoch).await?;
        let ended: Option<GivenUpRow> = sqlx::query_as(sql::GIVE_UP)
            .bind(id)
            .bind(state.as_str())
            .bind(reason.as_str())
            .bind(said)
            .fetch_optional(&mut *db)
            .await
            .doing(doing)?;
        let Some((server, target, stays, server_id, origin, was)) = ended else {
            change.abandon().await?;
            return Ok(false);
        };
        rollout::refused(db, id, said).await?;
        if !stays {
            let cleared = sqlx::query(sql::UNTARGET).bind(server_id).bind(&target);
            cleared.execute(&mut *db).await.doing(doing)?;
        }
        let was: MoveState = state::read(&was).doing(doing)?;
        if unfinished::is_left_half_way(&origin, was) {
            unfinished::note(&mut change, id, (server_id, &server), was.as_str()).await?;
        }
        let target = target.as_deref();
        change.record(&server, Event::MoveEnded { r#move: id, target, reason, said });
        change.commit().await?;
        Ok(true)
    }

    /// Ended moves, counted by state and, for unbound ones, by reason.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn moves_ended(&self) -> Result<Vec<EndedMoves>, DbError> {
        let rows = sqlx::query(sql::ENDED).try_map(|row: PgRow| {
            Ok(EndedMoves {
                state: state::read(row.try_get(0)?)?,
                reason: row.try_get::<Option<&str>, _>(1)?.map(MoveReason::read).transpose()?,
                count: row.try_get(2)?,
            })
        });
        rows.fetch_all(&self.pool).await.doing("counting moves that ended")
    }
}

/// Opens moves of servers that have none: to their targets, or in place. Returns the number.
pub(crate) async fn open(
    db: &mut PgConnection,
    servers: &[i32],
    stays: Option<MoveOrigin>,
) -> Result<u64, DbError> {
    if servers.is_empty() {
        return Ok(0);
    }
    let origin = stays.map(MoveOrigin::as_str);
    let moves = servers.iter().map(|server| (*server, origin)).collect();
    open_each(db, &moves).await.map(|(opened, _)| opened)
}

/// Opens moves, each with its own origin; `None`: to the server's target. Also returns the version of the
/// targets, if any move was opened.
async fn open_each(
    db: &mut PgConnection,
    moves: &BTreeMap<i32, Option<&str>>,
) -> Result<(u64, Option<TargetVersion>), DbError> {
    if moves.is_empty() {
        return Ok((0, None));
    }
    let ids: Vec<MoveId> = moves.iter().map(|_| MoveId::now_v7()).collect();
    let inserted = sqlx::query_scalar(sql::OPEN)
        .bind(ids)
        .bind(moves.keys().copied().collect::<Vec<_>>())
        .bind(moves.values().copied().collect::<Vec<_>>());
    let versions: Vec<i64> = inserted.fetch_all(db).await.doing("opening moves")?;
    Ok((versions.len() as u64, versions.first().copied().map(TargetVersion)))
}

/// Blocks publications until the end of the transaction; returns the head of the versions.
pub(crate) async fn hold_head(db: &mut PgConnection) -> Result<TargetVersion, DbError> {
    let head = sqlx::query_scalar(sql::HOLD_HEAD).fetch_one(db).await;
    head.map(TargetVersion).doing("holding the version of the targets")
}

/// Locks the rows of servers in the common order.
pub(crate) async fn lock_servers(db: &mut PgConnection, servers: &[&str]) -> Result<(), DbError> {
    let locked = sqlx::query(sql::LOCK_SERVERS).bind(servers).execute(db).await;
    locked.map(|_| ()).doing("locking servers")
}

fn open_move(row: &PgRow) -> Result<OpenMove, sqlx::Error> {
    Ok(OpenMove {
        id: row.try_get(0)?,
        server: name(row, 1)?,
        rack: name(row, 2)?,
        msb: name(row, 3)?,
        source: optional_name(row, 4)?,
        target: optional_name(row, 5)?,
        host_profile: optional_name(row, 6)?,
        version: TargetVersion(row.try_get(7)?),
        state: state::read(row.try_get(8)?)?,
        state_at: row.try_get(9)?,
        opened_at: row.try_get(10)?,
        origin: words::read("moves.origin", MoveOrigin::ALL, MoveOrigin::as_str, row.try_get(11)?)?,
        in_use: row.try_get(12)?,
        out_of_use: row.try_get(13)?,
    })
}
