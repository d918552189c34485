//! A reader of JSON lines that is independent of the writer: it resolves references to frames.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Returns the events of a file, each with `frames`, innermost first, instead of `stack`, and with `caller` as a frame.
pub fn read_json_lines(text: &str) -> Vec<Value> {
    let mut frames: HashMap<u64, Value> = HashMap::new();
    let mut stacks: HashMap<u64, (Option<u64>, u64)> = HashMap::new();
    let mut events = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut line: Map<String, Value> = serde_json::from_str(line).unwrap();
        let Some(definition) = line.remove("define") else {
            events.push(expanded(line, &frames, &stacks));
            continue;
        };
        let number = |line: &mut Map<String, Value>, key: &str| line.remove(key).unwrap().as_u64();
        match definition.as_str().unwrap() {
            "file" => assert_eq!((index, line["version"].as_u64()), (0, Some(2))),
            "frame" => {
                let id = number(&mut line, "frame").unwrap();
                assert!(frames.insert(id, line.into()).is_none(), "a frame is defined once");
            }
            "stack" => {
                let id = number(&mut line, "stack").unwrap();
                let (callers, frame) = (number(&mut line, "callers"), number(&mut line, "frame").unwrap());
                assert!(line.is_empty() && frames.contains_key(&frame), "a line refers only to earlier lines");
                assert!(callers.is_none_or(|callers| stacks.contains_key(&callers)));
                assert!(stacks.insert(id, (callers, frame)).is_none(), "a stack is defined once");
            }
            other => panic!("unknown definition {other}"),
        }
    }
    events
}

fn expanded(
    mut event: Map<String, Value>,
    frames: &HashMap<u64, Value>,
    stacks: &HashMap<u64, (Option<u64>, u64)>,
) -> Value {
    let mut stack = event.remove("stack").unwrap().as_u64();
    let mut path = Vec::new();
    while let Some(number) = stack {
        let (callers, frame) = stacks[&number];
        path.push(frames[&frame].clone());
        stack = callers;
    }
    event.insert("frames".to_owned(), path.into());
    if let Some(caller) = event.get_mut("caller") {
        *caller = frames[&caller.as_u64().unwrap()].clone();
    }
    event.into()
}
