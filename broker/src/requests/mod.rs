//! Owners' requests: submitted, decided, with the operations and plans that belong to them.

pub(crate) mod approval;
pub(crate) mod decide;
pub(crate) mod operation;
pub(crate) mod plan_store;
pub(crate) mod request;
pub(crate) mod submit;

pub use approval::RequestApprovalError;
pub use operation::{Operation, OperationSubject};
pub use plan_store::{NewPlan, PLAN_LASTS, StoredPlan, UnreadablePlan};
pub use request::{
    GrantPolicy, Labels, REQUESTS_PAGE_MAX, Request, RequestChangeKind, RequestFilter, RequestSpec,
};
pub use submit::{Submission, SubmitError, Submitted};

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] = &[
    approval::sql::ALL,
    decide::sql::ALL,
    operation::sql::ALL,
    plan_store::sql::ALL,
    request::sql::ALL,
    submit::sql::ALL,
];
