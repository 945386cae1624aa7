//! A feed of prices that is connected anew at once while its source is away. With `--fixed` it pauses before each try.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use field::Arguments;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

async fn follow(source: SocketAddr, price: &watch::Sender<String>) -> std::io::Result<()> {
    let stream = TcpStream::connect(source).await?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next_line().await? {
        price.send_replace(line);
    }
    Ok(())
}

async fn keep_following(source: SocketAddr, price: watch::Sender<String>, is_fixed: bool) {
    let mut pause = FIRST_PAUSE;
    loop {
        if follow(source, &price).await.is_ok() {
            pause = FIRST_PAUSE;
        }
        // The fault: there is no pause.
        if is_fixed {
            sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }
}

async fn last_price(State(latest): State<watch::Receiver<String>>) -> String {
    latest.borrow().clone()
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    // The source was here, and is away.
    let source = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = source.local_addr()?;
    drop(source);
    let (price, latest) = watch::channel("7".to_owned());
    tokio::spawn(keep_following(address, price, arguments.fixed));
    let app = Router::new()
        .route("/price", get(last_price))
        .with_state(latest);
    field::serve(&arguments, app).await
}
