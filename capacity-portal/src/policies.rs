//! The interface to policies in SQL, which this crate does not read.

use api_types::policies::PolicyOutlook;
use decisions::limits::Room;
use fleet::RegionSnapshot;
use std::fmt;
use std::time::Duration;

/// Compiles policies. `ras` provides the implementation, if it is built with the feature `policies`.
pub trait JudgePolicies: fmt::Debug + Send + Sync {
    /// Compiles policies for a region and asks what they say of it today. `files`: names and texts, in order. `search`: how
    /// long to look for an assignment in which all of them hold, if not all do today.
    ///
    /// Computes for seconds: call it on a thread that may block.
    ///
    /// # Errors
    /// At the first policy that is not SQL, reads what the region does not have, or cannot be a limit of its solver.
    fn judge(
        &self,
        region: &RegionSnapshot,
        files: &[(String, String)],
        search: Option<Duration>,
    ) -> Result<PolicyOutlook, PolicyRefusal>;

    /// What the groups of the policies in force add up to now, as far as that is known without compiling; `None`: there are no
    /// policies, or it is not known yet.
    fn now(&self) -> Option<Vec<GroupNow>>;

    /// What the policies in force leave room for, as decisions between solves know it.
    fn room(&self) -> Room;
}

/// What a group of a policy in force adds up to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupNow {
    /// The policy.
    pub policy: String,
    /// The view, and the group after a colon.
    pub name: String,
    /// What it may add up to.
    pub most: i64,
    /// What it adds up to.
    pub now: i64,
}

impl GroupNow {
    /// Whether it is above its limit.
    pub fn is_exceeded(&self) -> bool {
        self.now > self.most
    }
}

/// Why a policy is refused, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyRefusal {
    /// The policy.
    pub policy: String,
    /// Line of its text, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
    /// The view, once it is known.
    pub view: Option<String>,
    /// What is refused, and why.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}
