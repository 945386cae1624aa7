//! Several snapshots, so that a task that is stuck differs from one that is fast.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use diagnosis::evidence::Tasks;

use crate::Error;
use crate::model::{Snapshot, State};
use crate::reader::Reader;
use crate::sums::Sums;

/// Snapshots of a look.
pub const SNAPSHOTS: u32 = 10;

impl Reader<'_, '_> {
    /// Takes [`SNAPSHOTS`] snapshots of a process, `pause` apart, and returns the last, and all of them as evidence. Each of the
    /// last one's tasks says how often it was seen at the same lines. Ends early once `lasts` returns false.
    ///
    /// # Errors
    ///
    /// As of [`snapshot`](Self::snapshot).
    pub fn watch(
        &self,
        pid: u32,
        pause: Duration,
        lasts: &dyn Fn() -> bool,
    ) -> Result<(Snapshot, Tasks), Error> {
        let began = Instant::now();
        let mut last = self.snapshot(pid)?;
        let mut places = places(&last);
        let mut sums = Sums::default();
        sums.add(&last);
        for number in 1..SNAPSHOTS {
            std::thread::sleep(pause);
            if !lasts() {
                break;
            }
            let before = last.standstill;
            last = self.snapshot(pid)?;
            (last.snapshots, last.over) = (number + 1, began.elapsed());
            last.standstill.longest = last.standstill.longest.max(before.longest);
            last.standstill.stops += before.stops;
            let now = self::places(&last);
            for task in &mut last.tasks {
                let key = (task.id, task.address);
                let (place, stayed) = (now.get(&key), places.get(&key));
                if let (Some((place, _)), Some((before, times))) = (place, stayed)
                    && place == before
                {
                    task.stayed = times + 1;
                }
            }
            places = self::places(&last);
            sums.add(&last);
        }
        let tasks = sums.finish(last.over.as_secs_f64());
        Ok((last, tasks))
    }
}

/// Places of the tasks that wait, by their numbers and addresses, each with the number of snapshots in a row in which the task was there.
fn places(snapshot: &Snapshot) -> HashMap<(u64, u64), (u64, u32)> {
    let mut places = HashMap::new();
    for task in &snapshot.tasks {
        // The number 0 is that of a task whose number could not be read.
        if task.state == State::Waiting && (task.id != 0 || task.in_block_on) {
            let mut place = DefaultHasher::new();
            task.frames.hash(&mut place);
            let key = (task.id, task.address);
            places.insert(key, (place.finish(), task.stayed));
        }
    }
    places
}
