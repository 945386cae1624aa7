//! Answers of the shipped shop to each route, in `answers.json`.
//!
//! They are of the data that `init-db` makes up for the contract. `GOLDEN=write cargo test --test contract every_route` writes
//! them anew: only the shipped shop may do that.

use std::collections::BTreeMap;
use std::path::Path;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::harness::{Answer, PASSWORD, Shop, codes, list, number};

/// Answers by what was asked.
pub type Answers = BTreeMap<String, Value>;

/// Requests without a session. The first ones ask for all pages, of which the last is empty.
const OPEN: [&str; 14] = [
    "/events",
    "/events?page=1",
    "/events?page=2",
    "/events?page=3",
    "/events?category=concert",
    "/events?category=concert&page=1",
    "/search?q=wild",
    "/search?q=golden%20hall",
    "/events/1",
    "/events/20",
    "/events/45",
    "/events/1/seats",
    "/events/30/seats",
    "/",
];

/// Asks the shop for one answer of each route.
pub async fn answers(shop: &Shop) -> Answers {
    let mut answers = Answers::new();
    // First of all: event pages that are looked at are counted.
    let mut organiser = shop.logged_in("organiser2").await;
    let report = organiser.json("/organiser/report").await;
    answers.insert("GET /organiser/report".to_owned(), report);

    for path in OPEN {
        let answer = shop.visitor().get(path).await;
        answer.is(StatusCode::OK, "the README lists this route");
        answers.insert(answer.asked.clone(), content(&answer));
    }

    let mut user = shop.visitor();
    let account = user.log_in("user7", PASSWORD).await;
    account.is(StatusCode::OK, "a right password logs a user in");
    answers.insert(account.asked.clone(), account.json());
    let orders = user.get("/orders").await;
    let code = orders.text();
    let (_, code) = code.split_once("/tickets/").expect("user7 has a ticket");
    let code = code.split('"').next().expect("the link ends");
    let ticket = user.get(&format!("/tickets/{code}")).await;
    answers.insert("GET /orders".to_owned(), content(&orders));
    answers.insert(ticket.asked.clone(), scanned(&ticket).into());

    let mut seats = user.free_seats(31).await;
    seats.truncate(2);
    let reserved = user.reserve(31, &[seats[0].0, seats[1].0]).await;
    reserved.is(StatusCode::CREATED, "free seats can be reserved");
    let order = number(&reserved.json(), "order");
    answers.insert(
        reserved.asked.clone(),
        renamed(&reserved.json(), &order.to_string(), &[]),
    );
    let paid = user.buy(order).await;
    answers.insert(
        "POST /orders/ORDER/pay".to_owned(),
        renamed(&paid, &order.to_string(), &codes(&paid)),
    );
    let tickets = list(&paid["tickets"]).len();
    answers.insert("tickets of two seats".to_owned(), json!(tickets));
    answers
}

/// JSON as it is, a page without its line ends.
fn content(answer: &Answer) -> Value {
    if answer.kind.starts_with("text/html") {
        let text = answer.text();
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").into()
    } else {
        answer.json()
    }
}

/// The text of a ticket, which is a PNG of 800 pixels or more.
#[track_caller]
pub fn scanned(ticket: &Answer) -> String {
    assert!(
        ticket.kind == "image/png",
        "a ticket is a PNG: {} has the type {:?}",
        ticket.asked,
        ticket.kind
    );
    let picture = image::load_from_memory(&ticket.body);
    let picture =
        picture.unwrap_or_else(|why| panic!("a ticket is a PNG: {}: {why}", ticket.asked));
    let picture = picture.to_luma8();
    assert!(
        picture.width() >= 800,
        "a ticket has at least 800 pixels: {} has {}",
        ticket.asked,
        picture.width()
    );
    let mut prepared = rqrr::PreparedImage::prepare(picture);
    let grids = prepared.detect_grids();
    let grid = grids.first();
    let grid = grid.unwrap_or_else(|| panic!("a ticket can be scanned: {} cannot", ticket.asked));
    let (_, text) = grid
        .decode()
        .unwrap_or_else(|why| panic!("a ticket can be scanned: {}: {why}", ticket.asked));
    text
}

/// Puts names in the place of an order's number and of codes that differ from run to run.
fn renamed(value: &Value, order: &str, codes: &[String]) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                let is_order = name == "order" || name == "order_id";
                let value = match is_order && value.to_string() == order {
                    true => "ORDER".into(),
                    false => renamed(value, order, codes),
                };
                (name.clone(), value)
            };
            fields.iter().map(field).collect()
        }
        Value::Array(all) => all.iter().map(|one| renamed(one, order, codes)).collect(),
        Value::String(text) if codes.contains(text) => "CODE".into(),
        other => other.clone(),
    }
}

/// Fails at the first answer that is not the shipped shop's.
#[track_caller]
pub fn compare(answers: &Answers) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/answers.json");
    if std::env::var_os("GOLDEN").is_some_and(|write| write == "write") {
        // A line for each answer, so that a change is seen.
        let line = |(asked, answer): (&String, &Value)| format!("{}:{answer}", json!(asked));
        let lines: Vec<String> = answers.iter().map(line).collect();
        std::fs::write(&file, format!("{{\n{}\n}}\n", lines.join(",\n"))).expect("a file");
        return;
    }
    let text = std::fs::read_to_string(&file).expect("tests/golden/answers.json is there");
    let shipped: Answers = serde_json::from_str(&text).expect("it has answers");
    for (asked, shipped) in &shipped {
        let Some(answer) = answers.get(asked) else {
            panic!("{asked} answers as the shipped shop does, but it was not asked");
        };
        if let Some(difference) = difference(shipped, answer, "") {
            panic!("{asked} answers as the shipped shop does: {difference}");
        }
    }
}

/// The first place where two answers differ.
fn difference(shipped: &Value, answer: &Value, at: &str) -> Option<String> {
    let place = if at.is_empty() { "the answer" } else { at };
    match (shipped, answer) {
        (Value::Object(shipped), Value::Object(answer)) => {
            for (name, value) in shipped {
                let at = format!("{at}.{name}");
                let Some(other) = answer.get(name) else {
                    return Some(format!("`{}` is missing", at.trim_start_matches('.')));
                };
                let difference = difference(value, other, at.trim_start_matches('.'));
                if difference.is_some() {
                    return difference;
                }
            }
            let added = answer.keys().find(|name| !shipped.contains_key(*name));
            added.map(|name| format!("`{name}` in {place} is new"))
        }
        (Value::Array(shipped), Value::Array(answer)) => {
            for (index, (value, other)) in shipped.iter().zip(answer).enumerate() {
                let difference = difference(value, other, &format!("{at}[{index}]"));
                if difference.is_some() {
                    return difference;
                }
            }
            let [shipped, answer] = [shipped.len(), answer.len()];
            let said = format!("{place} has {answer} entries and not {shipped}");
            (shipped != answer).then_some(said)
        }
        (Value::String(shipped), Value::String(answer)) if shipped != answer => {
            let mut words = shipped.split(' ').zip(answer.split(' '));
            let (wanted, seen) = words
                .find(|(shipped, answer)| shipped != answer)
                .unwrap_or((shipped, answer));
            Some(format!("in {place}, {wanted:?} became {seen:?}"))
        }
        (Value::Number(shipped), Value::Number(answer)) => {
            let is_same = shipped.as_f64() == answer.as_f64();
            (!is_same).then(|| format!("{place} is {answer} and not {shipped}"))
        }
        _ => (shipped != answer).then(|| format!("{place} is {answer} and not {shipped}")),
    }
}
