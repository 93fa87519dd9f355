//! Rows as text on standard output, batch by batch.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use clap::ValueEnum;
use datafusion::arrow::array::{Array as _, ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::{ArrayWriter, LineDelimitedWriter};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;
use datafusion::execution::SendableRecordBatchStream as Rows;
use futures::StreamExt;

use super::Stop;

/// How rows are printed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    Automatic,
    Csv,
    Tsv,
    Table,
    Json,
    NdJson,
}

/// Rows that decide how wide the columns of a table are.
const PREVIEW: usize = 1000;

/// Print all rows of `stream`, and return how many there are. Statements without columns print nothing.
pub(crate) async fn print(format: Format, mut stream: Rows, options: &FormatOptions<'_>) -> Result<usize, Stop> {
    let schema = stream.schema();
    let mut encoder = Encoder::new(format, &schema, options);
    let put = |text: Vec<u8>| match io::stdout().write_all(&text) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Stop::BrokenPipe),
        done => Ok(done?),
    };
    let mut rows = 0;
    while let Some(batch) = stream.next().await.transpose()? {
        rows += batch.num_rows();
        if !schema.fields().is_empty() {
            put(encoder.batch(&batch)?)?;
        }
    }
    if !schema.fields().is_empty() {
        put(encoder.finish()?)?;
    }
    Ok(rows)
}

enum Encoder<'a> {
    Table(Table<'a>),
    Separated { delimiter: u8, schema: SchemaRef, header: bool, options: &'a FormatOptions<'a> },
    Json(ArrayWriter<Vec<u8>>),
    NdJson,
}

impl<'a> Encoder<'a> {
    fn new(format: Format, schema: &SchemaRef, options: &'a FormatOptions<'a>) -> Self {
        let schema = Arc::clone(schema);
        match format {
            Format::Csv => Self::Separated { delimiter: b',', schema, header: true, options },
            Format::Tsv => Self::Separated { delimiter: b'\t', schema, header: true, options },
            Format::Json => Self::Json(ArrayWriter::new(Vec::new())),
            Format::NdJson => Self::NdJson,
            Format::Automatic | Format::Table => Self::Table(Table { schema, options, preview: vec![], border: None }),
        }
    }

    /// The text of a further batch.
    fn batch(&mut self, batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        let mut text = Vec::new();
        match self {
            Self::Table(table) => return table.batch(batch),
            Self::Separated { delimiter, header, options, .. } => {
                let builder = WriterBuilder::new().with_header(std::mem::take(header)).with_delimiter(*delimiter);
                builder.build(&mut text).write(&flat(batch, options)?)?;
            }
            Self::Json(writer) => {
                writer.write(batch)?;
                text.append(writer.get_mut());
            }
            Self::NdJson => LineDelimitedWriter::new(&mut text).write(batch)?,
        }
        Ok(text)
    }

    /// The text after the last batch.
    fn finish(&mut self) -> Result<Vec<u8>, ArrowError> {
        match self {
            Self::Table(table) => table.finish(),
            Self::Separated { schema, header: true, .. } => {
                let empty = RecordBatch::new_empty(Arc::clone(schema));
                self.batch(&empty)
            }
            Self::Separated { .. } | Self::NdJson => Ok(Vec::new()),
            Self::Json(writer) => {
                writer.finish()?;
                writer.get_mut().push(b'\n');
                Ok(std::mem::take(writer.get_mut()))
            }
        }
    }
}

/// The same with nested columns as text, which CSV has no other form for.
fn flat(batch: &RecordBatch, options: &FormatOptions<'_>) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let mut columns: Vec<(&str, ArrayRef, bool)> = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let mut flat = Arc::clone(column);
        if field.data_type().is_nested() {
            let formatter = ArrayFormatter::try_new(column, options)?;
            let text = |row| column.is_valid(row).then(|| formatter.value(row).try_to_string()).transpose();
            flat = Arc::new((0..column.len()).map(text).collect::<Result<StringArray, _>>()?);
        }
        columns.push((field.name(), flat, true));
    }
    RecordBatch::try_from_iter_with_nullable(columns)
}

/// A table with borders. The first rows set the widths; longer cells further down stick out.
struct Table<'a> {
    schema: SchemaRef,
    options: &'a FormatOptions<'a>,
    preview: Vec<RecordBatch>,
    /// The line under the last row, once the head is printed.
    border: Option<String>,
}

impl Table<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        if let Some(border) = &self.border {
            return self.body(batch, border);
        }
        self.preview.push(batch.clone());
        let rows: usize = self.preview.iter().map(RecordBatch::num_rows).sum();
        if rows < PREVIEW { Ok(Vec::new()) } else { self.head() }
    }

    fn finish(&mut self) -> Result<Vec<u8>, ArrowError> {
        let mut text = if self.border.is_none() { self.head()? } else { Vec::new() };
        text.extend_from_slice(self.border.as_deref().unwrap_or_default().as_bytes());
        text.push(b'\n');
        Ok(text)
    }

    /// Everything up to the last row of the preview.
    fn head(&mut self) -> Result<Vec<u8>, ArrowError> {
        self.preview.push(RecordBatch::new_empty(Arc::clone(&self.schema)));
        let text = pretty_format_batches_with_options(&std::mem::take(&mut self.preview), self.options)?.to_string();
        let (head, border) = text.rsplit_once('\n').unwrap_or(("", &text));
        self.border = Some(border.to_owned());
        Ok(format!("{head}\n").into_bytes())
    }

    fn body(&self, batch: &RecordBatch, border: &str) -> Result<Vec<u8>, ArrowError> {
        let widths: Vec<usize> =
            border.trim_matches('+').split('+').map(|dashes| dashes.len().saturating_sub(2)).collect();
        let columns =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c, self.options)).collect::<Result<Vec<_>, _>>()?;
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            for (column, width) in columns.iter().zip(&widths) {
                let cell = column.value(row).try_to_string()?.replace('\n', " ");
                // Writing to a String cannot fail.
                let _ = write!(text, "| {cell:width$} ");
            }
            text.push_str("|\n");
        }
        Ok(text.into_bytes())
    }
}
