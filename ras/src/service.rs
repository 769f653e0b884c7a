//! What runs as long as `ras up` or `ras worker` does.

mod stop;

pub use stop::Stop;
