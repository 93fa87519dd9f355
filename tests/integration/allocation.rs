//! The allocator of the test binary: notes the largest allocation of the threads that ask for it.
#![expect(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Noting;

#[global_allocator]
static ALLOCATOR: Noting = Noting;

thread_local! {
    static LARGEST: Cell<Option<&'static AtomicUsize>> = const { Cell::new(None) };
}

/// From now on the allocations of this thread raise `largest` to their size.
pub(crate) fn watch(largest: &'static AtomicUsize) {
    LARGEST.set(Some(largest));
}

fn note(size: usize) {
    // A thread that ends has no such variable any more.
    let _ = LARGEST.try_with(|l| l.get().map(|largest| largest.fetch_max(size, Ordering::Relaxed)));
}

// SAFETY: everything is left to the allocator of the system.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note(new_size);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.dealloc(ptr, layout) }
    }
}
