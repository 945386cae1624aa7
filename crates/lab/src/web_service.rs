//! The trait of services that the lab can serve.

use std::convert::Infallible;

use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use tower_service::Service;

/// A service that the lab can serve: a tower service that answers HTTP requests and never fails. Examples are
/// axum's router and warp's service.
pub trait WebService:
    Service<Request<Incoming>, Response = Response<Self::Body>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
{
    /// The body of its answers.
    type Body: Body<Data: Send, Error: Into<BoxError>> + Send + 'static;
}

impl<S, B> WebService for S
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send>,
    S: Clone + Send + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type Body = B;
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
