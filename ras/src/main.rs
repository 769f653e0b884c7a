//! The binary; everything is in the library.

use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let began = Instant::now();
    ras::run(std::env::args_os(), began)
}
