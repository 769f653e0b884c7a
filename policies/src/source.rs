//! Files of policies: statements, annotations, places.

use crate::error::{At, Place, PolicyError, Refused};
use crate::library::on_large_stack;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, SetExpr, Statement,
    visit_expressions_mut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{
    Location, Token, TokenWithSpan, Tokenizer, Whitespace,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Words and signs of a statement. What is nested deeper than this many levels would need a larger stack.
const TOKENS_MAX: usize = 2_000;

/// What a statement is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Read by other statements.
    View,
    /// Each row that FROM yields must pass WHERE, or each group HAVING.
    Hard,
    /// A number to maximize, or rows that should pass WHERE or HAVING.
    Soft {
        /// What one unit of the number, or one row that fails, is worth, in millionths.
        weight: i64,
        /// The most rows that may fail.
        at_most: Option<u64>,
    },
}

/// A statement of a file.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The file it is from.
    pub file: String,
    /// Name of the view.
    pub name: String,
    /// What it is for.
    pub kind: Kind,
    pub(crate) query: Box<Query>,
    start: Place,
    words: Vec<(String, Place)>,
    /// Texts in quotes.
    literals: Vec<String>,
}

impl Policy {
    /// Whether the statement itself has a WHERE or HAVING.
    pub(crate) fn says_what_holds(&self) -> bool {
        match &*self.query.body {
            SetExpr::Select(select) => select.selection.is_some() || select.having.is_some(),
            _ => false,
        }
    }

    /// The same query with the rows that do not pass its last filter: HAVING, else WHERE.
    pub(crate) fn contrary(&self) -> Option<Query> {
        let mut query = (*self.query).clone();
        let SetExpr::Select(select) = &mut *query.body else { return None };
        let filter = select.having.as_mut().or(select.selection.as_mut())?;
        let holds = Box::new(Expr::Nested(Box::new(filter.clone())));
        *filter = Expr::IsNotTrue(holds);
        Some(query)
    }

    /// Gives a refusal its place.
    pub(crate) fn refused(&self, refused: Refused) -> PolicyError {
        let place = match refused.at {
            At::Place(place) => place,
            At::Statement => self.start,
            At::Word(word) => {
                let found = self.words.iter().find(|(own, _)| own.eq_ignore_ascii_case(word));
                found.map_or(self.start, |(_, place)| *place)
            }
        };
        PolicyError {
            file: self.file.clone(),
            line: place.line,
            column: place.column,
            policy: Some(self.name.clone()),
            message: refused.message,
            hint: refused.hint,
        }
    }
}

/// The statements of some files, in order.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// The statements.
    pub statements: Vec<Policy>,
    /// Columns that `@variable_columns` names, as `table.column`.
    pub(crate) variable_columns: Vec<(String, PolicyError)>,
}

impl Policies {
    /// Each text in quotes that a statement names.
    pub(crate) fn literals(&self) -> BTreeSet<&str> {
        let of = self.statements.iter().flat_map(|policy| &policy.literals);
        of.map(String::as_str).collect()
    }

    /// Reads files, given as name and text.
    ///
    /// # Errors
    /// At the first statement that is not SQL, is no view, or has an annotation that is not known.
    pub fn parse<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Policies, PolicyError> {
        let files: Vec<(&str, &str)> = files.into_iter().collect();
        let first = files.first().map_or("", |(file, _)| file);
        let read = on_large_stack(|| {
            let mut policies = Policies::default();
            for (file, text) in files {
                if let Err(error) = (Reader { file }).read(text, &mut policies) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(policies))
        });
        let start = Place { line: 1, column: 1 };
        read.map_err(|refused| Reader { file: first }.error(start, refused.message))?
    }
}

struct Reader<'a> {
    file: &'a str,
}

/// What comments before a statement say.
#[derive(Default)]
struct Annotations {
    kind: Option<Kind>,
}

fn place(location: Location) -> Place {
    Place { line: location.line.max(1), column: location.column.max(1) }
}

impl Reader<'_> {
    fn error(&self, place: Place, message: impl Into<String>) -> PolicyError {
        PolicyError {
            file: self.file.to_owned(),
            line: place.line,
            column: place.column,
            policy: None,
            message: message.into(),
            hint: None,
        }
    }

    fn read(&self, text: &str, policies: &mut Policies) -> Result<(), PolicyError> {
        let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location();
        let tokens = tokens.map_err(|e| self.error(place(e.location), e.message))?;
        for statement in tokens.split(|token| token.token == Token::SemiColon) {
            let annotations = self.annotations(statement, policies)?;
            let is_code =
                |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_) | Token::EOF);
            let code: Vec<TokenWithSpan> = statement.iter().filter(is_code).cloned().collect();
            let Some(first) = code.first() else { continue };
            let start = place(first.span.start);
            if code.len() > TOKENS_MAX {
                let message = format!("a statement has at most {TOKENS_MAX} words and signs");
                return Err(self.error(start, message));
            }
            let policy = self.statement(code, start, annotations)?;
            if policies.statements.iter().any(|other| other.name == policy.name) {
                return Err(policy.refused(Refused::new("a view of this name is there already")));
            }
            policies.statements.push(policy);
        }
        Ok(())
    }

    fn annotations(
        &self,
        tokens: &[TokenWithSpan],
        policies: &mut Policies,
    ) -> Result<Annotations, PolicyError> {
        let mut found = Annotations::default();
        for token in tokens {
            let Token::Whitespace(Whitespace::SingleLineComment { comment, .. }) = &token.token
            else {
                continue;
            };
            let Some(text) = comment.trim().strip_prefix('@') else { continue };
            let at = place(token.span.start);
            let (word, rest) = text
                .split_once(|c: char| !(c.is_alphanumeric() || c == '_'))
                .map_or((text, ""), |(word, _)| (word, text[word.len()..].trim()));
            let kind = match word {
                "hard_constraint" if rest.is_empty() => Kind::Hard,
                "soft_constraint" => self.soft(rest, at)?,
                "variable_columns" => {
                    let names = rest.trim_matches(['(', ')', '[', ']']);
                    for name in names.split(',').map(str::trim) {
                        let message = format!("column {name} is not decided here");
                        policies.variable_columns.push((name.to_owned(), self.error(at, message)));
                    }
                    continue;
                }
                _ => {
                    let mut error = self.error(at, format!("annotation @{text} is not known"));
                    error.hint = Some(
                        "write @hard_constraint, @soft_constraint [weight=2, at_most=3] or \
                         @variable_columns table.column"
                            .to_owned(),
                    );
                    return Err(error);
                }
            };
            if found.kind.replace(kind).is_some() {
                return Err(self.error(at, "a statement is hard or soft, once"));
            }
        }
        Ok(found)
    }

    fn soft(&self, rest: &str, at: Place) -> Result<Kind, PolicyError> {
        let (mut weight, mut at_most) = (1_000_000, None);
        let inner = rest.trim_matches(['(', ')', '[', ']']);
        for part in inner.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let wrong = || self.error(at, format!("{part}: write weight=NUMBER or at_most=NUMBER"));
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            match name.trim() {
                "weight" => {
                    weight = micro(value.trim()).filter(|weight| *weight > 0).ok_or_else(|| {
                        self.error(at, format!("weight {value}: a decimal above 0 is needed"))
                    })?;
                }
                "at_most" => at_most = Some(value.trim().parse().map_err(|_| wrong())?),
                _ => return Err(wrong()),
            }
        }
        Ok(Kind::Soft { weight, at_most })
    }

    fn statement(
        &self,
        mut code: Vec<TokenWithSpan>,
        start: Place,
        annotations: Annotations,
    ) -> Result<Policy, PolicyError> {
        let is = |token: Option<&TokenWithSpan>, text: &str| {
            token.is_some_and(|t| t.token.to_string().eq_ignore_ascii_case(text))
        };
        let mut kind = annotations.kind.unwrap_or(Kind::View);
        if is(code.first(), "create") && is(code.get(1), "constraint") {
            code.remove(1);
            kind = annotations.kind.unwrap_or(Kind::Hard);
        }
        let words = code.iter().filter_map(|token| match &token.token {
            Token::Word(word) => Some((word.value.clone(), place(token.span.start))),
            _ => None,
        });
        let words: Vec<(String, Place)> = words.collect();
        let literals = code.iter().filter_map(|token| match &token.token {
            Token::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        });
        let literals: Vec<String> = literals.collect();
        let last = code.last().map_or(start, |token| place(token.span.end));
        let wrong = |message: String| {
            let message = message.trim_start_matches("sql parser error: ");
            let at = place_in(message).unwrap_or(last);
            self.error(at, message.split(" at Line:").next().unwrap_or(message))
        };
        let dialect = GenericDialect {};
        let mut parser = Parser::new(&dialect).with_tokens_with_locations(code);
        let parsed = parser.parse_statement();
        let parsed = parsed.map_err(|error| match error {
            ParserError::RecursionLimitExceeded => wrong("is nested too deeply".to_owned()),
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
                wrong(message)
            }
        })?;
        let rest = parser.peek_token();
        if rest.token != Token::EOF {
            let at = place(rest.span.start);
            return Err(self.error(at, format!("{} is not expected here", rest.token)));
        }
        let Statement::CreateView(view) = parsed else {
            let mut error = self.error(start, "this is no view");
            error.hint = Some("write CREATE VIEW name AS SELECT ...".to_owned());
            return Err(error);
        };
        let plain = !view.materialized && !view.or_replace && view.columns.is_empty();
        let name = match &view.name.0[..] {
            [part] if plain => part.as_ident().map(|ident| match ident.quote_style {
                Some(_) => ident.value.clone(),
                None => ident.value.to_lowercase(),
            }),
            _ => None,
        };
        let Some(name) = name else {
            let mut error = self.error(start, "a view has a plain name and nothing else");
            error.hint = Some("write CREATE VIEW name AS SELECT ...".to_owned());
            return Err(error);
        };
        let mut query = view.query;
        let file = self.file.to_owned();
        let mut policy = Policy { file, name, kind, query: query.clone(), start, words, literals };
        let expanded = visit_expressions_mut(&mut query, |expr| match expand(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(refused) => ControlFlow::Break(refused),
        });
        if let ControlFlow::Break(refused) = expanded {
            return Err(policy.refused(refused));
        }
        policy.query = query;
        Ok(policy)
    }
}

/// `all_different(x)` and `all_equal(x)` as counts of different values.
fn expand(expr: &mut Expr) -> Result<(), Refused> {
    let Expr::Function(function) = &*expr else { return Ok(()) };
    let name = function.name.to_string().to_lowercase();
    let relation = match name.as_str() {
        "all_different" => "=",
        "all_equal" => "<=",
        "increasing" => {
            return Err(Refused::new("rows of SQL have no order in which a column increases")
                .word("increasing")
                .hint("join each row with those after it, and compare both"));
        }
        _ => return Ok(()),
    };
    let word = if relation == "=" { "all_different" } else { "all_equal" };
    let refused = || Refused::new(format!("{name} takes one expression")).word(word);
    let FunctionArguments::List(list) = &function.args else { return Err(refused()) };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(of))] = &list.args[..] else {
        return Err(refused());
    };
    let right = if relation == "=" { format!("count({of})") } else { "1".to_owned() };
    let text = format!("(count(DISTINCT {of}) {relation} {right})");
    let parsed = Parser::new(&GenericDialect {}).try_with_sql(&text);
    *expr = parsed.and_then(|mut parser| parser.parse_expr()).map_err(|_| refused())?;
    Ok(())
}

/// The place that a message of the parser ends with: `at Line: 3, Column: 7`.
fn place_in(message: &str) -> Option<Place> {
    let (_, rest) = message.rsplit_once(" at Line: ")?;
    let (line, column) = rest.split_once(", Column: ")?;
    Some(Place { line: line.trim().parse().ok()?, column: column.trim().parse().ok()? })
}

/// A decimal with at most six digits after the point, in millionths.
pub(crate) fn micro(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !is_number(whole) || !is_number(part) {
        return None;
    }
    let part: i64 = format!("{part:0<6}").parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(part)?.checked_mul(sign)
}
