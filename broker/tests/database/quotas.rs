//! Quotas that were stored before they had a meaning, migrated.

use crate::harness::Database;
use broker::{Broker, MIGRATOR};
use fleet::Rru;
use fleet::quota::Measure;
use sqlx::{AssertSqlSafe, SqlSafeStr};
use std::collections::BTreeMap;

/// The migration that gives quotas their meaning.
const VERSION: i64 = 63;

/// `one` has reservations of one meaning, `two` of two, `none` has none.
const BEFORE: &str = "
    INSERT INTO hardware_types (hardware_type) VALUES ('C1'), ('C2');
    INSERT INTO promises (reservation, version, kind, owner, capacity_micro, msb_buffer, priority) VALUES
        ('a', 1, 'guaranteed', 'one', 4000000, false, 0), ('b', 1, 'guaranteed', 'one', 6000000, false, 0),
        ('c', 1, 'guaranteed', 'two', 4000000, false, 0), ('d', 1, 'guaranteed', 'two', 6000000, false, 0);
    INSERT INTO rru_values SELECT p.promise_id, h.hardware_type_id,
            CASE WHEN p.reservation = 'd' THEN 3000000 WHEN h.hardware_type = 'C1' THEN 1000000 ELSE 2000000 END
        FROM promises p CROSS JOIN hardware_types h;
    INSERT INTO reservations (reservation, kind, promise_id) SELECT reservation, kind, promise_id FROM promises;
    INSERT INTO quotas (owner, capacity_micro, set_by) VALUES
        ('one', 12000000, 'ann'), ('two', 12000000, 'ann'), ('none', 5000000, 'ann');";

#[tokio::test]
async fn old_quota_gets_its_measure_from_reservations() {
    let database = Database::bare().await;
    let mut db = database.connect().await;
    for migration in MIGRATOR.iter().filter(|of| of.version < VERSION) {
        let sql = AssertSqlSafe(migration.sql.as_str().to_owned()).into_sql_str();
        sqlx::raw_sql(sql).execute(&mut db).await.expect("migrated");
    }
    sqlx::raw_sql(BEFORE).execute(&mut db).await.expect("stored");
    for migration in MIGRATOR.iter().filter(|of| of.version >= VERSION) {
        let sql = AssertSqlSafe(migration.sql.as_str().to_owned()).into_sql_str();
        sqlx::raw_sql(sql).execute(&mut db).await.expect("migrated");
    }
    let broker: &Broker = &database.broker;
    let limits: BTreeMap<String, (Measure, Rru, Rru)> = broker
        .quotas(None)
        .await
        .expect("read")
        .into_iter()
        .map(|mut of| {
            assert_eq!(of.limits.len(), 1, "{of:?}");
            let limit = of.limits.remove(0);
            (of.owner.to_string(), (limit.measure, limit.limit, limit.promised))
        })
        .collect();
    let profile = |owner: &str, c1: i64, c2: i64| Measure::Profile {
        profile: format!("quota of {owner}").into(),
        rru: BTreeMap::from([("C1".into(), Rru(c1)), ("C2".into(), Rru(c2))]),
    };
    let units = Rru::units;
    assert_eq!(limits["one"], (profile("one", 1_000_000, 2_000_000), units(12), units(10)));
    // c counts three times its number: each type counts what d gives it. What it has stays.
    assert_eq!(limits["two"], (profile("two", 3_000_000, 3_000_000), units(12), units(18)));
    assert_eq!(limits["none"], (Measure::Servers, units(5), units(0)));
}
