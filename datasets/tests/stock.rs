//! CSV files of stocks and orders: what is read, and what a broken one is told.

use datasets::import::{ImportError, StockRow, read_stock};

fn read(text: &str) -> Result<Vec<StockRow>, ImportError> {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("stock.csv");
    std::fs::write(&file, text).expect("a file");
    read_stock(&file)
}

#[test]
fn lines_are_read_in_their_order() {
    let rows = read("date,series,servers\n1970-01-03,1/A,4\n0,1/B,0\n").expect("a file of stocks");
    let row = |series: &str, time, servers, line| StockRow {
        series: series.to_owned(),
        time,
        servers,
        line,
    };
    assert_eq!(rows, [row("1/A", 172_800, 4, 2), row("1/B", 0, 0, 3)]);
}

#[test]
fn every_broken_field_is_named() {
    let found = read("series,date,servers\n,soon,-3\nA,0,1.5\n").expect_err("refused").to_string();
    for message in [
        "line 2: series: is empty",
        "line 2: date: \"soon\" is neither",
        "line 2: servers: -3 must be finite and not negative",
        "line 3: servers:",
    ] {
        assert!(found.contains(message), "{found}\n{message}");
    }
}
