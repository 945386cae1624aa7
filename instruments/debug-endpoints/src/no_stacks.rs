//! Replacement for `stacks` on systems where they are not taken.

pub(crate) mod cpu_sampler {
    use std::time::Duration;

    use diagnosis::threads::CpuSamples;

    use crate::cpu_profile::CpuProfile;
    use crate::error::EndpointError;
    use crate::permit::Permit;

    #[allow(clippy::unused_async)] // one signature for both
    pub(crate) async fn record(
        _: Duration,
        _: u32,
        _: Permit,
    ) -> Result<(CpuProfile, CpuSamples), EndpointError> {
        Err(EndpointError::Unsupported(if cfg!(target_os = "linux") {
            "CPU profiles in process need x86-64 or aarch64, and the feature `cpu` of debug-endpoints; without them use \
             perf or samply"
        } else {
            "CPU profiles in process need Linux; elsewhere use samply, or on Windows the Windows Performance Recorder"
        }))
    }
}

pub(crate) mod kept_lines {
    use diagnosis::evidence::Kept;

    pub(crate) fn begin() {}

    pub(crate) fn of((): ()) -> Vec<Kept> {
        Vec::new()
    }
}

pub(crate) mod threads {
    use std::sync::Arc;
    use std::time::Duration;

    pub(crate) use diagnosis::threads::ThreadProfile;

    use crate::error::EndpointError;
    use crate::last::Last;
    use crate::permit::Permit;

    #[derive(Clone, Debug, Default)]
    pub(crate) struct ThreadProfiler {
        pub(crate) last: Arc<Last<ThreadProfile>>,
    }

    impl ThreadProfiler {
        #[allow(clippy::unused_async)] // one signature for both
        pub(crate) async fn record_within(
            &self,
            _: Duration,
            _: Duration,
        ) -> Result<Arc<ThreadProfile>, EndpointError> {
            Err(unsupported())
        }
    }

    /// Returns an error: only Linux has them.
    pub(crate) fn take(
        _: &Permit,
        _: Duration,
        _: &dyn Fn() -> bool,
    ) -> Result<ThreadProfile, EndpointError> {
        Err(unsupported())
    }

    fn unsupported() -> EndpointError {
        EndpointError::Unsupported(
            "stacks of threads need Linux on x86-64 or aarch64, and the feature `cpu` of debug-endpoints; elsewhere use a \
             debugger",
        )
    }
}
