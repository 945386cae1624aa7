//! A shop with a payment service and visitors, for the rules in `contract.rs`.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use sqlx::ConnectOptions;
#[cfg(feature = "postgres")]
use sqlx::postgres::PgConnectOptions;
#[cfg(not(feature = "postgres"))]
use sqlx::sqlite::SqliteConnectOptions;
use tempfile::TempDir;

/// Age that an answer may have, where the README says that it may be old.
pub const STALE: Duration = Duration::from_secs(2);
/// Password of all users whom `init-db` makes up.
pub const PASSWORD: &str = "correct horse";
/// Events of the database: two full pages of the list and a part of a third.
pub const EVENTS: i64 = 45;
/// Organisers, whose numbers are 1 to 4; users have the numbers after that.
pub const ORGANISERS: i64 = 4;

/// A program that ends with this value.
struct Running {
    child: Child,
    url: String,
}

impl Running {
    /// Starts a program and waits until it says where it listens.
    fn start(command: &mut Command) -> Self {
        let program = command.get_program().to_string_lossy().into_owned();
        let started = command
            .stdout(Stdio::piped())
            .env("RUST_BACKTRACE", "0")
            .spawn();
        let mut child = started.unwrap_or_else(|why| panic!("{program} does not start: {why}"));
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        let mut stdout = BufReader::new(stdout);
        stdout
            .read_line(&mut line)
            .unwrap_or_else(|why| panic!("{program} prints no line: {why}"));
        let Some((_, address)) = line.split_once("http://") else {
            panic!("{program} did not print `listening on http://ADDRESS`, but: {line:?}");
        };
        let end = address.find([',', '\n']).unwrap_or(address.len());
        let url = format!("http://{}", &address[..end]);
        // A program that prints more must not wait for a reader.
        std::thread::spawn(move || stdout.read_to_end(&mut Vec::new()));
        Self { child, url }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Settings that a rule may change.
#[derive(Clone, Copy)]
pub struct Settings {
    /// Seconds for which seats are kept.
    pub hold_seconds: u32,
    /// Milliseconds that each call of the payment service takes.
    pub call_ms: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hold_seconds: 600,
            call_ms: 30,
        }
    }
}

/// A shop with 45 events, 4 organisers and 108 users.
pub struct Shop {
    shop: Option<Running>,
    payments: Running,
    data: TempDir,
    settings: Settings,
}

impl Shop {
    pub fn start() -> Self {
        Self::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Self {
        // reqwest leaves the cryptography to the program.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let data = tempfile::tempdir().expect("a folder for the database");
        let mut init = capstone(data.path());
        init.args(["init-db", "--events", &EVENTS.to_string()]);
        let made = init.output().expect("the shop can be started");
        assert!(
            made.status.success(),
            "`init-db` makes a database of {EVENTS} events, but it ended with {}: {}",
            made.status,
            String::from_utf8_lossy(&made.stderr)
        );
        let mut payments = Command::new(env!("CARGO_BIN_EXE_payments"));
        payments.args(["--port", "0", "--milliseconds"]);
        payments.arg(settings.call_ms.to_string());
        let mut shop = Self {
            shop: None,
            payments: Running::start(&mut payments),
            data,
            settings,
        };
        shop.restart();
        shop
    }

    /// Ends the shop as `kill -9` does, and starts it again.
    pub fn restart(&mut self) {
        drop(self.shop.take());
        let mut shop = capstone(self.data.path());
        shop.args(["--port", "0", "--admin-port", "0"]);
        shop.args(["--payments", &self.payments.url]);
        shop.args(["--hold-seconds", &self.settings.hold_seconds.to_string()]);
        self.shop = Some(Running::start(&mut shop));
    }

    fn running(&self) -> &Running {
        self.shop.as_ref().expect("it was started")
    }

    /// CPU time of the shop since it was started.
    #[cfg(target_os = "linux")]
    pub fn cpu_time(&self) -> Duration {
        let file = format!("/proc/{}/stat", self.running().child.id());
        let stat = std::fs::read_to_string(file).expect("the shop is alive");
        // The name in parentheses may hold blanks; user and system time are the fields 14 and 15, in hundredths.
        let (_, fields) = stat.rsplit_once(')').expect("a name");
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
        Duration::from_millis(10 * (ticks(11) + ticks(12)))
    }

    pub fn visitor(&self) -> Visitor {
        Visitor {
            client: Client::new(),
            url: self.running().url.clone(),
            cookie: None,
        }
    }

    pub async fn logged_in(&self, name: &str) -> Visitor {
        let mut visitor = self.visitor();
        let answer = visitor.log_in(name, PASSWORD).await;
        answer.is(StatusCode::OK, "a right password logs a user in");
        visitor
    }

    pub async fn users(&self, count: usize) -> Vec<Visitor> {
        let mut users = Vec::new();
        for number in 1..=count {
            users.push(self.logged_in(&format!("user{number}")).await);
        }
        users
    }

    async fn of_payments<T: serde::de::DeserializeOwned>(&self, path: &str) -> HashMap<String, T> {
        let answer = reqwest::get(format!("{}{path}", self.payments.url)).await;
        let answer = answer.expect("the payment service answers");
        answer.json().await.expect("the payment service counts")
    }

    /// Cents that the payment service charged, by order.
    pub async fn charges(&self) -> BTreeMap<i64, i64> {
        let charges = self.of_payments("/charges").await;
        let number = |order: &String| order.parse().expect("a number");
        charges
            .iter()
            .map(|(order, cents)| (number(order), *cents))
            .collect()
    }

    /// Amounts that the payment service was asked about, by user.
    pub async fn risks(&self) -> HashMap<String, Vec<i64>> {
        self.of_payments("/risk").await
    }

    /// Mails that the payment service was asked for, by ticket.
    pub async fn mails(&self) -> HashMap<String, u64> {
        self.of_payments("/mails").await
    }

    /// Hashes of the passwords of users whose address ends so.
    pub async fn password_hashes(&self, address: &str) -> Vec<String> {
        let connected = database(self.data.path()).await;
        let mut database = connected.expect("the database is where `init-db` made it");
        let select = "SELECT password_hash FROM users WHERE email LIKE $1";
        let hashes = sqlx::query_scalar(select).bind(format!("%{address}"));
        let hashes = hashes.fetch_all(&mut database).await;
        hashes.expect("the table `users` has a column `password_hash`")
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

/// An answer, with what was asked.
#[derive(Debug, Clone)]
pub struct Answer {
    pub asked: String,
    pub status: StatusCode,
    /// Its `Content-Type`.
    pub kind: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// Fails with `rule` unless the status is this one.
    #[track_caller]
    pub fn is(&self, status: StatusCode, rule: &str) {
        assert!(
            self.status == status,
            "{rule}: {} answered {} and not {status} ({})",
            self.asked,
            self.status,
            self.beginning()
        );
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(why) => panic!(
                "{} answers JSON, but {why}: {}",
                self.asked,
                self.beginning()
            ),
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn beginning(&self) -> String {
        self.text().chars().take(200).collect()
    }
}

/// A browser with a cookie.
#[derive(Clone)]
pub struct Visitor {
    client: Client,
    url: String,
    cookie: Option<String>,
}

impl Visitor {
    async fn send(&mut self, asked: &str, request: RequestBuilder) -> reqwest::Result<Answer> {
        let request = match &self.cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        };
        let answer = request.send().await?;
        let header = |name: &str| {
            let value = answer.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        if let Some(cookie) = header("set-cookie") {
            let end = cookie.find(';').unwrap_or(cookie.len());
            self.cookie = Some(cookie[..end].to_owned());
        }
        Ok(Answer {
            asked: asked.to_owned(),
            status: answer.status(),
            kind: header("content-type").unwrap_or_default(),
            body: answer.bytes().await?.to_vec(),
        })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// Posts, also to a shop that may be killed meanwhile.
    pub async fn try_post(&mut self, path: &str, body: &Value) -> reqwest::Result<Answer> {
        let request = self.request(Method::POST, path).json(body);
        self.send(&format!("POST {path}"), request).await
    }

    pub async fn post(&mut self, path: &str, body: &Value) -> Answer {
        match self.try_post(path, body).await {
            Ok(answer) => answer,
            Err(why) => panic!("POST {path} is answered, but: {why}"),
        }
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        let request = self.request(Method::GET, path);
        match self.send(&format!("GET {path}"), request).await {
            Ok(answer) => answer,
            Err(why) => panic!("GET {path} is answered, but: {why}"),
        }
    }

    pub async fn upload(&mut self, event: i64, kind: &str, poster: &[u8]) -> Answer {
        let path = format!("/organiser/events/{event}/poster");
        let request = self.request(Method::POST, &path);
        let request = request.header("content-type", kind).body(poster.to_vec());
        match self.send(&format!("POST {path}"), request).await {
            Ok(answer) => answer,
            Err(why) => panic!("POST {path} is answered, but: {why}"),
        }
    }

    pub async fn json(&mut self, path: &str) -> Value {
        let answer = self.get(path).await;
        answer.is(StatusCode::OK, "the README lists this route");
        answer.json()
    }

    pub async fn page(&mut self, path: &str) -> String {
        let answer = self.get(path).await;
        answer.is(StatusCode::OK, "the README lists this route");
        answer.text()
    }

    pub async fn log_in(&mut self, name: &str, password: &str) -> Answer {
        let form = json!({ "email": format!("{name}@example.com"), "password": password });
        self.post("/login", &form).await
    }

    pub async fn available(&mut self, event: i64) -> i64 {
        let page = self.json(&format!("/events/{event}")).await;
        number(&page, "available")
    }

    /// Free seats of an event, with their prices.
    pub async fn free_seats(&mut self, event: i64) -> Vec<(i64, i64)> {
        let map = self.json(&format!("/events/{event}/seats")).await;
        let mut free = Vec::new();
        for seat in list(&map["seats"]) {
            if seat["is_free"] == true {
                free.push((number(seat, "id"), number(seat, "price_cents")));
            }
        }
        free
    }

    pub async fn reserve(&mut self, event: i64, seats: &[i64]) -> Answer {
        let path = format!("/events/{event}/reserve");
        self.post(&path, &json!({ "seats": seats })).await
    }

    /// Reserves free seats and returns the order.
    pub async fn order(&mut self, event: i64, seats: &[i64]) -> i64 {
        let answer = self.reserve(event, seats).await;
        answer.is(StatusCode::CREATED, "free seats can be reserved");
        number(&answer.json(), "order")
    }

    pub async fn pay(&mut self, order: i64) -> Answer {
        self.post(&format!("/orders/{order}/pay"), &Value::Null)
            .await
    }

    /// Pays a reservation and returns the answer.
    pub async fn buy(&mut self, order: i64) -> Value {
        let answer = self.pay(order).await;
        answer.is(StatusCode::OK, "a reservation can be paid in time");
        answer.json()
    }

    pub async fn orders(&mut self) -> BTreeMap<i64, Order> {
        orders_on(&self.page("/orders").await)
    }
}

/// A number of an answer.
#[track_caller]
pub fn number(of: &Value, field: &str) -> i64 {
    match of[field].as_i64() {
        Some(number) => number,
        None => panic!("the field `{field}` is a number, but this has none: {of}"),
    }
}

/// Entries of a list in an answer.
#[track_caller]
pub fn list(value: &Value) -> &[Value] {
    match value.as_array() {
        Some(list) => list,
        None => panic!("a list was expected in an answer, but this is none: {value}"),
    }
}

/// Codes of the tickets in the answer to a payment.
#[track_caller]
pub fn codes(paid: &Value) -> Vec<String> {
    let mut codes = Vec::new();
    for ticket in list(&paid["tickets"]) {
        let code = ticket["code"].as_str();
        let code = code.unwrap_or_else(|| panic!("a ticket has a code, but: {ticket}"));
        codes.push(code.to_owned());
    }
    codes
}

/// An order on the page of orders.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    pub status: String,
    /// Codes of its tickets.
    pub tickets: Vec<String>,
}

#[track_caller]
fn orders_on(page: &str) -> BTreeMap<i64, Order> {
    let mut orders = BTreeMap::new();
    for article in page.split("<article id=\"order-").skip(1) {
        let quoted: Vec<&str> = article.split('"').collect();
        assert!(
            quoted.len() > 2 && quoted[1].trim() == "class=",
            "GET /orders has `<article id=\"order-ID\" class=\"STATUS\">` for each order, but: {}",
            article.chars().take(80).collect::<String>()
        );
        let tickets = article.split("href=\"/tickets/").skip(1);
        let order = Order {
            status: quoted[2].to_owned(),
            tickets: tickets
                .map(|link| link[..link.find('"').unwrap_or(link.len())].to_owned())
                .collect(),
        };
        let before = orders.insert(quoted[0].parse().expect("an order's number"), order);
        assert!(
            before.is_none(),
            "GET /orders has order {} twice",
            quoted[0]
        );
    }
    orders
}
