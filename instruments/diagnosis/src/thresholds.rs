//! Every number of the rules: when something counts, and how likely it is what holds requests up.
//!
//! A rule's own test builds evidence just below and just at each threshold, and expects silence and a finding.

// Weights: above 2 nothing else can go on, above 1 all that pass there wait, below 1 some do.

/// Weight of threads that run requests and are blocked in a call, plus the share of the worst.
pub const BLOCKED_WORKER_WEIGHT: f64 = 2.0;
/// Weight of requests that wait for each other.
pub const WAITERS_HOLD_WEIGHT: f64 = 1.95;
/// Weight of requests that wait for what nobody gives back.
pub const STUCK_WEIGHT: f64 = 1.9;
/// Weight of futures that nobody polls.
pub const UNPOLLED_WEIGHT: f64 = 1.8;
/// Weight of descriptors that run out.
pub const DESCRIPTORS_WEIGHT: f64 = 1.75;
/// Weight of a blocking pool that is full.
pub const FULL_POOL_WEIGHT: f64 = 1.7;
/// Weight of work for clients who have left.
pub const GIVEN_UP_WEIGHT: f64 = 1.6;
/// Weight of one connection that many requests share.
pub const SHARED_CONNECTION_WEIGHT: f64 = 1.3;
/// Weight of pieces that Nagle's algorithm holds back.
pub const NAGLE_WEIGHT: f64 = 1.2;
/// Weight of threads that queue for a lock, or for a database in the process.
pub const THREAD_QUEUE_WEIGHT: f64 = 1.1;
/// Weight of computing on threads that run requests, plus half of its share.
pub const COMPUTING_WEIGHT: f64 = 1.0;
/// Weight of waits for locks, pools and connections, plus half of their share.
pub const WAIT_WEIGHT: f64 = 1.0;
/// Weight of waits that follow each other, or for a limit, plus half of their share.
pub const IN_A_ROW_WEIGHT: f64 = 0.9;
/// Weight of one task for which most requests wait.
pub const ONE_TASK_WEIGHT: f64 = 0.85;
/// Weight of errors of this service.
pub const SERVER_ERRORS_WEIGHT: f64 = 0.95;
/// Weight of a thread that now and then does not yield for long.
pub const RARE_HOLD_WEIGHT: f64 = 0.95;
/// Weight of connections to others that are not used again.
pub const CONNECTIONS_WEIGHT: f64 = 0.9;
/// Weight of ticks that come late, where threads are not seen.
pub const LATE_WEIGHT: f64 = 0.9;
/// Weight of memory that grows.
pub const MEMORY_WEIGHT: f64 = 0.9;
/// Weight of tasks that become more.
pub const TASKS_WEIGHT: f64 = 0.8;
/// Weight of connections that wait to be accepted.
pub const ACCEPT_WEIGHT: f64 = 0.8;
/// Weight of runtimes of which some are idle.
pub const UNEVEN_WEIGHT: f64 = 0.7;
/// Weight of requests that may queue for an HTTP/2 connection, plus half of their share.
pub const STREAMS_WEIGHT: f64 = 0.5;
/// Weight of clients that open a connection for each request.
pub const CLIENTS_WEIGHT: f64 = 0.3;
/// Weight of clients that take their answers slowly, plus half of their share.
pub const SLOW_CLIENT_WEIGHT: f64 = 0.2;

// Requests.

/// Share of a route's time from which a wait there is a cause.
pub const MUCH_OF_ROUTE: f64 = 0.4;
/// The same of waits that may be on purpose, such as for a permit.
pub const MOST_OF_ROUTE: f64 = 0.6;
/// Share of a route's requests from which nobody is past a wait.
pub const ALL_OF_ROUTE: f64 = 0.98;
/// Share of all requests from which the place inside is told, and the reader is not sent outside.
pub const MUCH_OF_ALL: f64 = 0.4;
/// Share of all requests in flight from which a place is listed.
pub const LISTED: f64 = 0.1;
/// Requests at once, on average, from which one waits for another.
pub const QUEUE: f64 = 1.0;
/// Requests at once on one connection from which they may queue for it.
pub const MANY_STREAMS: f64 = 6.0;
/// The same of a client for a database, which answers in turn.
pub const MANY_ON_ONE: f64 = 3.0;
/// Milliseconds of a request from which a queue on a shared connection is felt.
pub const SHARED_MS: f64 = 5.0;
/// Waits for the same thing from which they are more than one statement and its connection.
pub const IN_A_ROW: f64 = 4.0;
/// Milliseconds of each of them, below which they are parts of one answer.
pub const IN_A_ROW_MS: f64 = 0.5;
/// Requests that were seen to have futures that they do not poll.
pub const UNPOLLED_REQUESTS: u64 = 3;
/// Seconds in which requests of a route were in flight and none finished.
pub const STANDSTILL: f64 = 1.0;
/// Share of the requests whose clients left, from which connections that end are those of clients who leave.
pub const DROPPED: f64 = 0.1;
/// Share of the requests that ended which were given up, from which nearly
/// all work is for clients who have left. A service that is merely overloaded still serves some.
pub const DROPPED_MOST: f64 = 0.95;
/// Requests that ended badly, below which it may be chance.
pub const FEWEST_BAD: u64 = 10;
/// Share of answers that are errors of this service.
pub const SERVER_ERRORS: f64 = 0.05;
/// Milliseconds that a request waits for one task.
pub const ONE_TASK_MS: f64 = 10.0;
/// Seconds in which none of them finished.
pub const ONE_TASK_STANDSTILL: f64 = 0.5;
/// Share of the waits that one place lets go.
pub const ONE_TASK_SHARE: f64 = 0.9;

// Threads.

/// Share of the time for which a thread that runs requests is blocked.
pub const BLOCKED: f64 = 0.2;
/// Share of the time for which threads that run requests compute.
pub const BUSY: f64 = 0.5;
/// The same if one of them did not yield for [`HELD`].
pub const BUSY_WHILE_HELD: f64 = 0.1;
/// Seconds for which a thread did not yield, CPU time of its own.
pub const HELD: f64 = 0.01;
/// The same from which it is told though it is rare.
pub const HELD_LONG: f64 = 0.05;
/// Moments in which a thread was seen in one place without a pause, which make a hold of it.
pub const HOLD_MOMENTS: u64 = 2;
/// Share of the computing at one place.
pub const MOST_COMPUTING: f64 = 0.4;
/// Share of the computing from which a place is listed.
pub const MUCH_COMPUTING: f64 = 0.1;
/// Samples below which it may be chance.
pub const FEWEST_SAMPLES: u64 = 5;
/// Threads asleep at once, on average, which are a queue.
pub const THREAD_QUEUE: f64 = 1.0;
/// Share of the moments in which somebody is past a lock.
pub const PAST_LOCK: f64 = 0.2;
/// Share of the time for which a thread is blocked that has not gone on meanwhile.
pub const ALWAYS: f64 = 0.99;

// Runtimes.

/// Seconds that ticks come late.
pub const LATE: f64 = 0.05;
/// Seconds that the last tick waited in vain.
pub const UNANSWERED: f64 = 0.1;
/// Seconds that a job waited for a blocking thread, at worst.
pub const POOL_WAIT: f64 = 0.05;
/// The same in the median.
pub const POOL_WAIT_P50: f64 = 0.005;
/// Seconds that the last job waited in vain.
pub const POOL_UNANSWERED: f64 = 0.2;
/// Share of the time for which one runtime is busy.
pub const UNEVEN_BUSY: f64 = 0.6;
/// The same of another one of its kind that is next to idle.
pub const UNEVEN_IDLE: f64 = 0.2;

// The process.

/// Share of the CPUs' time that leaves next to nothing.
pub const CPU_LIMIT: f64 = 0.9;
/// Workers for each CPU that are more than some blocking calls explain.
pub const MANY_WORKERS: usize = 4;
/// Bytes by which memory may grow without a word.
pub const LITTLE_MEMORY: i64 = 1 << 20;
/// Bytes by which live memory grows that is no warming up; also a tenth of what there was.
pub const GROWING_MEMORY: i64 = 4 << 20;
/// Tasks, or connections, that are more at the end; also a fifth of what there was.
pub const MORE: i64 = 100;
/// Share of the descriptors that may be open.
pub const DESCRIPTORS: f64 = 0.8;

// Connections.

/// Connections that were opened for each request that finished.
pub const OPENED_PER_REQUEST: f64 = 0.3;
/// Connections that were opened, below which it may be a pool that was filled.
pub const OPENED: u64 = 20;
/// The same for each of those that are open at once.
pub const OPENED_PER_OPEN: usize = 3;
/// Looks at which a small piece had waited for long.
pub const HELD_LOOKS: u32 = 5;
/// Share of them in the looks at which something was queued.
pub const HELD_SHARE: f64 = 0.1;
/// Looks from which it is told whether connections wait to be accepted; half of them have to.
pub const ACCEPT_LOOKS: u32 = 10;
