//! Two of the four writers of targets: publications of solves, which may await approval, and applied plans.

pub(crate) mod apply;
pub(crate) mod approval;
pub(crate) mod awaiting;
pub(crate) mod publish;
mod published;

pub use apply::{Applied, ApplyError, ApplyPlan, PlanPatch, RequestGrant};
pub use approval::ApprovalError;
pub use publish::{Publication, PublishError, SolveEnd, TargetRow};
pub use published::{Published, Withheld};

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] =
    &[apply::sql::ALL, approval::sql::ALL, awaiting::sql::ALL, publish::sql::ALL];
