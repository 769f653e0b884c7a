//! The terms of a promise: RRU values by hardware type, affinities, allowed datacenters and the partitions that it
//! survives. A promise never changes (rows are added to its tables and never removed), so cached terms stay valid, and lists of
//! reservations need not read them, their larger part.

use fleet::{DatacenterName, HardwareTypeName, PartitionName, Rru};
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most promises in the cache, at some kilobytes each. At the limit the cache is cleared.
const KEPT_MAX: usize = 10_000;

pub(crate) mod sql {
    crate::statements! {
        /// Pairs of arrays: a JSON object takes Postgres three times as long.
        TERMS = "SELECT p.promise_id, v.types, v.worths, a.datacenters, a.shares, \
                ARRAY(SELECT d.datacenter::text FROM allowed_datacenters l \
                    JOIN datacenters d USING (datacenter_id) WHERE l.promise_id = p.promise_id), \
                ARRAY(SELECT t.partition::text FROM survives s JOIN partitions t USING (partition_id) \
                    WHERE s.promise_id = p.promise_id) \
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

/// The terms of a promise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromiseTerms {
    /// RRU values V by hardware type.
    pub rru: BTreeMap<HardwareTypeName, Rru>,
    /// Affinity A by datacenter.
    pub affinity: BTreeMap<DatacenterName, f64>,
    /// The allowed datacenters; empty: all.
    pub allowed_datacenters: BTreeSet<DatacenterName>,
    /// The partitions of which it survives the loss of any one domain.
    pub survives: BTreeSet<PartitionName>,
}

/// Cached terms by the number of the promise.
#[derive(Debug, Default)]
pub(crate) struct PromiseTermsCache(Mutex<HashMap<i64, Arc<PromiseTerms>>>);

impl PromiseTermsCache {
    /// The data under this lock is always consistent.
    fn kept(&self) -> MutexGuard<'_, HashMap<i64, Arc<PromiseTerms>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The terms of these promises, which must exist.
    pub(crate) async fn of(
        &self,
        db: &PgPool,
        promises: &[i64],
    ) -> Result<HashMap<i64, Arc<PromiseTerms>>, sqlx::Error> {
        let mut found: HashMap<i64, Arc<PromiseTerms>> = {
            let kept = self.kept();
            let known = |id: &i64| kept.get(id).map(|terms| (*id, terms.clone()));
            promises.iter().filter_map(known).collect()
        };
        let new: Vec<i64> = promises.iter().copied().filter(|id| !found.contains_key(id)).collect();
        if new.is_empty() {
            return Ok(found);
        }
        let read = sqlx::query(sql::TERMS).bind(new).try_map(|row: PgRow| terms(&row));
        let read: Vec<(i64, Arc<PromiseTerms>)> = read.fetch_all(db).await?;
        let mut kept = self.kept();
        if kept.len() + read.len() > KEPT_MAX {
            kept.clear();
        }
        kept.extend(read.iter().cloned());
        found.extend(read);
        Ok(found)
    }
}

fn terms(row: &PgRow) -> Result<(i64, Arc<PromiseTerms>), sqlx::Error> {
    let rru = by_name(row.try_get(1)?, row.try_get(2)?, Rru);
    let affinity = by_name(row.try_get(3)?, row.try_get(4)?, |share: f64| share);
    let allowed: Vec<String> = row.try_get(5)?;
    let allowed_datacenters = allowed.into_iter().map(Into::into).collect();
    let survives: Vec<String> = row.try_get(6)?;
    let survives = survives.into_iter().map(Into::into).collect();
    Ok((row.try_get(0)?, Arc::new(PromiseTerms { rru, affinity, allowed_datacenters, survives })))
}

/// Zips two arrays of equal length; Postgres aggregates no rows to null.
fn by_name<N: From<String> + Ord, T, V>(
    names: Option<Vec<String>>,
    values: Option<Vec<T>>,
    value: impl Fn(T) -> V,
) -> BTreeMap<N, V> {
    let names = names.into_iter().flatten().map(N::from);
    names.zip(values.into_iter().flatten().map(value)).collect()
}
