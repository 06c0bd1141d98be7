//! How often the turns of a W ask for memory. The count does not depend on the machine, so it may only fall: whoever makes
//! decisions with fewer copies lowers the bound.

#[path = "../benches/recorded/mod.rs"]
mod recorded;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use recorded::Recorded;

/// Allocations of one decision, in the middle of all of a W; its turn is in it.
const MOST_ALLOCATIONS: u64 = 520;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The usual allocator, which counts what this thread asks for.
struct Counting;

#[expect(unsafe_code, reason = "hands everything on to the usual allocator")]
// SAFETY: what it promises is what the usual allocator does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends has no count any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: handed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_decision_asks_for_memory_no_more_often_than_it_must() {
    let mut allocations = 0;
    let count = Recorded::run(|turn| {
        let before = ALLOCATIONS.get();
        turn();
        allocations += ALLOCATIONS.get() - before;
    });
    assert!(count.entries > 40, "a whole W: {count:?}");
    let of_each = allocations / u64::from(count.decisions);
    assert!(
        of_each <= MOST_ALLOCATIONS,
        "{of_each} allocations of a decision, {MOST_ALLOCATIONS} at the most"
    );
    assert!(of_each > MOST_ALLOCATIONS / 3, "{of_each} allocations of a decision: were they counted?");
}
