//! The oracles that the property tests have too.

#[path = "../../../common/src/properties/oracle.rs"]
pub(crate) mod oracle;
#[path = "../../../common/src/properties/record_oracle.rs"]
pub(crate) mod record_oracle;
