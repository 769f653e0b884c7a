//! The settings of a mover.

use decisions::elastic::Elastic;
use decisions::outage::StormGuard;
use fleet::pace::Limits;
use std::time::Duration;

/// The settings of a mover.
#[derive(Clone, Debug, PartialEq)]
pub struct MoverSettings {
    /// Limits of moves at once and per window.
    pub limits: Limits,
    /// Duration of the lease: another mover takes over after so much silence.
    pub lease: Duration,
    /// Interval of full passes. A hint that is lost delays work by at most this.
    pub look_every: Duration,
    /// Pause before a step is requested again. It doubles with each retry, up to [`Self::pause_max`].
    pub pause: Duration,
    /// The longest pause before a retry.
    pub pause_max: Duration,
    /// Requests to hosts at the same time.
    pub asking_max: usize,
    /// Age at which a move is given up.
    pub give_up_after: Duration,
    /// Time from the last report of a failure to the decision about it. Other reports in this time tell
    /// whether it is one of many.
    pub settle: Duration,
    /// When single failures count as the loss of an MSB.
    pub storm_guard: StormGuard,
    /// Settings of loans.
    pub elastic: Elastic,
    /// Time after the loss of the second MSB at which less important reservations are preempted without
    /// an operator; `None`: never.
    pub give_way_after: Option<Duration>,
}

impl Default for MoverSettings {
    fn default() -> MoverSettings {
        MoverSettings {
            limits: Limits::default(),
            lease: Duration::from_secs(10),
            look_every: Duration::from_secs(30),
            pause: Duration::from_secs(2),
            pause_max: Duration::from_secs(60),
            asking_max: 256,
            give_up_after: Duration::from_secs(24 * 3600),
            settle: Duration::from_secs(1),
            storm_guard: StormGuard::default(),
            elastic: Elastic::default(),
            give_way_after: None,
        }
    }
}
