//! Reads quiet times of churn contracts.

use broker::QuietTime;

/// Parses a time range such as `08:00-18:00`.
pub(super) fn quiet_time(text: &str) -> Option<QuietTime> {
    let minute = |text: &str| -> Option<u16> {
        let (hours, minutes) = text.split_once(':')?;
        let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
        // Computed only within the limits: 1,093 hours are too many minutes for the type.
        (hours <= 24 && minutes < 60).then(|| hours * 60 + minutes)
    };
    let (from, until) = text.split_once('-')?;
    QuietTime::new(minute(from)?, minute(until)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_a_day_are_refused() {
        assert!(quiet_time("08:00-18:00").is_some());
        for text in ["65535:59-65535:59", "1093:00-08:00", "25:00-26:00", "08:60-09:00", "8-9"] {
            assert!(quiet_time(text).is_none(), "{text}");
        }
    }
}
