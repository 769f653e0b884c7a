//! Placement rules of guaranteed reservations: allowed datacenters and the limit on any one MSB. Replacements,
//! emergencies and preemptions keep them as a solve does.

use crate::promises::promise::replica_rule;
use decisions::place::PlaceLimits;
use fleet::{MsbName, ReservationName, Rru};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) mod sql {
    crate::statements! {
        /// Only reservations with such a rule.
        PLACES = "SELECT r.reservation, p.capacity_micro, p.replicas, p.replicas_per_msb, \
                EXISTS (SELECT FROM allowed_datacenters a WHERE a.promise_id = p.promise_id), \
                ARRAY(SELECT m.msb::text FROM allowed_datacenters a JOIN msbs m USING (datacenter_id) \
                    WHERE a.promise_id = p.promise_id) \
            FROM reservations r JOIN promises p USING (promise_id) \
            WHERE r.kind = 'guaranteed' AND (p.replicas IS NOT NULL \
                OR EXISTS (SELECT FROM allowed_datacenters a WHERE a.promise_id = p.promise_id))";
    }
}

/// The rules of all reservations that have any.
pub(crate) async fn read(
    db: &mut PgConnection,
) -> Result<BTreeMap<ReservationName, PlaceLimits>, sqlx::Error> {
    let limits = |row: PgRow| {
        let rule = replica_rule(row.try_get(2)?, row.try_get(3)?);
        let msbs: Vec<String> = row.try_get(5)?;
        let msbs: BTreeSet<MsbName> = msbs.into_iter().map(MsbName::from).collect();
        let held_to: bool = row.try_get(4)?;
        let capacity = Rru(row.try_get(1)?);
        let limits = PlaceLimits { msbs: held_to.then_some(msbs), rule, capacity };
        Ok((ReservationName::from(row.try_get::<&str, _>(0)?), limits))
    };
    let rows: Vec<_> = sqlx::query(sql::PLACES).try_map(limits).fetch_all(db).await?;
    Ok(rows.into_iter().collect())
}
