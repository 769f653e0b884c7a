//! Worlds as text, for tests of policies.
//!
//! ```text
//! table servers: server_id text, msb text, watts decimal, target_reservation text
//!   s0  m0  400.5  web
//!   s1  m1  -      -
//! decide servers.target_reservation: web, -
//! keep s1
//! ```
//!
//! Cells are separated by spaces; `-` is NULL. `keep` names rows, by their first cell, that keep what
//! they have. A line may end with a comment after `#`.

use crate::library::date;
use crate::source::micro;
use crate::world::{Column, Decided, Table, Type, Value, World, WorldError};

impl World {
    /// Reads a world.
    ///
    /// # Errors
    /// With the number of the line and the rule that it breaks.
    pub fn parse(text: &str) -> Result<World, WorldError> {
        let mut tables: Vec<Table> = Vec::new();
        let (mut decided, mut keep) = (None, Vec::new());
        for (number, line) in text.lines().enumerate() {
            let broken =
                |rule: &str| WorldError { message: format!("line {}: {rule}", number + 1) };
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
            } else if let Some(rest) = line.strip_prefix("table ") {
                tables.push(table(rest).map_err(broken)?);
            } else if let Some(rest) = line.strip_prefix("decide ") {
                let parts = rest.split_once(':').and_then(|(name, options)| {
                    name.trim().split_once('.').map(|(table, column)| (table, column, options))
                });
                decided = Some(parts.ok_or_else(|| broken("write decide TABLE.COLUMN: VALUES"))?);
            } else if let Some(rest) = line.strip_prefix("keep ") {
                keep.extend(rest.split_whitespace());
            } else {
                let table = tables.last_mut().ok_or_else(|| broken("a row before any table"))?;
                let cells: Vec<&str> = line.split_whitespace().collect();
                if cells.len() != table.columns.len() {
                    return Err(broken("a row has a cell for each column"));
                }
                let row = cells.iter().zip(&table.columns).map(|(cell, of)| value(cell, of.of));
                table.rows.push(row.collect::<Result<_, _>>().map_err(broken)?);
            }
        }
        let missing = || WorldError { message: "no line says what is decided".to_owned() };
        let (name, column, options) = decided.ok_or_else(missing)?;
        let table = tables.iter().find(|table| table.name == name);
        let open = table.map_or(&[][..], |table| &table.rows).iter().map(|row| match row.first() {
            Some(Value::Text(id)) => !keep.contains(&id.as_str()),
            _ => true,
        });
        let open = open.collect();
        let of = table.and_then(|table| table.columns.iter().find(|own| own.name == column));
        let of = of.map_or(Type::Text, |column| column.of);
        let options = options.split(',').map(|option| value(option.trim(), of));
        let options = options
            .collect::<Result<_, _>>()
            .map_err(|rule| WorldError { message: format!("decide: {rule}") })?;
        let (table, column) = (name.to_owned(), column.to_owned());
        World::new(tables, Decided { table, column, options, open })
    }
}

/// A cell as worlds in text write it.
pub(crate) fn shown(value: &Value) -> String {
    if *value == Value::Null { "-".to_owned() } else { value.to_string() }
}

/// What rows of the decided table are called: their first cells.
pub(crate) fn names(world: &World) -> Vec<String> {
    let table = world.tables().iter().find(|table| table.name == world.decided().table);
    let rows = table.map_or(&[][..], |table| &table.rows);
    rows.iter().map(|row| row.first().map(shown).unwrap_or_default()).collect()
}

fn table(text: &str) -> Result<Table, &'static str> {
    let (name, columns) = text.split_once(':').ok_or("write table NAME: COLUMN TYPE, ...")?;
    let column = |column: &str| {
        let (name, of) = column.trim().split_once(' ').ok_or("a column has a name and a type")?;
        let of = match of.trim() {
            "text" => Type::Text,
            "integer" => Type::Integer,
            "decimal" => Type::Decimal,
            "boolean" => Type::Boolean,
            "date" => Type::Date,
            _ => return Err("types are text, integer, decimal, boolean and date"),
        };
        Ok(Column { name: name.to_owned(), of })
    };
    let columns = columns.split(',').map(column).collect::<Result<_, _>>()?;
    Ok(Table { name: name.trim().to_owned(), columns, rows: Vec::new() })
}

fn value(cell: &str, of: Type) -> Result<Value, &'static str> {
    if cell == "-" {
        return Ok(Value::Null);
    }
    match of {
        Type::Text => Ok(Value::Text(cell.to_owned())),
        Type::Integer => cell.parse().map(Value::Integer).map_err(|_| "an integer was expected"),
        Type::Decimal => micro(cell).map(Value::Decimal).ok_or("a decimal was expected"),
        Type::Boolean => cell.parse().map(Value::Boolean).map_err(|_| "write true or false"),
        Type::Date => date(cell).map(Value::Date).ok_or("write a date as 2026-01-31"),
    }
}
