//! Links the unoptimized binary at a fixed address. Tests start it thousands of times, and it starts itself for every
//! linear program; a start would adjust the 1.3 million pointers of 700 MB first.

use std::env;

#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts so")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|of| of == value);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
