//! Arguments of `ras ops contract`.

use super::server::ServerOptions;
use crate::quantity;
use broker::QuietTime;
use clap::{Args, Subcommand};
use std::time::Duration;

const CONTRACT_HELP: &str = "\
A contract limits how many servers in use may leave a reservation within a sliding window, and sets
blackouts, times of day at which none may begin to. The share is of its servers in use, rounded
down, but at least one server if it is above 0. Solves and plans respect it, and the mover delays
moves beyond it. Replacements of failed servers, emergencies and preemption in an outage do not
wait, but count. Idle servers move without limit.

Examples:
  ras ops contract set web --in-use 2% --quiet-time 08:00-18:00 --zone Europe/Berlin
  ras ops contract set db --in-use 0.5% --per 7d --quiet-time 22:00-06:00 --quiet-time 12:00-13:00
  ras ops contract list";

/// `ras ops contract`
#[derive(Debug, Args)]
#[command(after_help = CONTRACT_HELP)]
pub struct ContractOf {
    /// The action.
    #[command(subcommand)]
    pub action: ContractAction,
}

/// The actions on churn contracts.
#[derive(Debug, Subcommand)]
pub enum ContractAction {
    /// Set or replace the contract of a reservation
    Set(SetContract),
    /// List contracts and their current use
    List {
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Remove the contract of a reservation
    Remove {
        /// The reservation
        reservation: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
}

/// `ras ops contract set`
#[derive(Debug, Args)]
pub struct SetContract {
    /// The reservation; it must be guaranteed
    pub reservation: String,
    /// Share of its servers that may leave it within the window while in use
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub in_use: f64,
    /// The window, from 1m to 31d
    #[arg(long, value_name = "DURATION", default_value = "1d", value_parser = quantity::duration)]
    pub per: Duration,
    /// Blackout: a time of day during which no server in use begins to leave it; may be repeated
    #[arg(long, value_name = "HH:MM-HH:MM", value_parser = quiet)]
    pub quiet_time: Vec<QuietTime>,
    /// Time zone of the blackouts, by name
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub zone: String,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// Parses a time range such as `08:00-18:00`.
fn quiet(text: &str) -> Result<QuietTime, String> {
    let minute = |text: &str| -> Option<u16> {
        let (hour, minute) = text.trim().split_once(':')?;
        let digits = |text: &str| {
            let fits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            fits.then(|| text.parse::<u16>().ok()).flatten()
        };
        let (hour, minute) = (digits(hour)?, digits(minute)?);
        (minute < 60 && hour * 60 + minute <= 1_440).then_some(hour * 60 + minute)
    };
    let times =
        text.split_once('-').and_then(|(from, until)| Some((minute(from)?, minute(until)?)));
    times
        .and_then(|(from, until)| QuietTime::new(from, until))
        .ok_or_else(|| format!("{text:?} is not a time range such as 08:00-18:00 or 22:00-06:00"))
}

#[cfg(test)]
mod tests {
    use super::quiet;

    #[test]
    fn times_people_type() {
        for (text, shown) in [
            ("08:00-18:00", "08:00-18:00"),
            ("22:30 - 06:15", "22:30-06:15"),
            ("00:00-24:00", "00:00-24:00"),
            ("24:00-00:00", "00:00-24:00"),
        ] {
            assert_eq!(quiet(text).map(|quiet| quiet.to_string()).as_deref(), Ok(shown), "{text}");
        }
        for text in [
            "",
            "8-18",
            "8:00-18:00",
            "08:00",
            "08:00-08:00",
            "24:01-25:00",
            "08:60-09:00",
            "+8:00-09:00",
        ] {
            assert!(quiet(text).is_err(), "{text}");
        }
    }
}
