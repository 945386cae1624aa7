//! A tonic service behind the layer, with debug endpoints: its methods are routes, and profiles show their waits.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use await_profile::{Frame, Frames, ProfileOptions};
use debug_endpoints::{DebugEndpoints, GrpcMethod};
use http::uri::PathAndQuery;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::time::sleep;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Response, Status};
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, prost::Message)]
struct Item {
    #[prost(string, tag = "1")]
    name: String,
}

/// Service of one method, as `tonic-build` would write it.
#[derive(Clone, Default)]
struct Cart {
    items: Arc<Mutex<Vec<Item>>>,
}

impl NamedService for Cart {
    const NAME: &'static str = "shop.Cart";
}

/// Holds the lock while it waits for the "database".
async fn add(cart: Cart, item: Item) -> Result<Response<Item>, Status> {
    let mut items = cart.items.lock().await;
    sleep(Duration::from_millis(20)).await;
    items.push(item.clone());
    Ok(Response::new(item))
}

impl tower::Service<http::Request<Body>> for Cart {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let cart = self.clone();
        Box::pin(async move {
            if request.uri().path() != "/shop.Cart/Add" {
                return Ok(Status::unimplemented("no such method").into_http());
            }
            let method = tower::service_fn(move |request: tonic::Request<Item>| {
                add(cart.clone(), request.into_inner())
            });
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<Item, Item>::default());
            Ok(grpc.unary(method, request).await)
        })
    }
}

async fn call(channel: Channel, path: &'static str) -> Result<Response<Item>, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.expect("the server answers");
    let request = tonic::Request::new(Item::default());
    let codec = ProstCodec::<Item, Item>::default();
    client
        .unary(request, PathAndQuery::from_static(path), codec)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn methods_of_a_tonic_service_are_routes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let admin = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let debug = DebugEndpoints::new();
    let admin = debug.serve(admin).unwrap();
    let server = Server::builder()
        .layer(debug.profiler().layer_named(GrpcMethod))
        .timeout(Duration::from_secs(3600))
        .add_service(Cart::default())
        .serve_with_incoming(TcpIncoming::from(listener));
    tokio::spawn(server);
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let channel = endpoint.connect().await.unwrap();
    // Clients that wait for the lock, and a scanner.
    for (path, code, callers) in [
        ("/shop.Cart/Add", Code::Ok, 20),
        ("/.git/HEAD", Code::Unimplemented, 1),
    ] {
        for _ in 0..callers {
            let channel = channel.clone();
            tokio::spawn(async move {
                loop {
                    let answer = call(channel.clone(), path).await;
                    assert_eq!(
                        answer.map_or_else(|status| status.code(), |_| Code::Ok),
                        code
                    );
                }
            });
        }
    }
    let profiler = debug.profiler();
    while profiler.in_flight() < 15 {
        tokio::task::yield_now().await;
    }
    let options = ProfileOptions::lasting(Duration::from_secs(1)).captures_per_second(1000);
    let profile = profiler.profile(options).await.unwrap();

    let routes = profile.routes();
    let mut names: Vec<&str> = routes.iter().map(|route| route.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["(no gRPC method)", "shop.Cart/Add"]);
    assert!(routes.iter().all(|route| route.finished > 0), "{routes:#?}");

    let shares = profile.shares(Frames::Own);
    let frames = &shares[0].frames;
    let is_handler =
        |frame: &Frame| frame.function() == Some("grpc::add") && frame.line().is_some();
    assert_eq!(shares[0].route, "shop.Cart/Add", "{shares:#?}");
    assert!(frames.iter().any(is_handler), "{shares:#?}");
    assert_eq!(frames[frames.len() - 1], "tokio::sync::Mutex::lock");
    assert!(shares[0].share > 0.5, "{shares:#?}");

    let mut folded = String::new();
    let mut stream = std::net::TcpStream::connect(admin).unwrap();
    let request = "GET /debug/await?seconds=0.5 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_to_string(&mut folded).unwrap();
    let lock = |line: &str| line.starts_with("shop.Cart/Add;") && line.contains("Mutex::lock");
    assert!(folded.lines().any(lock), "{folded}");
}
