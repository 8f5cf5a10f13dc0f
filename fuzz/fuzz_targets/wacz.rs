#![no_main]

#[allow(dead_code, reason = "every target uses one of them")]
#[path = "../../tests/fuzz/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::archives::wacz(data));
