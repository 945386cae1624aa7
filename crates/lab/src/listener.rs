//! The service's own listener: binds, announces, accepts and serves.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::routing::get;
use axum::{Json, Router};
use clap::ValueEnum;
use debug_endpoints::{AwaitProfiler, DebugEndpoints, ListenError};
use tokio::net::{TcpListener, TcpSocket};
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::Sender;
use tower_layer::Layer;

use crate::archive::Archive;
use crate::cleanup::OpenFiles;
use crate::connection::{Connection, accept, answer};
use crate::counters::Counters;
use crate::dispatcher::Dispatcher;
use crate::locality;
use crate::metrics::{Metrics, Sources, is_optimised};
use crate::options::{Options, Uses};
use crate::upstream::Upstream;
use crate::web_service::WebService;
use crate::{Database, Error, PoolUse, Work};

/// Connections that the kernel holds before `accept`, of the admin listener.
const ADMIN_BACKLOG: u32 = 4096;

/// Lines for the lab's own debug endpoints.
const INDEX: &str = "\
/debug/placement                        which copy of the data is read from where
/debug/records                          what was recorded in the stand-in database, in order, JSON
";

/// A chapter's server before it serves: both ports are bound, nothing is answered yet.
#[derive(Debug)]
pub struct Lab {
    options: Options,
    listener: TcpListener,
    admin: SocketAddr,
    profiler: AwaitProfiler,
    counters: Arc<Counters>,
    sources: Sources,
}

impl Lab {
    /// Reads the command line, raises the limit on open files and binds both listeners. Returns the
    /// variant that the command line names, and the lab that will serve it.
    ///
    /// `chapter` is the package's name. A usage error ends the process with code 2, as clap does. An
    /// option for a resource that the chapter does not use is a usage error.
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// Returns an error if a port is taken or cannot be bound.
    pub fn start<V>(chapter: &'static str, uses: &[Uses]) -> Result<(V, Self), Error>
    where
        V: ValueEnum + Send + Sync + 'static,
    {
        let (variant, options) = Options::read(chapter, uses);
        Ok((variant, Self::open(options)?))
    }

    /// Opens the lab as [`Lab::start`] does, with options that were read before. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// Returns an error if a port is taken or cannot be bound.
    pub fn open(options: Options) -> Result<Self, Error> {
        raise_open_file_limit();
        let counters = Arc::new(Counters::default());
        let listener = bind(options.common.port, options.common.backlog, "--port")?;
        let admin = bind(options.common.admin_port, ADMIN_BACKLOG, "--admin-port")?;
        let sources = Sources::new(options.scans.clone());
        let metrics = Metrics::new(&counters, &options, sources.clone());
        let placement = get(async || Json(locality::placement()));
        let recorded = Arc::clone(&counters);
        let records = get(async move || Json(recorded.records.latest()));
        let debug = DebugEndpoints::new()
            .metrics(move || metrics.text())
            .routes(
                INDEX,
                Router::new()
                    .route("/debug/placement", placement)
                    .route("/debug/records", records),
            );
        let admin = admin.into_std().map_err(ListenError::Io);
        let admin = admin.and_then(|admin| debug.serve(admin))?;
        options.cleanup.add(OpenFiles);
        Ok(Self {
            profiler: debug.profiler(),
            options,
            listener,
            admin,
            counters,
            sources,
        })
    }

    /// Returns the seed of the chapter's data: 0 unless `--data-seed` says otherwise.
    ///
    /// The grader starts problem and exercise with the same seed, unknown to both, so that an answer
    /// cannot be hard-coded.
    pub fn data_seed(&self) -> u64 {
        self.options.data_seed()
    }

    /// A database whose calls take `round_trip` unless `--database-ms` says otherwise, counted on
    /// `/metrics`.
    pub fn database(&self, round_trip: Duration) -> Database {
        let asked = self.options.database.database_ms.map(Duration::from_millis);
        let round_trip = asked.unwrap_or(round_trip);
        Database::new(round_trip, Arc::clone(&self.counters))
    }

    /// The service that this one calls, counted on `/metrics`. The embedded one answers after `latency` unless
    /// `--upstream-latency-ms` says otherwise.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be started, or if the upstream that the command line names cannot be reached.
    pub fn upstream(&self, latency: Duration) -> Result<Upstream, Error> {
        let (upstream, counted) = Upstream::start(&self.options, latency, &self.counters)?;
        // A chapter asks once; asking again would start another.
        let _ = self.sources.upstream.set(counted);
        Ok(upstream)
    }

    /// The database that the command line names with `--database`, if any.
    pub fn database_url(&self) -> Option<&str> {
        self.options.sql_database.database.as_deref()
    }

    /// Counts on `/metrics` what a pool of connections lends.
    pub fn pool_use(&self) -> PoolUse {
        self.counters.pool.get_or_init(PoolUse::default).clone()
    }

    /// Keeps a value, such as a temporary folder, until the server stops, and drops it then.
    pub fn keep(&self, value: impl Send + 'static) {
        self.options.cleanup.add(value);
    }

    /// Work that takes `duration` of a thread's CPU time, counted on `/metrics`.
    pub fn work(&self, duration: Duration) -> Work {
        Work::calibrated(duration, self.data_seed(), Arc::clone(&self.counters))
    }

    /// The URL of an archive, with a slash at the end: what is `PUT` there comes back with a `GET`, once. It
    /// takes and gives 256 MiB a second unless `--archive-mib-per-second` says otherwise.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be started.
    pub fn archive(&self) -> Result<String, Error> {
        Archive::start(&self.options.archive, &self.counters).map_err(Error::Archive)
    }

    /// Ticks every millisecond on the current runtime, unless `--no-heartbeat` was given. `/metrics`
    /// reports how late the ticks were, and how much [`Work`] their thread did in between.
    pub fn heartbeat(&self) {
        if !self.options.common.no_heartbeat {
            self.sources.heartbeat.start();
        }
    }

    /// Announces both addresses and answers every connection with `service` until Ctrl-C or SIGTERM.
    ///
    /// # Errors
    ///
    /// Returns an error if standard output is closed before the addresses are printed.
    pub async fn serve<S: WebService>(self, service: S) -> Result<(), Error> {
        self.announce().map_err(Error::Announce)?;
        let service = self.profiler.layer().layer(service);
        tokio::select! {
            () = self.accept(service) => {}
            () = asked_to_stop() => {}
        }
        self.options.cleanup.run();
        Ok(())
    }

    /// Announces both addresses and puts every connection into one of the `queues`, until Ctrl-C or SIGTERM.
    /// For services whose workers answer on threads of their own: each takes its connections from
    /// its queue and calls [`Connection::answer`].
    ///
    /// The next queue that has room gets the connection; when all are full, the first to have room.
    ///
    /// # Errors
    ///
    /// Returns an error if standard output is closed before the addresses are printed.
    pub async fn dispatch(self, queues: Vec<Sender<Connection>>) -> Result<(), Error> {
        self.announce().map_err(Error::Announce)?;
        let accept = async {
            let mut dispatcher = Dispatcher::to(queues);
            loop {
                let stream = accept(&self.listener).await;
                self.sources.scans.note_acceptor();
                if let Ok(connection) =
                    Connection::detached(stream, self.profiler.clone(), &self.counters)
                {
                    dispatcher.pass(connection).await;
                }
            }
        };
        tokio::select! {
            () = accept => {}
            () = asked_to_stop() => {}
        }
        self.options.cleanup.run();
        Ok(())
    }

    async fn accept<S: WebService>(&self, service: S) {
        loop {
            let stream = accept(&self.listener).await;
            tokio::spawn(answer(stream, service.clone(), Arc::clone(&self.counters)));
        }
    }

    fn announce(&self) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        if !is_optimised() {
            writeln!(
                out,
                "WARNING: this is an UNOPTIMISED build and its figures mean nothing; \
                 use the profiles that the workshop ships"
            )?;
        }
        writeln!(
            out,
            "{} {} listens on http://{}, admin on http://{}",
            self.options.chapter,
            self.options.variant,
            self.listener.local_addr()?,
            self.admin
        )?;
        out.flush()
    }
}

/// Waits for Ctrl-C or the signal that `kill` sends.
async fn asked_to_stop() {
    #[cfg(unix)]
    if let Ok(mut terminated) = signal(SignalKind::terminate()) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminated.recv() => {}
        }
        return;
    }
    let _ = tokio::signal::ctrl_c().await;
}

fn bind(port: u16, backlog: u32, option: &'static str) -> Result<TcpListener, Error> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    listen(address, backlog).map_err(|source| Error::Listen {
        address,
        option,
        source,
    })
}

fn listen(address: SocketAddr, backlog: u32) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    // A restart must not wait for the last run's connections to leave TIME_WAIT. On Windows the
    // option means something else: stealing the port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog)
}

/// Thousands of users are thousands of sockets; many systems start at 256 or 1,024.
fn raise_open_file_limit() {
    #[cfg(unix)]
    let _ = rlimit::increase_nofile_limit(u64::MAX);
}
