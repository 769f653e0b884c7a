//! Paths of pages. Names in them are percent-encoded.

use std::fmt::Write as _;

/// A name as one path segment. Names are arbitrary text.
pub(super) fn segment(name: &str) -> String {
    // Browsers resolve these segments even when they are encoded once.
    if matches!(name, "." | "..") {
        return name.replace('.', "%252E");
    }
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Path of a reservation.
pub(super) fn reservation(name: &str) -> String {
    format!("/reservations/{}", segment(name))
}

/// Path of the reservations of an owner.
pub(super) fn reservations_of(owner: &str) -> String {
    format!("/reservations?owner={}", segment(owner))
}

/// Path of the servers of a reservation.
pub(super) fn servers(reservation: &str) -> String {
    format!("/reservations/{}/servers", segment(reservation))
}

/// Path of a server.
pub(super) fn server(name: &str) -> String {
    format!("/servers/{}", segment(name))
}

/// Path of a rack.
pub(super) fn rack(name: &str) -> String {
    format!("/racks/{}", segment(name))
}

/// Path of the servers of a hardware type.
pub(super) fn servers_of_type(name: &str) -> String {
    format!("/servers?hardware_type={}", segment(name))
}

/// Path of how long the servers of a hardware type last.
pub(super) fn supply_of_type(name: &str) -> String {
    format!("/supply?hardware_type={}", segment(name))
}

/// Path of a request.
pub(super) fn request(id: &str) -> String {
    format!("/requests/{}", segment(id))
}

/// Path of a plan.
pub(super) fn plan(id: &str) -> String {
    format!("/plans/{}", segment(id))
}

/// Path of an MSB.
pub(super) fn msb(name: &str) -> String {
    format!("/msbs/{}", segment(name))
}

#[cfg(test)]
mod tests {
    use super::segment;

    #[test]
    fn segment_encodes_any_name() {
        assert_eq!(segment("web-1_a.b~c"), "web-1_a.b~c");
        assert_eq!(segment("b/ü ?#%"), "b%2F%C3%BC%20%3F%23%25");
        assert_eq!(segment("<script>"), "%3Cscript%3E");
        assert_eq!([".", "..", "..."].map(segment), ["%252E", "%252E%252E", "..."]);
    }
}
