//! Writes a Parquet file row by row. One group of rows is kept in memory.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Type as PhysicalType};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use crate::budget::{Budget, BudgetedWriter};
use crate::error::ExportError;

/// The number of rows in a group: small enough for memory, large enough for efficient columns.
const GROUP_ROWS: usize = 1 << 16;

/// A file of one table.
pub(super) struct ParquetTable {
    writer: SerializedFileWriter<BudgetedWriter<File>>,
    columns: Vec<ColumnValues>,
    rows: usize,
}

/// The value of a column in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CellValue<'t> {
    Null,
    Integer(i64),
    Double(f64),
    Bool(bool),
    Text(&'t str),
}

impl<'t> CellValue<'t> {
    pub(super) fn text(text: &'t str) -> Self {
        Self::Text(text)
    }

    /// Returns the cell for a word; the column's type determines its sign.
    pub(super) fn word(word: u64) -> Self {
        Self::Integer(word.cast_signed())
    }

    /// Returns the cell of a value, or null.
    pub(super) fn some<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Null, cell)
    }

    /// Returns the cell of a number, or null for 0.
    pub(super) fn number(number: u32) -> Self {
        if number == 0 { Self::Null } else { Self::Integer(number.into()) }
    }
}

/// The values of a column that are not written yet, and for each row whether it has one.
#[derive(Debug)]
struct ColumnValues {
    values: TypedValues,
    is_optional: bool,
    /// Up to the last row with a value.
    levels: Vec<i16>,
}

#[derive(Debug)]
enum TypedValues {
    Small(Vec<i32>),
    Large(Vec<i64>),
    Double(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<ByteArray>, KnownTexts),
}

/// Texts that were in a column before: most columns have few different ones.
#[derive(Debug, Default)]
struct KnownTexts(HashMap<Box<str>, ByteArray>);

/// More texts are not kept.
const MAX_TEXTS: usize = 1024;

impl KnownTexts {
    fn get(&mut self, text: &str) -> ByteArray {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let value = ByteArray::from(text.as_bytes().to_vec());
        if self.0.len() < MAX_TEXTS {
            self.0.insert(text.into(), value.clone());
        }
        value
    }
}

impl ParquetTable {
    /// Creates a file with the columns of `schema`, in the schema language of Parquet.
    pub(super) fn create(file: File, schema: &str, budget: &Budget) -> Result<Self, ExportError> {
        let schema = Arc::new(parse_message_type(schema).map_err(failed)?);
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::LZ4_RAW)
            .set_created_by(concat!("stackweave ", env!("CARGO_PKG_VERSION")).to_owned());
        for column in SchemaDescriptor::new(Arc::clone(&schema)).columns().iter().filter(|column| is_near_last(column))
        {
            properties = properties
                .set_column_encoding(column.path().clone(), Encoding::DELTA_BINARY_PACKED)
                .set_column_dictionary_enabled(column.path().clone(), false);
        }
        let file = budget.writer(file);
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build())).map_err(failed)?;
        let column = |column: &Arc<ColumnDescriptor>| ColumnValues {
            values: match column.physical_type() {
                PhysicalType::INT32 => TypedValues::Small(Vec::new()),
                PhysicalType::INT64 => TypedValues::Large(Vec::new()),
                PhysicalType::DOUBLE => TypedValues::Double(Vec::new()),
                PhysicalType::BOOLEAN => TypedValues::Bool(Vec::new()),
                _ => TypedValues::Text(Vec::new(), KnownTexts::default()),
            },
            is_optional: column.max_def_level() > 0,
            levels: Vec::new(),
        };
        let columns = writer.schema_descr().columns().iter().map(column).collect();
        Ok(Self { writer, columns, rows: 0 })
    }

    pub(super) fn row<const N: usize>(&mut self, cells: [CellValue<'_>; N]) -> Result<(), ExportError> {
        debug_assert_eq!(N, self.columns.len());
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            if cell != CellValue::Null {
                column.push(cell, self.rows);
            }
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<(), ExportError> {
        let mut group = self.writer.next_row_group().map_err(failed)?;
        for column in &mut self.columns {
            let Some(mut writer) = group.next_column().map_err(failed)? else { break };
            column.write(writer.untyped(), self.rows).map_err(failed)?;
            writer.close().map_err(failed)?;
        }
        group.close().map_err(failed)?;
        self.rows = 0;
        Ok(())
    }

    /// Completes the file, and returns its size in bytes.
    pub(super) fn finish(mut self) -> Result<u64, ExportError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        let file = self.writer.into_inner().map_err(failed)?.into_inner();
        Ok(file.metadata()?.len())
    }
}

impl ColumnValues {
    /// Adds the value of a row.
    #[expect(clippy::cast_possible_truncation, reason = "small columns hold numbers of 32 bits")]
    fn push(&mut self, cell: CellValue<'_>, row: usize) {
        if self.is_optional {
            self.levels.resize(row, 0);
            self.levels.push(1);
        }
        match (&mut self.values, cell) {
            (TypedValues::Small(values), CellValue::Integer(value)) => values.push(value as i32),
            (TypedValues::Large(values), CellValue::Integer(value)) => values.push(value),
            (TypedValues::Double(values), CellValue::Double(value)) => values.push(value),
            (TypedValues::Bool(values), CellValue::Bool(value)) => values.push(value),
            (TypedValues::Text(values, known), CellValue::Text(value)) => values.push(known.get(value)),
            (_, cell) => debug_assert_eq!(cell, CellValue::Null, "a column of another type"),
        }
    }

    fn write(&mut self, writer: &mut ColumnWriter<'_>, rows: usize) -> Result<(), ParquetError> {
        if self.is_optional {
            self.levels.resize(rows, 0);
        }
        let levels = self.is_optional.then_some(self.levels.as_slice());
        match (&mut self.values, writer) {
            (TypedValues::Small(values), ColumnWriter::Int32ColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)?;
                values.clear();
            }
            (TypedValues::Large(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)?;
                values.clear();
            }
            (TypedValues::Double(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)?;
                values.clear();
            }
            (TypedValues::Bool(values), ColumnWriter::BoolColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)?;
                values.clear();
            }
            (TypedValues::Text(values, _), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)?;
                values.clear();
            }
            _ => return Err(ParquetError::General("a column of another type".to_owned())),
        }
        self.levels.clear();
        Ok(())
    }
}

/// Returns whether the values of a column are close to the ones before, as times and numbers of stacks are.
fn is_near_last(column: &ColumnDescriptor) -> bool {
    let is_integer = matches!(column.physical_type(), PhysicalType::INT32 | PhysicalType::INT64);
    let is_signed = !matches!(column.logical_type_ref(), Some(LogicalType::Integer(_)));
    is_integer && is_signed && (column.max_def_level() == 0 || matches!(column.name(), "callers" | "span"))
}

fn failed(error: ParquetError) -> ExportError {
    ExportError::Write(
        None,
        match error {
            ParquetError::External(error) => match error.downcast::<std::io::Error>() {
                Ok(error) => *error,
                Err(error) => std::io::Error::other(error),
            },
            other => std::io::Error::other(other),
        },
    )
}
