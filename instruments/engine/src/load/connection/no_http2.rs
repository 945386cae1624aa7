//! Replacement for `http2.rs` in a program that is built without it.

use std::task::Context;

use hyper::Request;
use hyper::body::Bytes;

use super::{Received, Status};
use crate::load::failure::Failure;
use crate::load::stream::Stream;

/// A connection that speaks HTTP/2. The type has no values without the feature `http2`.
pub(super) enum Http2 {}

#[expect(clippy::unused_async, reason = "its counterpart awaits the server")]
impl Http2 {
    pub(super) async fn over(_: Box<dyn Stream>) -> Result<Self, Failure> {
        Err(Failure::NotHttp2("this program is built without HTTP/2"))
    }

    pub(super) async fn exchange(
        &mut self,
        _: Request<Bytes>,
        _: Received<'_>,
    ) -> Result<Status, Failure> {
        match *self {}
    }

    pub(super) fn is_idle(&mut self) -> bool {
        match *self {}
    }

    pub(super) fn drive(&mut self, _: &mut Context<'_>) {
        match *self {}
    }
}
