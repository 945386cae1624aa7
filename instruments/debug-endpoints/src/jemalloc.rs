//! Heap profiles of a running service, by jemalloc: stacks that allocated the memory in use, from a sample of all
//! allocations.

use crate::error::EndpointError;

/// Returns the memory in use now, as gzipped pprof protobuf. It looks names up, which takes long.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
pub(crate) fn in_use() -> Result<Vec<u8>, EndpointError> {
    if !is_the_allocator().map_err(EndpointError::failed)? {
        let reason = "jemalloc is not the allocator of this service: put `#[global_allocator] static ALLOCATOR: \
             debug_endpoints::Jemalloc = debug_endpoints::Jemalloc;` into its main.rs";
        return Err(EndpointError::Unavailable(reason.to_owned()));
    }
    let inactive = "jemalloc records no allocations: start the service with _RJEM_MALLOC_CONF=prof:true in its \
         environment (MALLOC_CONF, if jemalloc was built without the prefix)";
    let Some(profiler) = &*jemalloc_pprof::PROF_CTL else {
        return Err(EndpointError::Unavailable(inactive.to_owned()));
    };
    let mut profiler = profiler.blocking_lock();
    if !profiler.activated() {
        return Err(EndpointError::Unavailable(inactive.to_owned()));
    }
    let profile = profiler.dump_pprof().map_err(|error| {
        EndpointError::Unavailable(format!(
            "jemalloc's profile cannot be taken: {error}. It needs a file in the folder for temporary files"
        ))
    });
    await_profile::symbols::forget();
    profile
}

/// Returns whether jemalloc counts what this thread allocates.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
fn is_the_allocator() -> Result<bool, tikv_jemalloc_ctl::Error> {
    let allocated = tikv_jemalloc_ctl::thread::allocatedp::read()?;
    let before = allocated.get();
    drop(std::hint::black_box(Vec::<u8>::with_capacity(1 << 16)));
    Ok(allocated.get() > before)
}

/// Returns an error: this build has no such allocator.
#[cfg(not(all(target_os = "linux", feature = "jemalloc")))]
pub(crate) fn in_use() -> Result<Vec<u8>, EndpointError> {
    Err(EndpointError::Unsupported(
        "heap profiles in pprof's format need Linux and the feature `jemalloc` of debug-endpoints; /debug/heap has those \
         of dhat, in a build with the feature `heap`",
    ))
}
