//! CSV files with text that was not meant: refused with file, line, column and rule.

use crate::common::{self, said};
use datasets::import::{ImportOptions, import_csv};

const HEADER: &str = "server_id,datacenter,msb,rack,hardware_type,note\n";

/// What is said of a file that has this as its third line.
fn refusal(line: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("servers.csv");
    let mut text = HEADER.as_bytes().to_vec();
    text.extend_from_slice(b"a,d0,m0,r0,T,x\n");
    text.extend_from_slice(line);
    text.extend_from_slice(b"\nc,d1,m1,r2,T,x\n");
    std::fs::write(&file, text).unwrap();
    let options = ImportOptions::new("region-a", file, common::midnight());
    let error = import_csv(&options).expect_err("imported");
    said(&error).replace(&format!("{}/", dir.path().display()), "")
}

#[test]
fn invisible_characters_are_refused_with_their_place() {
    for (line, column, character) in [
        ("b\0,d0,m0,r1,T,x", "server_id", "U+0000 as character 2"),
        ("b,d0,m0,r1,T\u{7},x", "hardware_type", "U+0007 as character 2"),
        ("b,\u{202e}d0,m0,r1,T,x", "datacenter", "U+202E as character 1"),
        ("b,d0,m\u{200b}0,r1,T,x", "msb", "U+200B as character 2"),
        ("b,d0,m0,r\u{2066}1,T,x", "rack", "U+2066 as character 2"),
        ("b,d0,m0,\"r\n1\",T,x", "rack", "U+000A as character 2"),
    ] {
        let said = refusal(line.as_bytes());
        let expected =
            format!("servers.csv: line 3: {column}: has {character}; a name has no control");
        assert!(said.starts_with(&expected), "{line:?}: {said}");
    }
}

#[test]
fn bytes_that_are_no_text_and_fields_that_are_too_long_are_refused() {
    let said = refusal(b"b,d0,m0,r\xff1,T,x");
    assert_eq!(said, "servers.csv: line 3: record: is not UTF-8");
    let long = |bytes: usize| "x".repeat(bytes);
    let said = refusal(format!("{},d0,m0,r1,T,x", long(200)).as_bytes());
    assert_eq!(said, "servers.csv: line 3: server_id: has 200 characters; a name has at most 128");
    // In an unused column as well.
    let said = refusal(format!("b,d0,m0,r1,T,{}", long(70_000)).as_bytes());
    assert_eq!(said, "servers.csv: line 3: note: has 70000 bytes; a field has at most 65536");
}

#[test]
fn names_follow_the_rule() {
    for (line, column) in [
        ("..,d0,m0,r1,T,x", "server_id"),
        ("b,d0,m0,a//b,T,x", "rack"),
        ("b,d0,m0,r1, T,x", "hardware_type"),
        ("b,d0,m0,r1,<T>,x", "hardware_type"),
    ] {
        let said = refusal(line.as_bytes());
        assert!(
            said.starts_with(&format!("servers.csv: line 3: {column}: is not a name")),
            "{said}"
        );
        assert!(said.ends_with(fleet::NAME_RULE), "{said}");
    }
}

#[test]
fn a_line_without_an_end_is_not_read_into_memory() {
    for line in ["x".repeat(3 << 20), format!("\"{}", "x".repeat(3 << 20))] {
        let said = refusal(line.as_bytes());
        let expected =
            "servers.csv: line 3: record: is longer than 1048576 bytes, or a quote is not closed";
        assert_eq!(said, expected);
    }
}
