//! Folds identical functions of the binary for distribution into one: generic code is compiled once per type, and much of it
//! comes out the same. About a tenth of the binary.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |key: &str, value: &str| env::var(key).is_ok_and(|it| it == value);
    // The toolchain links with LLD on this target only, and only LLD is known to understand the option.
    let has_lld = is("TARGET", "x86_64-unknown-linux-gnu");
    // Whoever chose a linker knows what it takes.
    let chosen = env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("link"))
        || env::var_os("RUSTC_LINKER").is_some();
    if has_lld && is("PROFILE", "release") && !chosen {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}
