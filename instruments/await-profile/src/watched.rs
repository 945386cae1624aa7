//! Tasks that belong to no request, and are seen by the profiler that was armed first.

use std::sync::{Arc, Weak};

use crate::label::Label;
use crate::lock::lock;
use crate::probe::Probe;
use crate::shared::Shared;
use crate::sync::Mutex;
use crate::tracked::Tracked;

/// The profiler that was armed first, of those that live.
static ARMED: Mutex<Weak<Shared>> = Mutex::new(Weak::new());

/// Keeps the profiler for [`watch`], unless another one was armed before and lives.
pub(crate) fn armed(shared: &Arc<Shared>) {
    let mut armed = lock(&ARMED);
    if armed.strong_count() == 0 {
        *armed = Arc::downgrade(shared);
    }
}

/// Makes a task visible in await profiles that belongs to no request: that of a `WebSocket`, of an actor behind a channel,
/// of a stream's sender. `name` is the outermost frame of its stacks.
///
/// Its profiler is the one that was armed first in this process; if none was, `watch` has no effect. Such a task counts apart
/// from requests.
///
/// ```
/// # async fn serve_socket() {}
/// # fn example() {
/// tokio::spawn(await_profile::watch("sockets", serve_socket()));
/// # }
/// ```
pub fn watch<F: Future>(name: impl Into<Label>, future: F) -> Tracked<F> {
    let armed = lock(&ARMED).upgrade();
    Tracked::new(Probe::of_part(armed, name.into()), future)
}
