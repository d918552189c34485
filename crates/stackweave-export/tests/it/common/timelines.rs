//! Reads the timeline of a report like the page does.

use serde_json::Value;

use super::report::{Columns, Page};

/// A span with its details.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimelineSpan {
    pub began: u64,
    pub depth: u64,
    pub duration: u64,
    pub name: String,
    pub flags: u64,
    pub details: Option<String>,
}

/// A segment: spans that are too short to be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub began: u64,
    pub extent: u64,
    pub depth: u64,
    pub name: Option<String>,
    pub calls: u64,
    pub busy: u64,
}

/// The timeline of a thread. The levels are those of the timeline.
pub struct Track {
    pub thread: u64,
    pub began: u64,
    pub ended: u64,
    pub depth: u64,
    pub spans: u64,
    /// The minimum duration of each level.
    pub min_durations: Vec<u64>,
    pub levels: Vec<Vec<TimelineSpan>>,
    pub dense: Vec<Vec<Segment>>,
    pub instants: Vec<(u64, String)>,
}

/// Names of frames.
struct Names(Vec<String>);

impl Names {
    fn of(page: &Page) -> Self {
        let functions = page.functions();
        let frames = page.columns(&page.head["frames"]).plain();
        Self(frames.into_iter().map(|function| functions[index(function)].clone()).collect())
    }

    fn get(&self, frame: u64) -> String {
        self.0[index(frame)].clone()
    }
}

/// Returns all tracks, in the order of the report.
pub fn tracks(page: &Page) -> Vec<Track> {
    let names = Names::of(page);
    let timeline = &page.head["timeline"];
    let min_durations: Vec<u64> = array(&timeline["levels"]).iter().map(number).collect();
    let track = |track: &Value| {
        let levels =
            array(&track["levels"]).iter().map(|tiles| all(page, tiles, |tile, from| spans(tile, from, &names)));
        let dense =
            array(&track["dense"]).iter().map(|tiles| all(page, tiles, |tile, from| segments(tile, from, &names)));
        let found = Track {
            thread: number(&track["thread"]),
            began: number(&track["beganNs"]),
            ended: number(&track["endedNs"]),
            depth: number(&track["depth"]),
            spans: number(&track["spans"]),
            min_durations: min_durations.clone(),
            levels: levels.map(|of| of.into_iter().map(|(_, of)| of).collect()).collect(),
            dense: dense.map(|of| of.into_iter().map(|(_, of)| of).collect()).collect(),
            instants: instants(page, &track["instants"], &names),
        };
        assert_eq!((found.levels.len(), found.dense.len()), (min_durations.len(), min_durations.len()));
        found
    };
    array(&timeline["tracks"]).iter().map(track).collect()
}

/// A row of a tile, with its start and end.
type Row<T> = ((u64, u64), T);

/// Returns the rows of all tiles of a level. Asserts that the directory describes each tile correctly.
fn all<T>(page: &Page, tiles: &Value, read: impl Fn(&mut Columns<'_>, u64) -> Vec<Row<T>>) -> Vec<Row<T>> {
    let mut found = Vec::new();
    let mut last_from = 0;
    for tile in array(tiles).chunks(4) {
        let [block, from, to, count] = tile else { panic!("{tile:?}") };
        let rows = read(&mut page.columns(block), number(from));
        assert_eq!(rows.len() as u64, number(count));
        assert!(rows.is_sorted_by_key(|((began, _), _)| *began) && number(from) >= last_from);
        last_from = number(from);
        assert_eq!(rows[0].0.0, number(from));
        assert_eq!(rows.iter().map(|((_, ended), _)| *ended).max(), Some(number(to)));
        found.extend(rows);
    }
    found
}

fn spans(tile: &mut Columns<'_>, from: u64, names: &Names) -> Vec<Row<TimelineSpan>> {
    let began = tile.differences(from);
    let [duration, depth, frame, flags, detail] = [(); 5].map(|()| tile.plain());
    let details: Vec<Value> = serde_json::from_str(&tile.text()).unwrap();
    assert!(tile.is_at_end());
    let row = |row: usize| {
        let details = detail[row].checked_sub(1).map(|number| details[index(number)].to_string());
        let (began, duration, name) = (began[row], duration[row], names.get(frame[row]));
        let shown = TimelineSpan { began, depth: depth[row], duration, name, flags: flags[row], details };
        ((began, began + duration), shown)
    };
    (0..began.len()).map(row).collect()
}

fn segments(tile: &mut Columns<'_>, from: u64, names: &Names) -> Vec<Row<Segment>> {
    let began = tile.differences(from);
    let [extent, depth, frame, calls, busy] = [(); 5].map(|()| tile.plain());
    assert!(tile.is_at_end());
    let row = |row: usize| {
        let name = frame[row].checked_sub(1).map(|frame| names.get(frame));
        let (began, extent) = (began[row], extent[row]);
        let segment = Segment { began, extent, depth: depth[row], name, calls: calls[row], busy: busy[row] };
        ((began, began + extent), segment)
    };
    (0..began.len()).map(row).collect()
}

fn instants(page: &Page, block: &Value, names: &Names) -> Vec<(u64, String)> {
    if block.is_null() {
        return Vec::new();
    }
    let mut columns = page.columns(block);
    let (times, frames) = (columns.differences(0), columns.plain());
    times.into_iter().zip(frames.into_iter().map(|frame| names.get(frame))).collect()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}
