//! Letters that wake everybody: whoever waits for one looks into its hole when any letter comes. With `--fixed` each hole wakes the
//! one who waits for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use field::Arguments;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Time until a letter comes.
const WORK: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Hole {
    letter: Mutex<Option<String>>,
    came: Notify,
}

#[derive(Default)]
struct Rack {
    last: AtomicU64,
    letters: Mutex<HashMap<u64, String>>,
    came: Notify,
    fixed: bool,
}

impl Rack {
    fn put(&self, number: u64) {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.insert(number, format!("letter {number}"));
        drop(letters);
        self.came.notify_waiters();
    }

    fn take(&self, number: u64) -> Option<String> {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.remove(&number)
    }

    async fn letter(&self, number: u64) -> String {
        loop {
            let came = self.came.notified();
            if let Some(letter) = self.take(number) {
                return letter;
            }
            // The fault: it is woken by the letters of all others, too.
            came.await;
        }
    }
}

impl Hole {
    async fn letter(&self) -> String {
        self.came.notified().await;
        let mut letter = self.letter.lock().unwrap_or_else(PoisonError::into_inner);
        letter.take().unwrap_or_default()
    }

    fn put(&self, letter: String) {
        let mut hole = self.letter.lock().unwrap_or_else(PoisonError::into_inner);
        *hole = Some(letter);
        self.came.notify_one();
    }
}

async fn letter(State(rack): State<Arc<Rack>>) -> String {
    let number = rack.last.fetch_add(1, Ordering::Relaxed);
    if rack.fixed {
        let hole = Arc::new(Hole::default());
        let writes = hole.clone();
        tokio::spawn(async move {
            sleep(WORK).await;
            writes.put(format!("letter {number}"));
        });
        return hole.letter().await;
    }
    let writes = rack.clone();
    tokio::spawn(async move {
        sleep(WORK).await;
        writes.put(number);
    });
    rack.letter(number).await
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let rack = Arc::new(Rack {
        fixed: arguments.fixed,
        ..Rack::default()
    });
    let app = Router::new()
        .route("/letter", get(letter))
        .with_state(rack);
    field::serve(&arguments, app).await
}
