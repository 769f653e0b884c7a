//! Sets `cfg(shared_data)` where the real data sets lie beside the project. Tests of them are reported
//! as ignored, by name, elsewhere. With `CI=true` they always run, and fail without the data.

use std::path::Path;

fn main() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let ci = option_env!("CI") == Some("true");
    println!("cargo::rustc-check-cfg=cfg(shared_data)");
    println!("cargo::rerun-if-changed={}", data.display());
    if ci || data.is_dir() {
        println!("cargo::rustc-cfg=shared_data");
    }
}
