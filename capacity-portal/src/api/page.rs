//! Pages: a token says where the next one begins, and is good for the very same question alone. What
//! is added or taken away meanwhile moves no row from one page to another.

use super::problem::Problem;
use data_encoding::BASE64URL_NOPAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::str::FromStr;

/// Bytes of a token that say which question it belongs to.
const QUESTION: usize = 8;

/// What a page was asked with: filters, and whatever else decides which rows there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question([u8; QUESTION]);

impl Question {
    /// Of all that decides which rows there are, and in what order.
    pub(crate) fn new(asked: &impl Serialize) -> Question {
        let text = serde_json::to_vec(asked).expect("filters are words and numbers");
        let digest = Sha256::digest(text);
        let mut own = [0; QUESTION];
        own.copy_from_slice(&digest[..QUESTION]);
        Question(own)
    }

    /// Where the page begins; `None`: with the first row.
    pub(crate) fn cursor<C: DeserializeOwned>(
        self,
        token: Option<&str>,
    ) -> Result<Option<C>, Problem> {
        let Some(token) = token else { return Ok(None) };
        let decoded = BASE64URL_NOPAD.decode(token.as_bytes()).ok();
        let cursor = decoded
            .as_deref()
            .and_then(|bytes| bytes.strip_prefix(&self.0))
            .and_then(|cursor| serde_json::from_slice(cursor).ok());
        let refused = || {
            let detail = "page_token is none, or of another question: filters stay as they were from \
                          one page to the next";
            Problem::bad_request("page_token", detail)
        };
        cursor.map(Some).ok_or_else(refused)
    }

    /// Where the page begins, of rows that are told apart by an id.
    pub(crate) fn id<T: FromStr>(self, token: Option<&str>) -> Result<Option<T>, Problem> {
        let id: Option<String> = self.cursor(token)?;
        Ok(id.and_then(|id| id.parse().ok()))
    }

    /// The rows of a page, of which one more was asked for than it has, and the token of the next
    /// page; `None`: this is the last.
    pub(crate) fn page<T, C: Serialize>(
        self,
        mut rows: Vec<T>,
        limit: u32,
        cursor: impl FnOnce(&T) -> C,
    ) -> (Vec<T>, Option<String>) {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| more).map(cursor);
        let token = last.map(|cursor| {
            let cursor = serde_json::to_vec(&cursor).expect("a cursor is words and numbers");
            BASE64URL_NOPAD.encode(&[&self.0[..], &cursor].concat())
        });
        (rows, token)
    }
}

#[cfg(test)]
mod tests {
    use super::Question;

    #[test]
    fn a_token_is_of_one_question() {
        let (question, other) = (Question::new(&("moves", "web")), Question::new(&("moves", "db")));
        let (rows, next) = question.page(vec![9, 8, 7], 2, |row| *row);
        assert_eq!(rows, [9, 8]);
        let next = next.expect("7 is left");
        assert_eq!(question.cursor::<i32>(Some(&next)).expect("its own"), Some(8));
        assert_eq!(question.cursor::<i32>(None).expect("the first"), None);
        assert!(other.cursor::<i32>(Some(&next)).is_err());
        for wrong in ["", "x", "%00", &next[..next.len() - 1], "AAAAAAAAAAAAAAAA"] {
            assert!(question.cursor::<i32>(Some(wrong)).is_err(), "{wrong:?}");
        }
        assert_eq!(question.page(vec![9, 8], 2, |row| *row), (vec![9, 8], None));
    }
}
