//! What promises value: hardware types by their worth, datacenters by the share that is wanted there, and
//! those they are held to. A promise
//! never changes (its tables take rows and give none up), so what was read of one holds for ever, and lists
//! of reservations, of which this is the larger part, need not carry it.

use fleet::{Name, Rru};
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Promises of which it is kept, some kilobytes each; beyond that all are forgotten.
const KEPT_MAX: usize = 10_000;

pub(crate) mod sql {
    crate::statements! {
        /// Two arrays each: an object of JSON takes Postgres three times as long.
        VALUED = "SELECT p.promise_id, v.types, v.worths, a.datacenters, a.shares, \
                ARRAY(SELECT d.datacenter::text FROM allowed_datacenters l \
                    JOIN datacenters d USING (datacenter_id) WHERE l.promise_id = p.promise_id) \
            FROM promises p \
            CROSS JOIN LATERAL (SELECT array_agg(h.hardware_type::text) AS types, \
                    array_agg(v.value_micro) AS worths FROM rru_values v \
                JOIN hardware_types h USING (hardware_type_id) WHERE v.promise_id = p.promise_id) v \
            CROSS JOIN LATERAL (SELECT array_agg(d.datacenter::text) AS datacenters, \
                    array_agg(a.share) AS shares FROM affinities a \
                JOIN datacenters d USING (datacenter_id) WHERE a.promise_id = p.promise_id) a \
            WHERE p.promise_id = ANY ($1::bigint[])";
    }
}

/// What a promise values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Valued {
    /// V, by hardware type.
    pub rru: BTreeMap<Name, Rru>,
    /// A, by datacenter.
    pub affinity: BTreeMap<Name, f64>,
    /// The datacenters it is held to; empty: all.
    pub allowed_datacenters: BTreeSet<Name>,
}

/// What promises value, by their number, as it was read before.
#[derive(Debug, Default)]
pub(crate) struct KeptValues(Mutex<HashMap<i64, Arc<Valued>>>);

impl KeptValues {
    /// Nothing is left half-done under this lock.
    fn kept(&self) -> MutexGuard<'_, HashMap<i64, Arc<Valued>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What these promises value, all of which there are.
    pub(crate) async fn of(
        &self,
        db: &PgPool,
        promises: &[i64],
    ) -> Result<HashMap<i64, Arc<Valued>>, sqlx::Error> {
        let mut found: HashMap<i64, Arc<Valued>> = {
            let kept = self.kept();
            let known = |id: &i64| kept.get(id).map(|valued| (*id, valued.clone()));
            promises.iter().filter_map(known).collect()
        };
        let new: Vec<i64> = promises.iter().copied().filter(|id| !found.contains_key(id)).collect();
        if new.is_empty() {
            return Ok(found);
        }
        let read = sqlx::query(sql::VALUED).bind(new).try_map(|row: PgRow| valued(&row));
        let read: Vec<(i64, Arc<Valued>)> = read.fetch_all(db).await?;
        let mut kept = self.kept();
        if kept.len() + read.len() > KEPT_MAX {
            kept.clear();
        }
        kept.extend(read.iter().cloned());
        found.extend(read);
        Ok(found)
    }
}

fn valued(row: &PgRow) -> Result<(i64, Arc<Valued>), sqlx::Error> {
    let rru = by_name(row.try_get(1)?, row.try_get(2)?, Rru);
    let affinity = by_name(row.try_get(3)?, row.try_get(4)?, |share: f64| share);
    let allowed: Vec<String> = row.try_get(5)?;
    let allowed_datacenters = allowed.into_iter().map(Name::from).collect();
    Ok((row.try_get(0)?, Arc::new(Valued { rru, affinity, allowed_datacenters })))
}

/// Two arrays of the same length; of nothing, Postgres makes no array.
fn by_name<T, V>(
    names: Option<Vec<String>>,
    values: Option<Vec<T>>,
    value: impl Fn(T) -> V,
) -> BTreeMap<Name, V> {
    let names = names.into_iter().flatten().map(Name::from);
    names.zip(values.into_iter().flatten().map(value)).collect()
}
