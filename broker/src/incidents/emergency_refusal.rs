//! The reason why an emergency gets nothing.

use crate::infra::words;

/// The reason why nothing was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EmergencyRefusal {
    /// Unknown reservation.
    NoSuchReservation,
    /// A shared buffer or an elastic reservation.
    NotGuaranteed,
    /// No server that is free or in a shared buffer has a usable type.
    NothingFits,
    /// The reservation's emergencies would more than double its promise.
    OverPromise,
    /// The owner's quota would be exceeded.
    OverQuota,
}

impl EmergencyRefusal {
    /// Every refusal.
    pub const ALL: [EmergencyRefusal; 5] = [
        EmergencyRefusal::NoSuchReservation,
        EmergencyRefusal::NotGuaranteed,
        EmergencyRefusal::NothingFits,
        EmergencyRefusal::OverPromise,
        EmergencyRefusal::OverQuota,
    ];

    /// The reason's word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            EmergencyRefusal::NoSuchReservation => "no_such_reservation",
            EmergencyRefusal::NotGuaranteed => "not_guaranteed",
            EmergencyRefusal::NothingFits => "nothing_fits",
            EmergencyRefusal::OverPromise => "over_promise",
            EmergencyRefusal::OverQuota => "over_quota",
        }
    }

    /// The reason for people.
    pub const fn text(self) -> &'static str {
        match self {
            EmergencyRefusal::NoSuchReservation => "there is no such reservation",
            EmergencyRefusal::NotGuaranteed => "only guaranteed reservations get capacity",
            EmergencyRefusal::NothingFits => {
                "no server that is free or in a shared buffer is of a type it can use, or only those that \
                 shared buffers keep"
            }
            EmergencyRefusal::OverPromise => {
                "the emergencies of a reservation may double its promise and no more; an operator may go beyond"
            }
            EmergencyRefusal::OverQuota => {
                "it would exceed a quota of the reservation's owner; an operator may go beyond"
            }
        }
    }
}

words::serialize_as_word! { EmergencyRefusal }
