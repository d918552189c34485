//! From a recording to a file in a format.

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use stackweave_profile::View;
use stackweave_recording::Recording;
use stackweave_symbolize::Symbolizer;

use crate::budget::{Budget, LimitPassed};
use crate::error::{ExportError, TooLarge};
use crate::format::Format;
use crate::formats;
use crate::included_sources::IncludedSources;
use crate::options::ExportOptions;
use crate::output::{write_file, write_folder};
use crate::source::Source;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// How many bytes.
    pub bytes: u64,
    /// What could not be read of the recording, a sentence each.
    pub missing: Vec<String>,
    /// The source files whose texts are in it.
    pub sources: IncludedSources,
}

/// Writes a recording in a format. Native frames that have no names in it are resolved by `symbolizer`.
///
/// What is there already stays as it is until the export is complete, and if something fails. A device, a FIFO or a socket is
/// written through. A folder is replaced only if it is an older export with nothing beside it. `progress` is called with how
/// many of [`Recording::bytes`] are done; a format that reads twice begins anew. Past [`ExportOptions::max_size`], or where the
/// disk would have no room left, nothing is written.
pub fn export(
    recording: &Recording,
    format: Format,
    path: &Path,
    options: &ExportOptions<'_>,
    with: (Option<&Symbolizer>, &mut dyn FnMut(u64)),
) -> Result<Exported, ExportError> {
    let (symbolizer, progress) = with;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let budget = Budget::new(options.max_size.bytes(format), Some(folder));
    let source = Source::new(recording, symbolizer, options, default_view(format), (progress, budget));
    let inputs = inputs_of(recording, options);
    let replacing = (options.overwrite, inputs.as_slice());
    let bytes = if format == Format::Parquet {
        write_folder(path, replacing, |folder| formats::write_parquet(&source, folder))
    } else {
        write_file(path, replacing, |out| write_to(&source, format, is_compressed(format, path), out))
    };
    let bytes = bytes.map_err(|error| explained(error, format, source.share()))?;
    Ok(Exported { bytes, missing: source.report(), sources: source.sources() })
}

/// Writes a recording in a format, but for Parquet, which is no single file, to wherever it shall go.
pub fn write(
    recording: &Recording,
    format: Format,
    out: &mut dyn Write,
    options: &ExportOptions<'_>,
    with: (Option<&Symbolizer>, &mut dyn FnMut(u64)),
) -> Result<Vec<String>, ExportError> {
    let (symbolizer, progress) = with;
    let budget = Budget::new(options.max_size.bytes(format), None);
    let source = Source::new(recording, symbolizer, options, default_view(format), (progress, budget));
    write_to(&source, format, format == Format::Pprof, out)
        .map_err(|error| explained(error, format, source.share()))?;
    Ok(source.report())
}

/// Writes within the budget. It counts what readers have to take, before that is compressed.
fn write_to(source: &Source<'_>, format: Format, is_compressed: bool, out: &mut dyn Write) -> Result<(), ExportError> {
    if !is_compressed {
        return formats::write(source, format, &mut source.budget().writer(out));
    }
    let level = if format == Format::Pprof { Compression::default() } else { Compression::fast() };
    let mut out = source.budget().writer(GzEncoder::new(out, level));
    formats::write(source, format, &mut out)?;
    Ok(out.into_inner().finish().map(drop)?)
}

fn explained(error: ExportError, format: Format, share: Option<f64>) -> ExportError {
    let ExportError::Write(_, inner) = &error else { return error };
    let passed = inner.get_ref().and_then(|inner| inner.downcast_ref::<LimitPassed>()).copied();
    passed.map_or(error, |LimitPassed { limit }| ExportError::TooLarge(TooLarge { format, limit, share }))
}

fn inputs_of(recording: &Recording, options: &ExportOptions<'_>) -> Vec<PathBuf> {
    let all = [Some(recording), options.before].into_iter().flatten();
    all.flat_map(Recording::processes).map(|process| process.path().to_owned()).collect()
}

fn default_view(format: Format) -> View {
    View { show_all: !is_picture(format), ..View::default() }
}

/// Whether the name of the file says so. pprof's files always are.
fn is_compressed(format: Format, path: &Path) -> bool {
    format == Format::Pprof || path.extension().is_some_and(|extension| extension == "gz")
}

/// Whether a person looks at it as it is, and has no viewer that can hide frames.
fn is_picture(format: Format) -> bool {
    matches!(format, Format::Flamegraph | Format::Callgraph | Format::Dot | Format::MemoryCurve)
}
