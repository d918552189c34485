//! The debug information of one file: names, lines and inlined calls.

use std::cell::OnceCell;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use addr2line::{Context, LookupContinuation as _, LookupResult};
use gimli::{DwLang, DwarfSections, EndianSlice, LittleEndian, Section as _, SectionId};
use object::{Object as _, ObjectSection as _};
use self_cell::self_cell;

use crate::abbreviations;
use crate::byte_arena::{Arena, FileBytes};
use crate::dwarf_units::UnitIndex;
use crate::elf;
use crate::split_dwarf::SplitFiles;

pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A frame in debug information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DwarfFrame {
    /// The linkage name, not demangled.
    pub(crate) function: Option<String>,
    /// Whether the language has scopes, which a name that is not a linkage name lacks. The language of a split
    /// unit is not known.
    pub(crate) may_lack_scopes: bool,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<u32>,
}

/// Debug information, which is parsed as far as it is needed.
#[derive(Debug)]
pub(crate) struct Dwarf {
    parsed: Mutex<Parsed>,
}

self_cell!(
    struct Parsed {
        owner: Arena<FileBytes>,

        #[not_covariant]
        dependent: ParsedDwarf,
    }

    impl {Debug}
);

struct ParsedDwarf<'a> {
    sections: DwarfSections<Slice<'a>>,
    supplement: Option<DwarfSections<Slice<'a>>>,
    units: UnitIndex,
    /// By unit; `None` for one that is malformed.
    contexts: Vec<OnceCell<Option<Box<Context<Slice<'a>>>>>>,
    split_dwarf: SplitFiles<'a>,
}

impl fmt::Debug for ParsedDwarf<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ParsedDwarf").field("split", &self.split_dwarf).finish_non_exhaustive()
    }
}

impl Dwarf {
    /// Opens the debug information in `file`, with `supplement` for what it shares with other files. `None` if
    /// there is none, or it is malformed. `package` is the path of split debug information beside the file.
    pub(crate) fn open(file: FileBytes, supplement: Option<FileBytes>, package: Option<PathBuf>) -> Option<Self> {
        let parsed = Parsed::try_new(Arena::new(), |arena| {
            let file = arena.push(file);
            let sections = load(file, arena).filter(has_units).ok_or(())?;
            // A supplement may contain only strings.
            let supplement = supplement.map(|supplement| load(arena.push(supplement), arena).ok_or(())).transpose()?;
            let is_divided =
                supplement.is_none() && !abbreviations::may_cross_units(sections.debug_abbrev.reader().slice());
            let units = if is_divided {
                UnitIndex::read(&sections, &|| file.release()).map_err(drop)?
            } else {
                UnitIndex::undivided()
            };
            let contexts = (0..units.len()).map(|_| OnceCell::new()).collect();
            Ok::<_, ()>(ParsedDwarf {
                sections,
                supplement,
                units,
                contexts,
                split_dwarf: SplitFiles::new(arena, package),
            })
        });
        parsed.ok().map(|parsed| Self { parsed: Mutex::new(parsed) })
    }

    /// Returns the frames at `stated`, innermost first; none if the address is not covered.
    pub(crate) fn frames(&self, stated: u64) -> Vec<DwarfFrame> {
        let parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        parsed.with_dependent(|_, parsed| parsed.frames(stated).unwrap_or_default())
    }
}

impl<'a> ParsedDwarf<'a> {
    fn frames(&self, stated: u64) -> Result<Vec<DwarfFrame>, gimli::Error> {
        for unit in self.units.find(stated) {
            let Some(context) = self.context(unit) else { continue };
            if let Some(found) = self.frames_in(context, stated)? {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    /// Returns the parsed unit.
    fn context(&self, unit: usize) -> Option<&Context<Slice<'a>>> {
        let context = self.contexts[unit].get_or_init(|| {
            let mut dwarf = self.units.only(unit, &self.sections);
            if let Some(supplement) = &self.supplement {
                dwarf.set_sup(supplement.borrow(|section| *section));
            }
            Context::from_dwarf(dwarf).ok().map(Box::new)
        });
        context.as_deref()
    }

    /// Returns the frames in a unit; `None` if it does not contain the address.
    fn frames_in(&self, context: &Context<Slice<'a>>, stated: u64) -> Result<Option<Vec<DwarfFrame>>, gimli::Error> {
        let mut lookup = context.find_frames(stated);
        let mut frames = loop {
            match lookup {
                LookupResult::Output(frames) => break frames?,
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(self.split_dwarf.find(&load));
                }
            }
        };
        let mut found = Vec::new();
        while let Some(frame) = frames.next()? {
            let language = frame.function.as_ref().and_then(|function| function.language);
            let function =
                frame.function.and_then(|function| function.raw_name().map(std::borrow::Cow::into_owned).ok());
            let location = frame.location.as_ref();
            found.push(DwarfFrame {
                function,
                may_lack_scopes: language.is_none_or(is_cpp),
                file: location.and_then(|location| location.file).map(str::to_owned),
                // A line or column of 0 means that it is not known.
                line: location.and_then(|location| location.line).filter(|line| *line != 0),
                column: location.and_then(|location| location.column).filter(|column| *column != 0),
            });
        }
        if found.is_empty() {
            return Ok(None);
        }
        // A unit can cover an address without describing it.
        found.retain(|frame| frame.function.is_some() || frame.line.is_some());
        Ok(Some(found))
    }
}

/// Loads the sections of debug information.
fn load<'a>(bytes: &'a [u8], arena: &'a Arena<FileBytes>) -> Option<DwarfSections<Slice<'a>>> {
    let elf = elf::parse(bytes)?;
    let section = |id: SectionId| {
        let mut data = elf::section(&elf, id.name(), arena);
        if id == SectionId::DebugAbbrev
            && let Some(changed) = abbreviations::without_lines(data)
        {
            data = arena.push(FileBytes::Owned(changed.into()));
        }
        Ok::<_, ()>(EndianSlice::new(data, LittleEndian))
    };
    DwarfSections::load(section).ok()
}

fn has_units(sections: &DwarfSections<Slice<'_>>) -> bool {
    !sections.debug_info.reader().is_empty()
}

fn is_cpp(language: DwLang) -> bool {
    [gimli::DW_LANG_C_plus_plus, gimli::DW_LANG_C_plus_plus_03, gimli::DW_LANG_C_plus_plus_11]
        .into_iter()
        .chain([gimli::DW_LANG_C_plus_plus_14, gimli::DW_LANG_C_plus_plus_17, gimli::DW_LANG_C_plus_plus_20])
        .any(|cpp| cpp == language)
}

/// Returns whether a file contains debug information.
pub(crate) fn is_in(elf: &elf::Elf<'_>) -> bool {
    let has = |name| elf.section_by_name(name).is_some_and(|section| section.size() > 0 && section.data().is_ok());
    has(".debug_info") || has(".zdebug_info")
}
