//! The harness `twixt_fuzz::capture`, driven by libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = twixt_fuzz::capture(bytes);
});
