//! The size limit of exports.

use core::str::FromStr;

use crate::format::Format;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The maximum size of an export, before compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SizeLimit {
    /// The size that the readers of the format can open.
    #[default]
    OfFormat,
    /// This number of bytes.
    Bytes(u64),
    /// No limit.
    None,
}

impl SizeLimit {
    /// Returns the limit for a format; `None` if there is none.
    pub(crate) fn bytes(self, format: Format) -> Option<u64> {
        match self {
            Self::OfFormat => Some(format.size_limit()),
            Self::Bytes(bytes) => Some(bytes),
            Self::None => None,
        }
    }
}

impl Format {
    /// Returns the size that its readers can open. The reasons are in `docs/reference/exports.md`.
    pub fn size_limit(self) -> u64 {
        match self {
            // Pictures: browsers draw up to some hundred thousand elements.
            Self::Flamegraph | Self::Callgraph | Self::Dot | Self::MemoryCurve => 64 * MIB,
            // Browsers parse the first four as one string, which V8 limits to 512 MiB. Readers of the others keep all
            // in memory.
            Self::Chrome
            | Self::Speedscope
            | Self::Firefox
            | Self::Pytorch
            | Self::Pstats
            | Self::Pprof
            | Self::Folded
            | Self::Allocations => 512 * MIB,
            Self::Report => GIB,
            // Perfetto's page has 4 GiB of memory, and a trace is larger there than in its file.
            Self::Perfetto => 2 * GIB,
            // Readers process one line, or one group of rows, at a time.
            Self::Json => 4 * GIB,
            Self::Parquet => 16 * GIB,
        }
    }

    /// Returns formats with the same data in fewer bytes, as text; `None` if there are none.
    pub(crate) fn smaller(self) -> Option<&'static str> {
        match self {
            Self::Chrome | Self::Speedscope | Self::Firefox => Some("perfetto"),
            Self::Json | Self::Perfetto | Self::Pytorch | Self::Allocations => Some("parquet"),
            Self::Folded | Self::Flamegraph => Some("pprof"),
            _ => None,
        }
    }
}

/// The error for a text that is not a size. Its text describes valid ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a size like 4GB or 1.5GiB, or none")]
pub struct InvalidSize;

impl FromStr for SizeLimit {
    type Err = InvalidSize;

    /// Reads `none`, or what [`parse_bytes`] does.
    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        if text.trim().eq_ignore_ascii_case("none") {
            return Ok(Self::None);
        }
        match parse_bytes(text)? {
            0 => Err(InvalidSize),
            bytes => Ok(Self::Bytes(bytes)),
        }
    }
}

/// Reads `none`, which is 0, or a number of bytes with a unit: `KB`, `MB`, `GB` and `TB` are powers of 1000, `KiB` and so on of 1024.
pub fn parse_bytes(text: &str) -> Result<u64, InvalidSize> {
    let text = text.trim().to_ascii_lowercase();
    if text == "none" {
        return Ok(0);
    }
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let (letter, base) = match unit.strip_suffix("ib") {
        Some(letter) if !letter.is_empty() => (letter, 1024_f64),
        _ => (unit.strip_suffix('b').unwrap_or(unit), 1000.0),
    };
    let powers = ["", "k", "m", "g", "t"];
    let power = powers.iter().position(|known| *known == letter).and_then(|power| i32::try_from(power).ok());
    let number: f64 = digits.trim_end().parse().map_err(|_| InvalidSize)?;
    let bytes = number * base.powi(power.ok_or(InvalidSize)?);
    if !(0.0..9e18).contains(&bytes) {
        return Err(InvalidSize);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was checked")]
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_units_are_parsed() {
        let bytes = |text: &str| text.parse::<SizeLimit>().map_err(|error| error.to_string());
        for (text, expected) in [
            ("100", 100),
            ("1b", 1),
            ("4GB", 4_000_000_000),
            ("4g", 4_000_000_000),
            ("1.5 GiB", 3 << 29),
            ("512MiB", 512 << 20),
            (" 2 tb ", 2_000_000_000_000),
        ] {
            assert_eq!(bytes(text), Ok(SizeLimit::Bytes(expected)), "{text}");
        }
        assert_eq!(bytes("None"), Ok(SizeLimit::None));
        for text in ["", "GB", "0", "-1", "4 parsecs", "ib", "4XiB", "nan", "inf", "1e30"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
