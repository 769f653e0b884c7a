//! The same table as CSV and as Parquet reads the same.

use arrow_array::{
    ArrayRef, Float32Array, Int16Array, Int64Array, RecordBatch, StringArray,
    TimestampMillisecondArray, UInt8Array,
};
use datasets::import::read_outages;
use parquet::arrow::ArrowWriter;
use std::fs::{self, File};
use std::sync::Arc;

fn write(file: &std::path::Path, to: ArrayRef) {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("server", Arc::new(StringArray::from(vec!["s1", "s2", "s3"]))),
        ("type", Arc::new(StringArray::from(vec!["A", "B", "A"]))),
        ("from", Arc::new(Int64Array::from(vec![Some(10), None, Some(70)]))),
        ("to", to),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .expect("a table");
    let mut writer =
        ArrowWriter::try_new(File::create(file).expect("a file"), batch.schema(), None)
            .expect("a writer");
    writer.write(&batch).expect("writes");
    writer.close().expect("closes");
}

#[test]
fn outages_in_parquet_are_those_in_csv() {
    let folder = tempfile::tempdir().expect("a folder");
    let (csv, parquet) = (folder.path().join("o.csv"), folder.path().join("o.parquet"));
    fs::write(&csv, "server,type,from,to\ns1,A,10,50\ns2,B,,\ns3,A,70,\n").expect("writes");
    let expected = read_outages(&csv).expect("valid");
    assert_eq!(expected[0].outage, Some((10, Some(50))));
    assert_eq!((expected[1].outage, expected[2].outage), (None, Some((70, None))));
    write(&parquet, Arc::new(Int64Array::from(vec![Some(50), None, None])));
    assert_eq!(read_outages(&parquet).expect("valid"), expected);
    let small: [ArrayRef; 3] = [
        Arc::new(Int16Array::from(vec![Some(50), None, None])),
        Arc::new(UInt8Array::from(vec![Some(50), None, None])),
        Arc::new(Float32Array::from(vec![Some(50.0), None, None])),
    ];
    for to in small {
        write(&parquet, to);
        assert_eq!(read_outages(&parquet).expect("valid"), expected);
    }
    let instants = TimestampMillisecondArray::from(vec![Some(50_000), None, None]);
    write(&parquet, Arc::new(instants));
    assert_eq!(read_outages(&parquet).expect("valid"), expected);
    // The second row is the third line.
    write(&parquet, Arc::new(Int64Array::from(vec![Some(50), Some(9), None])));
    let error = read_outages(&parquet).expect_err("an end without a start").to_string();
    assert!(error.contains("o.parquet: line 3: from: is empty"), "{error}");
    fs::write(&parquet, "PAR1 and no more").expect("writes");
    let error = read_outages(&parquet).expect_err("damaged").to_string();
    assert!(error.contains("o.parquet") && error.contains("Parquet"), "{error}");
}
