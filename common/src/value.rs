//! A JSON value, as far as records need one.
//!
//! serde_json's own has a sorted map and writes fractions, and is four times as much code.

use serde_core::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// What JSON text says.
#[derive(Debug)]
pub(crate) enum Value {
    Null,
    Truth(bool),
    Number(u64),
    Text(String),
    /// Fields in their order; of those with one name the last counts.
    Object(Vec<(String, Value)>),
    /// What no record has: an array, or a number that is not whole, negative or too large.
    Other,
}

impl Value {
    pub(crate) fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Truth(truth) => Some(*truth),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

/// Takes whatever there is: what is refused is described, and that takes code too.
struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Truth(truth))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Value, A::Error> {
        while array.next_element::<Value>()?.is_some() {}
        Ok(Value::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = object.next_entry()? {
            fields.push(field);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<String> {
        serde_json::from_str::<Value>(text).ok().map(|value| format!("{value:?}"))
    }

    #[test]
    fn whatever_is_json_is_a_value() {
        for (text, expected) in [
            ("null", "Null"),
            ("true", "Truth(true)"),
            ("18446744073709551615", "Number(18446744073709551615)"),
            ("18446744073709551616", "Other"),
            ("-1", "Other"),
            ("-0", "Other"),
            ("1.0", "Other"),
            ("1e2", "Other"),
            ("[1,[2],{}]", "Other"),
            ("\"\\u0061\"", "Text(\"a\")"),
            ("{\"a\":1,\"a\":{}}", "Object([(\"a\", Number(1)), (\"a\", Object([]))])"),
        ] {
            assert_eq!(told(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_no_value() {
        for text in ["", "nul", "01", "1 2", "[1,]", "{\"a\"}", "{1:2}", "{\"a\":1,}", "'a'"] {
            assert_eq!(told(text), None, "{text}");
        }
    }
}
