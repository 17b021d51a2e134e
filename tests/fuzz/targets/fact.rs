//! Facts: what is read is a fact to the byte, and every fact is read.
#![no_main]

mod input;
mod oracles;

use libfuzzer_sys::fuzz_target;
use oracles::record_oracle::is_fact;
use weir_common::Fact;

const FACTS: [&str; 3] = [
    "{\"schemaVersion\":2,\"runId\":\"r\",\"attemptId\":\"a\",\
     \"logArtifactId\":\"local-dda1f107bf886c0711a682f236ea72\",\"maximumBytes\":65536,\
     \"quotaReached\":false,\"observedAtMs\":1,\"startBytes\":2,\"keptBytes\":65534,\"droppedBytes\":0}",
    "{\"schemaVersion\":2,\"runId\":\"A.b_c:d-9\",\"attemptId\":\"0\",\
     \"logArtifactId\":\"wlog-0123456789abcdef0123456789abcd\",\"maximumBytes\":1073741824,\
     \"quotaReached\":true,\"observedAtMs\":18446744073709551615,\"startBytes\":0,\
     \"keptBytes\":1073741824,\"droppedBytes\":18446744073709551615}",
    "{\"schemaVersion\":1,\"runId\":\"r\",\"attemptId\":\"a\",\
     \"logArtifactId\":\"local-dda1f107bf886c0711a682f236ea72\",\"maximumBytes\":65536,\
     \"quotaReached\":true,\"observedAtMs\":1}",
];

fuzz_target!(|data: &[u8]| {
    let bytes = input::spoiled(data, &FACTS);
    let read = Fact::decode(&bytes);
    assert_eq!(read.is_ok(), is_fact(&bytes), "{read:?}");
    assert!(read.is_err() || read.map(|fact| fact.encode()) == Ok(bytes));
});
