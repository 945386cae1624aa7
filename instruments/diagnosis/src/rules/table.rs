//! The table of findings: level, weight, page, cause and remedy of each, and what follows from what.
//!
//! The weight ranks a finding: above 2, nothing else can go on; above 1, all requests that pass there wait; below 1, some do.
//! Cause and remedy are one sentence each, and fit what the rule saw. If two causes are possible, the sentence says which
//! observation tells them apart.

use crate::finding::{Advice, Level, Row};

const AWAIT: &str = "/debug/await";
const TASKS_OF_PROCESS: &str = "/debug/tasks";
const AWAIT_JSON: &str = "/debug/await?format=json";
const THREADS: &str = "/debug/threads";
const SOCKETS: &str = "/debug/sockets";
const MEMORY: &str = "/debug/memory";
const HEARTBEAT: &str = "/debug/heartbeat";
const CPU: &str = "/debug/pprof/flamegraph";
const LAST_CPU: &str = "/debug/pprof/last?format=svg";

/// Makes a row: name of the constant, kind, level, weight, page, cause, remedy.
macro_rules! rows {
    ($($name:ident = $kind:literal, $level:ident, $weight:literal, $see:expr, $cause:literal, $fix:literal;)*) => {
        $(pub(crate) const $name: &Row = &Row {
            kind: $kind,
            level: Level::$level,
            weight: $weight,
            see: $see,
            cause: $cause,
            fix: $fix,
        };)*

        /// All rows.
        #[cfg(test)]
        pub(crate) const ALL: &[&Row] = &[$($name),*];
    };
}

rows! {
    STOPPED = "stopped", Fault, 4.0, THREADS,
        "A signal such as that of Ctrl-Z, or a debugger, has stopped it.",
        "Let it go on with `kill -CONT` and its number.";

    // Threads that run requests and are blocked. The weight adds the blocked share of the worst thread.
    BLOCKED_FOR_RAYON = "blocked_worker", Fault, 2.0, THREADS,
        "The thread waits for rayon's threads.",
        "Hand the work over with `rayon::spawn`, and await a `oneshot` for its result.";
    BLOCKED_IN_PIPE = "blocked_worker", Fault, 2.0, THREADS,
        "The reader of what it writes is slow, or gone.",
        "Write logs from a separate thread, which may drop lines.";
    BLOCKED_IN_LOOKUP = "blocked_worker", Fault, 2.0, THREADS,
        "A name is looked up by a call that blocks.",
        "Use `tokio::net::lookup_host`, which does that on a blocking thread.";
    BLOCKED_ON_FUTURE = "blocked_worker", Fault, 2.0, THREADS,
        "`block_on` keeps the thread until its future ends.",
        "Use `.await`, or move the call to a blocking thread (`tokio::task::spawn_blocking`).";
    BLOCKED_BY_HOLDER = "blocked_worker", Fault, 2.0, THREADS,
        "A guard of std, parking_lot or DashMap is held during what takes long.",
        "Drop the guard before that, or do both on a blocking thread.";
    DEADLOCK = "blocked_worker", Fault, 2.0, THREADS,
        "A guard is held across an `.await`, or a thread takes a second guard of that lock: the line shows which.",
        "Drop the first guard before the `.await`, or before the second one.";
    BLOCKED_FOR_THREAD = "blocked_worker", Fault, 2.0, THREADS,
        "A thread waits for another one, at a lock or a channel that blocks.",
        "Drop guards before an `.await`, and wait for threads by async means (`tokio::sync`).";
    BLOCKED_IN_CALL = "blocked_worker", Fault, 2.0, THREADS,
        "A call that blocks in an async function.",
        "Do it on a blocking thread (`tokio::task::spawn_blocking`), or by a call that can be awaited.";
    DISK = "disk", Fault, 0.7, THREADS,
        "The call blocks its thread, with all requests on it, for as long as the disk takes: seconds on a bad day.",
        "Do it on a blocking thread (`tokio::task::spawn_blocking`), or once for several requests.";

    // Computing. The weight of the first two adds half of the busy share.
    COMPUTING_HELD = "computing_worker", Fault, 1.0, CPU,
        "It computes for long in an async function, and all else on its thread waits.",
        "Do it on a blocking thread (`tokio::task::spawn_blocking`), or do less of it.";
    COMPUTING_IN_TURNS = "computing_worker", Wait, 1.0, CPU,
        "Requests take turns on the CPU; nothing shows that this work is done more often than needed.",
        "See in the CPU profile what it calls.";
    COMPUTED_AGAIN = "computing_request", Fault, 0.85, LAST_CPU, "", "";
    COMPUTED_EACH = "computing_request", Wait, 0.85, LAST_CPU,
        "Each request does this work.",
        "See in the CPU profile what it calls; do it once for all requests if they share it.";
    COMPUTING_TASK = "computing_task", Fault, 0.8, LAST_CPU,
        "Each connection, or each message, does work that could be done once for all of them.",
        "Do it once and share the result, or do it on a blocking thread.";
    RARE_HOLD = "rare_hold", Fault, 0.95, THREADS,
        "It computes for long in an async function, and all else on its thread waits.",
        "Do it on a blocking thread (`tokio::task::spawn_blocking`), or in parts.";
    SMALL_READS = "small_reads", Fault, 0.8, CPU,
        "The file or socket is read or written without a buffer.",
        "Put a `BufReader` or a `BufWriter` around it, or read it at once.";
    SMALL_JOBS = "small_reads", Fault, 0.95, AWAIT,
        "Without a buffer, each read or write of the file is a job of the blocking pool.",
        "Put a `BufReader` or a `BufWriter` around it, or do all of it in one `spawn_blocking`.";
    SPINS = "spins", Fault, 0.8, TASKS_OF_PROCESS,
        "A loop asks again and again whether there is something to do.",
        "Await what it asks for, such as `recv().await` in place of `try_recv` or `yield_now`.";
    RETRIED = "retried", Fault, 1.45, SOCKETS,
        "What fails is tried again at once, without a pause.",
        "Wait before each further try, twice as long as before the last one, and give up after some.";
    WAKES_ALL = "wakes_all", Fault, 1.45, AWAIT,
        "A message that one of them needs is sent to all, and the others go on waiting.",
        "Keep a `oneshot` for each of them, such as in a map by the number of the call, and send to that one.";
    WAKES_MANY = "wakes_all", Wait, 1.45, TASKS_OF_PROCESS,
        "Each of them takes and copies every message, needed or not.",
        "If few need it, send to those alone; if all do, send fewer and larger ones, and copy an `Arc`.";
    BUSY_THREAD = "busy_thread", Fault, 0.75, THREADS,
        "It asks again and again whether there is something to do, or it works: `perf record` of that place tells which.",
        "Let such a loop wait for what it asks for.";

    // Threads that drive no tasks.
    THREAD_QUEUE = "lock", Fault, 1.1, THREADS,
        "One thread is past it at a time, and requests wait for the threads.",
        "Drop the guard before what takes long, or have several of what it guards, as a pool of connections does.";
    THREAD_DEADLOCK = "lock", Fault, 1.1, THREADS,
        "A deadlock: each thread holds a lock for which another waits, unless the holder is in code whose lines are unknown.",
        "Take locks in one order, and drop a guard before the next lock is taken.";
    SQLITE_JOURNAL = "database", Fault, 1.1, "/debug/threads?all=true",
        "The rollback journal lets no connection read while another one writes.",
        "Set `journal_mode = WAL`, which allows that.";
    SQLITE_WRITER = "database", Fault, 1.1, "/debug/threads?all=true",
        "SQLite has one writer at a time, and each transaction that writes waits for the disk, or for what it awaits.",
        "Write several rows in one transaction, and commit before it awaits anything but the database.";
    SQLITE_COMPUTES = "sqlite_computes", Fault, 0.8, LAST_CPU,
        "The statement reads many rows: no index fits its condition, if `EXPLAIN QUERY PLAN` says `SCAN`.",
        "Add the index, or keep the answer.";

    // Runtimes.
    FULL_POOL = "full_blocking_pool", Fault, 1.7, THREADS,
        "Long jobs have all its threads; `spawn_blocking`, `tokio::fs` and name lookups wait for one.",
        "Bound those jobs by a separate semaphore, or make them shorter.";
    FULL_POOL_BLOCKS_ON = "full_blocking_pool", Fault, 1.7, THREADS,
        "`block_on` keeps its thread until the future ends, and what the future waits for needs a thread, too.",
        "Make the function async and await the future.";
    BUSY_POOL = "full_blocking_pool", Bound, 1.7, THREADS,
        "Long jobs have all threads of the pool, if this is their limit (`max_blocking_threads`).",
        "Bound those jobs by a separate semaphore, or make them shorter.";
    BUSY_POOL_AT_LIMIT = "full_blocking_pool", Fault, 1.7, THREADS,
        "Long jobs have all threads of the pool; `spawn_blocking`, `tokio::fs` and name lookups wait for one.",
        "Bound those jobs by a separate semaphore, or make them shorter.";
    LATE = "late", Fault, 0.9, HEARTBEAT,
        "Something blocks or keeps the threads of the runtime.",
        "";
    UNEVEN = "uneven_runtimes", Fault, 0.7, HEARTBEAT,
        "Few connections have most of the requests, and each stays on the runtime that accepted it.",
        "Use one runtime with several workers, or hand connections to the runtime with the fewest requests.";

    // Waits of requests. The table of waits in `ecosystem.md` has the other causes. The weights of the first ten add half of
    // the share of the routes' time.
    LOCK = "lock", Fault, 1.0, AWAIT, "", "";
    POOL = "pool", Fault, 1.0, AWAIT, "", "";
    POOL_OF_ONE = "pool", Fault, 1.0, AWAIT,
        "The pool lends one connection at a time, as if it had no more.",
        "Let the pool have several; SQLite reads on several in the mode WAL.";
    POOL_FOR_STATEMENT = "pool", Bound, 1.0, AWAIT,
        "That statement takes long, and keeps the connections.",
        "Run it with `EXPLAIN ANALYZE`, since a scan of a whole table wants an index; only then make the pool larger.";
    POOL_AT_WORK = "pool", Bound, 1.0, AWAIT,
        "All connections of the pool are at work: what they are asked for takes long, or is asked for too often.",
        "Keep the answer, or ask once for all who want the same; only then make the pool larger.";
    NEW_CONNECTION = "new_connection", Fault, 1.0, AWAIT, "", "";
    TRANSACTION = "database", Fault, 1.0, AWAIT, "", "";
    LIMIT = "limit", Bound, 0.9, AWAIT, "", "";
    LIMIT_BY_HAND = "limit", Bound, 0.9, AWAIT,
        "All permits are lent, or some were never given back: `available_permits()` of the idle service tells.",
        "Keep each permit in a variable until the request ends (no `forget`); then look at what its holders do.";
    LIMIT_FOR_TASKS = "limit", Fault, 0.9, AWAIT,
        "Work in the background takes the permits that requests need.",
        "Give that work its own permits, and bound how much of it begins at once.";
    QUEUE_FOR_STATEMENT = "queue", Fault, 0.9, AWAIT,
        "The receiver awaits a statement of the database for each message.",
        "Take many messages at a time (`recv_many`), and write them in one transaction.";
    QUEUE_FOR_RECEIVER = "queue", Bound, 0.9, AWAIT,
        "The receiver awaits this before it takes the next message.",
        "Make that wait shorter, keep several at a time (`buffer_unordered`), or send less.";
    LIMIT_IN_PAUSE = "limit", Fault, 0.9, AWAIT,
        "A permit is kept during a pause, as before a retry, and what it is for stands still.",
        "Give the permit back before the pause, and take one again after it.";
    QUEUE = "queue", Bound, 0.9, AWAIT, "", "";
    CLIENT = "client", Wait, 0.2, AWAIT, "", "";
    SINGLE_FLIGHT = "single_flight", Wait, 0.0, AWAIT,
        "One request makes a value, and the others wait for it, as they should (a single flight).",
        "If that is too long, renew the value in a task before it expires, or answer with the old one meanwhile.";
    // A wait whose cause was not seen, under the name of its kind.
    WAIT = "wait", Wait, 0.0, AWAIT, "", "";
    BLOCKING_JOB = "blocking_pool", Wait, 0.0, AWAIT,
        "",
        "Look at what the job does.";
    WAITS_FOR_EACH_OTHER = "waits_for_itself", Fault, 1.95, AWAIT,
        "A request takes a second one while it holds the first.",
        "Give the first back before that, or do with one.";
    STUCK = "stuck", Fault, 1.9, AWAIT,
        "It is never given back: some way out forgets it, or a second one is taken meanwhile.",
        "Look for both where it is taken.";
    LOST_WITH_REQUESTS = "stuck", Fault, 1.5, TASKS_OF_PROCESS,
        "A request that is dropped before that line never gives its permit back, and the limit shrinks.",
        "Keep the permit in a variable (no `forget`), which gives it back when the request is dropped, or give it back in a `Drop` \
         of your own.";
    HELD_ELSEWHERE = "stuck", Fault, 1.9, TASKS_OF_PROCESS,
        "Those requests took one before and keep it while they last, or it was forgotten: `/debug/tasks` says who holds it.",
        "Take one for each use, and give it back before the pause.";
    HELD_UP = "stuck", Fault, 1.9, AWAIT,
        "The holder keeps it while it waits for somebody who is slow or gone.",
        "Give it back before that wait, or do not wait there: `try_send`, and let go of whoever is too slow.";
    HELD_BY_TASK = "stuck", Fault, 1.9, AWAIT,
        "The task keeps it while it awaits something else.",
        "Give it back before that task awaits anything else: copy what is needed out of it first.";
    NOT_RECEIVED = "stuck", Fault, 1.9, AWAIT,
        "The receiver's task awaits something else before it takes the next message.",
        "Let that task only receive and answer; `debug_endpoints::watch(\"NAME\", …)` around its future shows what it awaits.";
    RECEIVER_WAITS = "stuck", Fault, 1.9, TASKS_OF_PROCESS,
        "The receiver's task awaits that before it takes the next message.",
        "Let that task only receive and answer, and do what it awaits in a task of its own.";
    UNPOLLED = "unpolled", Fault, 1.8, AWAIT,
        "They keep what they hold, such as a permit or a connection, and others wait for that.",
        "Put the work in between into those futures, or let them end first.";
    EQUAL_WORK = "equal_work", Fault, 1.0, AWAIT,
        "An entry of a cache expires or is missing, and each request that misses it makes it anew.",
        "Let one request make it while the others wait for that (a single flight: `OnceCell`, moka's `get_with`).";
    IN_A_ROW = "in_a_row", Fault, 0.9, AWAIT,
        "A loop asks for one thing after the other.",
        "Ask once for all of them, or for several at the same time if they do not need each other's answers.";
    // The weight adds half of the share that is saved.
    ONE_AFTER_ANOTHER = "one_after_another", Fault, 0.6, AWAIT,
        "Each call is awaited before the next one is made.",
        "If they do not need each other's answers, await them together (`tokio::join!`).";
    STATEMENTS_IN_TURN = "one_after_another", Wait, 0.6, AWAIT,
        "Each call is awaited before the next one is made.",
        "If they do not need each other's answers, nor one transaction, ask for all in one statement.";
    PRODUCER = "producer", Fault, 0.6, THREADS,
        "A loop awaits each answer before it asks for the next.",
        "If the messages do not need each other, ask for several at a time (`buffered`), or for all at once.";
    ONE_IN_FLIGHT = "one_in_flight", Fault, 0.85, AWAIT_JSON,
        "Each answer is awaited before the next message is sent.",
        "Send several, and await their answers together or in order (`buffered`).";
    ONE_BY_ONE = "one_task", Fault, 0.85, AWAIT_JSON,
        "The task awaits something for each message before it takes the next one out of its channel.",
        "Spawn the work for each message, keep several at a time (`buffer_unordered`), or have several such tasks.";
    ONE_STANDS_STILL = "one_task", Fault, 0.85, AWAIT_JSON,
        "The task that lets them go does something else in between.",
        "Put its future into `debug_endpoints::watch(\"NAME\", …)`, which shows what it awaits there.";
    CALLS_GIVEN_UP = "calls_given_up", Fault, 0.95, AWAIT,
        "The other service takes longer than the limit, and works on when the call is given up.",
        "Find out why the answers take longer, or allow that time; do not ask again at once.";
    CALLS_RACE = "calls_race", Fault, 0.95, AWAIT,
        "A `select!` drops the calls that lose, which closes their connections.",
        "Make the second call only if the first has no answer after the usual time (a hedge after the 95th percentile).";

    // Waits followed to their end, by the kind of the wait and by what the holder at the end does. Each weighs a little more
    // than the same wait without its end, and adds half of the share of the routes' time.
    LOCK_HELD = "lock", Fault, 1.02, TASKS_OF_PROCESS,
        "The guard is held across that `.await`, so one request at a time gets past.",
        "Drop the guard before that `.await`: take what is needed out of it first.";
    LOCK_HELD_IN_WORK = "lock", Fault, 1.02, TASKS_OF_PROCESS,
        "The holder keeps the guard during that work.",
        "Do the work before the lock is taken, or after the guard is dropped.";
    POOL_HELD = "pool", Fault, 1.02, TASKS_OF_PROCESS,
        "A connection stays lent while its holder awaits something else.",
        "Give it back before that `.await`: end the transaction, and drop the connection.";
    POOL_HELD_IN_WORK = "pool", Fault, 1.02, TASKS_OF_PROCESS,
        "A connection stays lent while its holder does that work.",
        "Give it back first: read all rows, and drop the connection.";
    POOL_HELD_FOR_STATEMENT = "pool", Bound, 1.02, TASKS_OF_PROCESS,
        "That statement takes long, and keeps the connections.",
        "Run it with `EXPLAIN ANALYZE`, since a scan of a whole table wants an index; only then make the pool larger.";
    LIMIT_HELD = "limit", Bound, 0.92, TASKS_OF_PROCESS,
        "Requests keep their permits during that wait, and no more are let in.",
        "Raise the limit if more of that may go on at once; otherwise make that wait shorter.";
    LIMIT_HELD_IN_PAUSE = "limit", Bound, 0.92, TASKS_OF_PROCESS,
        "Permits are kept during a pause, in which no more are let in.",
        "Give the permit back before the pause, unless the limit is for the pause itself.";
    LIMIT_HELD_IN_WORK = "limit", Bound, 0.92, TASKS_OF_PROCESS,
        "Requests keep their permits during that work, and no more are let in.",
        "Take the permit only for what has to be limited, and do the work outside of it.";
    ONE_ANSWERS = "one_task", Fault, 0.87, TASKS_OF_PROCESS,
        "The task awaits this for each message before it takes the next one.",
        "Spawn the work for each message, or keep several at a time (`buffer_unordered`).";
    ONE_ANSWERS_WITH_WORK = "one_task", Fault, 0.87, TASKS_OF_PROCESS,
        "The task does this work for each message, and one thread does all of it.",
        "Have several such tasks, or do the work in the tasks that ask.";
    ONE_COLLECTS = "collects", Bound, 0.87, TASKS_OF_PROCESS,
        "The task collects messages until it has enough or a timer fires, and one that is made for each message never fires.",
        "Make the timer once, before the loop (`interval`), or collect fewer.";
    QUEUE_HELD = "queue", Bound, 0.92, TASKS_OF_PROCESS,
        "The receiver awaits this for each message before it takes the next one.",
        "Keep several at a time (`buffer_unordered`), or send less: a longer queue only waits longer.";
    QUEUE_HELD_IN_WORK = "queue", Bound, 0.92, TASKS_OF_PROCESS,
        "The receiver does this work for each message, and one thread does all of it.",
        "Have several receivers, or send less: a longer queue only waits longer.";
    CIRCLE = "waits_for_itself", Fault, 1.97, TASKS_OF_PROCESS,
        "Each task holds what the next one waits for.",
        "Take what is locked in the same order everywhere, or give the first back before the second is taken.";
    CIRCLE_OF_CHANNELS = "waits_for_itself", Fault, 1.97, TASKS_OF_PROCESS,
        "Each task waits for room in a channel from which the next one takes.",
        "Let one of them take messages while it waits (`select!` on `reserve` and `recv`), or refuse what has no room \
         (`try_send`).";
    LIMITS_NOTHING = "limits_nothing", Fault, 1.1, TASKS_OF_PROCESS,
        "The layer makes a semaphore for each service, and each connection has a service.",
        "Share one semaphore: use `GlobalConcurrencyLimitLayer`.";

    // How requests end.
    GIVEN_UP_FOR_TASK = "given_up", Fault, 1.6, AWAIT,
        "A spawned task runs on when its request is dropped, and others wait behind it.",
        "Bound the queue, refuse at once (503) what cannot be answered in time, and abort the task of a request that is gone.";
    GIVEN_UP_IN_QUEUE = "given_up", Fault, 1.6, AWAIT,
        "Work for clients who have left goes on, or the queue is longer than clients wait.",
        "Bound the queue and refuse at once (503) what cannot be answered in time; ask `is_closed()` of the reply's channel before \
         each job.";
    GIVEN_UP = "given_up", Bound, 1.6, AWAIT,
        "Clients wait for less time than most answers take.",
        "Bound the queue, and refuse at once (503) what cannot be answered in time.";
    CUT = "given_up", Bound, 1.6, AWAIT,
        "What they wait for takes longer than the limit.",
        "Find out why it takes so long there, and refuse at once (503) what cannot be answered in time.";
    CUT_ALL = "given_up", Fault, 1.6, AWAIT,
        "What they wait for takes longer than the limit.",
        "Find out why it takes so long there, and refuse at once (503) what cannot be answered in time.";
    CUT_AND_ASKED_AGAIN = "given_up", Fault, 1.6, AWAIT,
        "A loop makes the call anew before it has an answer: a retry if there is a pause in between, else a `select!`.",
        "Bound the retries of all requests together; in a `select!`, make the future before the loop and poll it by `&mut`.";
    BEGUN_ANEW = "given_up", Fault, 1.6, AWAIT,
        "The request that makes it is cut before it is done, and the next begins from the start.",
        "Make it in a spawned task and await that, or before the service takes requests.";
    BEGUN_ANEW_BY_SOME = "given_up", Bound, 1.6, AWAIT,
        "The request that makes it is cut before it is done, and the next begins from the start.",
        "Make it in a spawned task and await that, or before the service takes requests.";
    SERVER_ERRORS = "server_errors", Fault, 0.95, AWAIT_JSON,
        "Something that the handler needs fails.",
        "Look for the errors in its log; an error is often fast, and hides in latencies.";

    // Growth.
    MEMORY_OF_ANSWERS = "memory", Fault, 0.9, "/debug/pprof/heap, /debug/heap, /debug/memory",
        "An answer is made faster than its client takes it, and lies in between: in a channel without a bound, or whole.",
        "Send it through a bounded channel, or make the next piece when the last one is taken.";
    MEMORY_OF_FINISHED = "memory", Fault, 0.9, TASKS_OF_PROCESS,
        "Nobody takes the results of tasks that have ended, and their handles keep them.",
        "Join them in the loop that spawns (`join_next` or `try_join_next` of a `JoinSet`), or drop their handles.";
    MEMORY_KEPT = "memory", Fault, 0.9, "/debug/pprof/heap, /debug/heap, /debug/memory",
        "Something keeps what it is given, without a bound.",
        "Take a heap profile, which says who keeps it, and bound that.";
    MEMORY_OF_LINE = "memory", Fault, 0.9, "/debug/pprof/heap, /debug/heap, /debug/memory",
        "Something keeps what that line makes, without a bound.",
        "Bound what keeps it, or remove from it what is done.";
    TASKS = "tasks", Fault, 0.8, MEMORY,
        "Something spawns tasks that do not end, or not as soon as others come.",
        "Look for a `spawn` in a handler whose task goes on when the client has left, or has no bound.";
    KEPT_CONNECTIONS = "kept_connections", Fault, 0.9, SOCKETS,
        "Something keeps them, until no file descriptor is left.",
        "Use one client with a bounded pool.";
    DESCRIPTORS = "descriptors", Fault, 1.75, MEMORY,
        "Descriptors are kept; the kind with most of them says which.",
        "Close what is not needed, and bound what is; then raise the limit (`ulimit -n`, `LimitNOFILE=`).";

    // Connections.
    CLIENT_FOR_CALL = "connections", Fault, 0.9, SOCKETS,
        "A client has a pool of connections of its own, and takes it along when it is dropped.",
        "Make one client at the start, and share it: a clone has the same pool.";
    CLOSED_BEFORE_USE = "connections", Fault, 0.9, SOCKETS,
        "A client is made for each call, unless its pool keeps fewer connections than are used at once.",
        "Keep one client, and let its pool keep as many as are used at once.";
    CLOSED_BY_OTHERS = "connections", Fault, 0.9, SOCKETS,
        "The other end closes: its answers say `connection: close`, unless a body is not read to its end.",
        "Read each answer to its end.";
    // Sockets do not show whether the clients asked for it.
    CLOSED_BY_SERVICE = "connections_closed", Note, 0.3, SOCKETS,
        "",
        "Unless clients ask for that (`connection: close`), serve each connection until its client closes it.";
    ONE_FOR_EACH_MESSAGE = "upstream_connections", Note, 0.3, SOCKETS,
        "",
        "Where the protocol allows, keep them open for the next message.";
    CLOSED_BY_CLIENTS = "clients_connections", Note, 0.3, SOCKETS,
        "",
        "Let clients keep them alive.";
    NAGLE = "nagle", Fault, 1.2, SOCKETS,
        "An answer is written in pieces, and its client acknowledges the first one late.",
        "Set TCP_NODELAY, or write each answer in one piece.";
    NOT_ACCEPTED = "accept_queue", Fault, 0.8, SOCKETS,
        "The task that accepts awaits something else between two accepts.",
        "Spawn what is done with a connection, and accept at once.";
    HELD_BY_CLIENT = "unread", Fault, 1.5, SOCKETS,
        "A task sends to all clients in turn and waits for the slowest, and the others wait for it or for a lock that it holds.",
        "Give each client a bounded channel, use `try_send`, close those that are too slow, and hold no lock while you send.";
    NOT_READ = "unread", Fault, 0.8, SOCKETS,
        "The task or thread that reads does something else first.",
        "Read in a separate task, or close what will not be read.";
    READER_ELSEWHERE = "datagrams", Fault, 1.2, SOCKETS,
        "While its reader is there, what comes in overflows the socket's buffer.",
        "Let one task only receive, and pass on by `try_send` to a bounded channel; a larger `SO_RCVBUF` helps with bursts alone.";
    READER_COMPUTES = "datagrams", Fault, 1.2, SOCKETS,
        "While its reader computes, what comes in overflows the socket's buffer.",
        "Let one task or thread only receive and pass on, and compute in others; a larger `SO_RCVBUF` helps with bursts alone.";
    NO_READER = "datagrams", Fault, 1.2, SOCKETS,
        "No task or thread was seen to read it, so its buffer stays full.",
        "Read it, or close it.";
    READER_LATE = "datagrams", Fault, 1.2, SOCKETS,
        "Its reader takes fewer datagrams than come in, or does something else in between.",
        "Let one task only receive and pass on; `debug_endpoints::watch(\"NAME\", …)` around its future shows what else it does.";
    BURSTS = "datagrams", Bound, 0.9, SOCKETS,
        "Datagrams come in bursts that are larger than the socket's buffer.",
        "Set a larger `SO_RCVBUF`, as `net.core.rmem_max` allows, and take all that is there at each wake (`try_recv_from`).";
    SHARED_CONNECTION = "shared_connection", Fault, 1.3, AWAIT,
        "One connection answers in turn: a slow command, or one that blocks, holds up all behind it.",
        "Use a pool of connections, and a separate one for commands that block.";
    // The weight adds half of the share of the routes' time.
    SHARED_STREAMS = "answer_or_stream", Fault, 0.5, AWAIT, "", "";
}

/// Cause and remedy of a function that one request calls at several lines.
pub(crate) const SAME_WORK: Advice = Advice {
    cause: "One request does the same work several times.",
    fix: "Do it once for each request, and pass the result on.",
};

/// Cause and remedy of a function that is busy, and hardly computes.
pub(crate) const WAKE_UPS: Advice = Advice {
    cause: "Tasks are woken there very often, or send and receive small pieces: they hardly compute.",
    fix: "Take many pieces at a time, and pause before what failed is tried again.",
};

/// Cause and remedy of a wait whose holder nobody polls.
pub(crate) const HOLDER_UNPOLLED: Advice = Advice {
    cause: "The holder's future is kept and not polled, so it never lets go.",
    fix: "Poll it together with what is awaited instead, or drop it.",
};

/// Cause and remedy of a wait whose holder was woken.
pub(crate) const HOLDER_READY: Advice = Advice {
    cause: "The holder could go on, and no thread polls it.",
    fix: "Find what keeps the worker threads busy, and move it to blocking threads.",
};

/// How the report treats a finding that another one explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It is left out, wherever it is.
    Drops,
    /// It is left out if both are about one place.
    DropsThere,
    /// It is left out, unless it is the surer of the two.
    DropsLesser,
    /// It is told after its cause.
    RanksBelow,
}

/// Findings that follow from others.
pub(crate) struct Explains {
    pub(crate) causes: &'static [&'static str],
    pub(crate) effect: Effect,
    pub(crate) consequences: &'static [&'static str],
}

/// Waits that are no news beside a fault, which says what the threads do.
pub(crate) const TOLD_BY_FAULTS: &[&str] = &["running", "ready"];

/// Findings that say where threads compute.
pub(crate) const COMPUTES: &[&str] = &["computing_worker", "computing_request", "rare_hold"];

/// Kinds of waits for what another request has.
const OF_HOLDERS: &[&str] = &[
    "lock",
    "pool",
    "limit",
    "queue",
    "new_connection",
    "database",
];

/// Findings that explain others. No rule knows another: the report leaves out what is explained.
pub(crate) const EXPLAINS: &[Explains] = &[
    // A thread that does not yield accepts and reads nothing, and tasks pile up.
    Explains {
        causes: &["blocked_worker", "computing_worker"],
        effect: Effect::Drops,
        consequences: &["accept_queue", "tasks", "unread"],
    },
    Explains {
        causes: &["blocked_worker", "computing_worker"],
        effect: Effect::DropsLesser,
        consequences: &["computing_request", "computing_task"],
    },
    Explains {
        causes: &["computing_worker"],
        effect: Effect::Drops,
        consequences: &["rare_hold"],
    },
    // Threads are busy with those tries, and the connections are never used.
    Explains {
        causes: &["retried"],
        effect: Effect::Drops,
        consequences: &["connections", "upstream_connections", "new_connection"],
    },
    Explains {
        causes: &["retried"],
        effect: Effect::DropsThere,
        consequences: &["spins"],
    },
    Explains {
        causes: &["retried"],
        effect: Effect::DropsLesser,
        consequences: COMPUTES,
    },
    // A loop that asks again and again keeps its thread.
    Explains {
        causes: &["spins"],
        effect: Effect::DropsThere,
        consequences: COMPUTES,
    },
    // Threads are busy with those wake-ups, and requests wait for their turn.
    Explains {
        causes: &["wakes_all"],
        effect: Effect::DropsThere,
        consequences: &[
            "computing_worker",
            "computing_request",
            "rare_hold",
            "channel",
            "notification",
        ],
    },
    // One computation is told once.
    Explains {
        causes: &["rare_hold"],
        effect: Effect::DropsThere,
        consequences: &["computing_request", "computing_task"],
    },
    // One computation is told once.
    Explains {
        causes: &["computing_worker"],
        effect: Effect::Drops,
        consequences: TOLD_BY_FAULTS,
    },
    // The jobs, or the requests, compute in those reads.
    Explains {
        causes: &["small_reads"],
        effect: Effect::Drops,
        consequences: &["blocking_pool"],
    },
    Explains {
        causes: &["small_reads"],
        effect: Effect::DropsThere,
        consequences: &["in_a_row"],
    },
    // Threads are busy with handing those jobs over.
    Explains {
        causes: &["small_reads"],
        effect: Effect::DropsLesser,
        consequences: &["computing_worker"],
    },
    Explains {
        causes: &["full_blocking_pool"],
        effect: Effect::Drops,
        consequences: &["unread", "blocking_pool"],
    },
    // The loss is told with what its reader does.
    Explains {
        causes: &["datagrams"],
        effect: Effect::DropsThere,
        consequences: &[
            "answer",
            "blocking_pool",
            "channel",
            "computing_request",
            "computing_task",
            "computing_worker",
            "database",
            "network",
            "notification",
            "rare_hold",
            "task",
            "timer",
        ],
    },
    // Whatever keeps the threads also keeps those that read.
    Explains {
        causes: &["blocked_worker", "computing_worker"],
        effect: Effect::RanksBelow,
        consequences: &["datagrams"],
    },
    // A call that is given up closes its connection.
    Explains {
        causes: &["calls_given_up", "calls_race"],
        effect: Effect::Drops,
        consequences: &["connections"],
    },
    Explains {
        causes: &["stuck", "waits_for_itself", "equal_work"],
        effect: Effect::DropsThere,
        consequences: OF_HOLDERS,
    },
    // Whoever waits for tasks in a circle waits as long as they do.
    Explains {
        causes: &["waits_for_itself"],
        effect: Effect::DropsThere,
        consequences: &["stuck", "channel", "collects"],
    },
    // What the holders wait for is told with them.
    Explains {
        causes: &["stuck", "lock", "pool", "limit"],
        effect: Effect::DropsThere,
        consequences: &["timer"],
    },
    Explains {
        causes: &["single_flight"],
        effect: Effect::DropsThere,
        consequences: &["lock"],
    },
    // The pool's connections are lent to requests that wait for that statement.
    Explains {
        causes: &["pool", "queue", "sqlite_computes", "shared_connection"],
        effect: Effect::DropsThere,
        consequences: &["database"],
    },
    // What the task waits for was seen, and not guessed from when it lets requests go.
    Explains {
        causes: &["collects"],
        effect: Effect::DropsThere,
        consequences: &["one_task", "channel", "queue", "tasks"],
    },
    Explains {
        causes: &["one_in_flight", "one_task", "producer"],
        effect: Effect::DropsThere,
        consequences: &["channel", "queue"],
    },
    // They queue for what the limit should have kept away.
    Explains {
        causes: &["limits_nothing"],
        effect: Effect::Drops,
        consequences: &["limit", "pool"],
    },
    Explains {
        causes: &["in_a_row", "calls_given_up"],
        effect: Effect::DropsThere,
        consequences: &[
            "answer",
            "answer_or_stream",
            "blocking_pool",
            "database",
            "lock",
            "new_connection",
            "pool",
        ],
    },
    // The lock's holder is the request that makes the value.
    Explains {
        causes: &["given_up"],
        effect: Effect::DropsThere,
        consequences: &["lock", "stuck", "single_flight", "task"],
    },
    // Tasks that queue up become more.
    Explains {
        causes: OF_HOLDERS,
        effect: Effect::DropsThere,
        consequences: &["tasks"],
    },
    Explains {
        causes: &["stuck", "waits_for_itself", "one_task"],
        effect: Effect::DropsThere,
        consequences: &["tasks"],
    },
    // Clients leave because they queue.
    Explains {
        causes: &[
            "lock",
            "pool",
            "limit",
            "new_connection",
            "database",
            "stuck",
            "waits_for_itself",
        ],
        effect: Effect::RanksBelow,
        consequences: &["given_up"],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a text is one sentence: it ends with a full stop, and has no other at the end of a word.
    fn is_sentence(text: &str) -> bool {
        text.ends_with('.') && !text.trim_end_matches('.').contains(". ")
    }

    #[test]
    fn cause_and_remedy_are_one_sentence_each() {
        for row in ALL {
            for text in [row.cause, row.fix] {
                assert!(text.is_empty() || is_sentence(text), "{}: {text}", row.kind);
            }
        }
        for row in ecosystem::waits() {
            for text in [row.wait.cause, row.wait.fix] {
                assert!(
                    text.is_empty() || is_sentence(text),
                    "{}: {text}",
                    row.wait.what
                );
            }
        }
    }

    #[test]
    fn what_explains_and_is_explained_is_in_the_table() {
        let kinds: Vec<&str> = ALL.iter().map(|row| row.kind).collect();
        for row in EXPLAINS {
            for kind in row.causes.iter().chain(row.consequences) {
                let is_wait = ecosystem::waits()
                    .iter()
                    .any(|row| row.wait.kind.name() == *kind);
                assert!(is_wait || kinds.contains(kind), "{kind}");
            }
        }
    }
}
