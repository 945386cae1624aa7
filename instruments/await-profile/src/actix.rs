//! Middleware for services on actix.

use std::future::{Ready, ready};

use actix_web::Error;
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform, forward_ready};

use crate::label::Label;
use crate::profiler::AwaitProfiler;
use crate::tracked::Tracked;

impl AwaitProfiler {
    /// Returns middleware for an actix `App`, which wraps the future of every request. Requests are named by method and the
    /// pattern of their route, as in `GET /users/{id}`, or `GET (no route)` if none matched.
    ///
    /// The future ends when it has the head of the response: streamed bodies are not in the profile.
    ///
    /// ```
    /// let profiler = await_profile::AwaitProfiler::new().armed();
    /// let app = actix_web::App::new().wrap(profiler.actix());
    /// ```
    pub fn actix(&self) -> AwaitMiddleware {
        AwaitMiddleware {
            profiler: self.clone(),
        }
    }
}

/// Middleware for actix that wraps the future of every request. Made by [`AwaitProfiler::actix`].
#[derive(Clone, Debug)]
pub struct AwaitMiddleware {
    profiler: AwaitProfiler,
}

impl<S, B> Transform<S, ServiceRequest> for AwaitMiddleware
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
{
    type Response = ServiceResponse<B>;
    type Error = Error;
    type Transform = AwaitActixService<S>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, service: S) -> Self::Future {
        let profiler = self.profiler.clone();
        ready(Ok(AwaitActixService { service, profiler }))
    }
}

/// An actix service whose requests a profiler can see. Made by [`AwaitMiddleware`].
#[derive(Debug)]
pub struct AwaitActixService<S> {
    service: S,
    profiler: AwaitProfiler,
}

impl<S, B> Service<ServiceRequest> for AwaitActixService<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
{
    type Response = ServiceResponse<B>;
    type Error = Error;
    type Future = Tracked<S::Future>;

    forward_ready!(service);

    fn call(&self, request: ServiceRequest) -> Self::Future {
        // While the profiler is off, requests get no name of their own.
        let route = if self.profiler.shared.state().is_off() {
            "(began before the profile)".into()
        } else {
            let pattern = request.match_pattern();
            let pattern = pattern.as_deref().unwrap_or("(no route)");
            Label::concat(&[request.method().as_str(), " ", pattern])
        };
        self.profiler.wrap(route, self.service.call(request))
    }
}
