//! The first page.

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use minijinja::context;

use crate::error::AppError;
use crate::handlers::render;
use crate::middleware::SessionId;
use crate::shop::Shop;

pub async fn home(
    State(shop): State<Shop>,
    Extension(session): Extension<SessionId>,
) -> Result<Html<String>, AppError> {
    let session = shop.sessions.read().await.get(&session.0).cloned();
    let session = session.unwrap_or_default();
    let mut next = shop.catalogue.read().await.clone();
    next.truncate(10);
    let mut places = Vec::new();
    for listed in &next {
        places.push(shop.places.of(&shop.db, listed.event.venue_id).await?);
    }
    let viewed: Vec<_> = session.viewed.iter().rev().take(5).collect();
    let user = session.user.map(|user| user.name);
    render("home.html", context! { user, next, places, viewed })
}
