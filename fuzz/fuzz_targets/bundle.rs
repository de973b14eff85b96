//! The harness `twixt_fuzz::bundle`, driven by libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = twixt_fuzz::bundle(bytes);
});
