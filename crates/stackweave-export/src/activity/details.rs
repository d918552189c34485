//! What an event says beside what every event of its role does, as JSON.

use std::sync::Arc;

use serde_json::{Map, Value};

/// The text of a JSON object; nothing for most events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Details(Option<Arc<str>>);

impl Details {
    /// Of the values of fields that nothing else shows, and of what the caller had to say. That is an object; any other
    /// value is put into one. What is no JSON at all is kept as text.
    pub(crate) fn new(fields: Map<String, Value>, said: Option<&[u8]>) -> Self {
        let said = said.filter(|said| !said.is_empty());
        match said.map(|said| (said, serde_json::from_slice::<Value>(said))) {
            None => Self::of(fields),
            Some((_, Ok(Value::Object(object)))) => Self::of(fields.into_iter().chain(object).collect()),
            Some((_, Ok(value))) => Self::with(fields, value),
            Some((said, Err(_))) => Self::with(fields, String::from_utf8_lossy(said).into()),
        }
    }

    fn with(mut fields: Map<String, Value>, value: Value) -> Self {
        fields.insert("details".to_owned(), value);
        Self::of(fields)
    }

    fn of(fields: Map<String, Value>) -> Self {
        Self((!fields.is_empty()).then(|| Value::Object(fields).to_string().into()))
    }

    /// What both say; where they say the same, what the other says.
    pub(crate) fn and(&self, other: &Self) -> Self {
        if self.0.is_none() || other.0.is_none() {
            return if self.0.is_some() { self.clone() } else { other.clone() };
        }
        Self::of(self.object().into_iter().chain(other.object()).collect())
    }

    /// The same, and this.
    pub(crate) fn with_text(&self, key: &str, text: &str) -> Self {
        self.and(&Self::of(Map::from_iter([(key.to_owned(), text.into())])))
    }

    /// The object, with its braces.
    pub(crate) fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The object, to look into.
    pub(crate) fn object(&self) -> Map<String, Value> {
        self.0.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_caller_says_becomes_an_object() {
        let of = |said: &[u8]| Details::new(Map::new(), Some(said)).as_str().map(str::to_owned);
        assert_eq!(of(b" {\"a\": [1,\n2], \"a\": 3.5}\n").as_deref(), Some(r#"{"a":3.5}"#));
        assert_eq!(of(b"[1]").as_deref(), Some(r#"{"details":[1]}"#));
        assert_eq!(of(b"{\"a\": NaN}").as_deref(), Some(r#"{"details":"{\"a\": NaN}"}"#));
        assert_eq!(of(b"\xff\"").as_deref(), Some("{\"details\":\"\u{fffd}\\\"\"}"));
        assert_eq!((of(b""), of(b"{}")), (None, None));
    }

    #[test]
    fn what_is_said_later_is_added() {
        let said = |text: &str| Details::new(Map::new(), Some(text.as_bytes()));
        let both = said(r#"{"a":1,"b":2}"#).and(&said(r#"{"b":3}"#));
        assert_eq!(both.as_str(), Some(r#"{"a":1,"b":3}"#));
        assert_eq!(said("").and(&said("")).as_str(), None);
        assert_eq!(said("").with_text("task", "x\"").as_str(), Some(r#"{"task":"x\""}"#));
        assert_eq!(both.and(&said("")), both);
    }

    #[test]
    fn fields_come_first() {
        let fields = || Map::from_iter([("size".to_owned(), Value::from(3))]);
        assert_eq!(Details::new(fields(), None).as_str(), Some(r#"{"size":3}"#));
        assert_eq!(Details::new(fields(), Some(b"{\"x\":1}")).as_str(), Some(r#"{"size":3,"x":1}"#));
    }
}
