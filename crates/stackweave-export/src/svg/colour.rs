//! Colours by the kind of a function: Python warm, native cool, spans green. Functions of one file have similar
//! colours, and a function has the same colour in every picture.

use core::fmt::{self, Write};

use stackweave_profile::FrameKind;

/// All kinds, with their names in legends.
pub(crate) const KINDS: [(FrameKind, &str); 5] = [
    (FrameKind::Python, "Python"),
    (FrameKind::Native, "native"),
    (FrameKind::Script, "other scripts"),
    (FrameKind::Extra, "generated from"),
    (FrameKind::Span, "spans"),
];

const HUES: u64 = 6;
const LIGHTS: u64 = 2;

/// Returns the first letter of a kind's CSS classes.
pub(crate) const fn kind_letter(kind: FrameKind) -> char {
    match kind {
        FrameKind::Python => 'p',
        FrameKind::Native => 'n',
        FrameKind::Script => 's',
        FrameKind::Extra => 'e',
        FrameKind::Span => 'l',
    }
}

/// Returns the range of a kind's hues, in degrees.
const fn hues(kind: FrameKind) -> (u64, u64) {
    match kind {
        FrameKind::Python => (8, 52),
        FrameKind::Native => (188, 238),
        FrameKind::Script => (258, 288),
        FrameKind::Extra => (305, 335),
        FrameKind::Span => (88, 150),
    }
}

/// Returns the CSS class of a function's colour.
pub(crate) fn shade(kind: FrameKind, name: &str, location: &str) -> String {
    let file = location.rsplit_once(':').map_or(location, |(file, _)| file);
    let hue = if file.is_empty() { hash(name) % HUES } else { hash(file) % HUES };
    format!("{}{}", kind_letter(kind), hue * LIGHTS + (hash(name) >> 8) % LIGHTS)
}

fn hash(text: &str) -> u64 {
    let mixed = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    mixed >> 20
}

/// Writes the CSS rules of all classes, for light and dark pages.
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
    fn every_function_has_a_stable_colour_with_a_rule() {
        let mut rules = String::new();
        write_shades(&mut rules).unwrap();
        for (kind, _) in KINDS {
            for (name, location) in [("f", "a.py:1"), ("g", "a.py:9"), ("h", ""), ("", "libc.so.6")] {
                let class = shade(kind, name, location);
                assert_eq!(rules.matches(&format!(".{class}{{")).count(), 2, "{class}");
            }
        }
        let hue = |name| shade(FrameKind::Python, name, "a.py:1")[1..].parse::<u64>().unwrap() / LIGHTS;
        assert_eq!(hue("f"), hue("other"), "functions of one file have one hue");
        assert_eq!(shade(FrameKind::Native, "malloc", "libc.so.6"), "n8");
    }
}
