//! The attributes of events, as debug annotations.

use serde_json::{Map, Value};

use crate::formats::perfetto::fields::{annotation, event, interned};
use crate::formats::perfetto::interned::Interned;
use crate::protobuf::Message;

/// Longer names are not interned.
const MAX_INTERNED: usize = 64;

/// Adds the members of an object to an event.
pub(super) fn annotate(message: &mut Message, attributes: &Map<String, Value>, interned: &mut Interned) {
    for (name, value) in attributes {
        let iid = (name.len() <= MAX_INTERNED).then(|| interned.text(interned::ANNOTATION_NAMES, name.as_bytes()));
        message.message(event::DEBUG_ANNOTATIONS, |message| {
            match iid {
                Some(iid) => message.unsigned(annotation::NAME_IID, iid),
                None => message.text(annotation::NAME, name),
            }
            write_value(message, value);
        });
    }
}

/// Adds a text that is interned.
pub(super) fn annotate_interned(message: &mut Message, name: &str, text: u64, interned: &mut Interned) {
    let iid = interned.text(interned::ANNOTATION_NAMES, name.as_bytes());
    message.message(event::DEBUG_ANNOTATIONS, |message| {
        message.unsigned(annotation::NAME_IID, iid);
        message.unsigned(annotation::TEXT_IID, text);
    });
}

/// Writes a value. Members of nested objects have their names inline.
fn write_value(message: &mut Message, value: &Value) {
    match value {
        Value::Null => message.text(annotation::TEXT, "null"),
        Value::Bool(value) => message.unsigned(annotation::BOOL, u64::from(*value)),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(signed), _) => message.signed(annotation::SIGNED, signed),
            (None, Some(unsigned)) => message.unsigned(annotation::UNSIGNED, unsigned),
            (None, None) => message.double(annotation::DOUBLE, number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => message.text(annotation::TEXT, text),
        Value::Array(values) => {
            for value in values {
                message.message(annotation::VALUES, |inner| write_value(inner, value));
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                message.message(annotation::ENTRIES, |inner| {
                    inner.text(annotation::NAME, name);
                    write_value(inner, value);
                });
            }
        }
    }
}
