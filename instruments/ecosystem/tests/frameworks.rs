//! Small services of each framework; all crates on their handlers' stacks have to be known.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::mpsc::{Sender, channel};

use ecosystem::{Role, carries_requests, crate_of, is_framework_crate, place_of};
use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use tower::{Service, ServiceExt};
use warp::Filter;

/// Returns the functions on the calling thread's stack, from the outermost inwards.
fn stack() -> Vec<String> {
    let mut functions = Vec::new();
    backtrace::trace(|frame| {
        backtrace::resolve_frame(frame, |symbol| {
            functions.extend(symbol.name().map(|name| format!("{name:#}")));
        });
        true
    });
    functions.reverse();
    functions
}

/// Returns the stack that a handler of this service sends.
fn stack_in<S>(service: impl FnOnce(Sender<Vec<String>>) -> S) -> Vec<String>
where
    S: Service<Request<Empty<Bytes>>, Error = Infallible> + Send + 'static,
    S::Future: Send,
    S::Response: Send,
{
    let (to, from) = channel();
    let service = service(to);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .expect("a runtime");
    let request = Request::new(Empty::new());
    let served = runtime.spawn(async move { service.oneshot(request).await.is_ok() });
    assert!(runtime.block_on(served).expect("it does not panic"));
    from.recv().expect("the handler ran")
}

/// Returns the unknown crates between the start of the thread and the handler.
fn unknown(stack: &[String]) -> BTreeSet<&str> {
    let is_ours = |function: &&String| crate_of(function) == "frameworks";
    let mut crates = BTreeSet::new();
    for function in stack.iter().take_while(|function| !is_ours(function)) {
        let krate = crate_of(function);
        let is_known = place_of(krate).is_some() || is_framework_crate(krate);
        // The C library's functions have no crate.
        if function.contains("::") && !is_known {
            crates.insert(krate);
        }
    }
    crates
}

fn check(framework: &str, stack: &[String]) {
    assert_eq!(unknown(stack), BTreeSet::new(), "{framework}: {stack:#?}");
    let is_it = |function: &&String| crate_of(function) == framework && carries_requests(function);
    assert!(stack.iter().any(|function| is_it(&function)), "{stack:#?}");
    let role = stack
        .iter()
        .find_map(|function| match Role::told_by(function) {
            Some(Role::Blocking) | None => None,
            role => role,
        });
    assert_eq!(role, Some(Role::Worker), "{stack:#?}");
}

#[test]
fn an_axum_service_is_known() {
    let stack = stack_in(|to| {
        let handler = move || async move {
            let _ = to.send(stack());
            "answer"
        };
        axum::Router::new().route("/", axum::routing::get(handler))
    });
    check("axum", &stack);
}

#[test]
fn a_warp_service_is_known() {
    let stack = stack_in(|to| {
        let routes = warp::any().map(move || {
            let _ = to.send(stack());
            "answer"
        });
        warp::service(routes)
    });
    check("warp", &stack);
}

/// Uses recorded stacks, because compiling these two frameworks takes minutes.
#[test]
fn recorded_actix_and_tonic_services_are_known() {
    let actix = [
        "std::thread::Builder::spawn_unchecked_",
        "actix_rt::arbiter::Arbiter::with_tokio_rt::{{closure}}",
        "tokio::task::local::LocalSet::run_until",
        "actix_http::h1::dispatcher::InnerDispatcher<T,S,B,X,U>::poll_response",
        "<actix_web::app_service::AppInitService<T,B> as actix_service::Service<R>>::call",
        "<actix_web::resource::Resource as actix_router::Route>::call",
    ];
    let tonic = [
        "tokio::runtime::task::core::Core<T,S>::poll",
        "hyper_util::server::conn::auto::Connection<I,S,E>::poll",
        "hyper::proto::h2::server::H2Stream<F,B>::poll2",
        "tonic::transport::server::Svc<S>::call",
        "<tonic::server::grpc::Grpc<T>>::unary::{{closure}}",
        "<tower::util::boxed_clone_sync::BoxService as tower_service::Service<R>>::call",
    ];
    for (stack, role) in [(actix, Some(Role::Actix)), (tonic, None)] {
        let stack = stack.map(str::to_owned);
        assert_eq!(unknown(&stack), BTreeSet::new());
        let told = stack.iter().find_map(|function| Role::told_by(function));
        assert_eq!(told, role);
        assert!(stack.iter().any(|function| carries_requests(function)));
    }
}
