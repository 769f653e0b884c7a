//! ras
fn main() {}
