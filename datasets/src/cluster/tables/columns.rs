//! Columns of a table by name, some rows at a time.

use crate::cluster::ClusterError;
use crate::table::{read_columns, texts};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use fleet::Name;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Text that differs from row to row.
    Id,
    /// Text that comes again.
    Name,
    /// Whole numbers. Floating point is read too, because pandas turns whole numbers into it where one
    /// is missing.
    Whole,
    /// Numbers.
    Number,
}

/// The columns that a table may have.
pub struct Layout {
    pub file: &'static str,
    pub required: &'static [(&'static str, Holds)],
    pub optional: &'static [(&'static str, Holds)],
    /// Columns of which there are any number: one for each metric, level or label.
    pub prefixes: &'static [(&'static str, Holds)],
}

/// Some rows of a table.
pub struct Rows<'t> {
    pub file: &'t Path,
    columns: &'t [String],
    arrays: Vec<ArrayRef>,
    /// How many there are.
    pub count: usize,
    before: u64,
}

impl Holds {
    /// Whether a column of a type is read as this; one without any value may have none.
    fn reads(self, found: &DataType) -> bool {
        let is_text =
            |of: &DataType| matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        match (self, found) {
            (_, DataType::Null) => true,
            (Holds::Id | Holds::Name, DataType::Dictionary(_, values)) => is_text(values),
            (Holds::Id | Holds::Name, found) => is_text(found),
            (Holds::Whole | Holds::Number, found) => matches!(
                found,
                DataType::Int8
                    | DataType::Int16
                    | DataType::Int32
                    | DataType::Int64
                    | DataType::UInt8
                    | DataType::UInt16
                    | DataType::UInt32
                    | DataType::Float32
                    | DataType::Float64
            ),
        }
    }

    fn what(self) -> &'static str {
        match self {
            Holds::Id | Holds::Name => "text",
            Holds::Whole => "whole numbers",
            Holds::Number => "numbers",
        }
    }
}

impl Layout {
    /// Reads the table of a folder and hands its rows to `take`, in order.
    pub fn read(
        &self,
        dir: &Path,
        mut take: impl FnMut(&Rows) -> Result<(), ClusterError>,
    ) -> Result<(), ClusterError> {
        let file = dir.join(self.file);
        // They are known once the file is open.
        let columns = OnceCell::new();
        let choose = |found: &arrow_schema::Schema| {
            let (names, positions) = self.choose(&file, found)?;
            columns.get_or_init(|| names);
            Ok(positions)
        };
        read_columns(&file, choose, |arrays, count, before| {
            let columns = columns.get().map_or(&[][..], Vec::as_slice);
            take(&Rows { file: &file, columns, arrays, count, before })
        })
    }

    /// Names and positions of the columns, all of which the format has.
    fn choose(
        &self,
        file: &Path,
        found: &arrow_schema::Schema,
    ) -> Result<(Vec<String>, Vec<usize>), ClusterError> {
        let refused = |name: &str, rule: String| refused(file, format!("column {name:?}"), rule);
        let (mut names, mut positions) = (Vec::new(), Vec::new());
        for (position, field) in found.fields().iter().enumerate() {
            let name = field.name();
            // The index of a data frame, which pandas adds to the columns.
            if name.starts_with("__index_level_") {
                continue;
            }
            let fixed = self.required.iter().chain(self.optional);
            let fixed = fixed.filter(|(of, _)| of == name);
            let open = self.prefixes.iter().filter(|(of, _)| name.starts_with(of) && name != of);
            let Some((_, holds)) = fixed.chain(open).next() else {
                return Err(refused(name, "the format has no such column".to_owned()));
            };
            if names.contains(name) {
                return Err(refused(name, "stands twice".to_owned()));
            }
            if !holds.reads(field.data_type()) {
                let rule =
                    format!("is of type {}; it must hold {}", field.data_type(), holds.what());
                return Err(refused(name, rule));
            }
            names.push(name.clone());
            positions.push(position);
        }
        for (name, _) in self.required {
            if !names.iter().any(|of| of == name) {
                return Err(refused(name, "is missing".to_owned()));
            }
        }
        Ok((names, positions))
    }
}

/// A place in a file, and the rule that it breaks.
pub fn refused(
    file: impl Into<PathBuf>,
    at: impl Into<String>,
    rule: impl Into<String>,
) -> ClusterError {
    ClusterError::Member { file: file.into(), at: at.into(), rule: rule.into() }
}

impl Rows<'_> {
    /// A rule that a cell breaks.
    pub fn refused(&self, row: usize, column: &str, rule: impl Into<String>) -> ClusterError {
        let number = self.before + row as u64 + 1;
        refused(self.file, format!("row {number}, column {column:?}"), rule)
    }

    fn find(&self, column: &str) -> Option<&ArrayRef> {
        let position = self.columns.iter().position(|of| of == column)?;
        self.arrays.get(position)
    }

    /// The columns with a prefix, by the rest of their names.
    pub fn with(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        let columns = self.columns.iter();
        columns.filter_map(move |name| Some((name.strip_prefix(prefix)?, name.as_str())))
    }

    /// Text, where there is any.
    pub fn texts(&self, column: &str) -> Vec<Option<Name>> {
        let found = self.find(column);
        found.map_or_else(|| vec![None; self.count], |of| texts(of, &mut |text| Name::from(text)))
    }

    /// Text that must not be missing or empty.
    pub fn names(&self, column: &str) -> Result<Vec<Name>, ClusterError> {
        let named = |(row, text): (usize, Option<Name>)| match text {
            Some(text) if !text.is_empty() => Ok(text),
            Some(_) => Err(self.refused(row, column, "is empty")),
            None => Err(self.refused(row, column, "is null; it must have a value")),
        };
        self.texts(column).into_iter().enumerate().map(named).collect()
    }

    /// Numbers, where there are any. NaN is how pandas writes a missing one.
    pub fn numbers(&self, column: &str) -> Vec<Option<f64>> {
        macro_rules! read {
            ($array:expr, $kind:ty) => {
                $array.as_primitive::<$kind>().iter().map(|of| of.map(|of| of as f64)).collect()
            };
        }
        let Some(array) = self.find(column) else { return vec![None; self.count] };
        let numbers: Vec<Option<f64>> = match array.data_type() {
            DataType::Int8 => read!(array, Int8Type),
            DataType::Int16 => read!(array, Int16Type),
            DataType::Int32 => read!(array, Int32Type),
            DataType::Int64 => read!(array, Int64Type),
            DataType::UInt8 => read!(array, UInt8Type),
            DataType::UInt16 => read!(array, UInt16Type),
            DataType::UInt32 => read!(array, UInt32Type),
            DataType::Float32 => read!(array, Float32Type),
            DataType::Float64 => read!(array, Float64Type),
            _ => vec![None; self.count],
        };
        numbers.into_iter().map(|number| number.filter(|number| !number.is_nan())).collect()
    }

    /// Whole numbers, where there are any.
    pub fn whole(&self, column: &str) -> Result<Vec<Option<i64>>, ClusterError> {
        /// Beyond it not every whole number is one of floating point.
        const EXACT: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
        if let Some(array) = self.find(column)
            && *array.data_type() == DataType::Int64
        {
            return Ok(array.as_primitive::<Int64Type>().iter().collect());
        }
        let whole = |(row, number): (usize, Option<f64>)| match number {
            None => Ok(None),
            Some(number) if number.fract() == 0.0 && number.abs() <= EXACT => {
                Ok(Some(number as i64))
            }
            Some(number) => {
                Err(self.refused(row, column, format!("is {number}; it must be a whole number")))
            }
        };
        self.numbers(column).into_iter().enumerate().map(whole).collect()
    }
}
