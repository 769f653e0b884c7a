//! Tables that policies read, and the column that is decided.

use std::collections::BTreeSet;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Text.
    Text,
    /// 64-bit integers.
    Integer,
    /// Decimals with 12 digits before the point and 6 after it.
    Decimal,
    /// True or false.
    Boolean,
    /// Dates.
    Date,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// No value.
    Null,
    /// Text.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A decimal, in millionths.
    Decimal(i64),
    /// A truth value.
    Boolean(bool),
    /// A date, in days since 1970-01-01.
    Date(i32),
}

impl Value {
    fn fits(&self, of: Type) -> bool {
        match self {
            Value::Null => true,
            Value::Text(_) => of == Type::Text,
            Value::Integer(_) => of == Type::Integer,
            // Decimals have 18 digits.
            Value::Decimal(micro) => {
                of == Type::Decimal && micro.unsigned_abs() < 1_000_000_000_000_000_000
            }
            Value::Boolean(_) => of == Type::Boolean,
            Value::Date(_) => of == Type::Date,
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Type of its cells.
    pub of: Type,
}

/// A table. The first column names the row in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name in SQL.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// A cell for each column, row by row.
    pub rows: Vec<Vec<Value>>,
}

/// The column that is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Its table.
    pub table: String,
    /// Its name.
    pub column: String,
    /// The values that a cell may take; `Null` among them means that a cell may be empty.
    pub options: Vec<Value>,
    /// Whether each row is decided. Others keep the cell they have.
    pub open: Vec<bool>,
}

/// A column that is there but that no policy can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unusable {
    pub table: String,
    pub column: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Tables, one column of which is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    tables: Vec<Table>,
    unusable: Vec<Unusable>,
    decided: Decided,
    column: usize,
}

/// A world that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldError {
    /// Table, row where there is one, and rule.
    pub message: String,
}

impl std::fmt::Display for WorldError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for WorldError {}

fn broken<T>(message: String) -> Result<T, WorldError> {
    Err(WorldError { message })
}

impl World {
    /// Tables with unique names, rows as wide as their table, cells of their column's type.
    ///
    /// # Errors
    /// If a rule is broken; the message names table, row and rule.
    pub fn new(tables: Vec<Table>, decided: Decided) -> Result<World, WorldError> {
        let mut names = BTreeSet::new();
        for table in &tables {
            let name = &table.name;
            if !names.insert(name) {
                return broken(format!("table {name} is there twice"));
            }
            let columns: BTreeSet<&String> = table.columns.iter().map(|c| &c.name).collect();
            if columns.len() < table.columns.len() || columns.is_empty() {
                return broken(format!("table {name}: columns must have different names"));
            }
            for (number, row) in table.rows.iter().enumerate() {
                if row.len() != table.columns.len() {
                    let (have, need) = (row.len(), table.columns.len());
                    return broken(format!(
                        "table {name}, row {}: {have} cells for {need} columns",
                        number + 1
                    ));
                }
                if let Some((_, column)) =
                    row.iter().zip(&table.columns).find(|(cell, column)| !cell.fits(column.of))
                {
                    return broken(format!(
                        "table {name}, row {}: {} takes {:?}",
                        number + 1,
                        column.name,
                        column.of
                    ));
                }
            }
        }
        let Some(table) = tables.iter().find(|table| table.name == decided.table) else {
            return broken(format!("the decided table {} is not there", decided.table));
        };
        let Some(column) = table.columns.iter().position(|c| c.name == decided.column) else {
            return broken(format!("{} has no column {}", decided.table, decided.column));
        };
        if decided.open.len() != table.rows.len() {
            return broken(format!("{}: say of each row whether it is decided", decided.table));
        }
        let different: BTreeSet<&Value> = decided.options.iter().collect();
        let of = table.columns[column].of;
        if different.is_empty() || different.len() < decided.options.len() {
            return broken(format!("{}: options must be there once", decided.column));
        }
        if !decided.options.iter().all(|value| value.fits(of)) {
            return broken(format!("{}: an option is no {of:?}", decided.column));
        }
        Ok(World { tables, unusable: Vec::new(), decided, column })
    }

    pub(crate) fn with_unusable(self, unusable: Vec<Unusable>) -> World {
        World { unusable, ..self }
    }

    pub(crate) fn unusable(&self) -> &[Unusable] {
        &self.unusable
    }

    /// The tables.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// What is decided.
    pub fn decided(&self) -> &Decided {
        &self.decided
    }

    /// Position of the decided column in its table.
    pub fn decided_column(&self) -> usize {
        self.column
    }

    fn decided_table(&self) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == self.decided.table)
    }

    /// The decided column as it is.
    pub fn assignment(&self) -> Vec<Value> {
        let rows = self.decided_table().map_or(&[][..], |table| &table.rows);
        rows.iter().map(|row| row[self.column].clone()).collect()
    }

    /// The same tables with another decided column.
    ///
    /// # Errors
    /// If it has not one cell for each row, or a cell of another type.
    pub fn with(&self, assignment: &[Value]) -> Result<World, WorldError> {
        let mut tables = self.tables.clone();
        for table in tables.iter_mut().filter(|table| table.name == self.decided.table) {
            if table.rows.len() != assignment.len() {
                let (rows, cells) = (table.rows.len(), assignment.len());
                return broken(format!("table {}: {cells} cells for {rows} rows", table.name));
            }
            for (row, value) in table.rows.iter_mut().zip(assignment) {
                row[self.column] = value.clone();
            }
        }
        let world = World::new(tables, self.decided.clone())?;
        Ok(world.with_unusable(self.unusable.clone()))
    }
}

/// A table of our own making.
pub(crate) fn table(name: &str, columns: &[(&str, Type)], rows: Vec<Vec<Value>>) -> Table {
    let column = |&(name, of): &(&str, Type)| Column { name: name.to_owned(), of };
    Table { name: name.to_owned(), columns: columns.iter().map(column).collect(), rows }
}
