//! Elastic reservations: created, changed and ended.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::{ElasticTerms, Event};
use crate::log::trail::Seq;
use crate::snapshot::load;
use crate::topology::edit_error::{EditError, check_seen, version};
use crate::topology::editing::Editing;
use fleet::edit::{self, ElasticAsked, WrongField};
use fleet::{ReservationKind, ReservationName};
use sqlx::PgConnection;
use std::collections::BTreeMap;

pub(crate) mod sql {
    crate::statements! {
        ELASTIC = "SELECT r.reservation, p.owner, p.priority, p.host_profile, r.loan_share, r.ending, p.version, \
                coalesce((SELECT jsonb_object_agg(h.hardware_type, v.value_micro) FROM rru_values v \
                    JOIN hardware_types h USING (hardware_type_id) WHERE v.promise_id = p.promise_id), '{}'), \
                (SELECT count(*) FROM servers s WHERE s.loan_reservation_id = r.reservation_id) \
            FROM reservations r JOIN promises p USING (promise_id) \
            WHERE r.kind = 'elastic' AND ($1::text IS NULL OR r.reservation = $1) ORDER BY 1";
        SET_SHARE = "UPDATE reservations SET loan_share = $2, ending = false WHERE reservation = $1";
        END_ELASTIC = "UPDATE reservations SET ending = true WHERE reservation = $1 AND kind = 'elastic' \
            AND NOT ending";
        /// Ended elastic reservations without loans.
        REMOVE_ENDED = "DELETE FROM reservations r WHERE r.kind = 'elastic' AND r.ending \
            AND NOT EXISTS (SELECT FROM servers s WHERE s.loan_reservation_id = r.reservation_id) \
            RETURNING reservation";
    }
}

/// An elastic reservation.
#[derive(Clone, Debug, PartialEq)]
pub struct Elastic {
    /// The reservation's name.
    pub reservation: ReservationName,
    /// The settings.
    pub asked: ElasticAsked,
    /// The share by which loans are distributed; `None`: from the mover's settings, else 1.
    pub share: Option<f64>,
    /// Whether it is ending: it is removed once it borrows nothing.
    pub ending: bool,
    /// The version of the promise.
    pub promise_version: i32,
    /// The number of borrowed servers.
    pub borrows: u64,
}

impl Elastic {
    /// A version that changes with every change and with the end.
    pub fn version(&self) -> String {
        version(&(&self.reservation, self.promise_version, self.share, self.ending))
    }

    fn terms(&self) -> ElasticTerms<'_> {
        ElasticTerms { asked: &self.asked, share: self.share }
    }
}

/// The result of ending an elastic reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElasticEnd {
    /// It borrowed nothing and was removed.
    Gone,
    /// It is removed once this many servers are returned.
    Returning(u64),
}

impl Broker {
    /// Lists elastic reservations by name, or reads one.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn elastic_reservations(&self, name: Option<&str>) -> Result<Vec<Elastic>, DbError> {
        if name.is_some_and(|name| name.contains('\0')) {
            return Ok(Vec::new());
        }
        let mut db = self.pool.acquire().await.doing("connecting")?;
        elastic(&mut db, name).await
    }

    /// Creates or changes an elastic reservation and its share of loans. `seen`: only if this is the current
    /// version.
    ///
    /// # Errors
    /// [`EditError`], with every invalid field.
    pub async fn set_elastic(
        &self,
        actor: &str,
        name: &ReservationName,
        asked: &ElasticAsked,
        share: Option<f64>,
        seen: Option<&str>,
    ) -> Result<Seq, EditError> {
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let mut editing = Editing::begin(db, true).await?;
        let stored_name = if name.contains('\0') { None } else { Some(name.as_ref()) };
        let before = match stored_name {
            Some(name) => elastic(db, Some(name)).await?.pop(),
            None => None,
        };
        match (&before, seen) {
            (Some(before), seen) => check_seen(seen, before.version())?,
            (None, Some(_)) => return Err(EditError::UnknownElastic { name: name.clone() }),
            (None, None) => {}
        }
        let mut wrong = Vec::new();
        if share.is_some_and(|share| !(share > 0.0 && share.is_finite())) {
            let one = WrongField::new("share", "out_of_range", "a share is above 0 and finite");
            wrong.push(WrongField { nearest: Some(1.0), ..one });
        }
        let set = edit::set_elastic(&mut editing.parts, name, asked, &editing.known);
        wrong.extend(set.err().into_iter().flatten());
        if !wrong.is_empty() {
            return Err(EditError::Wrong(wrong));
        }
        editing.write(db).await?;
        let shared = sqlx::query(sql::SET_SHARE).bind(name.as_ref()).bind(share);
        shared.execute(&mut *db).await.doing("setting the share of an elastic reservation")?;
        let after = elastic(db, Some(name)).await?.pop();
        let [before, after] = [&before, &after].map(|of| of.as_ref().map(Elastic::terms));
        change.record(name, Event::ElasticSet { before, after });
        Ok(change.commit().await?)
    }

    /// Ends an elastic reservation: at once if it borrows nothing, else when its loans are returned. `seen`:
    /// only if this is the current version.
    ///
    /// # Errors
    /// [`EditError`].
    pub async fn end_elastic(
        &self,
        actor: &str,
        name: &str,
        seen: Option<&str>,
    ) -> Result<ElasticEnd, EditError> {
        let doing = "ending an elastic reservation";
        let unknown = || EditError::UnknownElastic { name: name.into() };
        if name.contains('\0') {
            return Err(unknown());
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        sqlx::query(load::sql::LOCK).execute(&mut *db).await.doing("locking the region")?;
        let found = elastic(db, Some(name)).await?.pop().ok_or_else(unknown)?;
        check_seen(seen, found.version())?;
        let ended = sqlx::query(sql::END_ELASTIC).bind(name).execute(&mut *db).await;
        let ended = ended.doing(doing)?.rows_affected() == 1;
        let gone = sqlx::query_scalar(sql::REMOVE_ENDED).fetch_all(&mut *db).await;
        let gone: Vec<String> = gone.doing(doing)?;
        let end = if gone.iter().any(|gone| gone == name) {
            ElasticEnd::Gone
        } else {
            ElasticEnd::Returning(found.borrows)
        };
        if !ended && end != ElasticEnd::Gone {
            change.abandon().await?;
            return Ok(end);
        }
        let (before, borrows) = (found.terms(), found.borrows);
        change.record(name, Event::ElasticEnded { before, borrows });
        for name in gone {
            let kind = Some(ReservationKind::Elastic);
            change.record(&name, Event::ReservationRemoved { kind });
        }
        change.commit().await?;
        Ok(end)
    }
}

type ElasticRow = (
    String,
    String,
    i32,
    Option<String>,
    Option<f64>,
    bool,
    i32,
    sqlx::types::Json<BTreeMap<String, i64>>,
    i64,
);

async fn elastic(db: &mut PgConnection, name: Option<&str>) -> Result<Vec<Elastic>, DbError> {
    let rows: Vec<ElasticRow> = sqlx::query_as(sql::ELASTIC)
        .bind(name)
        .fetch_all(db)
        .await
        .doing("reading elastic reservations")?;
    let of =
        |(name, owner, priority, profile, share, ending, version, values, borrows): ElasticRow| {
            let value = |(ty, micro): (String, i64)| (ty.into(), fleet::Rru(micro).to_f64());
            Elastic {
                reservation: name.into(),
                asked: ElasticAsked {
                    owner: owner.into(),
                    rru: values.0.into_iter().map(value).collect(),
                    priority,
                    host_profile: profile.map(Into::into),
                },
                share,
                ending,
                promise_version: version,
                borrows: borrows.unsigned_abs(),
            }
        };
    debug_assert_eq!(ReservationKind::Elastic.as_str(), "elastic", "the statements use this word");
    Ok(rows.into_iter().map(of).collect())
}
