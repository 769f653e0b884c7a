//! Columns that a snapshot has beyond its format, read by policies.

use fleet::{ExtraCells, ExtraColumn, ExtraOf, ExtraTable, Name, RegionSnapshot, ServerRow};
use policies::{Model, Policies, Type, World, audit};
use testkit::rows;

fn snapshot() -> RegionSnapshot {
    let mut parts = rows::parts();
    for (number, msb) in ["m0", "m0", "m1"].into_iter().enumerate() {
        let place = ("d0", msb, ["k0", "k1", "k2"][number]);
        let row = rows::server(&format!("s{number}"), place, "t0");
        let current_reservation = Some("web".into());
        parts.servers.push(ServerRow { current_reservation, power_watts: Some(400.5), ..row });
    }
    parts.reservations.push(rows::reservation("web", 1.0));
    parts.rru.push(rows::rru("web", "t0", 1.0));
    RegionSnapshot::new(parts).expect("a region")
}

fn table(of: ExtraOf, keys: &[&str], columns: Vec<(&str, ExtraCells)>) -> ExtraTable {
    let column = |(name, cells): (&str, ExtraCells)| ExtraColumn { name: name.to_owned(), cells };
    let keys = keys.iter().map(|key| Name::from(*key)).collect();
    let columns = columns.into_iter().map(column).collect();
    ExtraTable { of, keys, columns, unusable: vec![("seen_at".into(), "is of type X".into())] }
}

/// Rows of side files in another order than those of the region, one of them missing.
fn extra() -> Vec<ExtraTable> {
    let years = ExtraCells::Integer(vec![Some(2025), Some(2019), None]);
    // 2026-01-31 and the day before.
    let days = ExtraCells::Date(vec![Some(20_484), None, Some(20_483)]);
    let limits = ExtraCells::Decimal(vec![Some(801_000_000), Some(400_000_000)]);
    let loops = ExtraCells::Text(vec![Some("north".into()), Some("south".into())]);
    let leased = ExtraCells::Boolean(vec![Some(true)]);
    vec![
        table(
            ExtraOf::Servers,
            &["s2", "s0", "s1"],
            vec![("purchase_year", years), ("leaves_on", days)],
        ),
        table(ExtraOf::Reservations, &["web"], vec![("leased", leased)]),
        table(ExtraOf::Racks, &["k2", "k0"], vec![("cooling_loop", loops)]),
        table(ExtraOf::Msbs, &["m0", "m1"], vec![("limit_watts", limits)]),
    ]
}

/// The rows that fail, by the library and by the compiled formulas.
fn fails(world: &World, query: &str) -> Vec<String> {
    let text = format!("-- @hard_constraint\nCREATE VIEW p AS SELECT {query}");
    let policies = Policies::parse([("p.sql", &*text)]).unwrap_or_else(|e| panic!("{e}"));
    let model = Model::compile(&policies, world).unwrap_or_else(|error| panic!("{error}"));
    let found = audit(&policies, world).unwrap_or_else(|error| panic!("{error}"));
    let broken = model.broken(&world.assignment()).expect("options of the column");
    assert_eq!(broken.len(), found[0].fails.len(), "{query}");
    found[0].fails.clone()
}

#[test]
fn policies_read_extra_columns_with_their_types() {
    let world = World::region_with(&snapshot(), &extra()).expect("a world");
    let types: Vec<Type> = (world.tables()[0].columns.iter().rev().take(2)).map(|c| c.of).collect();
    assert_eq!(types, [Type::Date, Type::Integer]);
    let power = "s.msb FROM servers s JOIN msbs m ON m.msb = s.msb WHERE s.target_reservation IS NOT NULL \
                 GROUP BY s.msb, m.limit_watts HAVING sum(s.power_watts) <= m.limit_watts";
    assert_eq!(fails(&world, power), ["msb=m1"]);
    let year =
        "s.server_id FROM servers s WHERE s.target_reservation IS NULL OR s.purchase_year >= 2020";
    assert_eq!(fails(&world, year), ["server_id=s0", "server_id=s1"]);
    let leaves = "s.server_id FROM servers s WHERE s.target_reservation IS NULL \
                  OR coalesce(s.leaves_on, DATE '2027-01-01') > DATE '2026-01-30'";
    assert_eq!(fails(&world, leaves), ["server_id=s1"]);
    let cooled = "s.server_id FROM servers s JOIN racks k ON k.rack = s.rack \
                  JOIN reservations r ON r.reservation_id = s.target_reservation AND r.leased \
                  WHERE k.cooling_loop = 'south'";
    assert_eq!(fails(&world, cooled), ["server_id=s1", "server_id=s2"]);
}

#[test]
fn a_column_that_cannot_be_read_is_named_with_the_reason() {
    let world = World::region_with(&snapshot(), &extra()).expect("a world");
    let text = "-- @hard_constraint\nCREATE VIEW p AS\nSELECT s.server_id FROM servers s WHERE s.seen_at > 1";
    let policies = Policies::parse([("p.sql", text)]).expect("SQL");
    let error = Model::compile(&policies, &world).expect_err("it compiles").to_string();
    assert_eq!(error, "p.sql:3:41: p: column seen_at of servers is of type X");
}

#[test]
fn names_that_do_not_fit_are_refused() {
    let wrong = |of: ExtraOf, key: &str, column: &str| {
        let cells = ExtraCells::Boolean(vec![None]);
        let extra = [table(of, &[key], vec![(column, cells)])];
        World::region_with(&snapshot(), &extra).expect_err("it was taken").message
    };
    assert_eq!(
        wrong(ExtraOf::Servers, "s0", "holder"),
        "servers.parquet: column \"holder\" has the name of a column of policies"
    );
    assert_eq!(
        wrong(ExtraOf::Racks, "k9", "row"),
        "racks.parquet: rack \"k9\" is not in the region"
    );
}
