//! The mover: one of several instances acts, as long as it holds the lease.
//!
//! | module | content |
//! |---|---|
//! | `instance` | the parts of a mover, the reasons for which it stops acting |
//! | `settings` | its settings |
//! | `acting` | the reconcile loop of the acting mover |
//! | `decide` | decisions that cannot wait for a solve |
//! | `preempt` | preemption without an operator |
//! | `admission` | the pending moves that begin now |
//! | `step_queue` | moves that wait for a step, for an answer or for a retry |
//! | `ask` | asks a host for a step |

mod acting;
mod admission;
pub(crate) mod ask;
mod decide;
pub(crate) mod instance;
mod preempt;
mod settings;
mod step_queue;

use crate::agent::HostAgent;
use crate::recall;
use broker::{DbError, Epoch, LeaseTerm, keep_lease, since_boot};
use instance::Ended;
pub use instance::Mover;
pub use settings::MoverSettings;
use tokio::time::sleep;

/// Attempts of a standby mover to take the lease, per lease duration.
const ATTEMPTS: u32 = 3;

impl<A: HostAgent> Mover<A> {
    /// Stands by while another mover acts, and acts while none does. Ends when dropped; the lease then
    /// expires.
    pub async fn run(&self) -> ! {
        loop {
            let begun = since_boot();
            match self.lease().await {
                Ok(Some(epoch)) => {
                    tracing::info!(mover = self.name, epoch = epoch.0, "this mover acts");
                    let lease = LeaseTerm::new(begun, self.settings.lease);
                    match self.act(epoch, &lease).await {
                        Ended::TakenOver => tracing::warn!("another mover has taken over"),
                        Ended::Db(error) => tracing::warn!(%error, "the mover waits for Postgres"),
                    }
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "the mover waits for Postgres"),
            }
            sleep(self.settings.lease / ATTEMPTS).await;
        }
    }

    /// Releases the lease, so that another mover can act at once.
    pub async fn release(&self) {
        // Leasing succeeds only for the holder, and gives the epoch to release.
        if let Ok(Some(epoch)) = self.lease().await
            && let Err(error) = self.leasing.release_mover(epoch).await
        {
            tracing::warn!(%error, "cannot release the mover's lease: it expires");
        }
    }

    async fn lease(&self) -> Result<Option<Epoch>, DbError> {
        self.leasing.lease_mover(&self.instance, self.settings.lease).await
    }

    /// Acts under one epoch, until the lease or the database is lost.
    async fn act(&self, epoch: Epoch, lease: &LeaseTerm) -> Ended {
        // A lease under another epoch means that this one was lost in between.
        let renew = || async { Ok(self.lease().await? == Some(epoch)) };
        let ended = tokio::select! {
            biased;
            () = keep_lease(lease, self.settings.lease, renew) => Ended::TakenOver,
            ended = acting::run(self, epoch, lease) => ended,
            ended = recall::run(self, epoch, lease) => ended,
        };
        lease.end();
        ended
    }
}
