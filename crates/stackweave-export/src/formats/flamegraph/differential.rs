//! A flame graph of two profiles: box widths are the costs after a change; boxes are red if the cost grew and blue if
//! it shrank. Functions that are gone have no width and are listed.

use std::io::Write;

use stackweave_profile::{Diff, DiffNode, Hidden, NodeId, ValueChange};

use super::draw::write_flames;
use super::merged::{BoxBuilder, names, order, root_label};
use super::{BoxLabel, Flames, Legend, PictureBox};
use crate::error::ExportError;
use crate::svg::{FunctionLabel, cost, percentage, plural, share};

/// The number of vanished functions that are listed.
const LISTED: usize = 12;

/// The number of shades of red and of blue.
pub(super) const LEVELS: u32 = 5;

pub(super) fn write(diff: &Diff, title: &str, out: &mut dyn Write) -> Result<(), ExportError> {
    let nodes = diff.nodes();
    let names = names(diff.functions());
    let walk = BoxBuilder {
        children: &diff.children(),
        order: &order(&names),
        frame: &|id| nodes[id.index()].frame,
        width: &|id| after(&nodes[id.index()]),
    };
    let (boxes, not_drawn) = walk.boxes(nodes.len());
    let is_gone = |node: &&DiffNode| after(node) == 0;
    let gone = nodes.iter().skip(1).filter(is_gone).count() as u64;
    let greatest = nodes.iter().skip(1).map(|node| difference(node).unsigned_abs()).max().unwrap_or(0);
    let mut notes = gone_notes(diff, &names);
    notes.extend(Hidden::caption_of_both(diff.hidden(), diff.measure()));
    let flames = Flames {
        title: format!("What changed: flame graph of {title}"),
        subtitle: totals(diff),
        legend: legend(),
        notes,
        boxes,
        narrow: not_drawn.saturating_sub(gone),
    };
    let label = |of: &PictureBox| {
        let node = &nodes[of.item as usize];
        if of.item == 0 {
            return root_label(costs(diff, node));
        }
        let class = class(difference(node), greatest);
        BoxLabel { function: names[node.frame.index()].clone(), costs: costs(diff, node), class }
    };
    write_flames(&flames, &label, out)
}

fn after(node: &DiffNode) -> i64 {
    node.after.map_or(0, |cost| cost.total)
}

fn before(node: &DiffNode) -> i64 {
    node.before.map_or(0, |cost| cost.total)
}

fn difference(node: &DiffNode) -> i64 {
    after(node).saturating_sub(before(node))
}

/// Returns the class of a colour: red for more, blue for less, stronger for a greater difference.
fn class(difference: i64, greatest: u64) -> String {
    let greatest = i64::try_from(greatest).unwrap_or(i64::MAX);
    let level = (share(difference, greatest).abs().sqrt() * f64::from(LEVELS)).ceil();
    let level = (1..=LEVELS).find(|step| f64::from(*step) >= level).unwrap_or(LEVELS);
    match difference {
        0 => "same".to_owned(),
        1.. => format!("more{level}"),
        _ => format!("less{level}"),
    }
}

fn costs(diff: &Diff, node: &DiffNode) -> String {
    let measure = diff.measure();
    let [was, is] = [before(node), after(node)].map(|part| cost(measure, part));
    if node.before.is_none() {
        return format!("{is}, new");
    }
    format!("{was} before, {is} after ({})", change(diff.change(Some(before(node)), Some(after(node)))))
}

fn change(of: ValueChange) -> String {
    match of.ratio() {
        Some(ratio) => format!("{}{}", if ratio >= 1.0 { "+" } else { "" }, percentage(ratio - 1.0)),
        None => "new".to_owned(),
    }
}

fn totals(diff: &Diff) -> String {
    let (measure, total) = (diff.measure(), diff.total());
    let [was, is] = [total.before, total.after].map(|part| measure.text(part));
    format!("{}: {was} before, {is} after ({})", measure.describe(), change(total))
}

fn legend() -> Vec<Legend> {
    let entry = |class: String, text: &str| Legend { class, text: text.to_owned() };
    vec![
        entry(format!("more{LEVELS}"), "more than before"),
        entry(format!("less{LEVELS}"), "less than before"),
        entry("same".to_owned(), "the same"),
    ]
}

/// Lists paths that are gone, those with the highest cost first: each with the part of it that still exists.
fn gone_notes(diff: &Diff, names: &[FunctionLabel]) -> Vec<String> {
    let nodes = diff.nodes();
    let is_end = |node: &&DiffNode| {
        let above = &nodes[node.parent.index()];
        after(node) == 0 && before(node) > 0 && (after(above) > 0 || node.parent == NodeId::ROOT)
    };
    let mut gone: Vec<&DiffNode> = nodes.iter().skip(1).filter(is_end).collect();
    if gone.is_empty() {
        return Vec::new();
    }
    gone.sort_by_key(|node| core::cmp::Reverse(before(node)));
    let sum = gone.iter().fold(0_i64, |sum, node| sum.saturating_add(before(node)));
    let count = plural(gone.len() as u64, "path");
    let mut lines = vec![format!("Gone: {} in {count}", cost(diff.measure(), sum))];
    lines.extend(gone.iter().take(LISTED).map(|node| {
        let above = nodes[node.parent.index()];
        let under = if node.parent == NodeId::ROOT { "all" } else { &names[above.frame.index()].name };
        format!("  {} {} in {under}", cost(diff.measure(), before(node)), names[node.frame.index()].full())
    }));
    if gone.len() > LISTED {
        lines.push(format!("  and {} more", gone.len() - LISTED));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_show_direction_and_size() {
        let classes = [0, 1, 25, 100, -4, -100].map(|difference| class(difference, 100));
        assert_eq!(classes, ["same", "more1", "more3", "more5", "less1", "less5"]);
        assert_eq!(change(ValueChange { before: 4.0, after: 5.0 }), "+25.0%");
        assert_eq!(change(ValueChange { before: 4.0, after: 1.0 }), "-75.0%");
    }
}
