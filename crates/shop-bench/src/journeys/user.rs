//! The users' journeys, and what a user remembers from one request to the next.

use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fastrand::Rng;
use hyper::StatusCode;
use serde_json::{Value, json};

use super::browser::{Ask, Browser};
use super::count::Counts;
use super::fingerprints::{CATEGORIES, WORDS};
use super::objectives::Kind;

const JSON: &str = "application/json";
/// Password of all users that `init-db` makes up.
const PASSWORD: &str = "correct horse";
/// Number of users that `init-db` makes up in its default size; below, the organisers and the events of each.
const USERS: u32 = 4800;
const ORGANISERS: u32 = 200;
const EVENTS_OF_EACH: u32 = 10;
/// Number of journeys of one user. Then another user comes, with a browser and a session of their own.
const JOURNEYS: u32 = 10;
/// The payment service declines users whose number is a multiple of this.
const DECLINED: i64 = 100;
/// One in so many users signs up instead of logging in.
const SIGN_UPS: u32 = 4;
/// Mean pause between an answer and the next request. Pauses last from half of it to three halves.
const THINK: Duration = Duration::from_millis(100);
const POSTER: usize = 100_000;

/// The reason why a journey broke.
#[derive(Debug)]
pub(crate) struct Broken(String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn wrong(route: &str, why: impl fmt::Display) -> Broken {
    Broken(format!("{route}: {why}"))
}

/// One user after another, each with a browser of their own.
pub(crate) struct User {
    browser: Browser,
    rng: Rng,
    counts: Rc<Counts>,
    /// `true` while each answer of the journey came in time.
    in_time: bool,
    /// The number of the account, while the user is logged in.
    account: Option<i64>,
    journeys: u32,
}

impl User {
    pub(crate) fn new(counts: Rc<Counts>, seed: u64) -> Self {
        Self {
            browser: Browser::new(counts.shop),
            rng: Rng::with_seed(seed),
            counts,
            in_time: true,
            account: None,
            journeys: 0,
        }
    }

    /// Makes one more journey, and counts it.
    pub(crate) async fn travel(&mut self) {
        if self.journeys == JOURNEYS {
            self.come_anew();
        }
        self.journeys += 1;
        self.in_time = true;
        let counts = Rc::clone(&self.counts);
        let kind = counts.next();
        let ended = match kind {
            Kind::Browse => self.browse().await.map(|()| kind),
            Kind::Buy => self.buy().await,
            Kind::LookUp => self.look_up().await.map(|()| kind),
            Kind::Organise => self.organise().await.map(|()| kind),
        };
        match ended {
            Ok(kind) => counts.journey_ends(kind, self.in_time),
            Err(broken) => {
                counts.journey_breaks(broken.to_string());
                self.come_anew();
                self.think().await;
            }
        }
    }

    fn come_anew(&mut self) {
        self.browser = Browser::new(self.counts.shop);
        self.account = None;
        self.journeys = 0;
    }

    async fn browse(&mut self) -> Result<(), Broken> {
        let home = self.bytes("home", Ask::get("/")).await?;
        if !contains(&home, "id=\"next\"") {
            return Err(wrong("home", "lists nothing"));
        }
        self.think().await;
        let category = self.choose(&CATEGORIES);
        let page = self.rng.u32(..5);
        let list = format!("/events?category={category}&page={page}");
        let list = self.json("list", Ask::get(list)).await?;
        let event = self.event_of("list", &list)?;
        self.think().await;
        self.look_at(event).await?;
        self.think().await;
        let found = self.search().await?;
        let event = self.event_of("search", &found)?;
        self.think().await;
        self.look_at(event).await
    }

    /// Buys tickets and returns the kind of journey to count. A visitor who finds no seats, or whose payment is
    /// declined, counts as having browsed.
    async fn buy(&mut self) -> Result<Kind, Broken> {
        self.log_in().await?;
        let found = self.search().await?;
        let event = self.event_of("search", &found)?;
        self.think().await;
        self.look_at(event).await?;
        self.think().await;
        let Some(order) = self.reserve(event).await? else {
            return Ok(Kind::Browse);
        };
        self.think().await;
        let pay = Ask::post(format!("/orders/{order}/pay"), JSON, "null");
        let (status, answer) = self.ask("pay", pay).await?;
        if self.account.is_some_and(|account| account % DECLINED == 0) {
            if status.is_success() {
                let rule = "a payment that the payment service declines is refused";
                self.breaks_a_rule(format!(
                    "pay: {rule}: user {:?} was sold tickets",
                    self.account
                ));
            }
            return match status {
                StatusCode::CONFLICT => Ok(Kind::Browse),
                _ => Err(wrong("pay", status)),
            };
        }
        if status != StatusCode::OK {
            return Err(wrong("pay", status));
        }
        let paid = parsed("pay", &answer)?;
        let tickets = paid["tickets"].as_array().cloned().unwrap_or_default();
        if tickets.is_empty() {
            return Err(wrong("pay", "answers no ticket"));
        }
        for ticket in &tickets {
            let code = ticket["code"].as_str().unwrap_or_default();
            let png = self
                .bytes("ticket", Ask::get(format!("/tickets/{code}")))
                .await?;
            if !png.starts_with(b"\x89PNG") {
                return Err(wrong("ticket", "is no PNG"));
            }
        }
        let orders = self.bytes("orders", Ask::get("/orders")).await?;
        if contains(&orders, &format!("id=\"order-{order}\" class=\"paid\"")) {
            Ok(Kind::Buy)
        } else {
            Err(wrong("orders", format!("order {order} is not there")))
        }
    }

    /// Reserves seats and returns the order; `None` if no seats are left.
    async fn reserve(&mut self, event: i64) -> Result<Option<i64>, Broken> {
        for _ in 0..5 {
            let map = self
                .json("seats", Ask::get(format!("/events/{event}/seats")))
                .await?;
            let mut free = Vec::new();
            for seat in map["seats"].as_array().into_iter().flatten() {
                if seat["is_free"] == true {
                    free.extend(seat["id"].as_i64());
                }
            }
            if free.is_empty() {
                return Ok(None);
            }
            let wanted = self.rng.usize(1..=2).min(free.len());
            let first = self.rng.usize(..=free.len() - wanted);
            self.think().await;
            let body = json!({ "seats": free[first..first + wanted] }).to_string();
            let reserve = Ask::post(format!("/events/{event}/reserve"), JSON, body);
            let (status, answer) = self.ask("reserve", reserve).await?;
            match status {
                StatusCode::CREATED => {
                    return match parsed("reserve", &answer)?["order"].as_i64() {
                        Some(order) => Ok(Some(order)),
                        None => Err(wrong("reserve", "no order")),
                    };
                }
                // Somebody else was faster.
                StatusCode::CONFLICT => self.think().await,
                other => return Err(wrong("reserve", other)),
            }
        }
        Ok(None)
    }

    async fn look_up(&mut self) -> Result<(), Broken> {
        self.log_in().await?;
        let orders = self.bytes("orders", Ask::get("/orders")).await?;
        if contains(&orders, "<h1>Your orders</h1>") {
            Ok(())
        } else {
            Err(wrong("orders", "is another page"))
        }
    }

    async fn organise(&mut self) -> Result<(), Broken> {
        // Another browser than the buyer's.
        self.come_anew();
        let organiser = self.rng.u32(1..=ORGANISERS);
        self.enter(&format!("organiser{organiser}@example.com"))
            .await?;
        let report = self.json("report", Ask::get("/organiser/report")).await?;
        let events = report["events"].as_array().map_or(0, Vec::len);
        if events != EVENTS_OF_EACH as usize {
            return Err(wrong("report", format!("has {events} events")));
        }
        self.think().await;
        let event = organiser + ORGANISERS * self.rng.u32(..EVENTS_OF_EACH);
        let poster: Bytes = vec![self.rng.u8(..); POSTER].into();
        let path = format!("/organiser/events/{event}/poster");
        let upload = Ask::post(path, "image/png", poster);
        let (status, _) = self.ask("upload", upload).await?;
        if status != StatusCode::NO_CONTENT {
            return Err(wrong("upload", status));
        }
        let poster = Ask::get(format!("/events/{event}/poster"));
        let length = self.bytes("poster", poster).await?.len();
        self.come_anew();
        if length == POSTER {
            Ok(())
        } else {
            Err(wrong("poster", format!("has {length} bytes")))
        }
    }

    async fn search(&mut self) -> Result<Value, Broken> {
        let word = self.choose(&WORDS);
        self.json("search", Ask::get(format!("/search?q={word}")))
            .await
    }

    async fn look_at(&mut self, event: i64) -> Result<(), Broken> {
        let page = self
            .json("event", Ask::get(format!("/events/{event}")))
            .await?;
        if page["id"] == event {
            Ok(())
        } else {
            Err(wrong("event", "is another one"))
        }
    }

    /// Signs up, or logs in, unless that was done.
    async fn log_in(&mut self) -> Result<(), Broken> {
        if self.account.is_some() {
            return Ok(());
        }
        let account = if self.rng.u32(..SIGN_UPS) == 0 {
            let email = format!("new{:x}@example.org", self.rng.u64(..));
            let form = json!({ "email": email, "name": "Ada", "password": PASSWORD });
            let sign_up = Ask::post("/signup", JSON, form.to_string());
            let (status, answer) = self.ask("sign_up", sign_up).await?;
            if status != StatusCode::CREATED {
                return Err(wrong("sign_up", status));
            }
            parsed("sign_up", &answer)?
        } else {
            let user = self.rng.u32(1..=USERS);
            self.enter(&format!("user{user}@example.com")).await?
        };
        let Some(number) = account["id"].as_i64() else {
            return Err(wrong("log_in", "answers no id"));
        };
        self.account = Some(number);
        self.think().await;
        Ok(())
    }

    /// Logs in and returns the account.
    async fn enter(&mut self, email: &str) -> Result<Value, Broken> {
        let form = json!({ "email": email, "password": PASSWORD }).to_string();
        self.json("log_in", Ask::post("/login", JSON, form)).await
    }

    async fn json(&mut self, route: &'static str, ask: Ask) -> Result<Value, Broken> {
        let path = ask.path.clone();
        let body = self.bytes(route, ask).await?;
        let answer = parsed(route, &body)?;
        if self.counts.shipped.is_right(&path, &answer) {
            Ok(answer)
        } else {
            let rule = "lacks, changes or adds a field, unlike the shipped shop";
            self.breaks_a_rule(format!("{route}: {path} {rule}"));
            Err(wrong(route, rule))
        }
    }

    /// Remembers a broken rule, which costs the shop its score.
    fn breaks_a_rule(&self, rule: String) {
        self.counts.wrong.borrow_mut().get_or_insert(rule);
    }

    async fn bytes(&mut self, route: &'static str, ask: Ask) -> Result<Bytes, Broken> {
        match self.ask(route, ask).await? {
            (StatusCode::OK, body) => Ok(body),
            (status, _) => Err(wrong(route, status)),
        }
    }

    async fn ask(&mut self, route: &'static str, ask: Ask) -> Result<(StatusCode, Bytes), Broken> {
        let began = Instant::now();
        let answer = self.browser.ask(ask).await;
        let bytes = answer.as_ref().map_or(0, |(_, body)| body.len());
        self.in_time &= self.counts.answer(route, began.elapsed(), bytes);
        answer.map_err(|why| wrong(route, why))
    }

    async fn think(&mut self) {
        tokio::time::sleep(THINK.mul_f64(self.rng.f64() + 0.5)).await;
    }

    fn choose(&mut self, of: &[&'static str]) -> &'static str {
        of[self.rng.usize(..of.len())]
    }

    /// Returns one of the events in `list`, at random.
    fn event_of(&mut self, route: &str, list: &Value) -> Result<i64, Broken> {
        if let Some(list) = list.as_array()
            && let Some(event) = self.rng.choice(list)
            && let Some(id) = event["id"].as_i64()
        {
            return Ok(id);
        }
        Err(wrong(route, "finds nothing"))
    }
}

fn parsed(route: &str, body: &[u8]) -> Result<Value, Broken> {
    serde_json::from_slice(body).map_err(|error| wrong(route, error))
}

fn contains(page: &[u8], text: &str) -> bool {
    page.windows(text.len())
        .any(|window| window == text.as_bytes())
}
