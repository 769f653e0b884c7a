//! Lists: the query that every list has, and one way to filter, sort, cut and write their rows.
//!
//! A list that is complete in memory is a [`ListRequest`], and [`ListQuery::page`] does everything. A list that Postgres
//! reads page by page is a [`StoredListRequest`]: Postgres applies its parameters and its usual order; any other order or
//! filter is applied to the rows that match the parameters, if there are at most [`SORTED_MAX`].

use super::list_filter::{Cell, Filter, Members, Row, compare, members_of};
use super::page::PageCursor;
use super::problem::Problem;
use super::query;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use utoipa::{IntoParams, PartialSchema};

/// Rows of a page, unless the query has a limit.
pub(crate) const PAGE: u32 = 100;

/// Rows of a page of a list that had no pages in earlier versions, so that few clients meet a second page.
pub(crate) const WHOLE: u32 = 1_000;

/// Most rows of a page.
pub(crate) const PAGE_MAX: u32 = 1_000;

/// Most rows of a table that grows without end that are sorted and filtered in memory: by the API if no more match,
/// by pages the newest ones.
pub(crate) const SORTED_MAX: u32 = 10_000;

/// The query of every list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Most rows of the page.
    #[param(minimum = 1, maximum = 1_000)]
    pub(crate) limit: Option<u32>,
    /// `next_page_token` of the previous page, with the same filters and order.
    pub(crate) page_token: Option<String>,
    /// Only rows that fulfil this, as in `msb = "m1" AND (NOT) servers >= 10 OR free > 0`. Operators: `=`, `!=`, `<`, `<=`,
    /// `>`, `>=`, and `:` for "contains". `OR` binds more tightly than `AND` (AIP-160). In a list that grows
    /// without limit, terms beyond its own parameters, with `=` and `AND`, need at most 10,000 rows.
    filter: Option<String>,
    /// Members to sort by, as in `msb, servers desc`. In a list that grows without limit, another order than its usual one
    /// needs at most 10,000 rows.
    order_by: Option<String>,
    /// Members of a row to return, as in `server,rack`; absent: all.
    fields: Option<String>,
}

/// Names of its parameters.
const COMMON: [&str; 5] = ["limit", "page_token", "filter", "order_by", "fields"];

/// No parameters beside those of every list.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFilters {}

/// The query of a list that is complete in memory; `T` has its further parameters and denies unknown ones.
pub(crate) struct ListRequest<T = NoFilters> {
    pub(crate) filters: T,
    pub(crate) list: ListQuery,
}

/// The query of a list that Postgres reads page by page; `T` has its parameters and denies unknown ones.
pub(crate) struct StoredListRequest<T> {
    pub(crate) filters: T,
    pub(crate) list: StoredList,
}

/// What is asked of a list that Postgres reads page by page, beyond its parameters.
pub(crate) struct StoredList {
    query: ListQuery,
    /// The part of the filter that is no parameter.
    rest: Filter,
}

/// The pairs of a query, as sent: those of every list, and the others.
fn pairs(uri: &Uri) -> Result<(Vec<&str>, Vec<&str>), Problem> {
    let query = uri.query().unwrap_or_default();
    if query.contains("%00") {
        return Err(Problem::zero_character());
    }
    let name = |pair: &&str| COMMON.contains(&pair.split('=').next().unwrap_or_default());
    Ok(query.split('&').filter(|pair| !pair.is_empty()).partition(name))
}

fn read<Q: DeserializeOwned>(pairs: &[&str]) -> Result<Q, Problem> {
    let malformed = || Problem::bad_request("malformed", "the query is not valid");
    let uri = format!("/?{}", pairs.join("&")).parse::<Uri>().map_err(|_| malformed())?;
    let refused = |error: QueryRejection| Problem::bad_request("malformed", error.body_text());
    let Query(query) = Query::try_from_uri(&uri).map_err(refused)?;
    Ok(query)
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for ListRequest<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<ListRequest<T>, Problem> {
        let (common, own) = pairs(&parts.uri)?;
        Ok(ListRequest { filters: read(&own)?, list: read(&common)? })
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for StoredListRequest<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<StoredListRequest<T>, Problem> {
        let (common, own) = pairs(&parts.uri)?;
        let list: ListQuery = read(&common)?;
        let mut filters = read(&own)?;
        let filter = list.filter.as_deref().map(Filter::read).transpose()?.unwrap_or_default();
        let mut taken: Vec<String> = own.into_iter().map(str::to_owned).collect();
        let rest = filter.without(|parameter| {
            let with: Vec<&str> = taken.iter().map(String::as_str).chain([parameter]).collect();
            let Ok(more) = read(&with) else { return false };
            filters = more;
            taken.push(parameter.to_owned());
            true
        });
        Ok(StoredListRequest { filters, list: StoredList { query: list, rest } })
    }
}

/// A row that is written first, for lists of a few thousand rows.
pub(crate) struct Written<T>(Value, std::marker::PhantomData<T>);

impl<T: Serialize> Written<T> {
    pub(crate) fn new(row: &T) -> Written<T> {
        Written(json!(row), std::marker::PhantomData)
    }
}

impl<T: PartialSchema> Row for Written<T> {
    type Shape = T;

    fn cell(&self, member: &str) -> Cell<'_> {
        let value = member.split('.').try_fold(&self.0, |value, name| value.get(name));
        value.map_or(Cell::Null, Cell::of)
    }

    fn json(&self) -> Value {
        self.0.clone()
    }
}

/// What is the same for all requests of a list in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListKind {
    /// Its name, and the member of the response with its rows.
    pub(crate) rows: &'static str,
    /// Members that together identify a row, which break ties.
    pub(crate) key: &'static [&'static str],
    /// The order, unless the query has one.
    pub(crate) order: &'static str,
    /// Rows of a page, unless the query has a limit.
    pub(crate) page: u32,
}

/// A page of a list.
#[derive(Debug)]
pub(crate) struct ListPage {
    /// The member of the response with the rows.
    member: &'static str,
    rows: Vec<Value>,
    next_page_token: Option<String>,
}

impl ListPage {
    /// The response. `of`: its object, of which the rows and the token of the next page are set here.
    pub(crate) fn response(self, of: &impl Serialize) -> Response {
        let mut body = json!(of);
        body[self.member] = self.rows.into();
        body["next_page_token"] = json!(self.next_page_token);
        Json(body).into_response()
    }
}

/// A member to sort by.
struct OrderBy {
    member: String,
    descends: bool,
}

fn read_order(text: &str, members: &Members) -> Result<Vec<OrderBy>, Problem> {
    let term = |term: &str| {
        let words: Vec<&str> = term.split_whitespace().collect();
        let (member, descends) = match words[..] {
            [member] | [member, "asc"] => (member, false),
            [member, "desc"] => (member, true),
            _ => {
                let detail = format!("order_by: {term:?} is not a member, or a member and desc");
                return Err(Problem::bad_request("malformed", detail));
            }
        };
        members.check_order(member)?;
        Ok(OrderBy { member: member.to_owned(), descends })
    };
    text.split(',').map(term).collect()
}

/// How the rows of a list in memory are filtered and sorted.
struct Selection {
    filter: Filter,
    order: Vec<OrderBy>,
}

impl Selection {
    /// Reads a filter and an order for the members of a list. Its key breaks ties.
    fn read(
        kind: ListKind,
        members: &Members,
        filter: Option<&str>,
        order_by: Option<&str>,
    ) -> Result<Selection, Problem> {
        let mut order = read_order(order_by.unwrap_or(kind.order), members)?;
        let sorted = |order: &[OrderBy], key: &str| order.iter().any(|by| by.member == key);
        for key in kind.key {
            if !sorted(&order, key) {
                order.push(OrderBy { member: (*key).to_owned(), descends: false });
            }
        }
        let filter = filter.map(Filter::read).transpose()?.unwrap_or_default();
        filter.check(members)?;
        Ok(Selection { filter, order })
    }

    fn compare<R: Row>(&self, one: &R, other: &R) -> Ordering {
        let cells = |by: &OrderBy| compare(&one.cell(&by.member), &other.cell(&by.member));
        self.order.iter().map(|by| by.turned(cells(by))).fold(Ordering::Equal, Ordering::then)
    }

    /// Sorts the first `most` rows of all and drops the rest, which need not be sorted.
    fn sort<R: Row>(&self, rows: &mut Vec<R>, most: usize) {
        if most > 0 && rows.len() > most {
            rows.select_nth_unstable_by(most - 1, |one, other| self.compare(one, other));
            rows.truncate(most);
        }
        rows.sort_by(|one, other| self.compare(one, other));
    }
}

/// Rows of a list that match a filter, in their order: those of a range of positions.
pub(crate) struct Selected<R> {
    /// Number of all rows that match.
    pub(crate) total: usize,
    /// Rows of the range.
    pub(crate) rows: Vec<R>,
}

/// Selects rows of a list for a page that has numbered pages. `each` sees every row that matches, in any order.
pub(crate) fn select<R: Row>(
    kind: ListKind,
    (filter, order_by): (Option<&str>, Option<&str>),
    rows: impl IntoIterator<Item = R>,
    range: std::ops::Range<usize>,
    each: impl FnMut(&R),
) -> Result<Selected<R>, Problem> {
    let selection = Selection::read(kind, &members_of::<R::Shape>(), filter, order_by)?;
    let mut rows: Vec<R> = rows.into_iter().filter(|row| selection.filter.accepts(row)).collect();
    rows.iter().for_each(each);
    let total = rows.len();
    selection.sort(&mut rows, range.end);
    rows.drain(..range.start.min(rows.len()));
    Ok(Selected { total, rows })
}

impl ListQuery {
    /// Most rows of the page.
    pub(crate) fn limit(&self, default: u32) -> Result<u32, Problem> {
        query::limit(self.limit, default, PAGE_MAX)
    }

    /// Filters and sorts rows, and cuts them to the page.
    pub(crate) fn page<R: Row>(
        &self,
        kind: ListKind,
        filters: &impl Serialize,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<ListPage, Problem> {
        let members = members_of::<R::Shape>();
        let limit = self.limit(kind.page)?;
        let (filter, order_by) = (self.filter.as_deref(), self.order_by.as_deref());
        let selection = Selection::read(kind, &members, filter, order_by)?;
        let cursor = PageCursor::new(&(kind.rows, filters, &self.filter, &self.order_by));
        let after: Option<Vec<Value>> = cursor.position(self.page_token.as_deref())?;
        let after: Option<Vec<Cell<'_>>> =
            after.as_ref().map(|after| after.iter().map(Cell::of).collect());
        let follows = |row: &R| {
            let Some(after) = &after else { return true };
            let pairs = selection.order.iter().zip(after);
            let ordering =
                pairs.map(|(by, after)| by.turned(compare(&row.cell(&by.member), after)));
            ordering.fold(Ordering::Equal, Ordering::then) == Ordering::Greater
        };
        let wanted = |row: &R| selection.filter.accepts(row) && follows(row);
        let mut rows: Vec<R> = rows.into_iter().filter(wanted).collect();
        selection.sort(&mut rows, limit as usize + 1);
        let position = |row: &R| -> Vec<Value> {
            selection.order.iter().map(|by| row.cell(&by.member).json()).collect()
        };
        let (rows, next_page_token) = cursor.page(rows, limit, position);
        let rows = rows.iter().map(Row::json).collect();
        let rows = self.only_fields(&members, rows)?;
        Ok(ListPage { member: kind.rows, rows, next_page_token })
    }

    /// [`Self::page`] of rows that are written first.
    pub(crate) fn page_of<T: Serialize + PartialSchema>(
        &self,
        kind: ListKind,
        filters: &impl Serialize,
        rows: impl IntoIterator<Item = T>,
    ) -> Result<ListPage, Problem> {
        self.page(kind, filters, rows.into_iter().map(|row| Written::new(&row)))
    }

    /// Leaves only the members that the query names.
    fn only_fields(&self, members: &Members, rows: Vec<Value>) -> Result<Vec<Value>, Problem> {
        let Some(fields) = &self.fields else { return Ok(rows) };
        let fields: Vec<&str> = fields.split(',').map(str::trim).collect();
        for field in &fields {
            members.check("fields", field)?;
        }
        let only = |row: Value| {
            let Value::Object(row) = row else { return row };
            let kept = row.into_iter().filter(|(name, _)| fields.contains(&name.as_str()));
            Value::Object(kept.collect::<Map<_, _>>())
        };
        Ok(rows.into_iter().map(only).collect())
    }
}

impl StoredList {
    /// Whether the page is the first one.
    pub(crate) const fn is_first(&self) -> bool {
        self.query.page_token.is_none()
    }

    /// Reads, filters, sorts and cuts the rows.
    ///
    /// `parameters` have been applied by `read`, which gets the position after which to begin and the most rows to read,
    /// and reads them in the order of `kind`; `position` is the position of a row, `view` what is sent of it.
    pub(crate) async fn page<R, C, V, Rows>(
        &self,
        kind: ListKind,
        parameters: &impl Serialize,
        read: impl Fn(Option<C>, u32) -> Rows,
        position: impl Fn(&R) -> C,
        view: impl Fn(R) -> V,
    ) -> Result<ListPage, Problem>
    where
        Rows: Future<Output = Result<Vec<R>, Problem>>,
        C: Serialize + DeserializeOwned,
        V: Serialize + PartialSchema,
    {
        let query = &self.query;
        let limit = query.limit(kind.page)?;
        let usual = |order: &String| order.split_whitespace().eq(kind.order.split_whitespace());
        if self.rest.is_empty() && query.order_by.as_ref().is_none_or(usual) {
            let cursor = PageCursor::new(&(kind.rows, parameters));
            let after = cursor.position(query.page_token.as_deref())?;
            let rows = read(after, limit + 1).await?;
            let (rows, next_page_token) = cursor.page(rows, limit, position);
            let rows = rows.into_iter().map(|row| json!(view(row))).collect();
            let rows = query.only_fields(&members_of::<V>(), rows)?;
            return Ok(ListPage { member: kind.rows, rows, next_page_token });
        }
        // A wrong filter or order is told before any row is read.
        let (filter, order_by) = (query.filter.as_deref(), query.order_by.as_deref());
        Selection::read(kind, &members_of::<V>(), None, order_by)?;
        self.rest.check(&members_of::<V>())?;
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let mut more = read(after, PAGE_MAX + 1).await?;
            let ends = more.len() <= PAGE_MAX as usize;
            more.truncate(PAGE_MAX as usize);
            after = more.last().map(&position);
            rows.extend(more.into_iter().map(|row| Written::new(&view(row))));
            if ends {
                break;
            }
            if rows.len() >= SORTED_MAX as usize {
                let what = if self.rest.is_empty() { "order_by" } else { "filter" };
                let detail = format!(
                    "{what}: more than {SORTED_MAX} rows match the parameters; narrow them, or take \
                     the order {:?} and only parameters",
                    kind.order
                );
                return Err(Problem::bad_request("malformed", detail));
            }
        }
        rows.retain(|row| self.rest.accepts(row));
        // The parameters among the terms of the filter have been applied; the whole filter is part of the token.
        let unfiltered = ListQuery { filter: None, ..query.clone() };
        unfiltered.page(kind, &(parameters, filter), rows)
    }
}

impl OrderBy {
    fn turned(&self, ordering: Ordering) -> Ordering {
        if self.descends { ordering.reverse() } else { ordering }
    }
}

#[cfg(test)]
mod tests {
    use super::{Filter, ListKind, ListQuery, NoFilters, SORTED_MAX, StoredList};
    use crate::http::Problem;
    use serde::Serialize;
    use serde_json::{Value, json};
    use utoipa::ToSchema;

    #[derive(Serialize, ToSchema)]
    struct Rack {
        rack: String,
        msb: Option<String>,
        servers: usize,
        down: bool,
    }

    const KIND: ListKind = ListKind { rows: "racks", key: &["rack"], order: "rack", page: 2 };

    fn racks() -> Vec<Rack> {
        let rack = |(rack, msb, servers): (&str, Option<&str>, usize)| Rack {
            rack: rack.to_owned(),
            msb: msb.map(str::to_owned),
            servers,
            down: servers == 0,
        };
        let all = [("r3", Some("m1"), 9), ("r1", Some("m1"), 10), ("r2", Some("m2"), 0)];
        all.into_iter().chain([("r4", None, 10)]).map(rack).collect()
    }

    fn query(filter: Option<&str>, order_by: Option<&str>) -> ListQuery {
        let (filter, order_by) = (filter.map(str::to_owned), order_by.map(str::to_owned));
        ListQuery { filter, order_by, ..ListQuery::default() }
    }

    /// Names of all racks, page by page.
    fn names(mut query: ListQuery) -> Result<Vec<String>, Problem> {
        let mut all = Vec::new();
        loop {
            let page = query.page_of(KIND, &NoFilters {}, racks())?;
            assert!(page.rows.len() <= 2, "{page:?}");
            let name = |row: &Value| row["rack"].as_str().expect("a name").to_owned();
            all.extend(page.rows.iter().map(name));
            match page.next_page_token {
                Some(token) => query.page_token = Some(token),
                None => return Ok(all),
            }
        }
    }

    #[test]
    fn rows_are_filtered_sorted_and_paged() {
        for (filter, order, expected) in [
            (None, None, "r1 r2 r3 r4"),
            (None, Some("rack desc"), "r4 r3 r2 r1"),
            (None, Some("servers desc"), "r1 r4 r3 r2"),
            (None, Some("servers, rack desc"), "r2 r3 r4 r1"),
            (None, Some("msb"), "r4 r1 r3 r2"),
            (Some("msb = \"m1\""), None, "r1 r3"),
            (Some("msb=m1 AND servers>9"), None, "r1"),
            (Some("msb=m2 OR msb=null AND servers>=10"), None, "r4"),
            (Some("NOT msb=m1"), Some("rack"), "r2 r4"),
            (Some("msb != null"), None, "r1 r2 r3"),
            (Some("rack:\"3\""), None, "r3"),
            (Some("down = true"), None, "r2"),
            (Some("servers < 10"), Some("rack"), "r2 r3"),
        ] {
            let found = names(query(filter, order)).unwrap_or_else(|e| panic!("{filter:?}: {e:?}"));
            assert_eq!(found.join(" "), expected, "{filter:?} {order:?}");
        }
    }

    #[test]
    fn invalid_filters_orders_and_fields_are_refused() {
        for (filter, order) in [
            (Some("size = 3"), None),
            (Some("servers = many"), None),
            (Some("down = 1"), None),
            (Some("rack"), None),
            (Some("rack = "), None),
            (Some("rack = \"r1"), None),
            (Some("(rack = r1)"), None),
            (Some("rack = r1 AND"), None),
            (Some("rack = r1 rack = r2"), None),
            (None, Some("size")),
            (None, Some("rack up")),
            (None, Some("")),
        ] {
            let refused = names(query(filter, order)).expect_err("refused");
            assert_eq!(refused.status(), 400, "{filter:?} {order:?}");
        }
        let fields =
            |fields: &str| ListQuery { fields: Some(fields.to_owned()), ..ListQuery::default() };
        let page = fields("rack, down").page_of(KIND, &NoFilters {}, racks()).expect("a page");
        assert_eq!(page.rows[0], json!({ "rack": "r1", "down": false }));
        assert!(fields("rack,size").page_of(KIND, &NoFilters {}, racks()).is_err());
    }

    #[test]
    fn page_token_is_valid_only_for_its_order_and_filter() {
        let first = query(None, Some("servers")).page_of(KIND, &NoFilters {}, racks());
        let token = first.expect("a page").next_page_token;
        for (filter, order) in [(None, None), (Some("down = false"), Some("servers"))] {
            let other = ListQuery { page_token: token.clone(), ..query(filter, order) };
            let refused = other.page_of(KIND, &NoFilters {}, racks()).expect_err("another list");
            assert_eq!(refused.code(), "page_token");
        }
    }

    #[tokio::test]
    async fn stored_list_is_sorted_whole_or_not_at_all() {
        let answer = async |count: usize, order_by: Option<&str>, filter: Option<&str>| {
            let rest =
                filter.map_or_else(Filter::default, |text| Filter::read(text).expect("valid"));
            let list = StoredList { query: query(filter, order_by), rest };
            let read = move |after: Option<usize>, limit: u32| async move {
                let first = after.map_or(0, |after| after + 1);
                Ok((first..count.min(first + limit as usize)).collect())
            };
            let rack = |number| Rack {
                rack: format!("r{number:05}"),
                msb: None,
                servers: number,
                down: false,
            };
            let page = list.page(KIND, &"all", read, |number| *number, rack).await?;
            Ok::<_, Problem>(page.rows.iter().map(|row| row["servers"].clone()).collect::<Vec<_>>())
        };
        let all = SORTED_MAX as usize;
        let (last, more) = (all - 1, all + 1);
        let found = answer(all, Some("servers desc"), None).await.expect("all are read");
        assert_eq!(found, [last, last - 1]);
        let found = answer(all, None, Some("servers>=9000")).await.expect("all are read");
        assert_eq!(found, [9_000, 9_001]);
        for (order_by, filter) in [(Some("servers desc"), None), (None, Some("servers>0"))] {
            let refused = answer(more, order_by, filter).await.expect_err("too many to sort");
            assert_eq!(refused.status(), 400);
        }
        // Its usual order needs no reading beyond the page.
        assert_eq!(answer(usize::MAX, Some("rack"), None).await.expect("a page"), [0, 1]);
    }
}
