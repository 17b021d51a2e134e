//! Canonical records: one JSON object, keys in a fixed order, no white space.
//!
//! Writing is a list of fields in their order. Reading parses with serde_json, takes
//! the fields, writes them again and compares: whatever differs by a byte is refused,
//! so that one content has one form.

use crate::value::Value;
use std::fmt::{self, Write};

/// Why bytes are no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// They are not one JSON object.
    NotAnObject,
    /// A field is missing, or has a value that it cannot have.
    Field(&'static str),
    /// The content is right, but the bytes are not the canonical ones.
    NotCanonical,
    /// There are more bytes than a record may have.
    TooLong {
        /// How many it may have.
        bytes_max: usize,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::NotAnObject => f.write_str("it is not a JSON object"),
            RecordError::Field(key) => write!(f, "its field {key} is missing or wrong"),
            RecordError::NotCanonical => f.write_str("it is not in canonical form"),
            RecordError::TooLong { bytes_max } => write!(f, "it is longer than {bytes_max} bytes"),
        }
    }
}

impl std::error::Error for RecordError {}

/// A record that is being written, field by field.
pub(crate) struct Writer(String);

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer(String::from("{"))
    }

    fn field(&mut self, key: &str, value: impl fmt::Display) {
        let comma = if self.0.len() > 1 { "," } else { "" };
        // Writing into a string cannot fail.
        let _ = write!(self.0, "{comma}\"{key}\":{value}");
    }

    pub(crate) fn number(&mut self, key: &str, value: impl Into<u64>) {
        self.field(key, value.into());
    }

    pub(crate) fn truth(&mut self, key: &str, value: bool) {
        self.field(key, value);
    }

    /// A text from one of weir's grammars: ids and names, nothing that JSON escapes.
    pub(crate) fn plain(&mut self, key: &str, value: &str) {
        debug_assert!(
            value.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
        );
        self.field(key, format_args!("\"{value}\""));
    }

    pub(crate) fn number_or_null(&mut self, key: &str, value: Option<u64>) {
        match value {
            Some(value) => self.number(key, value),
            None => self.field(key, "null"),
        }
    }

    pub(crate) fn plain_or_null(&mut self, key: &str, value: Option<&str>) {
        match value {
            Some(value) => self.plain(key, value),
            None => self.field(key, "null"),
        }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.push('}');
        self.0.into_bytes()
    }
}

/// A parsed record whose fields are being taken.
pub(crate) struct Fields(Vec<(String, Value)>);

impl Fields {
    pub(crate) fn parse(bytes: &[u8], bytes_max: usize) -> Result<Fields, RecordError> {
        if bytes.len() > bytes_max {
            return Err(RecordError::TooLong { bytes_max });
        }
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(fields)) => Ok(Fields(fields)),
            _ => Err(RecordError::NotAnObject),
        }
    }

    fn take<T>(
        &self,
        key: &'static str,
        get: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, RecordError> {
        let named = self.0.iter().rev().find(|(name, _)| name == key);
        named.and_then(|(_, value)| get(value)).ok_or(RecordError::Field(key))
    }

    pub(crate) fn number(&self, key: &'static str) -> Result<u64, RecordError> {
        self.take(key, Value::as_u64)
    }

    pub(crate) fn truth(&self, key: &'static str) -> Result<bool, RecordError> {
        self.take(key, Value::as_bool)
    }

    /// A text that `read` understands.
    pub(crate) fn text<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, RecordError> {
        self.take(key, |value| value.as_str().and_then(read))
    }

    /// A value that `read` understands, or null.
    pub(crate) fn or_null<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, RecordError> {
        self.take(key, |value| match value {
            Value::Null => Some(None),
            value => read(value).map(Some),
        })
    }
}

/// Accepts what was read only when it is written in the very same bytes.
pub(crate) fn if_canonical<T>(record: T, again: &[u8], bytes: &[u8]) -> Result<T, RecordError> {
    match again == bytes {
        true => Ok(record),
        false => Err(RecordError::NotCanonical),
    }
}
