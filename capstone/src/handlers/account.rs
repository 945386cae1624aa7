//! Signing up and logging in.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::AppError;
use crate::middleware::SessionId;
use crate::models::user::{self, User};
use crate::shop::Shop;

const EMAIL: &str = r"^(?i)[\w.+-]+@(\w[\w-]*\.)+\p{L}{2,}$";

#[derive(Deserialize)]
pub struct Form {
    email: String,
    #[serde(default)]
    name: String,
    password: String,
}

pub async fn sign_up(
    State(shop): State<Shop>,
    Extension(session): Extension<SessionId>,
    Json(form): Json<Form>,
) -> Result<(StatusCode, Json<Value>), AppError> {
    let email = Regex::new(EMAIL).map_err(AppError::other)?;
    if !email.is_match(&form.email) {
        return Err(AppError::Invalid("this is no e-mail address"));
    }
    if form.password.len() < 8 {
        return Err(AppError::Invalid("a password has eight characters"));
    }
    let hash = user::hash(&form.password).map_err(AppError::other)?;
    let user = User::create(&shop.db, &form.email, &form.name, &hash).await?;
    let user = user.ok_or(AppError::Conflict("this address has an account"))?;
    Ok((StatusCode::CREATED, enter(&shop, session, user).await))
}

pub async fn log_in(
    State(shop): State<Shop>,
    Extension(session): Extension<SessionId>,
    Json(form): Json<Form>,
) -> Result<Json<Value>, AppError> {
    let user = User::by_email(&shop.db, &form.email).await?;
    match user {
        Some(user) if user.has_password(&form.password) => Ok(enter(&shop, session, user).await),
        _ => Err(AppError::NotLoggedIn),
    }
}

async fn enter(shop: &Shop, session: SessionId, user: User) -> Json<Value> {
    let account = json!({ "id": user.id, "name": user.name });
    let mut sessions = shop.sessions.write().await;
    sessions.entry(session.0).or_default().user = Some(user);
    Json(account)
}
