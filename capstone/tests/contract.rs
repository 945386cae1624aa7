//! What the shop has to keep, however fast it is: `cargo test`.
//!
//! Each test starts the shop and the payment service on ports of their own, with a small database in a folder of its own.
//! `POSTGRES=postgres://… cargo test --features postgres -- --test-threads 1` asks a shop on PostgreSQL, whose database the
//! tests use one after the other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use sqlx::ConnectOptions;
#[cfg(feature = "postgres")]
use sqlx::postgres::PgConnectOptions;
#[cfg(not(feature = "postgres"))]
use sqlx::sqlite::SqliteConnectOptions;
use tempfile::TempDir;
use tokio::task::JoinSet;

/// How old an answer may be, where the README says that it may be old.
const STALE: Duration = Duration::from_secs(2);
/// The password of everybody whom `init-db` makes up.
const PASSWORD: &str = "correct horse";

/// A program that ends with this value.
struct Running {
    child: Child,
    url: String,
}

impl Running {
    /// Starts it, and waits until it says where it listens.
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let url = line.split("http://").nth(1).expect("it does not start");
        let url = url.split([',', '\n']).next().unwrap();
        let url = format!("http://{url}");
        Self { child, url }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A shop with 20 events, two organisers and 48 users.
struct Shop {
    shop: Option<Running>,
    payments: Running,
    data: TempDir,
    hold_seconds: u32,
}

impl Shop {
    fn start() -> Self {
        Self::with_hold(600)
    }

    fn with_hold(hold_seconds: u32) -> Self {
        // reqwest leaves the cryptography to the program.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let data = tempfile::tempdir().unwrap();
        let mut init = capstone(data.path());
        let made = init.args(["init-db", "--events", "20"]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let mut payments = Command::new(env!("CARGO_BIN_EXE_payments"));
        let mut shop = Self {
            shop: None,
            payments: Running::start(payments.args(["--port", "0"])),
            data,
            hold_seconds,
        };
        shop.restart();
        shop
    }

    /// Ends the shop as `kill -9` does, and starts it again.
    fn restart(&mut self) {
        drop(self.shop.take());
        let mut shop = capstone(self.data.path());
        shop.args(["--port", "0", "--admin-port", "0"]);
        shop.args(["--payments", &self.payments.url]);
        shop.args(["--hold-seconds", &self.hold_seconds.to_string()]);
        self.shop = Some(Running::start(&mut shop));
    }

    fn visitor(&self) -> Visitor {
        Visitor {
            client: Client::new(),
            url: self.shop.as_ref().unwrap().url.clone(),
            cookie: None,
        }
    }

    async fn logged_in(&self, name: &str) -> Visitor {
        let mut visitor = self.visitor();
        let form = json!({ "email": format!("{name}@example.com"), "password": PASSWORD });
        assert_eq!(visitor.post("/login", &form).await.0, StatusCode::OK);
        visitor
    }

    async fn users(&self, count: usize) -> Vec<Visitor> {
        let mut users = Vec::new();
        for number in 1..=count {
            users.push(self.logged_in(&format!("user{number}")).await);
        }
        users
    }

    /// What the payment service knows: cents by order, or mails by ticket.
    async fn paid_service<T: serde::de::DeserializeOwned>(&self, path: &str) -> HashMap<String, T> {
        let answer = reqwest::get(format!("{}{path}", self.payments.url)).await;
        answer.unwrap().json().await.unwrap()
    }
}

fn capstone(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstone"));
    command.arg("--data").arg(data);
    #[cfg(feature = "postgres")]
    command.args(["--database", &postgres()]);
    command
}

#[cfg(not(feature = "postgres"))]
async fn database(data: &Path) -> sqlx::Result<sqlx::SqliteConnection> {
    let file = SqliteConnectOptions::new().filename(data.join("shop.db"));
    file.connect().await
}

#[cfg(feature = "postgres")]
async fn database(_: &Path) -> sqlx::Result<sqlx::PgConnection> {
    let server: PgConnectOptions = postgres().parse()?;
    server
        .options([("search_path", "capstone")])
        .connect()
        .await
}

#[cfg(feature = "postgres")]
fn postgres() -> String {
    std::env::var("POSTGRES").expect("POSTGRES has the server's address")
}

/// A browser with a cookie.
#[derive(Clone)]
struct Visitor {
    client: Client,
    url: String,
    cookie: Option<String>,
}

impl Visitor {
    async fn send(&mut self, mut request: RequestBuilder) -> reqwest::Result<reqwest::Response> {
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        let answer = request.send().await?;
        if let Some(cookie) = answer.headers().get("set-cookie") {
            let cookie = cookie.to_str().unwrap().split(';').next();
            self.cookie = cookie.map(str::to_owned);
        }
        Ok(answer)
    }

    async fn try_post(&mut self, path: &str, body: &Value) -> reqwest::Result<(StatusCode, Value)> {
        let request = self.client.post(format!("{}{path}", self.url)).json(body);
        let answer = self.send(request).await?;
        Ok((answer.status(), answer.json().await?))
    }

    async fn post(&mut self, path: &str, body: &Value) -> (StatusCode, Value) {
        self.try_post(path, body).await.unwrap()
    }

    async fn get(&mut self, path: &str) -> (StatusCode, Vec<u8>) {
        let request = self.client.get(format!("{}{path}", self.url));
        let answer = self.send(request).await.unwrap();
        (answer.status(), answer.bytes().await.unwrap().to_vec())
    }

    async fn json(&mut self, path: &str) -> Value {
        let (status, body) = self.get(path).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        serde_json::from_slice(&body).unwrap()
    }

    async fn page(&mut self, path: &str) -> String {
        let (status, body) = self.get(path).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        String::from_utf8(body).unwrap()
    }

    async fn available(&mut self, event: i64) -> i64 {
        self.json(&format!("/events/{event}")).await["available"]
            .as_i64()
            .unwrap()
    }

    /// Ids of an event's seats that are free, and their prices.
    async fn free_seats(&mut self, event: i64) -> Vec<(i64, i64)> {
        let map = self.json(&format!("/events/{event}/seats")).await;
        let seats = map["seats"].as_array().unwrap().iter();
        let free = seats.filter(|seat| seat["is_free"] == true);
        free.map(|seat| {
            (
                seat["id"].as_i64().unwrap(),
                seat["price_cents"].as_i64().unwrap(),
            )
        })
        .collect()
    }

    async fn reserve(&mut self, event: i64, seats: &[i64]) -> (StatusCode, Value) {
        let path = format!("/events/{event}/reserve");
        self.post(&path, &json!({ "seats": seats })).await
    }

    /// Reserves seats that are free, and answers the order.
    async fn order(&mut self, event: i64, seats: &[i64]) -> i64 {
        let (status, order) = self.reserve(event, seats).await;
        assert_eq!(status, StatusCode::CREATED, "{order}");
        order["order"].as_i64().unwrap()
    }

    async fn pay(&mut self, order: i64) -> (StatusCode, Value) {
        self.post(&format!("/orders/{order}/pay"), &Value::Null)
            .await
    }
}

/// Codes of the tickets in what paying an order answers.
fn codes(paid: &Value) -> Vec<String> {
    let tickets = paid["tickets"].as_array().unwrap().iter();
    tickets
        .map(|ticket| ticket["code"].as_str().unwrap().to_owned())
        .collect()
}

/// Of a page of orders, the class of each and the codes of its tickets.
fn orders_on(page: &str) -> BTreeMap<i64, (String, Vec<String>)> {
    let mut orders = BTreeMap::new();
    for article in page.split("<article id=\"order-").skip(1) {
        let (id, rest) = article.split_once('"').unwrap();
        let status = rest
            .split("class=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let links = rest.split("href=\"/tickets/").skip(1);
        let codes = links.map(|link| link.split('"').next().unwrap().to_owned());
        let order = (status.to_owned(), codes.collect());
        let before = orders.insert(id.parse().unwrap(), order);
        assert!(before.is_none(), "order {id} is there twice");
    }
    orders
}

#[tokio::test]
async fn it_is_healthy() {
    let shop = Shop::start();
    assert_eq!(shop.visitor().page("/health").await, "ok");
}

#[tokio::test]
async fn each_seat_is_sold_once() {
    let shop = Shop::start();
    let mut visitor = shop.visitor();
    let seats = visitor.free_seats(1).await;
    let available = visitor.available(1).await;
    assert_eq!(available, seats.len() as i64);

    // Twelve users want the same ten pairs of seats at the same time.
    let mut asking = JoinSet::new();
    for user in shop.users(12).await {
        for pair in seats[..20].chunks(2) {
            let (mut user, pair) = (user.clone(), [pair[0].0, pair[1].0]);
            asking.spawn(async move { (pair, user.reserve(1, &pair).await.0) });
        }
    }
    let mut sold = BTreeMap::<_, u32>::new();
    for (pair, status) in asking.join_all().await {
        match status {
            StatusCode::CREATED => *sold.entry(pair).or_default() += 1,
            other => assert_eq!(other, StatusCode::CONFLICT),
        }
    }
    assert_eq!(sold.len(), 10);
    assert!(sold.values().all(|&times| times == 1), "{sold:?}");

    tokio::time::sleep(STALE).await;
    assert_eq!(visitor.available(1).await, available - 20);
    let left = visitor.free_seats(1).await;
    assert_eq!(left, seats[20..]);
}

#[tokio::test]
async fn an_order_has_all_its_seats_or_none() {
    let shop = Shop::start();
    let mut user = shop.logged_in("user1").await;
    let seats = user.free_seats(2).await;
    let of_another_event = user.free_seats(3).await[0].0;
    user.order(2, &[seats[0].0]).await;

    let refused = [
        (vec![seats[1].0, seats[0].0], StatusCode::CONFLICT),
        (vec![seats[1].0, seats[1].0], StatusCode::CONFLICT),
        (vec![seats[1].0, of_another_event], StatusCode::NOT_FOUND),
        (vec![], StatusCode::UNPROCESSABLE_ENTITY),
    ];
    for (wanted, why) in refused {
        assert_eq!(user.reserve(2, &wanted).await.0, why, "{wanted:?}");
    }
    let (status, _) = shop.visitor().reserve(2, &[seats[1].0]).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);

    tokio::time::sleep(STALE).await;
    assert_eq!(user.free_seats(2).await, seats[1..]);
    assert_eq!(
        orders_on(&user.page("/orders").await)
            .values()
            .filter(|order| order.0 == "reserved")
            .count(),
        1
    );
}

#[tokio::test]
async fn the_stock_ends_at_zero_and_never_below() {
    let shop = Shop::start();
    let mut visitor = shop.visitor();
    let seats = visitor.free_seats(4).await;
    let users = shop.users(6).await;

    // Everybody wants every seat.
    let mut asking = JoinSet::new();
    for mut user in users {
        let seats = seats.clone();
        asking.spawn(async move {
            let mut got = 0;
            for (seat, _) in seats {
                got += usize::from(user.reserve(4, &[seat]).await.0 == StatusCode::CREATED);
            }
            got
        });
    }
    let mut got = 0;
    while !asking.is_empty() {
        assert!(visitor.available(4).await >= 0);
        while let Some(user) = asking.try_join_next() {
            got += user.unwrap();
        }
    }
    assert_eq!(got, seats.len());
    tokio::time::sleep(STALE).await;
    assert_eq!(visitor.available(4).await, 0);
    assert_eq!(visitor.free_seats(4).await, []);
}

#[tokio::test]
async fn seats_that_are_not_paid_in_time_are_free_again() {
    let shop = Shop::with_hold(1);
    let mut user = shop.logged_in("user1").await;
    let seats = user.free_seats(5).await;
    let expires = user.order(5, &[seats[0].0, seats[1].0]).await;
    let paid = user.order(5, &[seats[2].0]).await;
    assert_eq!(user.pay(paid).await.0, StatusCode::OK);

    tokio::time::sleep(Duration::from_secs(2) + STALE).await;
    assert_eq!(user.pay(expires).await.0, StatusCode::CONFLICT);
    let mut left = seats.clone();
    left.remove(2);
    assert_eq!(user.free_seats(5).await, left);
    assert_eq!(user.available(5).await, left.len() as i64);
}

#[tokio::test]
async fn reservations_expire_also_after_a_restart() {
    let mut shop = Shop::with_hold(2);
    let mut user = shop.logged_in("user1").await;
    let seats = user.free_seats(5).await;
    user.order(5, &[seats[0].0]).await;
    shop.restart();
    tokio::time::sleep(Duration::from_secs(3) + STALE).await;
    assert_eq!(shop.visitor().free_seats(5).await, seats);
}

#[tokio::test]
async fn whoever_pays_twice_pays_once() {
    let shop = Shop::start();
    let mut user = shop.logged_in("user1").await;
    let seats = user.free_seats(6).await;
    let order = user.order(6, &[seats[0].0, seats[1].0]).await;

    let mut paying = JoinSet::new();
    for _ in 0..5 {
        let mut user = user.clone();
        paying.spawn(async move { user.pay(order).await });
    }
    let answers = paying.join_all().await;
    let paid = &answers[0].1;
    assert_eq!(codes(paid).len(), 2);
    for (status, answer) in &answers {
        assert_eq!((*status, answer), (StatusCode::OK, paid));
    }
    let charges: HashMap<_, i64> = shop.paid_service("/charges").await;
    assert_eq!(charges[&order.to_string()], paid["cents"].as_i64().unwrap());
    // An event's fee is 1.5 % and its number modulo 100 in hundredths of a percent.
    let cents = seats[0].1 + seats[1].1;
    assert_eq!(paid["cents"], cents + cents * (150 + 6) / 10_000);

    let mut other = shop.logged_in("user2").await;
    assert_eq!(other.pay(order).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn each_ticket_is_mailed_once() {
    let shop = Shop::start();
    let mut user = shop.logged_in("user1").await;
    let mut tickets = BTreeSet::new();
    for pair in user.free_seats(7).await[..12].chunks(2) {
        let order = user.order(7, &[pair[0].0, pair[1].0]).await;
        tickets.extend(codes(&user.pay(order).await.1));
    }
    let began = Instant::now();
    let mut mails: HashMap<String, u64> = HashMap::new();
    while mails.len() < tickets.len() && began.elapsed() < Duration::from_secs(5) {
        mails = shop.paid_service("/mails").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(tickets.len(), 12);
    let once: BTreeMap<_, _> = tickets.into_iter().map(|ticket| (ticket, 1)).collect();
    assert_eq!(mails.into_iter().collect::<BTreeMap<_, _>>(), once);
}

#[tokio::test]
async fn what_was_paid_is_there_exactly_once_after_a_kill() {
    let mut shop = Shop::start();
    let mut visitor = shop.visitor();
    let mut reserved = Vec::new();
    for (user, event) in shop.users(6).await.into_iter().zip(8..) {
        let mut user = user;
        for (seat, _) in &visitor.free_seats(event).await[..5] {
            reserved.push((user.clone(), user.order(event, &[*seat]).await));
        }
    }

    // The shop is killed when a third of them is paid.
    static ANSWERED: AtomicUsize = AtomicUsize::new(0);
    let mut paying = JoinSet::new();
    for (mut user, order) in reserved.clone() {
        paying.spawn(async move {
            let path = format!("/orders/{order}/pay");
            let answer = user.try_post(&path, &Value::Null).await.ok()?;
            ANSWERED.fetch_add(1, Relaxed);
            Some((order, answer))
        });
    }
    while ANSWERED.load(Relaxed) < reserved.len() / 3 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    shop.restart();
    let mut tickets = BTreeMap::new();
    for (order, (status, paid)) in paying.join_all().await.into_iter().flatten() {
        assert_eq!(status, StatusCode::OK);
        tickets.insert(order, codes(&paid));
    }

    // Sessions may be gone. Who got no answer pays again.
    let mut users = HashMap::new();
    for (index, (_, order)) in reserved.iter().enumerate() {
        let name = format!("user{}", index / 5 + 1);
        if !users.contains_key(&name) {
            users.insert(name.clone(), shop.logged_in(&name).await);
        }
        let user = users.get_mut(&name).unwrap();
        let before = orders_on(&user.page("/orders").await);
        if let Some(codes) = tickets.get(order) {
            assert_eq!(before[order], ("paid".to_owned(), codes.clone()));
        }
        let (status, paid) = user.pay(*order).await;
        assert_eq!(status, StatusCode::OK, "{paid}");
        assert_eq!(codes(&paid).len(), 1);
        let after = orders_on(&user.page("/orders").await);
        assert_eq!(after[order], ("paid".to_owned(), codes(&paid)));
        let charges: HashMap<_, i64> = shop.paid_service("/charges").await;
        assert_eq!(charges[&order.to_string()], paid["cents"].as_i64().unwrap());
    }
    assert!(!tickets.is_empty());
}

#[tokio::test]
async fn passwords_are_hashed_at_the_given_cost() {
    let shop = Shop::start();
    let mut visitor = shop.visitor();
    for email in ["first@example.org", "second@example.org"] {
        let form = json!({ "email": email, "name": "Ada", "password": "the same one" });
        let (status, answer) = visitor.post("/signup", &form).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
    }
    let mut database = database(shop.data.path()).await.unwrap();
    let select = "SELECT password_hash FROM users WHERE email LIKE '%@example.org'";
    let hashes: Vec<String> = sqlx::query_scalar(select)
        .fetch_all(&mut database)
        .await
        .unwrap();
    assert_eq!(hashes.len(), 2);
    let parts: Vec<Vec<&str>> = hashes
        .iter()
        .map(|hash| hash.split('$').collect())
        .collect();
    for parts in &parts {
        assert_eq!(parts[1..4], ["argon2id", "v=19", "m=19456,t=2,p=1"]);
        assert!(parts[4].len() >= 22 && parts[5].len() >= 43, "{hashes:?}");
    }
    assert_ne!(parts[0][4], parts[1][4], "the salt is the same");
    assert_ne!(parts[0][5], parts[1][5]);

    for (password, status) in [
        ("another one", StatusCode::UNAUTHORIZED),
        ("the same one", StatusCode::OK),
    ] {
        let form = json!({ "email": "first@example.org", "password": password });
        assert_eq!(visitor.post("/login", &form).await.0, status);
    }
}

#[tokio::test]
async fn not_everybody_can_sign_up() {
    let shop = Shop::start();
    let mut visitor = shop.visitor();
    let mut sign_up = async |email: &str, password: &str| {
        let form = json!({ "email": email, "name": "Ada", "password": password });
        visitor.post("/signup", &form).await.0
    };
    assert_eq!(
        sign_up("ada@example.org", "long enough").await,
        StatusCode::CREATED
    );
    assert_eq!(
        sign_up("ada@example.org", "long enough").await,
        StatusCode::CONFLICT
    );
    assert_eq!(
        sign_up("ada.example.org", "long enough").await,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    assert_eq!(
        sign_up("ada@example", "long enough").await,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    assert_eq!(
        sign_up("bea@example.org", "short").await,
        StatusCode::UNPROCESSABLE_ENTITY
    );
}

#[tokio::test]
async fn a_poster_is_what_was_uploaded() {
    let mut shop = Shop::start();
    let mut organiser = shop.logged_in("organiser1").await;
    assert_eq!(
        organiser.get("/events/1/poster").await.0,
        StatusCode::NOT_FOUND
    );
    let posters = [3, 400_000, 5_000_000].map(|length: u32| {
        (0..length)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect::<Vec<u8>>()
    });
    let upload = async |user: &mut Visitor, kind: &str, poster: &[u8]| {
        let url = format!("{}/organiser/events/1/poster", user.url);
        let request = user.client.post(url).header("content-type", kind);
        let answer = user.send(request.body(poster.to_vec())).await.unwrap();
        answer.status()
    };
    for poster in &posters {
        let status = upload(&mut organiser, "image/png", poster).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
        assert!(organiser.get("/events/1/poster").await == (StatusCode::OK, poster.clone()));
    }

    let mut other = shop.logged_in("organiser2").await;
    assert_eq!(
        upload(&mut other, "image/png", &[1]).await,
        StatusCode::FORBIDDEN
    );
    let status = upload(&mut organiser, "text/html", &[1]).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    shop.restart();
    assert!(shop.visitor().get("/events/1/poster").await.1 == posters[2]);
    assert_eq!(shop.visitor().json("/events/1").await["has_poster"], true);
}

#[tokio::test]
async fn the_report_is_right() {
    let shop = Shop::start();
    let mut organiser = shop.logged_in("organiser1").await;
    let before = organiser.json("/organiser/report").await;
    let mut user = shop.logged_in("user1").await;
    let seats = user.free_seats(1).await;
    let paid = user.order(1, &[seats[0].0, seats[1].0]).await;
    user.pay(paid).await;
    user.order(1, &[seats[2].0]).await;
    for _ in 0..7 {
        user.available(1).await;
    }
    tokio::time::sleep(STALE).await;
    let after = organiser.json("/organiser/report").await;

    // Every second event is theirs.
    let events = after["events"].as_array().unwrap();
    let ids: Vec<_> = events
        .iter()
        .map(|event| event["event"].as_i64().unwrap())
        .collect();
    assert_eq!(ids, (1..=20).step_by(2).collect::<Vec<i64>>());
    let grew = |what: &str| {
        let of = |report: &Value| report["events"][0][what].as_i64().unwrap();
        of(&after) - of(&before)
    };
    let cents = seats[0].1 + seats[1].1;
    assert_eq!(grew("sold"), 2);
    assert_eq!(grew("available"), -3);
    assert_eq!(grew("revenue_cents"), cents);
    assert_eq!(grew("views"), 7);
    let sum = |what: &str| {
        events
            .iter()
            .map(|event| event[what].as_i64().unwrap())
            .sum::<i64>()
    };
    for what in ["sold", "revenue_cents", "payout_cents"] {
        assert_eq!(after[what], sum(what), "{what}");
    }
    for event in events {
        let [id, sold, available, revenue, payout] = [
            "event",
            "sold",
            "available",
            "revenue_cents",
            "payout_cents",
        ]
        .map(|what| event[what].as_i64().unwrap());
        let reserved = i64::from(id == 1);
        assert_eq!(sold + available + reserved, 80, "{event}");
        assert_eq!(payout, revenue - revenue * (150 + id) / 10_000, "{event}");
        let map = user.json(&format!("/events/{id}/seats")).await;
        let taken = map["seats"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|seat| seat["is_free"] == false);
        let taken: i64 = taken
            .map(|seat| seat["price_cents"].as_i64().unwrap())
            .sum();
        assert_eq!(revenue, taken - reserved * seats[2].1, "{event}");
    }
    assert_eq!(user.get("/organiser/report").await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn no_answer_is_older_than_it_may_be() {
    let shop = Shop::start();
    let mut user = shop.logged_in("user1").await;
    // One that is on the first page.
    let first = user.json("/events").await[0].clone();
    let (event, available) = (
        first["id"].as_i64().unwrap(),
        first["available"].as_i64().unwrap(),
    );
    let seat = user.free_seats(event).await[0].0;
    let title = first["title"].as_str().unwrap().replace(' ', "%20");
    let search = format!("/search?q={title}");
    // What is kept of these must go.
    user.json(&search).await;
    user.page("/").await;
    let order = user.order(event, &[seat]).await;
    // What somebody did themselves is never old.
    assert_eq!(orders_on(&user.page("/orders").await)[&order].0, "reserved");
    let paid = user.pay(order).await.1;
    let expected = ("paid".to_owned(), codes(&paid));
    assert_eq!(orders_on(&user.page("/orders").await)[&order], expected);

    tokio::time::sleep(STALE).await;
    let left = available - 1;
    assert_eq!(user.available(event).await, left);
    assert_eq!(user.json("/events").await[0]["available"], left);
    assert!(
        user.free_seats(event)
            .await
            .iter()
            .all(|free| free.0 != seat)
    );
    let found = user.json(&search).await;
    let found = found
        .as_array()
        .unwrap()
        .iter()
        .find(|found| found["id"] == event);
    assert_eq!(found.unwrap()["available"], left);
    let home = user.page("/").await;
    let entry = home
        .split(&format!("href=\"/events/{event}\""))
        .nth(1)
        .unwrap();
    assert!(
        entry
            .split("</li>")
            .next()
            .unwrap()
            .contains(&format!(">{left} seats left<"))
    );
}

#[tokio::test]
async fn the_list_has_every_event_once_by_date_and_its_cheapest_seat() {
    let shop = Shop::start();
    let mut visitor = shop.visitor();
    let mut listed = Vec::new();
    for category in ["comedy", "concert", "dance", "reading", "theatre"] {
        let page = visitor.json(&format!("/events?category={category}")).await;
        let page = page.as_array().unwrap().clone();
        assert!(page.iter().all(|event| event["category"] == category));
        assert!(page.is_sorted_by_key(|event| event["starts_at"].to_string()));
        listed.extend(page);
    }
    let ids: BTreeSet<_> = listed
        .iter()
        .map(|event| event["id"].as_i64().unwrap())
        .collect();
    assert_eq!(ids, (1..=20).collect());
    assert_eq!(listed.len(), 20);
    for event in &listed[..5] {
        let id = event["id"].as_i64().unwrap();
        let cheapest = visitor.free_seats(id).await.iter().map(|seat| seat.1).min();
        assert_eq!(event["from_cents"].as_i64(), cheapest);
        let page = visitor.json(&format!("/events/{id}")).await;
        for what in [
            "title",
            "starts_at",
            "venue",
            "city",
            "available",
            "from_cents",
        ] {
            assert_eq!(page[what], event[what]);
        }
        let similar = page["similar"].as_array().unwrap();
        assert!(similar.len() <= 5 && similar.iter().all(|similar| similar["id"] != id));
    }
    assert_eq!(visitor.json("/events?page=1").await, json!([]));
    assert_eq!(visitor.get("/events/21").await.0, StatusCode::NOT_FOUND);
    assert_eq!(
        visitor.get("/events/21/seats").await.0,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn a_search_finds_what_has_a_word_that_begins_so() {
    let shop = Shop::start();
    let mut visitor = shop.visitor();
    let all = visitor.json("/search?q=").await;
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 20);
    for words in ["wild", "ni", "Hall", "of", "concer", "(", "w.ld", "e"] {
        let found = visitor.json(&format!("/search?q={words}")).await;
        let wanted: Vec<_> = all
            .iter()
            .filter(|event| {
                ["title", "description", "venue", "city"]
                    .iter()
                    .any(|what| {
                        let text = event[*what].as_str().unwrap().to_lowercase();
                        text.split_whitespace()
                            .any(|word| word.starts_with(&words.to_lowercase()))
                    })
            })
            .collect();
        assert_eq!(
            found.as_array().unwrap().iter().collect::<Vec<_>>(),
            wanted,
            "{words}"
        );
    }
}

#[tokio::test]
async fn a_visitor_sees_what_they_looked_at_and_nobody_else_does() {
    let shop = Shop::start();
    let (mut ada, mut bea) = (shop.visitor(), shop.visitor());
    ada.page("/").await;
    let mut titles = Vec::new();
    for event in 11..=17 {
        let page = ada.json(&format!("/events/{event}")).await;
        titles.push((event, page["title"].as_str().unwrap().to_owned()));
    }
    let viewed = |page: String| {
        let list = page
            .split("<ul id=\"viewed\">")
            .nth(1)
            .unwrap_or_default()
            .to_owned();
        let entries = list.split("href=\"/events/").skip(1);
        let entries = entries.map(|entry| entry.split("</a>").next().unwrap().replace("\">", " "));
        entries.collect::<Vec<_>>()
    };
    let latest = titles
        .iter()
        .rev()
        .take(5)
        .map(|(id, title)| format!("{id} {title}"));
    assert_eq!(viewed(ada.page("/").await), latest.collect::<Vec<_>>());
    assert!(viewed(bea.page("/").await).is_empty());
}

#[tokio::test]
async fn a_ticket_can_be_scanned_and_is_its_buyers() {
    let shop = Shop::start();
    let mut user = shop.logged_in("user1").await;
    let seats = user.free_seats(18).await;
    let order = user.order(18, &[seats[0].0, seats[1].0]).await;
    let mut other = shop.logged_in("user2").await;
    for code in codes(&user.pay(order).await.1) {
        let path = format!("/tickets/{code}");
        let (status, png) = user.get(&path).await;
        assert_eq!(status, StatusCode::OK);
        let picture = image::load_from_memory(&png).unwrap().to_luma8();
        assert!(picture.width() >= 800, "{}", picture.width());
        let mut prepared = rqrr::PreparedImage::prepare(picture);
        let (_, text) = prepared.detect_grids()[0].decode().unwrap();
        assert!(
            text.starts_with(&code) && text.contains("row") && text.contains("seat"),
            "{text}"
        );
        assert_eq!(other.get(&path).await.0, StatusCode::FORBIDDEN);
    }
    assert_eq!(user.get("/tickets/none").await.0, StatusCode::NOT_FOUND);
}
