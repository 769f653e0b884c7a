//! Where guaranteed reservations may have servers between two solves, and how many in one MSB: what
//! replacements, emergencies and giving way must keep as a solve does.

use crate::promise::replica_rule;
use fleet::{Name, RegionSnapshot, ReplicaRule, Reservation, Rru};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) mod sql {
    crate::statements! {
        /// Only of reservations that have such a rule.
        PLACES = "SELECT r.reservation, p.capacity_micro, p.replicas, p.replicas_per_msb, \
                EXISTS (SELECT FROM allowed_datacenters a WHERE a.promise_id = p.promise_id), \
                ARRAY(SELECT m.msb::text FROM allowed_datacenters a JOIN msbs m USING (datacenter_id) \
                    WHERE a.promise_id = p.promise_id) \
            FROM reservations r JOIN promises p USING (promise_id) \
            WHERE r.kind = 'guaranteed' AND (p.replicas IS NOT NULL \
                OR EXISTS (SELECT FROM allowed_datacenters a WHERE a.promise_id = p.promise_id))";
    }
}

/// The rules of places of one reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceLimits {
    /// The MSBs of the datacenters it is held to; `None`: all.
    pub msbs: Option<BTreeSet<Name>>,
    /// How much of it one MSB may hold, if that is limited.
    pub rule: Option<ReplicaRule>,
    /// C.
    pub capacity: Rru,
}

impl PlaceLimits {
    /// Those of a reservation of a snapshot.
    pub fn of(snapshot: &RegionSnapshot, of: &Reservation) -> PlaceLimits {
        let allowed = snapshot.msbs.iter().filter(|msb| of.allows(msb.datacenter));
        let held_to = !of.allowed_datacenters.is_empty();
        PlaceLimits {
            msbs: held_to.then(|| allowed.map(|msb| msb.id.clone()).collect()),
            rule: of.replica_rule,
            capacity: of.capacity,
        }
    }

    /// Whether it may have servers in an MSB.
    pub fn allows(&self, msb: &Name) -> bool {
        self.msbs.as_ref().is_none_or(|msbs| msbs.contains(msb))
    }

    /// The most RRU that it may have in one MSB, were it promised `more`.
    pub fn msb_max(&self, more: Rru) -> Rru {
        self.rule.map_or(Rru(i64::MAX), |rule| rule.msb_max(self.capacity + more))
    }

    /// Whether it may have this much in an MSB.
    pub fn fits(&self, msb: &Name, amount: Rru) -> bool {
        self.allows(msb) && amount <= self.msb_max(Rru::ZERO)
    }
}

/// The rules of every reservation that has any.
pub(crate) async fn read(
    db: &mut PgConnection,
) -> Result<BTreeMap<Name, PlaceLimits>, sqlx::Error> {
    let limits = |row: PgRow| {
        let rule = replica_rule(row.try_get(2)?, row.try_get(3)?);
        let msbs: Vec<String> = row.try_get(5)?;
        let msbs: BTreeSet<Name> = msbs.into_iter().map(Name::from).collect();
        let held_to: bool = row.try_get(4)?;
        let capacity = Rru(row.try_get(1)?);
        let limits = PlaceLimits { msbs: held_to.then_some(msbs), rule, capacity };
        Ok((Name::from(row.try_get::<&str, _>(0)?), limits))
    };
    let rows: Vec<_> = sqlx::query(sql::PLACES).try_map(limits).fetch_all(db).await?;
    Ok(rows.into_iter().collect())
}
