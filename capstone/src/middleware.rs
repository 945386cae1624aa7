//! Sessions: who somebody is, by a cookie.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::Cookie;
use tokio::sync::RwLock;
use uuid::Uuid;

use crate::error::AppError;
use crate::models::event::Event;
use crate::models::user::User;

/// The cookie's name.
const COOKIE: &str = "session";

pub type Sessions = Arc<RwLock<HashMap<String, Session>>>;

/// What is known of a visitor.
#[derive(Clone, Default)]
pub struct Session {
    pub user: Option<User>,
    /// Events that were looked at, the latest last.
    pub viewed: Vec<Event>,
}

/// Which session a request belongs to.
#[derive(Clone)]
pub struct SessionId(pub String);

/// Gives each visitor a session, and logs the request.
pub async fn session(
    State(sessions): State<Sessions>,
    jar: CookieJar,
    mut request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let mut id = jar.get(COOKIE).map(|cookie| cookie.value().to_owned());
    if let Some(known) = &id {
        let session = sessions.read().await.get(known).cloned();
        match session {
            Some(Session {
                user: Some(user), ..
            }) => _ = request.extensions_mut().insert(user),
            Some(_) => (),
            None => id = None,
        }
    }
    let is_new = id.is_none();
    let id = id.unwrap_or_else(|| Uuid::new_v4().to_string());
    if is_new {
        let mut sessions = sessions.write().await;
        sessions.insert(id.clone(), Session::default());
    }
    request.extensions_mut().insert(SessionId(id.clone()));

    let response = next.run(request).await;

    let status = response.status().as_u16();
    let milliseconds = began.elapsed().as_millis();
    tracing::info!(%method, path, status, milliseconds, session = id, "answered");
    if is_new {
        let cookie = Cookie::build((COOKIE, id)).path("/").http_only(true);
        (jar.add(cookie), response).into_response()
    } else {
        response
    }
}

impl<S: Sync> FromRequestParts<S> for User {
    type Rejection = AppError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, AppError> {
        let user = parts.extensions.get::<User>();
        user.cloned().ok_or(AppError::NotLoggedIn)
    }
}
