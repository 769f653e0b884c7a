//! Owners' requests: submitted, decided, with the operations and plans that belong to them.

pub(crate) mod decide;
pub(crate) mod operation;
pub(crate) mod plan_store;
pub(crate) mod request;
pub(crate) mod request_approval;
pub(crate) mod submit;

pub use operation::{Operation, OperationSubject};
pub use plan_store::{NewPlan, PLAN_LASTS, StoredPlan, UnreadablePlan};
pub use request::{
    GrantPolicy, Labels, REQUESTS_PAGE_MAX, Request, RequestChangeKind, RequestFilter, RequestSpec,
};
pub use request_approval::{Refused, RequestApprovalError};
pub use submit::{Submission, SubmitError, Submitted};

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] = &[
    decide::sql::ALL,
    operation::sql::ALL,
    plan_store::sql::ALL,
    request::sql::ALL,
    request_approval::sql::ALL,
    submit::sql::ALL,
];
