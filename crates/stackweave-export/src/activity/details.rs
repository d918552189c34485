//! The details of an event, as JSON: the fields that its role does not define.

use std::sync::Arc;

use serde_json::{Map, Value};

/// The text of a JSON object. Most events have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Details(Option<Arc<str>>);

impl Details {
    /// Joins the values of fields and the details that the program gave. These are usually an object. Another JSON
    /// value, or text that is not JSON, becomes the member `details`.
    pub(crate) fn new(fields: Map<String, Value>, given: Option<&[u8]>) -> Self {
        let given = given.filter(|given| !given.is_empty());
        match given.map(|given| (given, serde_json::from_slice::<Value>(given))) {
            None => Self::of(fields),
            Some((_, Ok(Value::Object(object)))) => Self::of(fields.into_iter().chain(object).collect()),
            Some((_, Ok(value))) => Self::with(fields, value),
            Some((given, Err(_))) => Self::with(fields, String::from_utf8_lossy(given).into()),
        }
    }

    fn with(mut fields: Map<String, Value>, value: Value) -> Self {
        fields.insert("details".to_owned(), value);
        Self::of(fields)
    }

    fn of(fields: Map<String, Value>) -> Self {
        Self((!fields.is_empty()).then(|| Value::Object(fields).to_string().into()))
    }

    /// Returns the members of both. A member that both have has the value of `other`.
    pub(crate) fn and(&self, other: &Self) -> Self {
        if self.0.is_none() || other.0.is_none() {
            return if self.0.is_some() { self.clone() } else { other.clone() };
        }
        Self::of(self.object().into_iter().chain(other.object()).collect())
    }

    /// Returns these details with another member.
    pub(crate) fn with_text(&self, key: &str, text: &str) -> Self {
        self.and(&Self::of(Map::from_iter([(key.to_owned(), text.into())])))
    }

    /// Returns the text of the object, with its braces.
    pub(crate) fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Returns the object.
    pub(crate) fn object(&self) -> Map<String, Value> {
        self.0.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_given_details_become_an_object() {
        let of = |given: &[u8]| Details::new(Map::new(), Some(given)).as_str().map(str::to_owned);
        assert_eq!(of(b" {\"a\": [1,\n2], \"a\": 3.5}\n").as_deref(), Some(r#"{"a":3.5}"#));
        assert_eq!(of(b"[1]").as_deref(), Some(r#"{"details":[1]}"#));
        assert_eq!(of(b"{\"a\": NaN}").as_deref(), Some(r#"{"details":"{\"a\": NaN}"}"#));
        assert_eq!(of(b"\xff\"").as_deref(), Some("{\"details\":\"\u{fffd}\\\"\"}"));
        assert_eq!((of(b""), of(b"{}")), (None, None));
    }

    #[test]
    fn later_details_are_added() {
        let given = |text: &str| Details::new(Map::new(), Some(text.as_bytes()));
        let both = given(r#"{"a":1,"b":2}"#).and(&given(r#"{"b":3}"#));
        assert_eq!(both.as_str(), Some(r#"{"a":1,"b":3}"#));
        assert_eq!(given("").and(&given("")).as_str(), None);
        assert_eq!(given("").with_text("task", "x\"").as_str(), Some(r#"{"task":"x\""}"#));
        assert_eq!(both.and(&given("")), both);
    }

    #[test]
    fn fields_come_first() {
        let fields = || Map::from_iter([("size".to_owned(), Value::from(3))]);
        assert_eq!(Details::new(fields(), None).as_str(), Some(r#"{"size":3}"#));
        assert_eq!(Details::new(fields(), Some(b"{\"x\":1}")).as_str(), Some(r#"{"size":3,"x":1}"#));
    }
}
