//! Prints numbers as the pages and tables show them.
//!
//! `cargo run -p report --example numbers`

use fleet::Rru;
use report::number;

fn main() {
    println!("{}", number::counted(12_345, "server"));
    println!("{} RRU", number::rru(Rru::units(842)));
    println!("{}", number::decimal(0.001_234));
}
