//! The harness `twixt_fuzz::log`, driven by libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = twixt_fuzz::log(bytes);
});
