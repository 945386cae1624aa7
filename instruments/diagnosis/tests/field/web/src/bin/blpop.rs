//! A command that blocks (`BLPOP`) on the one connection that all requests share: the others wait behind it.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use redis::aio::MultiplexedConnection;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone)]
struct Cache {
    connection: MultiplexedConnection,
}

async fn stock(State(mut cache): State<Cache>) -> Result<String, StatusCode> {
    let mut command = redis::cmd("GET");
    let answer = command.arg("stock").query_async(&mut cache.connection);
    answer.await.map_err(|_| StatusCode::BAD_GATEWAY)
}

/// A server of Redis for one client after the other, as far as this service needs one: it answers in turn, and BLPOP
/// after a tenth of a second.
async fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let words: usize = line.trim().trim_start_matches('*').parse().unwrap_or(0);
        let mut command = Vec::new();
        for _ in 0..words {
            line.clear();
            stream.read_line(&mut line).await?;
            let length: usize = line.trim().trim_start_matches('$').parse().unwrap_or(0);
            let mut word = vec![0; length + 2];
            stream.read_exact(&mut word).await?;
            command.push(String::from_utf8_lossy(&word[..length]).to_uppercase());
        }
        let answer = match command.first().map(String::as_str) {
            Some("BLPOP") => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                "$-1\r\n"
            }
            Some("GET") => "$1\r\n7\r\n",
            _ => "+OK\r\n",
        };
        stream.write_all(answer.as_bytes()).await?;
    }
}

async fn server(listener: TcpListener) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(answer(stream));
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::of_process();
    let address = field::beside(server);
    let client = redis::Client::open(format!("redis://{address}/"))?;
    let connection = client.get_multiplexed_async_connection().await?;
    // The fault: jobs are waited for on the connection of the requests.
    let mut jobs = if arguments.fixed {
        client.get_multiplexed_async_connection().await?
    } else {
        connection.clone()
    };
    tokio::spawn(async move {
        loop {
            let mut command = redis::cmd("BLPOP");
            let job = command.arg("jobs").arg(1);
            // Nobody has one.
            let _: redis::RedisResult<Option<String>> = job.query_async(&mut jobs).await;
        }
    });
    let routes = Router::new()
        .route("/stock", get(stock))
        .with_state(Cache { connection });
    field::serve(&arguments, routes).await?;
    Ok(())
}
