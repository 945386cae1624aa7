//! Memory that grows: a map with an entry for each visitor, which nobody removes.
//!
//! Reports: librefang/librefang#3668, HerrMuellerluedenscheid/hoister#105. Nothing is lost, it is only kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use field::Arguments;

/// Time for which the fixed service remembers a visitor who does not come back.
const REMEMBERED: Duration = Duration::from_millis(500);

/// Data of one visitor.
struct Session {
    last_seen: Instant,
    _page: Vec<u8>,
}

#[derive(Default)]
struct Sessions {
    of_visitor: HashMap<u64, Session>,
    visitors: u64,
    swept: Option<Instant>,
}

type Shared = Arc<Mutex<Sessions>>;

async fn visit(State((sessions, is_fixed)): State<(Shared, bool)>) -> String {
    let now = Instant::now();
    let mut sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
    sessions.visitors += 1;
    let visitor = sessions.visitors;
    let session = Session {
        last_seen: now,
        _page: vec![7; 4096],
    };
    // The fault: each visitor is a new one, and no session ends.
    sessions.of_visitor.insert(visitor, session);
    if is_fixed && sessions.swept.is_none_or(|swept| now - swept > REMEMBERED) {
        sessions.swept = Some(now);
        sessions
            .of_visitor
            .retain(|_, session| now - session.last_seen < REMEMBERED);
    }
    format!("visitor {visitor}")
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let state = (Shared::default(), arguments.fixed);
    let routes = Router::new().route("/visit", get(visit)).with_state(state);
    field::serve(&arguments, routes).await
}
