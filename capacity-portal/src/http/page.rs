//! Page tokens of lists. A token names the row after which the next page begins, so rows that are added or
//! removed meanwhile shift no row to another page; it is valid only with the filters it was made for.

use super::problem::Problem;
use data_encoding::BASE64URL_NOPAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

/// Bytes of a token that identify the list and its filters.
const FILTERS: usize = 8;

/// Reads and makes the page tokens of one list with one set of filters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageCursor([u8; FILTERS]);

impl PageCursor {
    /// For the name of the list, its filters and anything else that decides its rows or their order.
    pub(crate) fn new(filters: &impl Serialize) -> PageCursor {
        let text = serde_json::to_vec(filters).expect("filters are words and numbers");
        let digest = Sha256::digest(text);
        let mut own = [0; FILTERS];
        own.copy_from_slice(&digest[..FILTERS]);
        PageCursor(own)
    }

    /// Position after which the page begins; `None`: at the first row.
    pub(crate) fn position<C: DeserializeOwned>(
        self,
        token: Option<&str>,
    ) -> Result<Option<C>, Problem> {
        let Some(token) = token else { return Ok(None) };
        let decoded = BASE64URL_NOPAD.decode(token.as_bytes()).ok();
        let position = decoded
            .as_deref()
            .and_then(|bytes| bytes.strip_prefix(&self.0))
            .and_then(|position| serde_json::from_slice(position).ok());
        let invalid = || {
            let detail = "invalid page_token: it must be used with the same filters";
            Problem::bad_request("page_token", detail)
        };
        position.map(Some).ok_or_else(invalid)
    }

    /// Cuts rows, of which `limit + 1` were read, to a page; returns it with the token of the next page,
    /// `None` on the last.
    pub(crate) fn page<T, C: Serialize>(
        self,
        mut rows: Vec<T>,
        limit: u32,
        position: impl FnOnce(&T) -> C,
    ) -> (Vec<T>, Option<String>) {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| more).map(position);
        let token = last.map(|position| {
            let position = serde_json::to_vec(&position).expect("a position is words and numbers");
            BASE64URL_NOPAD.encode(&[&self.0[..], &position].concat())
        });
        (rows, token)
    }
}

#[cfg(test)]
mod tests {
    use super::PageCursor;

    #[test]
    fn token_is_rejected_with_other_filters() {
        let (moves, other) =
            (PageCursor::new(&("moves", "web")), PageCursor::new(&("moves", "db")));
        let (rows, next) = moves.page(vec![9, 8, 7], 2, |row| *row);
        assert_eq!(rows, [9, 8]);
        let next = next.expect("7 is left");
        assert_eq!(moves.position::<i32>(Some(&next)).expect("its own"), Some(8));
        assert_eq!(moves.position::<i32>(None).expect("the first"), None);
        assert!(other.position::<i32>(Some(&next)).is_err());
        for wrong in ["", "x", "%00", &next[..next.len() - 1], "AAAAAAAAAAAAAAAA"] {
            assert!(moves.position::<i32>(Some(wrong)).is_err(), "{wrong:?}");
        }
        assert_eq!(moves.page(vec![9, 8], 2, |row| *row), (vec![9, 8], None));
    }
}
