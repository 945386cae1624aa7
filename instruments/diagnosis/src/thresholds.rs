//! Thresholds of the rules. The weights by which findings are ranked are in the rules' table.
//!
//! A finding counts if its value is at or above its threshold, or at or below it where that is an upper limit.
//!
//! Each rule's test builds evidence just below a threshold and at it. It expects no finding below, and one at it.

pub use ecosystem::thresholds::{FEWEST_ENDED, LIVED};

/// Difference in weight between a finding and one that follows from it and is told, too.
pub const BELOW_CAUSE: f64 = 0.01;

// Requests.

/// Smallest share of all requests in flight at which a place is listed.
pub const LISTED: f64 = 0.1;
/// Fewest waits of a request for the same thing, one after another, that are reported. One statement and its connection
/// make fewer.
pub const IN_A_ROW: f64 = 4.0;
/// Fewest jobs of the blocking pool for one file in a row within a request, from which the file has no buffer. A large file
/// that is read at once takes about twenty, each twice as large as the last.
pub const SMALL_JOBS: f64 = 32.0;
/// Shortest CPU time for each request, in milliseconds, of giving jobs for files to the blocking pool, from which these are many:
/// one takes about a fiftieth.
pub const HANDED_OVER_MS: f64 = 0.2;
/// Shortest mean time of the waits in a row, in milliseconds; shorter ones are reads of further parts of one answer.
pub const IN_A_ROW_MS: f64 = 0.5;
/// Requests that wait for several things at once (`join!`, `select!`): smallest share of one of these waits that can stand
/// for all, as a fraction of the largest share.
pub const PART_OF_SEVERAL: f64 = 0.25;
/// Fewest requests seen with futures that they do not poll; fewer may be chance.
pub const UNPOLLED_REQUESTS: u64 = 3;
/// Smallest share of a route's time at which a wait is a cause.
pub const MUCH_OF_ROUTE: f64 = 0.4;
/// Smallest share of a route's time at which a wait that may be on purpose is a cause, such as a wait for a permit.
pub const MOST_OF_ROUTE: f64 = 0.6;
/// Fewest waits for room that were seen to end, from which messages are taken out of the queue.
pub const GOES_ON: usize = 10;
/// Smallest share of a route's requests that counts as all of them when they wait and nobody gets past: the rest may be
/// chance.
pub const ALL_OF_ROUTE: f64 = 0.98;
/// Smallest mean number of requests that do not wait at a lock, if one of them may hold it. While others queue, the
/// holder is elsewhere all the time, which is one request. Half of that leaves room for the time between two holders.
pub const A_HOLDER: f64 = 0.5;
/// Fewest expected samples of each request in flight at which a holder is not missed by chance. With ten, the chance of
/// no sample is e⁻¹⁰.
pub const SAMPLES_OF_EACH: f64 = 10.0;
/// Shortest wait within a request, in milliseconds, that is told although its cause was not seen. Healthy services wait for a
/// database or a timer for a few.
pub const LEAST_MS: f64 = 5.0;
/// Smallest mean number of requests at a wait that is told although its cause was not seen; of those that run, a tenth of a
/// CPU.
pub const AT_WORK: f64 = 0.1;
/// Shortest computing within a request, in milliseconds, that is a cause: what most handlers compute is far shorter.
pub const COMPUTED_MS: f64 = 0.4;
/// Calls one after another are a finding if running them together saves at least this share of a request's time: two
/// equal calls that are nearly all of it save a half.
pub const TOGETHER: f64 = 0.35;
/// Smallest share of the waits in calls one after another, after which the same request was next seen in another of
/// these calls. It is a half for two calls in sequence, and zero for the two branches of an `if`.
pub const FOLLOWED: f64 = 0.25;
/// Requests at once at one line, on average, from which they may compute the same.
pub const EQUAL_AT_ONCE: f64 = 4.0;
/// Smallest share of the time in which nobody is at a line, if requests come there in bursts. Four independent requests
/// on average are all gone for 2 % of the time.
pub const ABSENT: f64 = 0.1;
/// Largest median time of a route, as a share of the mean time at a line, if most of its requests never come to that
/// line.
pub const PASSES_BY: f64 = 0.25;
/// Smallest share of the waits for an answer that a timer ends, from which calls are given up by a limit of their own.
pub const ENDED_BY_TIMER: f64 = 0.1;
/// Smallest share of the ended requests whose routes have a mean time, for the mean of all to be made of these.
pub const TOLD_OF_ALL: f64 = 0.9;
/// Smallest share of all requests at which the report names a place inside the service, instead of sending the reader
/// outside.
pub const MUCH_OF_ALL: f64 = 0.4;
/// Mean number of requests at once from which one waits for another.
pub const QUEUE: f64 = 1.0;
/// Largest mean number of requests at work with what a pool lends, at which the pool seems to have one.
pub const ONE_AT_WORK: f64 = 1.0;
/// Smallest share of the waits for a limit that tasks end, from which these take the permits of requests.
pub const HELD_BY_TASKS: f64 = 0.5;
/// Requests at once on one HTTP/2 connection from which they may queue for it.
pub const MANY_STREAMS: f64 = 6.0;
/// Requests at once on one connection to a database, which answers them in turn, from which they queue for it.
pub const MANY_ON_ONE: f64 = 3.0;
/// Milliseconds that a request waits, from which a queue on a shared connection matters.
pub const SHARED_MS: f64 = 5.0;
/// Shortest time, in seconds, in which requests of a route were in flight and none finished.
pub const STANDSTILL: f64 = 1.0;
/// Share of requests whose clients left, from which ended connections are put down to those clients.
pub const DROPPED: f64 = 0.1;
/// Share of given-up requests among all that ended, from which nearly all work is for clients who have left. A service
/// that is merely overloaded still serves some.
pub const DROPPED_MOST: f64 = 0.95;
/// Share that is enough in place of [`DROPPED_MOST`] for a fault while the number of tasks grows, since tasks then work for
/// clients who have left. If it does not grow, the finding is a [`Level::Bound`](crate::Level::Bound).
pub const DROPPED_HALF: f64 = 0.5;
/// Fewest requests that ended badly; fewer may be chance.
pub const FEWEST_BAD: u64 = 10;
/// Smallest share of answers that are errors of this service.
pub const SERVER_ERRORS: f64 = 0.05;
/// Shortest time, in milliseconds, that a request waits for one task.
pub const ONE_TASK_MS: f64 = 10.0;
/// Shortest time, in seconds, in which none of the requests that wait for one task finished.
pub const ONE_TASK_STANDSTILL: f64 = 0.5;
/// Smallest share of the waits that one place in the code ends.
pub const ONE_TASK_SHARE: f64 = 0.9;

/// Fewest answers to each of those that wait for one task, from which they are asked for in turn.
pub const ANSWERS_IN_TURN: f64 = 10.0;
/// Requests at once, on average, that queue for the answers of one task.
pub const ONE_TASK_QUEUE: f64 = 4.0;
/// Smallest share of these waits whose end was seen: between those that were not, the gaps would be too long.
pub const SEEN_ENDS: f64 = 0.3;
/// Smallest gap between two answers, as a share of the mean, than which nine tenths are longer, of a task that has one
/// request at a time. Of answers at random times, a tenth of the gaps are shorter than a tenth of the mean.
pub const EVEN_GAP: f64 = 0.25;

// Threads.

/// Smallest share of the time for which a thread that runs requests is blocked.
pub const BLOCKED: f64 = 0.2;
/// Smallest share of the time for which a thread that runs requests waits for the disk. No chance puts a thread there, so
/// it is small.
pub const DISK: f64 = 0.003;
/// Fewest samples of such a thread.
pub const FEWEST_OF_DISK: u64 = 2;
/// Smallest share of the time for which threads that run requests compute.
pub const BUSY: f64 = 0.5;
/// Smallest share of the time for which threads that run requests compute, if one of them did not yield for [`HELD`].
pub const BUSY_WHILE_HELD: f64 = 0.1;
/// Shortest CPU time of `SQLite` for each request, in milliseconds, at which a statement reads many rows. One row by its key
/// takes a hundredth, a page of rows by an index about a tenth.
pub const SQLITE_MS: f64 = 0.15;
/// Smallest share of the service's CPU time that `SQLite` uses, from which its statements are looked at.
pub const SQLITE_SHARE: f64 = 0.15;
/// Smallest share of the waits for `SQLite` that are at the line to which its CPU time is put down.
pub const SQLITE_LINE: f64 = 0.9;
/// Fewest CPUs that tasks which are no requests use at one place.
pub const TASKS_CPUS: f64 = 0.08;
/// Smallest share of the time for which one thread computes, if no heartbeat tells whether it yields.
pub const BUSIEST: f64 = 0.9;
/// Fewest threads of a blocking pool that have work at every moment, from which the pool may be full.
pub const MANY_BLOCKING: usize = 4;
/// Most threads of a blocking pool of tokio, unless the program sets another limit.
pub const POOL_LIMIT: usize = 512;
/// Shortest CPU time of a thread without a yield, in seconds.
pub const HELD: f64 = 0.01;
/// Shortest CPU time in one function without a pause, in seconds, by samples of the CPU time: two of their periods.
pub const HELD_AT_ONCE: f64 = 0.015;
/// Shortest CPU time without a yield, in seconds, that is a finding even if it is rare.
pub const HELD_LONG: f64 = 0.05;
/// Fewest consecutive moments in one place that count as a hold of the thread.
pub const HOLD_MOMENTS: u64 = 2;
/// Smallest share of the computing at one place.
pub const MOST_COMPUTING: f64 = 0.4;
/// Smallest share of the computing at which a place is listed.
pub const MUCH_COMPUTING: f64 = 0.1;
/// Fewest samples; fewer may be chance.
pub const FEWEST_SAMPLES: u64 = 5;
/// Fewest samples of a task, from which the place with most of them is named as where it may be.
pub const FEWEST_INSIDE: u64 = 3;
/// Mean number of threads asleep at once from which they are a queue.
pub const THREAD_QUEUE: f64 = 1.0;
/// Most threads past a lock for each waiting thread, for the waits to be a queue. If more are past it, they work there for
/// longer than they wait, and that line has several locks.
pub const PAST_PER_WAITER: f64 = 1.0;
/// Smallest share of the moments in which some thread is past a lock.
pub const PAST_LOCK: f64 = 0.2;
/// Smallest share of blocked time at which a thread counts as blocked all the time.
pub const ALWAYS: f64 = 0.99;

// Tasks.

/// Waits for one holder, from which they are a queue and no work that each has done for it.
pub const WAITERS_OF_ONE: f64 = 2.0;
/// Most different holders in a snapshot, on average, from which there is one: it may pass on between two snapshots.
pub const ONE_HOLDER: f64 = 1.5;
/// Tasks at once, on average, that wait for nothing but their next turn, from which one does nothing else. One that yields
/// in between is rarely met there.
pub const SPINNING: f64 = 0.5;
/// Fewest CPUs that a process with such a task uses.
pub const SPINNING_CPUS: f64 = 0.3;
/// Smallest mean number of requests or tasks of the receiver's function at a wait, from which it is what fills the queue.
pub const RECEIVER: f64 = 0.5;
/// Smallest share of the waits at a line whose holder is known, from which the holder is told and not guessed.
pub const KNOWN_HOLDER: f64 = 0.5;
/// Tasks at once, on average, that wait at one line, from which they are a queue where requests are not seen.
pub const TASKS_AT_ONCE: f64 = 2.0;
/// Largest difference between the numbers that two instruments give to a line of one function. The statement may have several lines.
pub const LINES_APART: u32 = 4;
/// Fewest semaphores of one size, on average, for one limit.
pub const SEMAPHORES: f64 = 2.0;
/// Largest share of such semaphores without a permit left: they never hold anybody up.
pub const FULL: f64 = 0.02;

/// Waits for a message in a row, from which a request is woken in vain: it goes on with one.
pub const WAKES: f64 = 8.0;
/// Requests or tasks at once, on average, that a message for all wakes.
pub const WOKEN_AT_ONCE: f64 = 8.0;

// Runtimes.

/// Shortest delay of ticks, in seconds, that counts as late.
pub const LATE: f64 = 0.05;
/// Smallest age, in seconds, of the last tick that was not answered.
pub const UNANSWERED: f64 = 0.1;
/// Worst wait of a job for a blocking thread, in seconds, from which the pool counts as full.
pub const POOL_WAIT: f64 = 0.05;
/// Median wait of a job for a blocking thread, in seconds, from which the pool counts as full.
pub const POOL_WAIT_P50: f64 = 0.005;
/// Smallest age, in seconds, of the last job that has no blocking thread.
pub const POOL_UNANSWERED: f64 = 0.2;
/// Smallest busy share of the busiest runtime.
pub const UNEVEN_BUSY: f64 = 0.6;
/// Largest busy share of another runtime of its kind that counts as idle.
pub const UNEVEN_IDLE: f64 = 0.2;

// The process.

/// Share of the CPUs' time from which the CPUs are the limit.
pub const CPU_LIMIT: f64 = 0.9;
/// Share of the CPU time that the process wanted and other programs had, from which its times say little about itself.
pub const CPU_LOST: f64 = 0.2;
/// Smallest number of workers for each CPU that a few blocking calls do not explain.
pub const MANY_WORKERS: usize = 4;
/// Smallest share of a rise in each half of the time. A straight line has a half in each; a single step has nothing in one
/// of them.
pub const STEADY: f64 = 0.25;
/// Fewest moments of a rise. A number that only fluctuates seems to rise over two moments in every other look. Over nine,
/// its smallest of the last three exceeds its largest of the first three in one of twenty looks. That it also rises in both
/// halves is rarer still.
pub const MOMENTS_OF_RISE: usize = 9;
/// Bytes by which memory may grow without being reported.
pub const LITTLE_MEMORY: i64 = 1 << 20;
/// Rise of live memory, in bytes, that may still be warming up; a tenth of the initial size is allowed too.
pub const GROWING_MEMORY: i64 = 4 << 20;
/// Rise in the number of tasks or connections that is not reported; a fifth of the initial number is allowed too.
pub const MORE: i64 = 100;
/// Fewest new tasks for each request of a route that are put down to it.
pub const SPAWNED_LEAST: f64 = 0.2;
/// Most new tasks for each request of a route that are put down to it; more come from elsewhere.
pub const SPAWNED_MOST: f64 = 5.0;
/// Share of the descriptor limit in use from which it is reported.
pub const DESCRIPTORS: f64 = 0.8;

// Connections.

/// Fewest connections opened for each finished request.
pub const OPENED_PER_REQUEST: f64 = 0.3;
/// Smallest share of the connections that were seen to begin, from which the end that closed first is the one that closes
/// them.
pub const CLOSED_HERE: f64 = 0.5;
/// Fewest connections opened for each request that a time limit cut, from which its calls count as retried.
pub const ASKED_AGAIN: f64 = 2.0;
/// Fewest connections that fail each second, from which they are tried again without a pause: so many that wait in between
/// would be a crowd.
pub const FAILED_A_SECOND: f64 = 500.0;
/// Smallest share of the opened connections that fail then.
pub const FAILED: f64 = 0.5;
/// Fewest opened connections; fewer may be a pool that was being filled.
pub const OPENED: u64 = 20;
/// Fewest opened connections for each one that is open at once.
pub const OPENED_PER_OPEN: usize = 3;
/// Fewest looks at which a small piece had waited for long.
pub const HELD_LOOKS: u32 = 5;
/// Smallest share of such looks among those at which something was queued.
pub const HELD_SHARE: f64 = 0.1;
/// Smallest share of the time for which a watched task is in flight, or at one place, to be there all the time.
pub const ALONE: f64 = 0.9;
/// Least growth of the number of tasks in a container of handles, within the snapshots, for a finding that nobody joins them.
pub const SET_GROWS: u64 = 5;
/// Smallest number of such tasks for each task that has not ended.
pub const SET_TASKS: i64 = 2;
/// Fewest looks for a finding that connections wait to be accepted.
pub const ACCEPT_LOOKS: u32 = 10;

/// Share of the looks with connections that wait to be accepted from which the queue is told. Services that accept as fast as
/// they can have had it in 9 % of the looks on a busy machine, and those that await something between two accepts in 25 %.
pub const UNACCEPTED: f64 = 0.2;
/// Smallest share of a request's time at a line for which a finding on calls in turn lists it.
pub const LISTED_LINE: f64 = 0.05;
/// Fewest looks in a row at which received data waits and none of it is read.
pub const UNREAD_LOOKS: u32 = 10;
/// Fewest bytes that wait for a client who takes its data too slowly.
pub const SLOW_CLIENT_BYTES: u32 = 64 << 10;
/// Smallest share of all looks that these are.
pub const UNREAD_SHARE: f64 = 0.5;
/// Fewest lost datagrams; fewer may be chance.
pub const LOST_DATAGRAMS: u64 = 20;
/// Smallest share of the datagrams that came to the network namespace which these are.
pub const LOST_SHARE: f64 = 0.01;
/// Smallest share of the time for which the reader of a socket is at another place, from which it reads too late because of that.
pub const ELSEWHERE: f64 = 0.05;
