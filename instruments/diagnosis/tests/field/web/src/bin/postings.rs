//! An index that is read number by number: each is a job of the blocking pool, hundreds for a request. With `--fixed` the file has a
//! buffer.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeekExt, BufReader, SeekFrom};

/// Documents of a term.
const DOCUMENTS: u32 = 200;
/// Bytes of a term's list: four for its length, and six for each document with its weight.
const LIST: u64 = 4 + 6 * 200;

struct Index {
    file: PathBuf,
    fixed: bool,
}

async fn list(file: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<(u32, u16)>> {
    let length = file.read_u32_le().await?;
    let mut list = Vec::new();
    for _ in 0..length {
        let document = file.read_u32_le().await?;
        let weight = file.read_u16_le().await?;
        list.push((document, weight));
    }
    Ok(list)
}

impl Index {
    async fn postings(&self, term: u64) -> io::Result<Vec<(u32, u16)>> {
        let mut file = File::open(&self.file).await?;
        file.seek(SeekFrom::Start(term * LIST)).await?;
        if self.fixed {
            list(&mut BufReader::new(file)).await
        } else {
            list(&mut file).await
        }
    }
}

async fn best(State(index): State<Arc<Index>>, Path(term): Path<u64>) -> Result<String, StatusCode> {
    let postings = index.postings(term).await;
    let postings = postings.map_err(|_| StatusCode::NOT_FOUND)?;
    let best = postings.into_iter().max_by_key(|(_, weight)| *weight);
    let (document, _) = best.ok_or(StatusCode::NOT_FOUND)?;
    Ok(format!("{term}: {document}"))
}

fn write(terms: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for term in 0..terms {
        bytes.extend(DOCUMENTS.to_le_bytes());
        for document in 0..DOCUMENTS {
            let weight = document * 7 + term;
            bytes.extend(document.to_le_bytes());
            bytes.extend(&weight.to_le_bytes()[..2]);
        }
    }
    bytes
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments = Arguments::of_process();
    let file = std::env::temp_dir().join(format!("postings-{}", std::process::id()));
    std::fs::write(&file, write(10))?;
    let index = Index {
        file,
        fixed: arguments.fixed,
    };
    let app = Router::new()
        .route("/terms/{term}", get(best))
        .with_state(Arc::new(index));
    field::serve(&arguments, app).await
}
