//! The one file that asks DataFusion to run something: tables, plans, rows, values of expressions.

use crate::error::{Place, Refused};
use crate::world::{Table, Type, Unusable, Value, World};
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Int64Array, RecordBatch,
    RecordBatchOptions, StringArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::view::ViewTable;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DataFusionError, ScalarValue};
use datafusion::datasource::MemTable;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Distinct, Expr, Filter, LogicalPlan};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Query, Statement};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that a query may hold.
const MEMORY_MAX: usize = 512 << 20;
/// Seconds that a query may run.
const TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes of stack of a thread that plans, runs or compiles.
const STACK: usize = 256 << 20;
/// Digits of a decimal column, and those of them after the point.
const DECIMAL: (u8, i8) = (18, 6);

/// A session with the tables of a world, read-only.
pub(crate) struct Library {
    context: SessionContext,
    /// Columns that are there but that no policy can read.
    unusable: Vec<Unusable>,
}

impl Library {
    pub fn new(world: &World) -> Result<Library, Refused> {
        let mut config = SessionConfig::new().with_target_partitions(1);
        let parser = &mut config.options_mut().sql_parser;
        // Amounts are exact: 0.1 is a decimal. Errors name a place.
        parser.parse_float_as_decimal = true;
        parser.collect_spans = true;
        parser.map_string_types_to_utf8view = false;
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(MEMORY_MAX, 1.0).build_arc();
        let runtime = runtime.map_err(refused)?;
        let context = SessionContext::new_with_config_rt(config, runtime);
        let library = Library { context, unusable: world.unusable().to_vec() };
        for table in world.tables() {
            let batch = batch(table).map_err(refused)?;
            let table_of = MemTable::try_new(batch.schema(), vec![vec![batch]]).map_err(refused)?;
            let done = library.context.register_table(table.name.as_str(), Arc::new(table_of));
            done.map_err(refused)?;
        }
        Ok(library)
    }

    /// The logical plan of a query, types resolved, nothing optimized.
    pub fn plan(&self, query: &Query) -> Result<LogicalPlan, Refused> {
        let statement = Parsed::Statement(Box::new(Statement::Query(Box::new(query.clone()))));
        let state = self.context.state();
        let plan = run(async { state.statement_to_plan(statement).await })?;
        let plan = plan.map_err(|error| self.explained(refused(error)))?;
        let analyzed = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {});
        let plan = analyzed.map_err(refused)?;
        // The same world has the same answer.
        let mut changing = false;
        let looked = plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                changing |= expr.is_volatile();
                Ok(TreeNodeRecursion::Continue)
            })
        });
        looked.map_err(refused)?;
        if changing {
            return Err(Refused::new("random functions have no place in a policy").word("random"));
        }
        Ok(plan)
    }

    /// Says of a column that is said to be missing why it is not read, if it is there.
    fn explained(&self, refused: Refused) -> Refused {
        let missing = refused.message.strip_prefix("No field named ");
        let name = missing.and_then(|rest| rest.split(". ").next());
        let name = name.map(|name| name.rsplit('.').next().unwrap_or(name).trim_matches('"'));
        match self.unusable.iter().find(|own| Some(own.column.as_str()) == name) {
            Some(Unusable { table, column, reason }) => {
                Refused { message: format!("column {column} of {table} {reason}"), ..refused }
            }
            None => refused,
        }
    }

    /// Makes a plan readable under a name.
    pub fn define(&self, name: &str, plan: LogicalPlan) -> Result<(), Refused> {
        let view = Arc::new(ViewTable::new(plan, None));
        let quoted = datafusion::common::TableReference::bare(name);
        if self.context.table_exist(quoted.clone()).map_err(refused)? {
            return Err(Refused::new(format!("a table {name} is there already")));
        }
        self.context.register_table(quoted, view).map(|_| ()).map_err(refused)
    }

    /// Runs a plan: its rows.
    pub fn rows(&self, plan: &LogicalPlan) -> Result<Vec<Vec<ScalarValue>>, Refused> {
        let batches = run(async {
            let frame = self.context.execute_logical_plan(plan.clone()).await?;
            frame.collect().await
        })?;
        let mut rows = Vec::new();
        for batch in batches.map_err(refused)? {
            for row in 0..batch.num_rows() {
                let cell = |column: &ArrayRef| ScalarValue::try_from_array(column, row);
                let cells: Result<Vec<_>, _> = batch.columns().iter().map(cell).collect();
                rows.push(cells.map_err(refused)?);
            }
        }
        Ok(rows)
    }

    /// Values of an expression, one for each row of the columns.
    pub fn values(
        &self,
        expr: Expr,
        columns: Vec<(String, DataType, Vec<ScalarValue>)>,
        rows: usize,
    ) -> Result<Vec<ScalarValue>, Refused> {
        let field = |(name, of, _): &(String, DataType, _)| Field::new(name, of.clone(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let mut arrays = Vec::with_capacity(columns.len());
        for (_, of, values) in columns {
            let array = if values.is_empty() {
                Ok(datafusion::arrow::array::new_empty_array(&of))
            } else {
                ScalarValue::iter_to_array(values)
            };
            arrays.push(array.map_err(refused)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options);
        let batch = batch.map_err(|error| refused(error.into()))?;
        let schema = DFSchema::try_from(schema).map_err(refused)?;
        // A copy of the session's state has each function of the library in it.
        let state = self.context.state_ref();
        let state = state.read();
        // Functions such as coalesce are defined by what they are simplified to.
        let context = SimplifyContext::builder()
            .with_schema(Arc::new(schema.clone()))
            .with_config_options(Arc::clone(state.config_options()))
            .build();
        let expr = ExprSimplifier::new(context).simplify(expr).map_err(refused)?;
        let physical = state.create_physical_expr(expr, &schema).map_err(refused)?;
        let array = physical.evaluate(&batch).and_then(|value| value.into_array(rows));
        let array = array.map_err(refused)?;
        let value = |row| ScalarValue::try_from_array(&array, row).map_err(refused);
        (0..rows).map(value).collect()
    }
}

/// Waits for a future on a thread of its own, so that the caller may be inside another runtime.
fn run<T: Send>(future: impl Future<Output = T> + Send) -> Result<T, Refused> {
    on_large_stack(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| failed(&error.to_string()))?;
        let limited = async { tokio::time::timeout(TIME_MAX, future).await };
        let late = |_| failed(&format!("it takes more than {} s", TIME_MAX.as_secs()));
        runtime.block_on(limited).map_err(late)
    })
}

fn failed(what: &str) -> Refused {
    Refused::new(format!("the query could not be run: {what}"))
}

/// Runs on a thread with a stack for the deepest statement that is read.
pub(crate) fn on_large_stack<T: Send>(
    work: impl FnOnce() -> Result<T, Refused> + Send,
) -> Result<T, Refused> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| failed(&error.to_string()))?;
        thread.join().unwrap_or_else(|_| Err(failed("it ended by a panic")))
    })
}

/// A refusal of DataFusion, with its place.
pub(crate) fn refused(error: DataFusionError) -> Refused {
    let place = error
        .diagnostic()
        .and_then(|found| found.span)
        .map(|span| Place { line: span.start.line, column: span.start.column });
    let text = error.strip_backtrace();
    let first = text.lines().next().unwrap_or_default();
    let mut message = first;
    for prefix in ["Error during planning: ", "Schema error: ", "This feature is not implemented: "]
    {
        message = message.strip_prefix(prefix).unwrap_or(message);
    }
    Refused::new(message.trim_end_matches('.')).near(place)
}

/// The filter above which there is only a choice of columns and an order: HAVING, or WHERE without
/// aggregates.
pub(crate) fn last_filter(plan: &LogicalPlan) -> Option<&Filter> {
    match plan {
        LogicalPlan::Filter(filter) => Some(filter),
        LogicalPlan::Projection(of) => last_filter(&of.input),
        LogicalPlan::Sort(of) if of.fetch.is_none() => last_filter(&of.input),
        LogicalPlan::Distinct(Distinct::All(input)) => last_filter(input),
        _ => None,
    }
}

fn data_type(of: Type) -> DataType {
    match of {
        Type::Text => DataType::Utf8,
        Type::Integer => DataType::Int64,
        Type::Decimal => DataType::Decimal128(DECIMAL.0, DECIMAL.1),
        Type::Boolean => DataType::Boolean,
        Type::Date => DataType::Date32,
    }
}

/// A cell as DataFusion has it.
pub(crate) fn scalar(value: &Value, of: Type) -> ScalarValue {
    match (value, of) {
        (Value::Text(text), _) => ScalarValue::Utf8(Some(text.clone())),
        (Value::Integer(number), _) => ScalarValue::Int64(Some(*number)),
        (Value::Decimal(micro), _) => {
            ScalarValue::Decimal128(Some(i128::from(*micro)), DECIMAL.0, DECIMAL.1)
        }
        (Value::Boolean(truth), _) => ScalarValue::Boolean(Some(*truth)),
        (Value::Date(days), _) => ScalarValue::Date32(Some(*days)),
        (Value::Null, Type::Text) => ScalarValue::Utf8(None),
        (Value::Null, Type::Integer) => ScalarValue::Int64(None),
        (Value::Null, Type::Decimal) => ScalarValue::Decimal128(None, DECIMAL.0, DECIMAL.1),
        (Value::Null, Type::Boolean) => ScalarValue::Boolean(None),
        (Value::Null, Type::Date) => ScalarValue::Date32(None),
    }
}

/// A date as `YYYY-MM-DD`, in days since 1970-01-01.
pub(crate) fn date(text: &str) -> Option<i32> {
    let cast = ScalarValue::Utf8(Some(text.to_owned())).cast_to(&DataType::Date32);
    match cast {
        Ok(ScalarValue::Date32(days)) => days,
        _ => None,
    }
}

impl std::fmt::Display for Value {
    /// As policies write it; NULL is empty.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Null => Ok(()),
            Value::Text(text) => out.write_str(text),
            Value::Integer(number) => write!(out, "{number}"),
            Value::Decimal(micro) => {
                let (sign, micro) = (if *micro < 0 { "-" } else { "" }, micro.unsigned_abs());
                let part = format!("{:06}", micro % 1_000_000);
                let part = part.trim_end_matches('0');
                let point = if part.is_empty() { "" } else { "." };
                write!(out, "{sign}{}{point}{part}", micro / 1_000_000)
            }
            Value::Boolean(truth) => write!(out, "{truth}"),
            Value::Date(days) => write!(out, "{}", ScalarValue::Date32(Some(*days))),
        }
    }
}

fn batch(table: &Table) -> Result<RecordBatch, DataFusionError> {
    let field =
        |column: &crate::world::Column| Field::new(&column.name, data_type(column.of), true);
    let schema = Schema::new(table.columns.iter().map(field).collect::<Vec<_>>());
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (number, column) in table.columns.iter().enumerate() {
        let cells = || table.rows.iter().map(move |row| &row[number]);
        arrays.push(match column.of {
            Type::Text => Arc::new(StringArray::from_iter(cells().map(|cell| match cell {
                Value::Text(text) => Some(text.as_str()),
                _ => None,
            }))),
            Type::Integer => Arc::new(Int64Array::from_iter(cells().map(|cell| match cell {
                Value::Integer(number) => Some(*number),
                _ => None,
            }))),
            Type::Boolean => Arc::new(BooleanArray::from_iter(cells().map(|cell| match cell {
                Value::Boolean(truth) => Some(*truth),
                _ => None,
            }))),
            Type::Date => Arc::new(Date32Array::from_iter(cells().map(|cell| match cell {
                Value::Date(days) => Some(*days),
                _ => None,
            }))),
            Type::Decimal => {
                let cells = cells().map(|cell| match cell {
                    Value::Decimal(micro) => Some(i128::from(*micro)),
                    _ => None,
                });
                let array = Decimal128Array::from_iter(cells);
                Arc::new(array.with_precision_and_scale(DECIMAL.0, DECIMAL.1)?)
            }
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(table.rows.len()));
    Ok(RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options)?)
}
