//! Operations of every variant, and their routes.

use warp::filters::BoxedFilter;
use warp::http::StatusCode;
use warp::hyper::body::Bytes;
use warp::reply::Response;
use warp::{Filter, Reply};

/// Operations behind the routes. The variants differ in the lock that they take, and in how long they
/// hold it.
pub(crate) trait Service: Clone + Send + Sync + 'static {
    /// Asks the database, then answers the sum of all clients' ids.
    fn read(&self) -> impl Future<Output = String> + Send;

    /// Adds a topic to a client, and has the database record it.
    fn subscribe(
        &self,
        client: String,
        topic: String,
    ) -> impl Future<Output = Result<(), StatusCode>> + Send;

    /// A client's topics.
    fn topics(&self, client: String) -> impl Future<Output = Result<String, StatusCode>> + Send;
}

/// `GET /read`, `POST /subscribe` and `GET /topics/{client}`, the same for all variants.
pub(crate) fn routes<S: Service>(service: S) -> BoxedFilter<(Response,)> {
    let service = warp::any().map(move || service.clone());

    let read = warp::path!("read")
        .and(warp::get())
        .and(service.clone())
        .then(async |service: S| service.read().await);
    let subscribe = warp::path!("subscribe")
        .and(warp::post())
        .and(service.clone())
        .and(warp::body::bytes())
        .then(subscribe);
    let topics = warp::path!("topics" / String)
        .and(warp::get())
        .and(service)
        .then(async |client, service: S| service.topics(client).await);

    read.or(subscribe)
        .or(topics)
        .map(Reply::into_response)
        .boxed()
}

async fn subscribe<S: Service>(service: S, body: Bytes) -> Result<&'static str, StatusCode> {
    let (client, topic) = client_and_topic(&body).ok_or(StatusCode::BAD_REQUEST)?;
    service.subscribe(client, topic).await?;
    Ok("subscribed")
}

/// The two words of `87-89-34 snakes`.
fn client_and_topic(body: &[u8]) -> Option<(String, String)> {
    let (client, topic) = str::from_utf8(body).ok()?.split_once(' ')?;
    let is_word = !topic.is_empty() && topic.chars().all(char::is_alphanumeric);
    is_word.then(|| (client.to_owned(), topic.to_owned()))
}
