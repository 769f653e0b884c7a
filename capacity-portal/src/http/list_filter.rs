//! Rows of lists and their filters: a part of AIP-160, terms joined by `AND` and `OR`, without parentheses.

use super::problem::Problem;
use chrono::DateTime;
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Schema, SchemaType, Type};

/// A row of a list in memory.
pub(crate) trait Row {
    /// What is sent of it, which names its members.
    type Shape: PartialSchema;

    /// The value of a member, which may be a path into objects.
    fn cell(&self, member: &str) -> Cell<'_>;

    /// The row, as it is sent.
    fn json(&self) -> Value;
}

/// The value of a member of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Bool(bool),
    Number(f64),
    Text(Cow<'a, str>),
    /// A list or an object, which has no order.
    Many(&'a Value),
}

impl Cell<'_> {
    pub(crate) fn of(value: &Value) -> Cell<'_> {
        match value {
            Value::Null => Cell::Null,
            Value::Bool(of) => Cell::Bool(*of),
            Value::Number(of) => Cell::Number(of.as_f64().unwrap_or(f64::NAN)),
            Value::String(of) => Cell::Text(of.into()),
            Value::Array(_) | Value::Object(_) => Cell::Many(value),
        }
    }

    /// As it is written to page tokens.
    pub(crate) fn json(&self) -> Value {
        match self {
            Cell::Null | Cell::Many(_) => Value::Null,
            Cell::Bool(of) => (*of).into(),
            Cell::Number(of) => (*of).into(),
            Cell::Text(of) => Value::String(of.clone().into_owned()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Cell::Null => 0,
            Cell::Many(_) => 4,
            Cell::Bool(_) => 1,
            Cell::Number(_) => 2,
            Cell::Text(_) => 3,
        }
    }
}

/// Order of two values: null first, then by size, time or bytes.
pub(crate) fn compare(one: &Cell<'_>, other: &Cell<'_>) -> Ordering {
    match (one, other) {
        (Cell::Bool(one), Cell::Bool(other)) => one.cmp(other),
        (Cell::Number(one), Cell::Number(other)) => one.total_cmp(other),
        (Cell::Text(one), Cell::Text(other)) => compare_text(one, other),
        _ => one.rank().cmp(&other.rank()),
    }
}

fn compare_text(one: &str, other: &str) -> Ordering {
    let time = |text: &str| DateTime::parse_from_rfc3339(text).ok();
    let may_be_times =
        [one, other].iter().all(|text| text.starts_with(|c: char| c.is_ascii_digit()));
    match may_be_times.then(|| time(one).zip(time(other))).flatten() {
        Some((one, other)) => one.cmp(&other),
        None => one.cmp(other),
    }
}

/// What values a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Number,
    Text,
    /// A list or an object.
    Many,
    /// A member of an object, of any kind.
    Inner,
}

/// The members of the rows of a list.
#[derive(Debug)]
pub(crate) struct Members(BTreeMap<String, Kind>);

/// The members of what is sent of a row.
pub(crate) fn members_of<T: PartialSchema>() -> Members {
    let mut all = BTreeMap::new();
    add_members(&T::schema(), &mut all);
    Members(all)
}

fn add_members(schema: &RefOr<Schema>, all: &mut BTreeMap<String, Kind>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            all.extend(object.properties.iter().map(|(name, of)| (name.clone(), kind(of))));
        }
        Schema::AllOf(parts) => parts.items.iter().for_each(|part| add_members(part, all)),
        _ => {}
    }
}

fn kind(schema: &RefOr<Schema>) -> Kind {
    let RefOr::T(Schema::Object(object)) = schema else { return Kind::Many };
    let of = |ty: &Type| match ty {
        Type::Boolean => Some(Kind::Bool),
        Type::Integer | Type::Number => Some(Kind::Number),
        Type::String => Some(Kind::Text),
        Type::Object | Type::Array | Type::Null => None,
    };
    let found = match &object.schema_type {
        SchemaType::Type(ty) => of(ty),
        SchemaType::Array(types) => types.iter().find_map(of),
        SchemaType::AnyValue => None,
    };
    found.unwrap_or(Kind::Many)
}

impl Members {
    /// Checks that a member exists; of a path, its first part.
    pub(crate) fn check(&self, parameter: &str, member: &str) -> Result<(), Problem> {
        self.kind(member).map(drop).ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            let known = known.join(", ");
            let detail = format!("{parameter}: rows have no member {member:?}; they have {known}");
            Problem::bad_request("malformed", detail)
        })
    }

    /// Checks that rows can be sorted by a member.
    pub(crate) fn check_order(&self, member: &str) -> Result<(), Problem> {
        self.check("order_by", member)?;
        if self.kind(member) == Some(Kind::Many) {
            let detail = format!("order_by: {member:?} is a list or an object, which has no order");
            return Err(Problem::bad_request("malformed", detail));
        }
        Ok(())
    }

    fn kind(&self, member: &str) -> Option<Kind> {
        match member.split_once('.') {
            None => self.0.get(member).copied(),
            Some((outer, _)) => {
                self.0.get(outer).filter(|kind| **kind == Kind::Many).map(|_| Kind::Inner)
            }
        }
    }
}

/// How a term compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    AtMost,
    More,
    AtLeast,
    Contains,
}

/// Operators, the longer ones first.
const OPERATORS: [(&str, Operator); 7] = [
    ("!=", Operator::NotEqual),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::More),
    (":", Operator::Contains),
];

/// A comparison of a member with a value.
#[derive(Clone, Debug, PartialEq)]
struct Term {
    negated: bool,
    member: String,
    operator: Operator,
    value: String,
    /// Whether the value is in quotes, so that `"null"` is a text.
    quoted: bool,
}

/// Terms, of which one of each group must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filter(Vec<Vec<Term>>);

/// Reads the text of a filter.
struct Reader<'a>(&'a str);

fn malformed(detail: impl std::fmt::Display) -> Problem {
    Problem::bad_request("malformed", format!("filter: {detail}"))
}

impl<'a> Reader<'a> {
    fn skip_spaces(&mut self) {
        self.0 = self.0.trim_start();
    }

    /// Takes a word such as `AND`, if it is next.
    fn word(&mut self, word: &str) -> bool {
        self.skip_spaces();
        let Some(rest) = self.0.strip_prefix(word) else { return false };
        let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
        if ends {
            self.0 = rest;
        }
        ends
    }

    fn term(&mut self) -> Result<Term, Problem> {
        let negated = self.word("NOT");
        self.skip_spaces();
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let end = self.0.find(|c| !is_name(c)).unwrap_or(self.0.len());
        let (member, rest) = self.0.split_at(end);
        if member.is_empty() {
            return Err(malformed(format!("a member is expected at {:?}", self.0)));
        }
        self.0 = rest;
        self.skip_spaces();
        let operator = OPERATORS
            .iter()
            .find_map(|(sign, operator)| self.0.strip_prefix(sign).map(|rest| (rest, *operator)));
        let Some((rest, operator)) = operator else {
            return Err(malformed(format!("an operator such as = is expected after {member:?}")));
        };
        self.0 = rest;
        let (value, quoted) = self.value()?;
        Ok(Term { negated, member: member.to_owned(), operator, value, quoted })
    }

    fn value(&mut self) -> Result<(String, bool), Problem> {
        self.skip_spaces();
        let Some(quoted) = self.0.strip_prefix('"') else {
            let end = self.0.find(char::is_whitespace).unwrap_or(self.0.len());
            let (value, rest) = self.0.split_at(end);
            if value.is_empty() {
                return Err(malformed("a value is missing"));
            }
            self.0 = rest;
            return Ok((value.to_owned(), false));
        };
        let (mut value, mut letters) = (String::new(), quoted.char_indices());
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.0 = &quoted[at + 1..];
                    return Ok((value, true));
                }
                '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
                letter => value.push(letter),
            }
        }
        Err(malformed("a quotation mark is missing"))
    }
}

impl Filter {
    pub(crate) fn read(text: &str) -> Result<Filter, Problem> {
        let mut reader = Reader(text);
        let mut groups = vec![vec![reader.term()?]];
        loop {
            if reader.word("AND") {
                groups.push(vec![reader.term()?]);
            } else if reader.word("OR") {
                let group = groups.last_mut().expect("there is one");
                group.push(reader.term()?);
            } else if reader.0.trim().is_empty() {
                return Ok(Filter(groups));
            } else {
                return Err(malformed(format!("AND or OR is expected at {:?}", reader.0.trim())));
            }
        }
    }

    /// Checks that members exist and that values are of their kind.
    pub(crate) fn check(&self, members: &Members) -> Result<(), Problem> {
        for term in self.0.iter().flatten() {
            members.check("filter", &term.member)?;
            let is_null = term.value == "null" && !term.quoted;
            let (valid, what) = match members.kind(&term.member) {
                _ if is_null => (true, ""),
                Some(Kind::Bool) => (["true", "false"].contains(&&*term.value), "true or false"),
                Some(Kind::Number) => (term.value.parse::<f64>().is_ok(), "a number"),
                _ => (true, ""),
            };
            if !valid {
                let detail = format!("{} is {what}, not {:?}", term.member, term.value);
                return Err(malformed(detail));
            }
        }
        Ok(())
    }

    pub(crate) fn accepts(&self, row: &impl Row) -> bool {
        self.0.iter().all(|group| group.iter().any(|term| term.accepts(&row.cell(&term.member))))
    }

    /// The filter without the terms that a list in Postgres takes as parameters. `takes` gets each term that may be one,
    /// as in `state=done`.
    pub(crate) fn without(self, mut takes: impl FnMut(&str) -> bool) -> Filter {
        let remains = |group: &Vec<Term>| match &group[..] {
            [term] if term.operator == Operator::Equal && !term.negated => {
                !takes(&format!("{}={}", term.member, percent_encoded(&term.value)))
            }
            _ => true,
        };
        let mut groups = self.0;
        groups.retain(remains);
        Filter(groups)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

impl Term {
    fn accepts(&self, cell: &Cell<'_>) -> bool {
        self.holds(cell) != self.negated
    }

    fn holds(&self, cell: &Cell<'_>) -> bool {
        if self.operator == Operator::Contains {
            return match cell {
                Cell::Text(text) => text.contains(&self.value),
                Cell::Many(Value::Object(members)) => members.contains_key(&self.value),
                Cell::Many(Value::Array(items)) => {
                    items.iter().any(|item| item.as_str() == Some(&self.value))
                }
                Cell::Many(_) | Cell::Null | Cell::Bool(_) | Cell::Number(_) => false,
            };
        }
        let value = match cell {
            _ if self.value == "null" && !self.quoted => Cell::Null,
            Cell::Bool(_) => Cell::Bool(self.value == "true"),
            Cell::Number(_) => self.value.parse().map_or(Cell::Null, Cell::Number),
            Cell::Null | Cell::Text(_) | Cell::Many(_) => Cell::Text(Cow::Borrowed(&self.value)),
        };
        let known = !matches!(cell, Cell::Null) && value != Cell::Null;
        let ordering = compare(cell, &value);
        match self.operator {
            Operator::Equal => ordering == Ordering::Equal,
            Operator::NotEqual => ordering != Ordering::Equal,
            Operator::Less => known && ordering == Ordering::Less,
            Operator::AtMost => known && ordering != Ordering::Greater,
            Operator::More => known && ordering == Ordering::Greater,
            Operator::AtLeast => known && ordering != Ordering::Less,
            Operator::Contains => false,
        }
    }
}
