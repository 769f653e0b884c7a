//! How a mover behaves.

use decisions::elastic::Elastic;
use decisions::outage::StormGuard;
use fleet::pace::Limits;
use std::time::Duration;

/// How a mover behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct MoverSettings {
    /// How many moves at once and per hour.
    pub limits: Limits,
    /// How long it may be silent before another takes over.
    pub lease: Duration,
    /// How often it looks although nothing rang.
    pub look_every: Duration,
    /// The pause before a step is asked for again, doubled each time up to [`Self::pause_max`].
    pub pause: Duration,
    /// The longest such pause.
    pub pause_max: Duration,
    /// Questions to hosts at the same time.
    pub asking_max: usize,
    /// How long a move may take before it is given up.
    pub give_up_after: Duration,
    /// How long a failure is left alone before it is dealt with: what else fails meanwhile says
    /// whether it was one of many.
    pub settle: Duration,
    /// When single failures count as the loss of an MSB.
    pub storm_guard: StormGuard,
    /// How idle buffers are lent.
    pub elastic: Elastic,
    /// How long two MSBs or more are lost before reservations give way by declared priority without
    /// an operator's word; `None`: they never do.
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
