//! Colours by what a function is code of: Python warm, native cool, labels green. Functions of one file look alike, and a
//! function looks the same in every picture.

use core::fmt::{self, Write};

use stackweave_profile::FrameKind;

/// Every kind, with the word that a legend has for it.
pub(crate) const KINDS: [(FrameKind, &str); 5] = [
    (FrameKind::Python, "Python"),
    (FrameKind::Native, "native"),
    (FrameKind::Script, "other scripts"),
    (FrameKind::Extra, "generated from"),
    (FrameKind::Label, "labels"),
];

const HUES: u64 = 6;
const LIGHTS: u64 = 2;

/// The first letter of a kind's classes.
pub(crate) const fn kind_letter(kind: FrameKind) -> char {
    match kind {
        FrameKind::Python => 'p',
        FrameKind::Native => 'n',
        FrameKind::Script => 's',
        FrameKind::Extra => 'e',
        FrameKind::Label => 'l',
    }
}

/// Where a kind's hues begin and end, in degrees.
const fn hues(kind: FrameKind) -> (u64, u64) {
    match kind {
        FrameKind::Python => (8, 52),
        FrameKind::Native => (188, 238),
        FrameKind::Script => (258, 288),
        FrameKind::Extra => (305, 335),
        FrameKind::Label => (88, 150),
    }
}

/// The class of a function's colour.
pub(crate) fn shade(kind: FrameKind, name: &str, place: &str) -> String {
    let file = place.rsplit_once(':').map_or(place, |(file, _)| file);
    let hue = if file.is_empty() { hash(name) % HUES } else { hash(file) % HUES };
    format!("{}{}", kind_letter(kind), hue * LIGHTS + (hash(name) >> 8) % LIGHTS)
}

fn hash(text: &str) -> u64 {
    let mixed = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    mixed >> 20
}

/// Writes the rules of all classes, for light and for dark pages.
pub(crate) fn write_shades(out: &mut String) -> fmt::Result {
    rules(out, 82, [70, 77])?;
    out.push_str("@media(prefers-color-scheme:dark){");
    rules(out, 48, [30, 36])?;
    out.push_str("}\n");
    Ok(())
}

fn rules(out: &mut String, saturation: u64, lights: [u64; 2]) -> fmt::Result {
    for (kind, _) in KINDS {
        let (first, last) = hues(kind);
        for shade in 0..HUES * LIGHTS {
            let hue = first + (last - first) * (shade / LIGHTS) / (HUES - 1);
            let light = lights[usize::from(shade % LIGHTS == 1)];
            write!(out, ".{}{shade}{{fill:hsl({hue},{saturation}%,{light}%)}}", kind_letter(kind))?;
        }
    }
    out.push('\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_stable_and_defined() {
        let mut rules = String::new();
        write_shades(&mut rules).unwrap();
        for (kind, _) in KINDS {
            for (name, place) in [("f", "a.py:1"), ("g", "a.py:9"), ("h", ""), ("", "libc.so.6")] {
                let class = shade(kind, name, place);
                assert_eq!(rules.matches(&format!(".{class}{{")).count(), 2, "{class}");
            }
        }
        let hue = |name| shade(FrameKind::Python, name, "a.py:1")[1..].parse::<u64>().unwrap() / LIGHTS;
        assert_eq!(hue("f"), hue("other"), "one file, one hue");
        assert_eq!(shade(FrameKind::Native, "malloc", "libc.so.6"), "n8");
    }
}
