//! The attributes of phases: JSON objects at their start and at their end.

use serde_json::{Map, Value};

/// Merges the attributes of a start and an end; the end takes precedence.
pub(super) fn merged(begin: &[u8], end: &[u8]) -> Map<String, Value> {
    let mut attributes = of(begin);
    attributes.extend(of(end));
    attributes
}

/// Returns the fields of a JSON object. Any other text becomes the field `details`.
fn of(text: &[u8]) -> Map<String, Value> {
    if text.is_empty() {
        return Map::new();
    }
    match serde_json::from_slice(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(value) => Map::from_iter([("details".to_owned(), value)]),
        Err(_) => Map::from_iter([("details".to_owned(), String::from_utf8_lossy(text).into())]),
    }
}

/// Returns the bytecode count and the inline depth, if the attributes contain them.
pub(super) fn code_facts(details: &[u8]) -> (Option<u64>, Option<u64>) {
    let is_there = |name: &str| details.windows(name.len()).any(|part| part == name.as_bytes());
    if !is_there(BYTECODE_COUNT) && !is_there(INLINE_DEPTH) {
        return (None, None);
    }
    let fields = of(details);
    let number = |name: &str| fields.get(name).and_then(Value::as_u64);
    (number(BYTECODE_COUNT), number(INLINE_DEPTH))
}

const BYTECODE_COUNT: &str = "bytecode_count";
const INLINE_DEPTH: &str = "inline_depth";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_takes_precedence_and_nothing_is_lost() {
        let both = merged(br#"{"id": 1, "state": "new"}"#, br#"{"state": "done"}"#);
        assert_eq!(Value::Object(both), serde_json::json!({"id": 1, "state": "done"}));
        assert!(merged(b"", b"").is_empty());
        assert_eq!(Value::Object(merged(b"[1]", b"")), serde_json::json!({"details": [1]}));
        assert_eq!(Value::Object(merged(b"", b"{\xff")), serde_json::json!({"details": "{\u{fffd}"}));
    }

    #[test]
    fn code_facts_are_found_among_other_attributes() {
        assert_eq!(code_facts(br#"{"bytecode_count": 12, "x": 1}"#), (Some(12), None));
        assert_eq!(code_facts(br#"{"inline_depth": 0, "bytecode_count": "many"}"#), (None, Some(0)));
        assert_eq!(code_facts(br#"{"x": "no count"}"#), (None, None));
    }
}
