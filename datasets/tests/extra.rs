//! Columns that a snapshot has beyond its format: kept with their types for policies, refused with their
//! place where they cannot be.

use crate::common::{self, said, small};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
    Int16Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array,
};
use datasets::schema::{RESERVATIONS, SERVERS};
use datasets::{read_extra, read_parts, write_parts};
use fleet::{ExtraCells, ExtraOf};
use parquet::arrow::ArrowWriter;
use std::path::Path;
use std::sync::Arc;

/// The small region with more columns in one table.
fn with(dir: &Path, more: &[(&str, ArrayRef)]) {
    write_parts(dir, &small()).unwrap();
    common::rewrite(dir, &SERVERS, |name, array| {
        let more = more.iter().filter(|_| name == "server_id");
        let more = more.map(|(name, array)| ((*name).to_owned(), array.clone()));
        std::iter::once((name.to_owned(), array)).chain(more).collect()
    });
}

fn write(file: &Path, columns: &[(&str, ArrayRef)]) {
    let columns = columns.iter().map(|(name, array)| (*name, array.clone(), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let file = std::fs::File::create(file).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn refusal(more: &[(&str, ArrayRef)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    with(dir.path(), more);
    let error = read_extra(dir.path()).expect_err("it was read");
    said(&error).replace(&format!("{}/", dir.path().display()), "")
}

#[test]
fn columns_are_kept_with_their_types() {
    let dir = tempfile::tempdir().unwrap();
    let rows = i64::try_from(small().servers.len()).unwrap();
    let year = |n: i64| (n != 2).then(|| i16::try_from(2019 + n).unwrap());
    let loops: DictionaryArray<arrow_array::types::Int32Type> =
        (0..rows).map(|n| Some(["north", "south"][usize::try_from(n % 2).unwrap()])).collect();
    let price = Decimal128Array::from_iter_values((0..rows).map(|n| i128::from(n) * 5));
    let days =
        Date32Array::from_iter((0..rows).map(|n| (n > 0).then(|| i32::try_from(n).unwrap())));
    let stamps = TimestampMicrosecondArray::from_iter_values(0..rows).with_timezone("UTC");
    with(
        dir.path(),
        &[
            ("purchase_year", Arc::new(Int16Array::from_iter((0..rows).map(year)))),
            ("cooling_loop", Arc::new(loops)),
            ("wear", Arc::new(Float64Array::from_iter_values((0..rows).map(|n| n as f64 / 8.0)))),
            ("price", Arc::new(price.with_precision_and_scale(10, 2).unwrap())),
            ("leased", Arc::new(BooleanArray::from_iter((0..rows).map(|n| Some(n % 3 == 0))))),
            ("leaves_on", Arc::new(days)),
            ("seen_at", Arc::new(stamps)),
        ],
    );
    common::rewrite(dir.path(), &RESERVATIONS, |name, array| {
        let tier: ArrayRef = Arc::new(StringArray::from_iter_values(["c", "b", "b", "a"]));
        let tier = (name == "owner").then(|| ("tier".to_owned(), tier));
        std::iter::once((name.to_owned(), array)).chain(tier).collect()
    });
    let text = |names: &[&str]| -> ArrayRef { Arc::new(StringArray::from(names.to_vec())) };
    let limits = Arc::new(UInt64Array::from(vec![9_000, 8_000]));
    write(&dir.path().join("msbs.parquet"), &[("limit", limits), ("msb", text(&["msb1", "msb0"]))]);
    // What the solver reads is unchanged.
    assert_eq!(read_parts(dir.path()).unwrap(), small());
    let tables = read_extra(dir.path()).unwrap();
    let [servers, reservations, msbs] = &tables[..] else { panic!("{tables:?}") };
    assert_eq!(servers.of, ExtraOf::Servers);
    assert_eq!(&*servers.keys[3], "s03");
    let cells = |name: &str| {
        &servers.columns.iter().find(|column| column.name == name).expect("it is there").cells
    };
    match cells("purchase_year") {
        ExtraCells::Integer(cells) => assert_eq!(cells[1..4], [Some(2020), None, Some(2022)]),
        other => panic!("{other:?}"),
    }
    match cells("cooling_loop") {
        ExtraCells::Text(cells) => assert_eq!(cells[1].as_deref(), Some("south")),
        other => panic!("{other:?}"),
    }
    match cells("wear") {
        ExtraCells::Decimal(cells) => assert_eq!(cells[3], Some(375_000)),
        other => panic!("{other:?}"),
    }
    match cells("price") {
        ExtraCells::Decimal(cells) => assert_eq!(cells[3], Some(150_000)),
        other => panic!("{other:?}"),
    }
    match cells("leased") {
        ExtraCells::Boolean(cells) => assert_eq!(cells[2..4], [Some(false), Some(true)]),
        other => panic!("{other:?}"),
    }
    match cells("leaves_on") {
        ExtraCells::Date(cells) => assert_eq!(cells[..2], [None, Some(1)]),
        other => panic!("{other:?}"),
    }
    let [(column, reason)] = &servers.unusable[..] else { panic!("{:?}", servers.unusable) };
    assert_eq!(column, "seen_at");
    assert!(reason.contains("dates are read"), "{reason}");
    assert_eq!(reservations.columns.len(), 1);
    assert_eq!(msbs.of, ExtraOf::Msbs);
    assert_eq!(msbs.columns[0].cells, ExtraCells::Integer(vec![Some(9_000), Some(8_000)]));
}

#[test]
fn what_cannot_be_kept_is_refused_with_its_place() {
    let rows = small().servers.len();
    let at = |value: f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(
            (0..rows).map(|n| if n == 4 { value } else { 1.0 }),
        ))
    };
    for value in [f64::NAN, f64::INFINITY, 1e18] {
        assert_eq!(
            refusal(&[("watts", at(value))]),
            "servers.parquet: row 5: column \"watts\" is no number of up to 12 digits before the \
             point"
        );
    }
    let large: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..rows).map(|_| u64::MAX)));
    assert_eq!(
        refusal(&[("count", large)]),
        "servers.parquet: row 1: column \"count\" has more than 63 bits"
    );
    assert_eq!(
        refusal(&[("watts", at(1.0)), ("watts", at(1.0))]),
        "servers.parquet: column \"watts\" is there twice"
    );
}

#[test]
fn rows_of_a_side_file_have_a_name_each() {
    let dir = tempfile::tempdir().unwrap();
    write_parts(dir.path(), &small()).unwrap();
    let file = dir.path().join("racks.parquet");
    let refusal = |racks: ArrayRef, name: &str| {
        write(&file, &[(name, racks)]);
        let error = read_extra(dir.path()).expect_err("it was read");
        said(&error).replace(&format!("{}/", dir.path().display()), "")
    };
    let text = |names: &[Option<&str>]| -> ArrayRef { Arc::new(StringArray::from(names.to_vec())) };
    assert_eq!(
        refusal(text(&[Some("rack0"), Some("rack0")]), "rack"),
        "racks.parquet: rack \"rack0\" is there twice"
    );
    assert_eq!(refusal(text(&[Some("rack0"), None]), "rack"), "racks.parquet: row 2: rack is null");
    assert_eq!(
        refusal(text(&[Some("rack0")]), "name"),
        "racks.parquet: has no column \"rack\" of text, which names its rows"
    );
}
