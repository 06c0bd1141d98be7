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

/// How long a process has nothing in hand before it lets go of its pages ([`rest`]). To fetch those again costs as much as
/// some runs do (a worker's 30 ms, measured): a fleet that is asked every few seconds must not pay for it each time.
pub const LONG: std::time::Duration = std::time::Duration::from_secs(10);

/// Gives back all that a process at rest does without: free memory, and those pages of the program itself that nothing but
/// its start or the last task needed. What it does next comes again from the file, which the kernel has at hand (some
/// microseconds for each 64 KiB). Not for a process that works: it would fetch the same pages again and again.
pub fn rest() {
    give_back();
    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    program::let_go();
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod program {
    use std::ffi::{c_int, c_void};

    use nix::libc::{self, Elf64_Phdr, MADV_DONTNEED, PF_W, PT_LOAD, dl_phdr_info};

    /// Unmaps the pages of the program's code and constants, which stay in its file.
    #[expect(unsafe_code, reason = "nobody else knows where the program lies")]
    pub(super) fn let_go() {
        // SAFETY: the callback has the signature that is asked for, keeps nothing of what it is shown, and takes no data.
        unsafe {
            libc::dl_iterate_phdr(Some(let_go_of_first), std::ptr::null_mut());
        }
    }

    /// The first object that is shown is the program itself; libraries are left alone.
    #[expect(unsafe_code, reason = "the headers of the program are told by pointers")]
    unsafe extern "C" fn let_go_of_first(object: *mut dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
        const LAST: c_int = 1;
        // SAFETY: the loader shows a valid object, and headers that stay as long as the program is loaded.
        let (base, headers) = unsafe {
            let object = &*object;
            if object.dlpi_phdr.is_null() {
                return LAST;
            }
            (object.dlpi_addr, std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum)))
        };
        // What is never written is the same in the file. Tables that the loader wrote and then locked lie in segments that
        // may be written.
        let unwritten = |header: &&Elf64_Phdr| header.p_type == PT_LOAD && header.p_flags & PF_W == 0;
        for header in headers.iter().filter(unwritten) {
            // SAFETY: the range is within a private mapping of a file that nobody wrote to: who reads it next, in whatever
            // thread, finds the same bytes. A failure changes nothing.
            unsafe {
                let page = u64::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(4096);
                let begin = (base + header.p_vaddr).next_multiple_of(page);
                let end = (base + header.p_vaddr + header.p_memsz) / page * page;
                if let (Ok(at), Ok(length)) =
                    (usize::try_from(begin), usize::try_from(end.saturating_sub(begin)))
                {
                    libc::madvise(at as *mut c_void, length, MADV_DONTNEED);
                }
            }
        }
        LAST
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Bytes of files that this process has mapped and in memory.
    fn of_files() -> u64 {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find(|line| line.starts_with("RssFile:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    #[test]
    fn a_process_at_rest_lets_go_of_its_program_and_goes_on_as_before() {
        static WRITTEN: std::sync::Mutex<Vec<u64>> = std::sync::Mutex::new(Vec::new());
        let told = || WRITTEN.lock().unwrap().iter().map(u64::to_string).collect::<Vec<_>>().join("+");
        WRITTEN.lock().unwrap().extend([1, 2, 3]);
        let before = of_files();
        rest();
        let after = of_files();
        assert!(after < before, "{before} bytes before and {after} after");
        // What was written stays, and code and constants are what they were.
        assert_eq!(told(), "1+2+3");
        rest();
    }
}
