//! Pages that follow the region: `live.js` replaces their parts when topics have changed. Without scripts a page
//! is as of the time it was read.

use super::ui;
use crate::http::{Problem, Site, in_time};
use crate::region_summary::RegionSummary;
use chrono::{DateTime, TimeDelta, Utc};
use control::{LiveVersion, Topic};
use maud::{Markup, html};

/// The topics of a part of a page, as the value of its attribute `data-live`.
pub(super) fn topics(topics: &[Topic]) -> String {
    topics.iter().map(|topic| topic.as_str()).collect::<Vec<_>>().join(" ")
}

/// When a page was read, and the version of the region before.
pub(super) struct AsOf {
    version: LiveVersion,
    now: DateTime<Utc>,
    /// Age of the oldest part; zero: the page shows the region as it is.
    age: TimeDelta,
}

impl AsOf {
    /// Begins a page: to be called before anything that it shows is read.
    pub(super) async fn begin(site: &Site) -> Result<AsOf, Problem> {
        let version = site.live.version();
        Ok(AsOf { version, now: in_time(site.broker.clock()).await?, age: TimeDelta::zero() })
    }

    /// The time of reading, by the database's clock.
    pub(super) fn now(&self) -> DateTime<Utc> {
        self.now
    }

    /// Takes the age of the cached region into account.
    pub(super) async fn with(
        mut self,
        site: &Site,
        summary: Option<&RegionSummary>,
    ) -> Result<AsOf, Problem> {
        if let Some(summary) = summary {
            let taken_at = summary.region().taken_at;
            if !in_time(site.broker.is_current(taken_at, summary.held.seq)).await? {
                self.age = (self.now - taken_at).max(TimeDelta::milliseconds(1));
            }
        }
        Ok(self)
    }

    /// The age of the page, which the script counts up.
    pub(super) fn show(&self) -> Markup {
        html! {
            span.as-of data-as-of=(self.age.num_milliseconds()) data-version=(self.version.token()) {
                "as of " (ui::when(self.now - self.age))
            }
            span.quiet role="status" data-live-state {}
        }
    }
}
