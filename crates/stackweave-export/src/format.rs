//! The formats, by name and by file suffix.

use core::fmt;
use core::str::FromStr;
use std::path::Path;

/// A format that recordings can be exported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `pstats`: the format of `cProfile`, for `pstats`, snakeviz, tuna and gprof2dot.
    Pstats,
    /// Chrome's trace events as JSON, for Perfetto, `about:tracing` and viztracer.
    Chrome,
    /// Perfetto's own traces.
    Perfetto,
    /// speedscope's JSON.
    Speedscope,
    /// pprof's profiles, compressed.
    Pprof,
    /// Folded stacks: one line for each stack, for `FlameGraph` and inferno.
    Folded,
    /// A flame graph, as an interactive picture.
    Flamegraph,
    /// A call graph, as a picture.
    Callgraph,
    /// A call graph, for graphviz.
    Dot,
    /// The JSON of the Firefox Profiler.
    Firefox,
    /// JSON lines: one object for each event.
    Json,
    /// Memory over time, as a picture.
    MemoryCurve,
    /// A table of allocations by stack, as comma-separated values.
    Allocations,
    /// `PyTorch`'s memory snapshot, for its memory viewer.
    Pytorch,
    /// A folder of Parquet files: events, stacks, frames, modules.
    Parquet,
    /// The report page: everything in one HTML file.
    Report,
}

/// The formats with their names and suffixes. The first suffix that matches counts, so long ones come first.
const FORMATS: [(Format, &str, &[&str]); 16] = [
    (Format::Report, "report", &[".html"]),
    (Format::MemoryCurve, "memory-curve", &[".memory.svg"]),
    (Format::Callgraph, "callgraph", &[".callgraph.svg"]),
    (Format::Speedscope, "speedscope", &[".speedscope.json", ".speedscope"]),
    (Format::Firefox, "firefox", &[".firefox.json"]),
    (Format::Pstats, "pstats", &[".prof", ".pstats"]),
    (Format::Chrome, "chrome", &[".json", ".json.gz"]),
    (Format::Perfetto, "perfetto", &[".pftrace", ".perfetto-trace"]),
    (Format::Pprof, "pprof", &[".pb.gz", ".pprof"]),
    (Format::Folded, "folded", &[".folded", ".collapsed", ".txt"]),
    (Format::Flamegraph, "flamegraph", &[".svg"]),
    (Format::Dot, "dot", &[".dot", ".gv"]),
    (Format::Json, "json", &[".jsonl", ".ndjson"]),
    (Format::Allocations, "allocations", &[".csv"]),
    (Format::Pytorch, "pytorch", &[".pickle", ".pkl"]),
    (Format::Parquet, "parquet", &[".parquet"]),
];

impl Format {
    /// Returns every format.
    pub fn all() -> impl Iterator<Item = Self> {
        FORMATS.iter().map(|(format, _, _)| *format)
    }

    /// Returns the names of all formats, sorted.
    pub fn names() -> String {
        let mut names: Vec<&str> = FORMATS.iter().map(|(_, name, _)| *name).collect();
        names.sort_unstable();
        names.join(", ")
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        FORMATS.iter().find(|(format, _, _)| *format == self).map_or("", |(_, name, _)| name)
    }

    /// Returns the suffix of its files.
    pub fn suffix(self) -> &'static str {
        FORMATS
            .iter()
            .find(|(format, _, _)| *format == self)
            .and_then(|(_, _, ends)| ends.first())
            .map_or("", |end| end)
    }

    /// Returns whether it shows only memory, and needs a recording of memory.
    pub fn is_of_memory(self) -> bool {
        matches!(self, Self::Allocations | Self::MemoryCurve | Self::Pytorch)
    }

    /// Returns whether its stacks have only the selected frames. Other formats of events, and the report, have all.
    pub fn filters_frames(self) -> bool {
        !matches!(
            self,
            Self::Chrome | Self::Perfetto | Self::Firefox | Self::Parquet | Self::MemoryCurve | Self::Report
        )
    }

    /// Returns the format of a file with this name.
    pub fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let fits = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
        FORMATS.iter().find(|(_, _, ends)| fits(ends)).map(|(format, _, _)| *format)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown name of a format. Its text lists the known ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no format {0}; the formats are {known}", known = Format::names())]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let found = FORMATS.iter().find(|(_, known, _)| *known == name);
        found.map(|(format, _, _)| *format).ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_known_by_its_name_and_by_file_names() {
        for format in Format::all() {
            assert_eq!(format.name().parse(), Ok(format));
        }
        let of = |name: &str| Format::of_path(Path::new(name));
        assert_eq!(of("a/out.prof"), Some(Format::Pstats));
        assert_eq!([of("x.json"), of("x.speedscope.json")], [Some(Format::Chrome), Some(Format::Speedscope)]);
        assert_eq!([of("x.svg"), of("x.callgraph.svg")], [Some(Format::Flamegraph), Some(Format::Callgraph)]);
        assert_eq!([of("x.pb.gz"), of("x"), of("x.exe")], [Some(Format::Pprof), None, None]);
    }

    #[test]
    fn an_unknown_name_is_reported_with_all_formats() {
        let message = "xls".parse::<Format>().unwrap_err().to_string();
        assert!(
            message.starts_with("there is no format xls; the formats are allocations, callgraph, chrome, ")
                && message.ends_with("speedscope")
        );
    }
}
