//! Questions to glibc's allocator.
#![allow(unsafe_code)]

mod free_pieces;

pub(super) use free_pieces::about as free_pieces;

/// Returns the number of live bytes. Looks `mallinfo2` up by name, because a program that names it directly does not link
/// with a glibc before 2.33.
pub(super) fn live() -> Option<u64> {
    // SAFETY: the name is a string that ends with 0, and the symbol is only looked up.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr()) };
    if symbol.is_null() {
        return None;
    }
    // SAFETY: this is the function of that name of the C library, which has this type since it exists.
    let mallinfo2: extern "C" fn() -> libc::mallinfo2 = unsafe { std::mem::transmute(symbol) };
    let told = mallinfo2();
    // Small pieces, and large ones, each of which is mapped by itself.
    Some((told.uordblks + told.hblkhd) as u64)
}

/// Gives free memory of the arenas back. Jemalloc does so by itself, after ten seconds.
pub(super) fn trim() {
    // SAFETY: it has no conditions.
    unsafe { libc::malloc_trim(0) };
}
