//! Reads for people, pages, allocators and monitoring: lists, totals, page cache, watch.

pub(crate) mod allocator;
pub(crate) mod check;
pub(crate) mod history;
pub(crate) mod invalidation;
pub(crate) mod lists;
pub(crate) mod metrics;
pub(crate) mod page_cache;
pub(crate) mod pulse;
pub(crate) mod reservation;
pub(crate) mod reserved_server;
pub(crate) mod server;
pub(crate) mod status;
pub(crate) mod stuck;
pub(crate) mod summary;
pub(crate) mod time_span;
pub(crate) mod totals;
pub(crate) mod usage;
pub(crate) mod usage_series;
pub(crate) mod watch;

pub use allocator::{AllocatorView, ReservedFilter, ReservedPage, SERVERS_PAGE_MAX};
pub use history::{IntervalOfMoves, RegionSample, SolveFigures};
pub use lists::{EventRow, EventsAsked, MoveRow, MovesAsked, PageEnd, SolvesAsked, TrailAsked};
pub use metrics::{
    EmergencyCount, FailedMoveCount, JobCount, LastSolve, Metrics, MoverSeconds, REPLACED_WITHIN,
    SolveCount, StepSeconds, StuckCount,
};
pub use pulse::{MovesPulse, Pulse};
pub use reservation::{HeldServer, PAGE_MAX, ReservationError};
pub use reserved_server::{ReservedServer, ServerState};
pub use server::{PastEnd, PastKind, ServerDetail, ServerMaintenance, ServerPast, ServerTarget};
pub use status::{QueueCount, ReservationCounts, RunningJob, ServerCounts, Status};
pub use stuck::{Machine, Stuck};
pub use summary::{InForce, OpenRequest, ReservationSummary, SUMMARIES_PAGE_MAX, SummaryFilter};
pub use time_span::{SAMPLE_EVERY, TimeSpan};
pub use totals::ReservedTotals;
pub use usage_series::{
    UsageAsked, UsageCell, UsageCount, UsageFigures, UsageKey, UsageSamples, UsageSeries,
};
pub use watch::{ClockTick, ServerChange, WatchUpdate, Watcher};

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] = &[
    allocator::sql::ALL,
    check::sql::ALL,
    history::sql::ALL,
    invalidation::sql::ALL,
    lists::sql::ALL,
    metrics::sql::ALL,
    pulse::sql::ALL,
    reservation::sql::ALL,
    reserved_server::sql::ALL,
    server::sql::ALL,
    status::sql::ALL,
    stuck::sql::ALL,
    summary::sql::ALL,
    totals::sql::ALL,
    usage::sql::ALL,
    watch::sql::ALL,
];
