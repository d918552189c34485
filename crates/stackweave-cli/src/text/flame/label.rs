//! The label of a box: as much of the name as fits, and the share.

use crate::text::style::width;

/// Returns the label for a number of columns.
pub(crate) fn label(name: &str, share: &str, room: usize) -> String {
    let plain = without_parameters(name);
    let fits = |text: &str| width(text) <= room;
    for text in [name, plain.as_str(), last_part(&plain)] {
        let whole = format!("{text} {share}");
        if fits(&whole) {
            return whole;
        }
    }
    if let Some(text) = [name, plain.as_str(), last_part(&plain)].into_iter().find(|text| fits(text)) {
        return text.to_owned();
    }
    let short = last_part(&plain);
    match room {
        0 | 1 => String::new(),
        2 => short.chars().take(2).collect(),
        _ => short.chars().take(room - 1).chain(['…']).collect(),
    }
}

/// Removes parameters and template arguments from a C++ or Rust name; `<module>` and `operator<` stay.
fn without_parameters(name: &str) -> String {
    if name.starts_with('<') || name.contains("operator") || !name.contains("::") && !name.contains('(') {
        return name.to_owned();
    }
    let mut depth = 0_usize;
    let mut kept = String::new();
    for letter in name.chars() {
        match letter {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(letter),
            _ => {}
        }
    }
    let kept = kept.trim_end_matches("::").trim();
    if kept.is_empty() { name.to_owned() } else { kept.to_owned() }
}

/// Returns the last component of a qualified name.
fn last_part(name: &str) -> &str {
    let last = name.rsplit("::").next().unwrap_or(name);
    match last.rsplit_once('.') {
        Some((_, method)) if !method.is_empty() => method,
        _ => last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_dropped_before_classes_and_modules_of_a_name() {
        let at = |columns| label("Trainer.step", "45.0%", columns);
        assert_eq!(at(18), "Trainer.step 45.0%");
        assert_eq!(at(17), "step 45.0%");
        assert_eq!(at(10), "step 45.0%");
        assert_eq!(at(9), "step");
        assert_eq!([at(4), at(3), at(2), at(1), at(0)], ["step", "st…", "st", "", ""]);
    }

    #[test]
    fn native_names_lose_parameters_first() {
        let name = "at::native::add<float>(at::Tensor const&, long)";
        assert_eq!(label(name, "5.0%", 60), format!("{name} 5.0%"));
        assert_eq!(label(name, "5.0%", 30), "at::native::add 5.0%");
        assert_eq!(label(name, "5.0%", 11), "add 5.0%");
        assert_eq!(label("<module>", "99.0%", 8), "<module>");
        assert_eq!(label("f.<locals>.<lambda>", "1.0%", 13), "<lambda> 1.0%");
        assert_eq!(label("std::operator<<(int)", "1.0%", 11), "operator<<…");
    }
}
