//! Damages one file of a good snapshot in ways that libFuzzer chooses and reads the folder.
//!
//! The first byte chooses the file and the kind of damage; the rest is either the whole new
//! content, or patches to the good content, three bytes each: an offset and a value. So the fuzzer
//! reaches the decoders of pages without having to guess a Parquet footer first.
//!
//! Run it from `datasets` with `cargo +nightly fuzz run read_snapshot`.
#![no_main]

use datasets::generate::{GenerateOptions, generate};
use datasets::{read_snapshot, write_parts};
use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::OnceLock;

struct World {
    dir: tempfile::TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
}

static WORLD: OnceLock<World> = OnceLock::new();

fn world() -> &'static World {
    WORLD.get_or_init(|| {
        // A panic that the reader contains is no finding. One that escapes still is: it unwinds
        // into libFuzzer's own boundary, which aborts.
        std::panic::set_hook(Box::new(|_| {}));
        let dir = tempfile::tempdir().expect("a folder for temporary files");
        let region = dir.path().join("region");
        let options = GenerateOptions { reservations: 4, ..GenerateOptions::new(1_000) };
        let parts = generate(&options).expect("a small region");
        write_parts(&region, &parts).expect("a snapshot");
        let mut files: Vec<(PathBuf, Vec<u8>)> = std::fs::read_dir(&region)
            .expect("the snapshot")
            .map(|entry| {
                let file = entry.expect("a file").path();
                let bytes = std::fs::read(&file).expect("a file");
                (file, bytes)
            })
            .collect();
        files.sort();
        World { dir, files }
    })
}

fuzz_target!(|data: &[u8]| {
    let World { dir, files } = world();
    let Some((&choice, rest)) = data.split_first() else { return };
    let (file, good) = &files[usize::from(choice & 0x7f) % files.len()];
    let damaged = if choice & 0x80 != 0 {
        rest.to_vec()
    } else {
        let mut bytes = good.clone();
        for patch in rest.chunks_exact(3) {
            let offset = usize::from(u16::from_le_bytes([patch[0], patch[1]]));
            // Counted from the end: the footer, which everything hangs on, is always within reach.
            let at = bytes.len() - 1 - offset % bytes.len();
            bytes[at] ^= patch[2];
        }
        bytes
    };
    std::fs::write(file, damaged).expect("the file is ours");
    // Any result is fine, as long as it returns.
    let _ = read_snapshot(&dir.path().join("region"));
    std::fs::write(file, good).expect("the file is ours");
});
