//! Folds identical functions of the binary for distribution into one: generic code is compiled once per type, and much of it
//! comes out the same. About a tenth of the binary.
//!
//! And links it at a fixed address, as Go does its programs: a program that may lie anywhere writes some 1.2 MB of its own
//! tables anew at each start, which each process of a fleet then has for itself. The stack, the heap and the libraries
//! still lie anywhere; the program itself is known to who has found a way to overwrite its memory. Whoever wants that
//! hidden too builds with `RUSTFLAGS="-C relocation-model=pie"`.

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
        if !env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("relocation-model")) {
            println!("cargo:rustc-link-arg-bins=-no-pie");
        }
    }
}
