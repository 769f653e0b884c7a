//! Words of closed lists in columns. A word that the program does not know is an error: another version of the
//! program wrote it.

use fleet::ReservationKind;
use sqlx::Row;
use sqlx::postgres::PgRow;

/// Reads a word of a closed list.
///
/// # Errors
/// [`unknown`].
pub(crate) fn read<T: Copy>(
    column: &str,
    all: impl IntoIterator<Item = T>,
    as_str: impl Fn(T) -> &'static str,
    word: &str,
) -> Result<T, sqlx::Error> {
    let found = all.into_iter().find(|known| as_str(*known) == word);
    found.ok_or_else(|| unknown(column, word))
}

/// Reads the kind of a reservation.
///
/// # Errors
/// [`unknown`].
pub(crate) fn reservation_kind(column: &str, word: &str) -> Result<ReservationKind, sqlx::Error> {
    ReservationKind::parse(word).ok_or_else(|| unknown(column, word))
}

/// The error for a word that the program does not know; it names the table, the column and the word.
pub(crate) fn unknown(column: &str, word: &str) -> sqlx::Error {
    let message = format!("{column} has the word {word:?}, which this program does not know");
    sqlx::Error::Decode(message.into())
}

/// Serializes values of these types as their words.
macro_rules! serialize_as_word {
    ($($name:ty),+ $(,)?) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    )+};
}
pub(crate) use serialize_as_word;

/// The name in a column.
pub(crate) fn name<N: for<'a> From<&'a str>>(row: &PgRow, column: usize) -> Result<N, sqlx::Error> {
    row.try_get::<&str, _>(column).map(N::from)
}

/// The name in a column that may be null.
pub(crate) fn optional_name<N: for<'a> From<&'a str>>(
    row: &PgRow,
    column: usize,
) -> Result<Option<N>, sqlx::Error> {
    row.try_get::<Option<&str>, _>(column).map(|name| name.map(N::from))
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn unknown_word_is_an_error_that_names_column_and_word() {
        let words = ["schedule", "demand"];
        let read = |word| read("solves.cause", words, |word| word, word);
        assert_eq!(read("demand").expect("known"), "demand");
        let error = read("whim").expect_err("unknown").to_string();
        assert!(error.contains("solves.cause has the word \"whim\""), "{error}");
    }
}
