//! Damaged bytes never make the reader panic: it reads something valid or says what is wrong.
//!
//! The poor man's companion of the fuzz target: a few thousand mutations by seed, on stable Rust,
//! in every test run.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{bytes_of, said, small, small_snapshot};
use datasets::{read_assignment, read_snapshot, write_parts, write_result};
use fleet::Targets;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use std::path::Path;

/// Changes some bytes, cuts the end off, or repeats a piece.
fn mutate(bytes: &[u8], rng: &mut impl Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match rng.random_range(0..10) {
        0 => bytes.truncate(rng.random_range(0..bytes.len())),
        1 => {
            let at = rng.random_range(0..bytes.len());
            let piece = bytes[at..(at + 16).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece);
        }
        2 => {
            let at = rng.random_range(0..bytes.len());
            bytes.drain(at..(at + 8).min(bytes.len()));
        }
        3..=6 => {
            for _ in 0..rng.random_range(1..=4) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] = rng.random();
            }
        }
        _ => {
            // The footer, where lengths and offsets are: most damage elsewhere is found early.
            let footer = bytes.len() / 2;
            for _ in 0..rng.random_range(1..=3) {
                let at = rng.random_range(footer..bytes.len());
                bytes[at] ^= 1 << rng.random_range(0..8);
            }
        }
    }
    bytes
}

/// Mutates one file at a time; returns how many mutations were read all the same, and how many
/// were errors that a panic inside the Parquet crate was turned into.
fn rounds(
    dir: &Path,
    count: usize,
    seed: u64,
    read: impl Fn() -> Result<(), String>,
) -> [usize; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let files = bytes_of(dir);
    let (mut survived, mut contained) = (0, 0);
    for round in 0..count {
        let (name, good) = &files[round % files.len()];
        std::fs::write(dir.join(name), mutate(good, &mut rng)).unwrap();
        match read() {
            Ok(()) => survived += 1,
            Err(text) => {
                contained += usize::from(text.contains("its decoder gave up"));
                // A clear error names its file. One damaged file can break a rule of another:
                // a lost reservation is unknown to the servers.
                let named = files.iter().any(|(name, _)| text.contains(name));
                assert!(named, "round {round} of {name}: {text}");
            }
        }
        std::fs::write(dir.join(name), good).unwrap();
    }
    [survived, contained]
}

#[test]
fn snapshots() {
    let dir = tempfile::tempdir().unwrap();
    write_parts(dir.path(), &small()).unwrap();
    let [survived, contained] = rounds(dir.path(), 3_000, 7, || {
        read_snapshot(dir.path()).map(drop).map_err(|error| said(&error))
    });
    println!("3000 damaged snapshots: {survived} read, {contained} panics contained");
    assert!(survived < 2_500, "the mutations hardly hurt: {survived} read");
    assert_eq!(read_snapshot(dir.path()).unwrap(), small_snapshot());
}

#[test]
fn assignments() {
    let dir = tempfile::tempdir().unwrap();
    let snapshot = small_snapshot();
    let report = json!({"format": "ras-solve/1"});
    write_result(dir.path(), &snapshot, &Targets::unchanged(&snapshot), &report, None).unwrap();
    std::fs::remove_file(dir.path().join("report.json")).unwrap();
    let [survived, contained] = rounds(dir.path(), 1_000, 8, || {
        read_assignment(dir.path(), &snapshot).map(drop).map_err(|error| said(&error))
    });
    println!("1000 damaged assignments: {survived} read, {contained} panics contained");
    assert!(survived < 750, "the mutations hardly hurt: {survived} read");
}
