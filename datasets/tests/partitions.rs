//! Fault domains that cross MSBs: columns `domain:NAME` and `survives.parquet` of version 3.

use crate::common::inventory::Files;
use crate::common::{said, small};
use arrow_array::{ArrayRef, Int64Array};
use datasets::generate::{GenerateOptions, generate};
use datasets::import::import_csv;
use datasets::schema::{SERVERS, SURVIVES};
use datasets::{read_parts, read_snapshot, write_parts, write_snapshot};
use fleet::{PartitionColumn, PartitionParts, RegionSnapshot, SnapshotParts, SurvivesRow};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The small region with two partitions, of which one leaves out some servers.
fn crossed() -> SnapshotParts {
    let mut parts = small();
    let column = |name: &str, domains: usize, without: usize| PartitionColumn {
        name: name.into(),
        domains: (parts.servers.iter().enumerate())
            .filter(|(number, _)| number % without > 0)
            .map(|(number, row)| {
                let domain = format!("{name}{}", number % domains).into();
                (row.server_id.clone(), domain)
            })
            .collect(),
    };
    let partitions = vec![column("feed", 2, 3), column("switch", 3, 100)];
    let row =
        |partition: &str| SurvivesRow { reservation_id: "web".into(), partition: partition.into() };
    parts.crossing = PartitionParts { partitions, survives: vec![row("feed"), row("switch")] };
    parts
}

fn refusal(dir: &Path) -> String {
    let error = read_snapshot(dir).expect_err("it was read");
    said(&error).replace(&format!("{}/", dir.display()), "")
}

fn format(dir: &Path) -> String {
    let text = std::fs::read_to_string(dir.join("region.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    document["format"].as_str().unwrap().to_owned()
}

#[test]
fn partitions_come_back_as_they_were_written() {
    let dir = tempfile::tempdir().unwrap();
    write_parts(dir.path(), &crossed()).unwrap();
    assert_eq!(format(dir.path()), "ras-snapshot/3");
    assert_eq!(read_parts(dir.path()).unwrap(), crossed());
    let snapshot = read_snapshot(dir.path()).unwrap();
    assert_eq!(snapshot.partitions.len(), 2);
    let again = tempfile::tempdir().unwrap();
    write_snapshot(again.path(), &snapshot).unwrap();
    assert_eq!(read_snapshot(again.path()).unwrap(), snapshot);
}

#[test]
fn a_region_without_partitions_stays_of_version_2() {
    let dir = tempfile::tempdir().unwrap();
    write_parts(dir.path(), &crossed()).unwrap();
    write_parts(dir.path(), &small()).unwrap();
    assert_eq!(format(dir.path()), "ras-snapshot/2");
    assert!(!dir.path().join(SURVIVES.file).exists());
    assert_eq!(read_parts(dir.path()).unwrap(), small());
}

#[test]
fn what_a_reservation_must_survive_is_not_left_out_in_version_2() {
    let dir = tempfile::tempdir().unwrap();
    write_parts(dir.path(), &crossed()).unwrap();
    let file = dir.path().join("region.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("ras-snapshot/3", "ras-snapshot/2")).unwrap();
    let said = refusal(dir.path());
    assert!(said.starts_with("survives.parquet: is of ras-snapshot/3"), "{said}");
    std::fs::remove_file(dir.path().join(SURVIVES.file)).unwrap();
    assert_eq!(read_parts(dir.path()).unwrap(), small(), "columns alone promise nothing");
}

#[test]
fn domains_are_text() {
    let dir = tempfile::tempdir().unwrap();
    write_parts(dir.path(), &crossed()).unwrap();
    crate::common::rewrite(dir.path(), &SERVERS, |name, array| {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7; array.len()]));
        let array = if name == "domain:feed" { numbers } else { array };
        vec![(name.to_owned(), array)]
    });
    let said = refusal(dir.path());
    assert_eq!(said, "servers.parquet: column \"domain:feed\" is of type Int64; it must be string");
}

#[test]
fn a_partition_that_no_column_has_is_refused_with_its_row() {
    let dir = tempfile::tempdir().unwrap();
    let mut parts = crossed();
    parts.crossing.partitions.remove(0);
    write_parts(dir.path(), &parts).unwrap();
    let said = refusal(dir.path());
    assert!(said.contains("survives.parquet: row \"web/feed\""), "{said}");
    assert!(said.contains("\"domain:feed\" is not there"), "{said}");
}

#[test]
fn columns_of_an_inventory_become_partitions() {
    let files = Files::new();
    let requests = files.dir.path().join("requests.csv");
    let text = std::fs::read_to_string(&requests).unwrap();
    let with = |survives: &str| {
        let mut lines = text.lines();
        let head = format!("{},survives\n", lines.next().unwrap());
        let of = [survives, ""];
        let rows = lines.zip(of).map(|(line, survives)| format!("{line},{survives}\n"));
        std::fs::write(&requests, std::iter::once(head).chain(rows).collect::<String>()).unwrap();
    };
    with("mixed|rack");
    let mut options = files.options();
    options.domain_columns = vec!["mixed".to_owned(), "rack".to_owned()];
    let (parts, summary) = import_csv(&options).unwrap();
    let names: Vec<&str> = parts.crossing.partitions.iter().map(|of| &*of.name).collect();
    assert_eq!(names, ["mixed", "rack"]);
    let mixed = &parts.crossing.partitions[0].domains;
    let mixed: Vec<(&str, &str)> = mixed.iter().map(|of| (&*of.0, &*of.1)).collect();
    assert_eq!(mixed, [("a", "x"), ("b", "y"), ("c", "x")]);
    let survives = parts.crossing.survives.iter();
    let survives: Vec<(&str, &str)> =
        survives.map(|row| (&*row.reservation_id, &*row.partition)).collect();
    assert_eq!(survives, [("web", "mixed"), ("web", "rack")]);
    assert!(!summary.to_string().contains("mixed"), "it is not left out");
    // Partitions that it has no column of stay as they are stored.
    let known = summary.coverage.reservations.unwrap();
    assert!(known.survives && !known.replicas && !summary.coverage.servers.domains);
    assert!(summary.coverage.lacks().contains(&"fault domains without a column"));
    RegionSnapshot::new(parts).unwrap();
    with("mixed|colour");
    let error = said(&import_csv(&options).unwrap_err());
    assert!(error.contains("line 2: survives: \"colour\" is not one of"), "{error}");
    options.domain_columns = vec!["feed".to_owned()];
    let error = said(&import_csv(&options).unwrap_err());
    assert!(error.contains("servers.csv: has no column \"feed\""), "{error}");
}

#[test]
fn servers_that_are_not_there_are_in_no_domain() {
    let files = Files::new();
    let mut options = files.at("599");
    options.domain_columns = vec!["mixed".to_owned()];
    let (parts, _) = import_csv(&options).unwrap();
    assert_eq!(parts.crossing.partitions[0].domains.len(), 2);
    RegionSnapshot::new(parts).unwrap();
}

#[test]
fn generated_switches_cross_msbs() {
    let options = GenerateOptions { switches: Some(36), ..GenerateOptions::new(6_000) };
    let snapshot = RegionSnapshot::new(generate(&options).unwrap()).unwrap();
    let partition = &snapshot.partitions[0];
    assert_eq!((&*partition.name, partition.domains.len()), ("switch", 36));
    let mut msbs = vec![BTreeSet::new(); 36];
    for (server, domain) in snapshot.servers.iter().zip(&partition.of_servers) {
        msbs[domain.unwrap() as usize].insert(snapshot.msb_of(server));
    }
    let crossing = msbs.iter().filter(|msbs| msbs.len() > 1).count();
    assert!(crossing >= 30, "{crossing}");
    assert!(snapshot.reservations.iter().all(|r| r.msb_buffer != r.survives.is_empty()));
    let none = GenerateOptions::new(6_000);
    assert!(generate(&none).unwrap().crossing.is_empty());
    let error = generate(&GenerateOptions { switches: Some(1), ..none }).unwrap_err();
    assert!(error.to_string().starts_with("switches: 1 is not within 2 to"), "{error}");
}
