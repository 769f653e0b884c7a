//! Ranges of time before now, of charts and histories.

use std::time::Duration;

/// A range of time that ends now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub(crate) enum TimeRange {
    #[serde(rename = "1h")]
    Hour,
    #[serde(rename = "24h")]
    Day,
    #[default]
    #[serde(rename = "7d")]
    Week,
    #[serde(rename = "30d")]
    Month,
}

impl TimeRange {
    pub(crate) const ALL: [TimeRange; 4] =
        [TimeRange::Hour, TimeRange::Day, TimeRange::Week, TimeRange::Month];

    /// Its word in queries.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            TimeRange::Hour => "1h",
            TimeRange::Day => "24h",
            TimeRange::Week => "7d",
            TimeRange::Month => "30d",
        }
    }

    /// For people, after "the last".
    pub(crate) const fn title(self) -> &'static str {
        match self {
            TimeRange::Hour => "hour",
            TimeRange::Day => "24 hours",
            TimeRange::Week => "7 days",
            TimeRange::Month => "30 days",
        }
    }

    pub(crate) const fn length(self) -> Duration {
        Duration::from_secs(match self {
            TimeRange::Hour => 3_600,
            TimeRange::Day => 86_400,
            TimeRange::Week => 7 * 86_400,
            TimeRange::Month => 30 * 86_400,
        })
    }

    /// The shortest range that is as long as this, or the longest.
    pub(crate) fn covering(length: Duration) -> TimeRange {
        let covers = TimeRange::ALL.into_iter().find(|range| range.length() >= length);
        covers.unwrap_or(TimeRange::Month)
    }

    /// The interval of one point of a chart, and its name after "each".
    pub(crate) const fn interval(self) -> (Duration, &'static str) {
        let (minutes, name) = match self {
            TimeRange::Hour => (1, "minute"),
            TimeRange::Day => (15, "quarter of an hour"),
            TimeRange::Week => (60, "hour"),
            TimeRange::Month => (360, "six hours"),
        };
        (Duration::from_secs(60 * minutes), name)
    }
}
