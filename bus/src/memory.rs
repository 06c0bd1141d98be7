//! Memory that a process gives back when it has come to rest. Not about the bus: it is here because every process of a fleet
//! has one.

/// Has the allocator give back the pages on which nothing is left; it keeps them otherwise for what may come. Does nothing
/// where it cannot be asked.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "the allocator has no other way to be asked")]
    // SAFETY: it takes no pointer, and may be called at any time from any thread.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}
