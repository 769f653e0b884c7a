//! Reads quiet times of churn contracts.

use broker::QuietTime;

/// Parses a time range such as `08:00-18:00`.
pub(super) fn quiet_time(text: &str) -> Option<QuietTime> {
    let minute = |text: &str| -> Option<u16> {
        let (hours, minutes) = text.split_once(':')?;
        let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
        (hours <= 24 && minutes < 60).then_some(hours * 60 + minutes)
    };
    let (from, until) = text.split_once('-')?;
    QuietTime::new(minute(from)?, minute(until)?)
}
