//! A service that holds a lock while it waits for a "database", and the same service with the lock
//! dropped before: a thousand connections, a picture of each service, and one of the change.
//!
//! ```text
//! cargo run --example held_lock -- images
//! ```

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use await_profile::{
    AwaitProfiler, FlamegraphOptions, Frames, Profile, ProfileOptions, differential, path,
};
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::Mutex;

mod load;

const CONNECTIONS: usize = 1000;

type Cache = Arc<Mutex<HashMap<u32, String>>>;

/// Stands in for a query.
async fn database_call() -> String {
    tokio::time::sleep(Duration::from_millis(50)).await;
    "a row".to_owned()
}

mod problem {
    use super::{Cache, State, database_call};

    pub(super) async fn read(State(cache): State<Cache>) -> String {
        let mut cache = cache.lock().await;
        let row = database_call().await;
        cache.insert(1, row.clone());
        row
    }
}

mod solution {
    use super::{Cache, State, database_call};

    pub(super) async fn read(State(cache): State<Cache>) -> String {
        let row = database_call().await;
        cache.lock().await.insert(1, row.clone());
        row
    }
}

async fn profile(service: Router<Cache>) -> Result<Profile, Box<dyn std::error::Error>> {
    let profiler = AwaitProfiler::new().armed();
    let service = service.layer(profiler.layer()).with_state(Cache::default());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move { axum::serve(listener, service).await });
    let load = tokio::spawn(load::get(address, "/read", CONNECTIONS));
    while profiler.in_flight() < CONNECTIONS * 9 / 10 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let profile = profiler.profile(ProfileOptions::default()).await?;
    load.abort();
    server.abort();
    Ok(profile)
}

fn write(
    folder: &Path,
    name: &str,
    title: &str,
    profile: &Profile,
) -> Result<(), Box<dyn std::error::Error>> {
    let options = FlamegraphOptions::default().title(title);
    let file = folder.join(name);
    std::fs::write(file.with_extension("svg"), profile.flamegraph(&options)?)?;
    std::fs::write(file.with_extension("folded"), profile.folded(Frames::Own))?;
    println!("{title}");
    for share in profile.shares(Frames::Own) {
        let millis = share.ms_per_request.unwrap_or(f64::NAN);
        println!(
            "{:6.2} % {millis:10.2} ms  {} > {}",
            share.share * 100.0,
            share.route,
            path(&share.frames)
        );
    }
    for release in profile.releases(Frames::Own) {
        println!(
            "{} > {} is let go by {} ({:.0} % of {} samples)",
            release.route,
            path(&release.frames),
            path(&release.by),
            release.share * 100.0,
            release.samples
        );
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "target".into());
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let held = profile(Router::new().route("/read", get(problem::read))).await?;
    write(
        folder,
        "held-lock",
        "1,000 requests and a lock held during a database call",
        &held,
    )?;
    let dropped = profile(Router::new().route("/read", get(solution::read))).await?;
    write(
        folder,
        "dropped-lock",
        "The same, with the lock taken after the call",
        &dropped,
    )?;
    // The comparison must take the two handlers for one function.
    let as_one = |profile: &Profile| {
        let stacks = profile.folded(Frames::Own);
        stacks
            .replace("held_lock::problem::", "held_lock::")
            .replace("held_lock::solution::", "held_lock::")
    };
    let change = differential(
        "What changed when the lock was taken after the call",
        &as_one(&held),
        &as_one(&dropped),
    )?;
    std::fs::write(folder.join("held-to-dropped.svg"), change)?;
    Ok(())
}
