//! A statement that is written line by line: each is a job of the blocking pool. With `--fixed` the file has a buffer.

use std::io;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::fs::File;
use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};

const ENTRIES: u32 = 150;

async fn entries(file: &mut (impl AsyncWrite + Unpin), account: u32) -> io::Result<()> {
    for entry in 0..ENTRIES {
        let line = format!("{account};{entry};{}\n", entry * 100);
        file.write_all(line.as_bytes()).await?;
    }
    file.flush().await
}

async fn statement(account: u32, is_fixed: bool) -> io::Result<()> {
    let name = format!("ledger-{}-{account}", std::process::id());
    let mut file = File::create(std::env::temp_dir().join(name)).await?;
    if is_fixed {
        entries(&mut BufWriter::new(file), account).await
    } else {
        entries(&mut file, account).await
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments = Arguments::of_process();
    let is_fixed = arguments.fixed;
    let close = move |Path(account): Path<u32>| async move {
        let written = statement(account, is_fixed).await;
        written.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
        Ok::<_, StatusCode>("closed")
    };
    let app = Router::new().route("/close/{account}", get(close));
    field::serve(&arguments, app).await
}
