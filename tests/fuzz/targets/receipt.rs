//! Receipts: what is read is one to the byte, and every one is read. Those of version 1,
//! which are only written, say what they were given.
#![no_main]

mod input;
mod oracles;

use libfuzzer_sys::fuzz_target;
use oracles::record_oracle::is_receipt;
use weir_common::{CallbackToken, Errno, RECEIPT_V1_BYTES_MAX, Receipt, ReceiptV1};

const RECEIPTS: [&str; 4] = [
    "{\"schemaVersion\":2,\"runId\":\"r\",\"attemptId\":\"a\",\
     \"logArtifactId\":\"local-dda1f107bf886c0711a682f236ea72\",\"startedAtMs\":10,\
     \"finishedAtMs\":10,\"exitCode\":null,\"signal\":64,\"coreDumped\":true,\
     \"startError\":null,\"capture\":\"failed\",\"startBytes\":1,\"keptBytes\":2,\
     \"droppedBytes\":3,\"captureError\":\"ENOSPC\",\"userMs\":4,\"systemMs\":5,\
     \"maxRssBytes\":6}",
    "{\"schemaVersion\":2,\"runId\":\"r1\",\"attemptId\":\"A.b_c:d-9\",\
     \"logArtifactId\":\"wlog-0123456789abcdef0123456789abcd\",\"startedAtMs\":0,\
     \"finishedAtMs\":18446744073709551615,\"exitCode\":255,\"signal\":null,\
     \"coreDumped\":false,\"startError\":null,\"capture\":\"truncated\",\"startBytes\":0,\
     \"keptBytes\":65536,\"droppedBytes\":1,\"captureError\":null,\"userMs\":0,\
     \"systemMs\":0,\"maxRssBytes\":0}",
    "{\"schemaVersion\":2,\"runId\":\"r\",\"attemptId\":\"a\",\
     \"logArtifactId\":\"local-dda1f107bf886c0711a682f236ea72\",\"startedAtMs\":1,\
     \"finishedAtMs\":1,\"exitCode\":null,\"signal\":null,\"coreDumped\":false,\
     \"startError\":\"ENOENT\",\"capture\":\"complete\",\"startBytes\":0,\"keptBytes\":0,\
     \"droppedBytes\":0,\"captureError\":null,\"userMs\":0,\"systemMs\":0,\"maxRssBytes\":0}",
    // Of version 1, which is no record to read.
    "{\"schemaVersion\":1,\"runId\":\"r\",\"attemptId\":\"a\",\"callbackSequence\":7,\
     \"token\":\"0123456789abcdef0123456789abcdef\",\"startedAtMs\":1,\"finishedAtMs\":2,\
     \"exitCode\":255}",
];

fuzz_target!(|data: &[u8]| {
    let bytes = input::spoiled(data, &RECEIPTS);
    let read = Receipt::decode(&bytes);
    let expected = is_receipt(&bytes, |name| Errno::from_name(name).is_some());
    assert_eq!(read.is_ok(), expected, "{read:?}");
    assert!(read.is_err() || read.map(|receipt| receipt.encode()) == Ok(bytes));
    write_version_1(data);
});

fn write_version_1(data: &[u8]) {
    let Some((numbers, text)) = data.split_first_chunk::<25>() else { return };
    let number =
        |at: usize| numbers[at..at + 8].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let token = input::spoiled_text(text, &["0123456789abcdef0123456789abcdef"]);
    let id = token.get(..16).unwrap_or(&token).to_owned();
    let (Ok(run_id), Ok(attempt_id), Ok(secret)) =
        (id.parse(), id.parse(), token.parse::<CallbackToken>())
    else {
        return;
    };
    let expected = format!(
        "{{\"schemaVersion\":1,\"runId\":\"{id}\",\"attemptId\":\"{id}\",\
         \"callbackSequence\":{},\"token\":\"{token}\",\"startedAtMs\":{},\"finishedAtMs\":{},\
         \"exitCode\":{}}}",
        number(0),
        number(8),
        number(16),
        numbers[24]
    );
    let receipt = ReceiptV1 {
        run_id,
        attempt_id,
        callback_sequence: number(0),
        token: secret,
        started_at_ms: number(8),
        finished_at_ms: number(16),
        exit_code: numbers[24],
    };
    assert!(!format!("{receipt:?}").contains(&token));
    assert!(expected.len() <= RECEIPT_V1_BYTES_MAX);
    assert_eq!(String::from_utf8(receipt.encode()), Ok(expected));
}
