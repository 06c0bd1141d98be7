//! Lists the files of the dashboard, and folds identical functions of the binary for distribution into one: generic code is compiled once per type, and much of it
//! comes out the same. About a tenth of the binary.
//!
//! And links it at a fixed address, as Go does its programs: a program that may lie anywhere writes some 1.2 MB of its own
//! tables anew at each start, which each process of a fleet then has for itself. The stack, the heap and the libraries
//! still lie anywhere; the program itself is known to who has found a way to overwrite its memory. Whoever wants that
//! hidden too builds with `RUSTFLAGS="-C relocation-model=pie"`.

use std::env;
use std::fmt::Write as _;
use std::path::Path;

/// What the dashboard's page is made of.
const ASSETS: &str = "src/ui/assets";

/// Writes down which files there are, so that all of them are in the binary.
fn list_assets() {
    println!("cargo:rerun-if-changed={ASSETS}");
    let root = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let folder = Path::new(&root).join(ASSETS);
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .map(|found| found.flatten().filter(|one| one.path().is_file()).collect::<Vec<_>>())
        .unwrap_or_default()
        .into_iter()
        .filter_map(|one| one.file_name().into_string().ok())
        .collect();
    names.sort();
    let mut list = String::from("&[\n");
    for name in names {
        let path = folder.join(&name);
        let _ = writeln!(list, "    ({name:?}, include_bytes!({:?})),", path.display().to_string());
    }
    list.push(']');
    let out = Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("assets.rs");
    // Without it the build fails where it is included, and says so.
    let _ = std::fs::write(out, list);
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    list_assets();
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
