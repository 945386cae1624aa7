//! Blocking work in a handler of actix: msupply-foundation/open-msupply#11856, actix/actix-web#941.
//!
//! Each of actix' workers is a thread with a tokio runtime of its own. A handler that blocks keeps all other requests
//! of its worker waiting, `/health` too.
//!
//!     cargo run --release -p field-actix -- --port 8080 --admin 6060
//!     cargo run --release -p field-actix -- --port 8080 --admin 6060 --fixed

use std::error::Error;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use actix_web::error::BlockingError;
use actix_web::{App, HttpServer, web};
use clap::Parser;
use debug_endpoints::DebugEndpoints;

/// A service with one fault.
#[derive(Parser)]
struct Arguments {
    /// Port on which the service listens.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Port on which the debug endpoints listen.
    #[arg(long, default_value_t = 6060)]
    admin: u16,
    /// Runs without the fault.
    #[arg(long)]
    fixed: bool,
}

/// An old client of a database, which knows no `async`.
fn read_row() -> &'static str {
    std::thread::sleep(Duration::from_millis(20));
    "row"
}

async fn row(is_fixed: web::Data<bool>) -> Result<&'static str, BlockingError> {
    if **is_fixed {
        web::block(read_row).await
    } else {
        // The fault: nobody else is answered by this worker meanwhile.
        Ok(read_row())
    }
}

async fn health() -> &'static str {
    "ok"
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port))?;
    let admin = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.admin))?;
    serve(listener, admin, arguments.fixed).await
}

/// Serves until the process ends.
async fn serve(
    listener: TcpListener,
    admin: TcpListener,
    is_fixed: bool,
) -> Result<(), Box<dyn Error>> {
    // ANCHOR: endpoints
    let debug = DebugEndpoints::new();
    let address = debug.serve(admin)?;
    let server = HttpServer::new(move || {
        App::new()
            .wrap(debug.actix()) // in this closure, so that each worker's runtime is watched
            // ANCHOR_END: endpoints
            .app_data(web::Data::new(is_fixed))
            .route("/row", web::get().to(row))
            .route("/health", web::get().to(health))
    });
    println!("profiles are at http://{address}/debug");
    Ok(server.workers(2).listen(listener)?.run().await?)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};

    use super::*;

    fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Returns the report of the endpoints on a service under the load of four users.
    fn told_of_the_fault() -> std::io::Result<[String; 2]> {
        let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let (listener, admin) = (free()?, free()?);
        let (service, debug) = (listener.local_addr()?, admin.local_addr()?);
        std::thread::spawn(move || {
            let served = actix_web::rt::System::new().block_on(serve(listener, admin, false));
            served.map_err(|error| error.to_string())
        });
        ask(service, "/health")?;
        for _ in 0..4 {
            std::thread::spawn(move || while ask(service, "/row").is_ok() {});
        }
        let heartbeat = ask(debug, "/debug/heartbeat?seconds=1")?;
        Ok([heartbeat, ask(debug, "/debug/await?seconds=1&all=true")?])
    }

    #[test]
    fn each_worker_is_watched_and_one_that_is_blocked_stands_at_the_top() -> std::io::Result<()> {
        let [heartbeat, waits] = told_of_the_fault()?;
        // The first name is that of the latest runtime.
        let latest = heartbeat.split("\"runtime\":\"").nth(1).unwrap_or_default();
        assert!(latest.starts_with("actix-rt"), "{heartbeat}");
        assert!(heartbeat.contains("watches 3 runtimes"), "{heartbeat}");
        assert!(waits.contains("GET /row"), "{waits}");
        Ok(())
    }
}
