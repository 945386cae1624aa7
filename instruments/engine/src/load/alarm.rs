//! Waking at a moment, to some 50 us where the system can. Tokio's timers have whole
//! milliseconds: enough for a think time, too coarse for a schedule that latencies count from.

use std::io;
use std::time::Instant;

#[cfg(target_os = "linux")]
pub(super) use precise::Alarm;

#[cfg(not(target_os = "linux"))]
pub(super) use coarse::Alarm;

#[cfg(target_os = "linux")]
mod precise {
    use std::os::fd::OwnedFd;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    use super::{Instant, io};

    /// A kernel timer that the runtime's event loop waits for like for a socket.
    #[derive(Debug)]
    pub(in super::super) struct Alarm(AsyncFd<OwnedFd>);

    impl Alarm {
        /// Creates a timer. Call this within a runtime.
        pub(in super::super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            // Deprecated because a type may lie about its descriptor; this one owns it. Its
            // successor is unsafe, which this workspace forbids.
            #[allow(deprecated)]
            AsyncFd::new(timer).map(Self)
        }

        /// Returns at `moment`, at once if it has passed.
        pub(in super::super) async fn at(&mut self, moment: Instant) -> io::Result<()> {
            let wait = moment.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                return Ok(());
            }
            let once = Itimerspec {
                it_interval: Timespec::default(),
                it_value: Timespec::try_from(wait).map_err(io::Error::other)?,
            };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            loop {
                let mut ready = self.0.readable().await?;
                let mut expirations = [0; 8];
                match ready.try_io(|timer| Ok(rustix::io::read(timer, &mut expirations)?)) {
                    Ok(read) => return read.map(|_| ()),
                    Err(_stale) => {}
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod coarse {
    use super::{Instant, io};

    /// Tokio's own timer: up to 2 ms late.
    #[derive(Debug)]
    pub(in super::super) struct Alarm;

    impl Alarm {
        pub(in super::super) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        /// Returns at `moment`, at once if it has passed.
        pub(in super::super) async fn at(&mut self, moment: Instant) -> io::Result<()> {
            tokio::time::sleep_until(moment.into()).await;
            Ok(())
        }
    }
}
