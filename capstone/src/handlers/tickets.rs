//! Tickets, as pictures with a code that is scanned at the door.

use std::io::Cursor;

use axum::extract::{Path, State};
use axum::http::header;
use axum::response::IntoResponse;
use image::{DynamicImage, ImageFormat, Luma};
use qrcode::{EcLevel, QrCode};

use crate::error::AppError;
use crate::models::ticket::Printed;
use crate::models::user::User;
use crate::shop::Shop;

pub async fn show(
    State(shop): State<Shop>,
    user: User,
    Path(code): Path<String>,
) -> Result<impl IntoResponse, AppError> {
    let ticket = Printed::find(&shop.db, &code).await?;
    let ticket = ticket.ok_or(AppError::NotFound)?;
    if ticket.user_id != user.id {
        return Err(AppError::NotYours);
    }
    let Printed {
        title,
        starts_at,
        row,
        number,
        ..
    } = ticket;
    let text = format!(
        "{code}\n{title}\n{starts_at}\nrow {row} seat {number}\n{}",
        user.name
    );
    let picture = draw(&text)?;
    Ok(([(header::CONTENT_TYPE, "image/png")], picture))
}

fn draw(text: &str) -> Result<Vec<u8>, AppError> {
    let code = QrCode::with_error_correction_level(text, EcLevel::H).map_err(AppError::other)?;
    let picture = code.render::<Luma<u8>>().min_dimensions(800, 800).build();
    let mut png = Cursor::new(Vec::new());
    DynamicImage::ImageLuma8(picture)
        .write_to(&mut png, ImageFormat::Png)
        .map_err(AppError::other)?;
    Ok(png.into_inner())
}
