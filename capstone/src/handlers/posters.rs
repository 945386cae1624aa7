//! Posters of events, as files.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;

use crate::error::AppError;
use crate::models::event::Event;
use crate::models::user::User;
use crate::shop::Shop;

const PNG: &str = "image/png";

pub async fn upload(
    State(shop): State<Shop>,
    user: User,
    Path(event): Path<i64>,
    headers: HeaderMap,
    poster: Bytes,
) -> Result<StatusCode, AppError> {
    if headers
        .get(header::CONTENT_TYPE)
        .is_none_or(|kind| kind != PNG)
    {
        return Err(AppError::Invalid("a poster is a PNG"));
    }
    let event = Event::find(&shop.db, event).await?;
    let event = event.ok_or(AppError::NotFound)?;
    if event.organiser_id != user.id {
        return Err(AppError::NotYours);
    }
    std::fs::write(shop.posters.join(event.id.to_string()), &poster)?;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn show(
    State(shop): State<Shop>,
    Path(event): Path<i64>,
) -> Result<impl IntoResponse, AppError> {
    let file = shop.posters.join(event.to_string());
    if !file.exists() {
        return Err(AppError::NotFound);
    }
    Ok(([(header::CONTENT_TYPE, PNG)], std::fs::read(file)?))
}
