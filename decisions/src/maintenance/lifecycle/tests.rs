use super::{
    MaintenanceReason, MaintenanceState, Obstacle, WindowStep, WindowView, is_checked, next,
};
use crate::maintenance::capacity::TooMuch;
use chrono::{DateTime, TimeDelta, Utc};
use fleet::MsbName;

use MaintenanceState::{Active, Cancelled, Done, Draining, Paused, Planned, Recalling};
use WindowStep::{Cancel, Drain, Explain, Pause, Stay, To};

const STATES: [MaintenanceState; 7] =
    [Planned, Paused, Draining, Active, Recalling, Done, Cancelled];

fn at(minute: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
}

/// Drains at minute 60, works from 120 to 240.
fn window(state: MaintenanceState) -> WindowView {
    WindowView {
        state,
        reason: None,
        drains_at: at(60),
        starts_at: at(120),
        ends_at: at(240),
        drained_at: None,
        still_drains: false,
        gone: false,
    }
}

fn share() -> TooMuch {
    TooMuch::Share { msb: "m1".into(), out: 6, servers: 20, most: 5 }
}

fn outage() -> Obstacle {
    Obstacle::Outage("m9".into())
}

/// The step at a minute; `lost`: an MSB is lost; `full`: a limit would be exceeded.
fn step(window: &WindowView, minute: i64, lost: bool, full: bool) -> WindowStep {
    let name: MsbName = "m9".into();
    next(window, at(minute), lost.then_some(&name), || full.then(share))
}

#[test]
fn each_state_has_one_next_step_at_each_time() {
    let full = || Obstacle::TooMuch(share());
    // State, minute, whether an MSB is lost, whether a limit would be exceeded.
    for (state, minute, lost, exceeds, expected) in [
        (Planned, 59, false, false, Stay),
        (Planned, 59, true, true, Stay),
        (Planned, 60, false, false, To(Draining)),
        (Planned, 60, true, false, Pause(outage())),
        (Planned, 60, false, true, Pause(full())),
        (Planned, 60, true, true, Pause(outage())),
        (Planned, 240, false, false, Cancel(MaintenanceReason::Missed)),
        (Paused, 61, false, false, To(Planned)),
        (Paused, 61, true, false, Explain(outage())),
        (Paused, 61, false, true, Explain(full())),
        (Paused, 240, true, true, Cancel(MaintenanceReason::Missed)),
        (Draining, 119, false, true, Stay),
        (Draining, 61, true, false, Pause(outage())),
        (Draining, 120, false, false, Drain),
        (Draining, 120, false, true, Pause(full())),
        (Draining, 240, false, false, Cancel(MaintenanceReason::Missed)),
        (Active, 239, true, true, Stay),
        (Active, 240, false, false, To(Done)),
        (Recalling, 239, true, true, Stay),
        (Recalling, 240, true, false, To(Done)),
        (Done, 500, true, true, Stay),
        (Cancelled, 500, true, true, Stay),
    ] {
        let found = step(&window(state), minute, lost, exceeds);
        assert_eq!(found, expected, "{state:?} at {minute}, {lost}, {exceeds}");
    }
}

#[test]
fn window_of_a_removed_server_is_cancelled_until_it_ends() {
    for state in STATES {
        let gone = WindowView { gone: true, ..window(state) };
        let expected = match state {
            Done | Cancelled => Stay,
            _ => Cancel(MaintenanceReason::Gone),
        };
        assert_eq!(step(&gone, 0, false, false), expected, "{state:?}");
    }
}

#[test]
fn paused_window_is_explained_once_per_reason() {
    let paused = |reason| WindowView { reason: Some(reason), ..window(Paused) };
    assert_eq!(step(&paused(MaintenanceReason::Outage), 61, true, true), Stay);
    assert_eq!(step(&paused(MaintenanceReason::Share), 61, false, true), Stay);
    assert_eq!(step(&paused(MaintenanceReason::Share), 61, true, true), Explain(outage()));
}

#[test]
fn work_waits_for_containers_at_most_half_an_hour_or_half_of_the_window() {
    let drained =
        |still_drains| WindowView { drained_at: Some(at(121)), still_drains, ..window(Draining) };
    assert_eq!(step(&drained(false), 122, false, true), To(Active), "all containers ended");
    assert_eq!(step(&drained(true), 150, false, true), Stay);
    assert_eq!(step(&drained(true), 151, false, true), To(Active), "30 minutes");
    let short = WindowView { ends_at: at(140), ..drained(true) };
    assert_eq!(step(&short, 130, false, false), Stay);
    assert_eq!(step(&short, 131, false, false), To(Active), "half of 20 minutes");
}

/// The limits of a window are read from the database only if they can matter.
#[test]
fn limits_matter_only_for_windows_that_are_checked() {
    for state in STATES {
        for minute in [0, 60, 100, 120, 200] {
            for drained_at in [None, Some(at(120))] {
                let window = WindowView { drained_at, ..window(state) };
                let differs =
                    step(&window, minute, false, false) != step(&window, minute, false, true);
                assert!(!differs || is_checked(&window, at(minute)), "{window:?} at {minute}");
            }
        }
    }
}
