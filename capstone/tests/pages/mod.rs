//! Rules about what is shown: posters, reports, lists, searches and tickets.

use std::collections::BTreeSet;

use reqwest::StatusCode;
use serde_json::Value;

use crate::golden;
use crate::harness::{EVENTS, ORGANISERS, Order, STALE, Shop, codes, list, number};

#[tokio::test]
async fn a_poster_is_what_was_uploaded() {
    let mut shop = Shop::start();
    let mut organiser = shop.logged_in("organiser1").await;
    let answer = organiser.get("/events/1/poster").await;
    answer.is(
        StatusCode::NOT_FOUND,
        "an event without a poster answers none",
    );
    let posters = [3, 400_000, 5_000_000].map(|length: u32| {
        (0..length)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect::<Vec<u8>>()
    });
    for poster in &posters {
        let answer = organiser.upload(1, "image/png", poster).await;
        answer.is(
            StatusCode::NO_CONTENT,
            "organisers upload posters of their events",
        );
        let answer = organiser.get("/events/1/poster").await;
        answer.is(
            StatusCode::OK,
            "a poster is there once its upload is answered",
        );
        assert!(
            answer.body == *poster,
            "a poster is what was uploaded last: {} bytes were, and {} others came back",
            poster.len(),
            answer.body.len()
        );
    }

    let mut other = shop.logged_in("organiser2").await;
    let answer = other.upload(1, "image/png", &[1]).await;
    answer.is(
        StatusCode::FORBIDDEN,
        "a poster is uploaded by the event's organiser alone",
    );
    let answer = organiser.upload(1, "text/html", &[1]).await;
    answer.is(StatusCode::UNPROCESSABLE_ENTITY, "a poster is a PNG");
    shop.restart();
    let answer = shop.visitor().get("/events/1/poster").await;
    assert!(
        answer.body == posters[2],
        "a poster is there after a restart: {} bytes were uploaded, and {} came back",
        posters[2].len(),
        answer.body.len()
    );
    let page = shop.visitor().json("/events/1").await;
    assert!(
        page["has_poster"] == true,
        "an event page says whether there is a poster: `has_poster` is {}",
        page["has_poster"]
    );
}

#[tokio::test]
async fn the_report_is_right() {
    let shop = Shop::start();
    let mut organiser = shop.logged_in("organiser1").await;
    let before = organiser.json("/organiser/report").await;
    let mut user = shop.logged_in("user1").await;
    let seats = user.free_seats(1).await;
    let paid = user.order(1, &[seats[0].0, seats[1].0]).await;
    user.buy(paid).await;
    user.order(1, &[seats[2].0]).await;
    for _ in 0..7 {
        user.available(1).await;
    }
    tokio::time::sleep(STALE).await;
    let after = organiser.json("/organiser/report").await;

    let events = list(&after["events"]);
    let ids: Vec<i64> = events.iter().map(|event| number(event, "event")).collect();
    let own: Vec<i64> = (1..=EVENTS).step_by(ORGANISERS as usize).collect();
    assert!(
        ids == own,
        "a report has each event of the organiser and no other, by number: {own:?} and not {ids:?}"
    );
    let cents = seats[0].1 + seats[1].1;
    for (field, grew) in [
        ("sold", 2),
        ("available", -3),
        ("revenue_cents", cents),
        ("views", 7),
    ] {
        let [before, after] = [&before, &after].map(|report| number(&report["events"][0], field));
        assert!(
            after - before == grew,
            "a report is at most 2 s old: `{field}` of event 1 went from {before} to {after}, and {grew} were to be added"
        );
    }
    for field in ["sold", "revenue_cents", "payout_cents"] {
        let sum: i64 = events.iter().map(|event| number(event, field)).sum();
        assert!(
            after[field] == sum,
            "a report ends with the sums of its events: `{field}` is {} and not {sum}",
            after[field]
        );
    }
    for event in events {
        let id = number(event, "event");
        let revenue = number(event, "revenue_cents");
        let reserved = i64::from(id == 1);
        let seats_in_all = number(event, "sold") + number(event, "available") + reserved;
        assert!(
            seats_in_all == 80,
            "each of the 80 seats of an event is sold, reserved or available: {event}"
        );
        let payout = revenue - revenue * (150 + id) / 10_000;
        assert!(
            event["payout_cents"] == payout,
            "the fee of an event is taken off its revenue: `payout_cents` of event {id} is {} and not {payout}",
            event["payout_cents"]
        );
        let map = user.json(&format!("/events/{id}/seats")).await;
        let mut taken = 0;
        for seat in list(&map["seats"]) {
            if seat["is_free"] == false {
                taken += number(seat, "price_cents");
            }
        }
        let taken = taken - reserved * seats[2].1;
        assert!(
            revenue == taken,
            "a report counts the seats that are paid: `revenue_cents` of event {id} is {revenue} and not {taken}"
        );
    }
    let answer = user.get("/organiser/report").await;
    answer.is(StatusCode::FORBIDDEN, "reports are for organisers");
}

#[tokio::test]
async fn no_answer_is_older_than_it_may_be() {
    let shop = Shop::start();
    let mut user = shop.logged_in("user1").await;
    // One that is on the first page.
    let first = user.json("/events").await[0].clone();
    let (event, available) = (number(&first, "id"), number(&first, "available"));
    let seat = user.free_seats(event).await[0].0;
    let title = first["title"].as_str().unwrap_or_default();
    let search = format!("/search?q={}", title.replace(' ', "%20"));
    // What is kept of these must go.
    user.json(&search).await;
    user.page("/").await;
    let order = user.order(event, &[seat]).await;
    let mine = "what users did themselves is never old";
    let reserved = user.orders().await.remove(&order);
    assert!(
        reserved
            .as_ref()
            .is_some_and(|order| order.status == "reserved"),
        "{mine}: order {order} was reserved, and GET /orders has {reserved:?}"
    );
    let paid = Order {
        tickets: codes(&user.buy(order).await),
        status: "paid".to_owned(),
    };
    let seen = user.orders().await.remove(&order);
    assert!(
        seen.as_ref() == Some(&paid),
        "{mine}: order {order} was paid, and GET /orders has {seen:?}"
    );

    tokio::time::sleep(STALE).await;
    let left = available - 1;
    let fresh = |what: &str, seen: &Value| {
        assert!(
            *seen == left,
            "{what} is at most 2 s old: it has {seen} seats left, and {left} are"
        );
    };
    fresh("an event page", &user.available(event).await.into());
    fresh("the list", &user.json("/events").await[0]["available"]);
    let free = user.free_seats(event).await;
    assert!(
        !free.iter().any(|free| free.0 == seat),
        "the map of seats is at most 2 s old: seat {seat} is free, and was paid"
    );
    let found = user.json(&search).await;
    let found = list(&found).iter().find(|found| found["id"] == event);
    let found = found.unwrap_or_else(|| panic!("{search} finds event {event} by its title"));
    fresh("the search", &found["available"]);
    let home = user.page("/").await;
    let (_, entry) = home
        .split_once(&format!("href=\"/events/{event}\""))
        .unwrap_or_else(|| panic!("GET / has the next ten events, but event {event} is missing"));
    let entry = entry.split("</li>").next().unwrap_or_default();
    assert!(
        entry.contains(&format!(">{left} seats left<")),
        "the home page is at most 2 s old: {left} seats are left of event {event}, and it has{entry}"
    );
}

#[tokio::test]
async fn the_list_has_every_event_once_by_date_and_its_cheapest_seat() {
    let shop = Shop::start();
    let mut visitor = shop.visitor();
    let mut listed = Vec::new();
    let categories = ["", "comedy", "concert", "dance", "reading", "theatre"];
    for category in categories {
        let mut of_category: Vec<Value> = Vec::new();
        for page in 0..4 {
            let path = format!("/events?category={category}&page={page}");
            let entries = visitor.json(&path).await;
            let entries = list(&entries);
            assert!(
                entries.len() <= 20,
                "a page of the list has 20 events at most: {path} has {}",
                entries.len()
            );
            let is_other = |event: &&Value| !category.is_empty() && event["category"] != category;
            if let Some(other) = entries.iter().find(is_other) {
                panic!("a list of a category has no event of another: {path} has {other}");
            }
            of_category.extend_from_slice(entries);
        }
        let once: BTreeSet<i64> = of_category
            .iter()
            .map(|event| number(event, "id"))
            .collect();
        assert!(
            once.len() == of_category.len(),
            "the pages of the list have each event once: /events?category={category} has {} entries of {} events",
            of_category.len(),
            once.len()
        );
        let by_date = |event: &Value| (event["starts_at"].to_string(), number(event, "id"));
        assert!(
            of_category.is_sorted_by_key(by_date),
            "the list is by date, and then by number: /events?category={category} is not"
        );
        listed.push(of_category);
    }
    let all = &listed[0];
    let ids: BTreeSet<i64> = all.iter().map(|event| number(event, "id")).collect();
    assert!(
        ids == (1..=EVENTS).collect() && all.len() == ids.len(),
        "the pages of the list have each of the {EVENTS} events once: they have {} entries of {} events",
        all.len(),
        ids.len()
    );
    let of_categories: usize = listed[1..].iter().map(Vec::len).sum();
    assert!(
        of_categories == all.len(),
        "each event is in the list of its category: those have {of_categories} events, and there are {EVENTS}"
    );
    for event in &all[..5] {
        let id = number(event, "id");
        let cheapest = visitor.free_seats(id).await.iter().map(|seat| seat.1).min();
        assert!(
            event["from_cents"].as_i64() == cheapest,
            "the list has the price of the cheapest free seat: event {id} is from {} cents and not from {cheapest:?}",
            event["from_cents"]
        );
    }
    for path in ["/events/46", "/events/46/seats"] {
        let answer = visitor.get(path).await;
        answer.is(
            StatusCode::NOT_FOUND,
            "an event that there is not has no page",
        );
    }
}

#[tokio::test]
async fn a_search_finds_what_has_a_word_that_begins_so() {
    let shop = Shop::start();
    let mut visitor = shop.visitor();
    // Each page of the list has what a search could find, by date.
    let mut all = Vec::new();
    for page in 0..3 {
        let entries = visitor.json(&format!("/events?page={page}")).await;
        all.extend_from_slice(list(&entries));
    }
    for words in [
        "",
        "wild",
        "ni",
        "Hall",
        "of",
        "concer",
        "(",
        "w.ld",
        "e",
        "golden yard",
        "arden",
    ] {
        let path = format!("/search?q={}", words.replace(' ', "%20"));
        let found = visitor.json(&path).await;
        let found: Vec<i64> = list(&found)
            .iter()
            .map(|event| number(event, "id"))
            .collect();
        let mut wanted = Vec::new();
        for event in &all {
            if words.split(' ').all(|word| has_word(event, word)) {
                wanted.push(number(event, "id"));
            }
        }
        wanted.truncate(20);
        assert!(
            found == wanted,
            "a search finds the first 20 events that have a word beginning with each word: {path} found {found:?} and not \
             {wanted:?}"
        );
    }
}

/// Returns whether a text of the event has a word that begins so.
fn has_word(event: &Value, beginning: &str) -> bool {
    let beginning = beginning.to_lowercase();
    ["title", "description", "venue", "city"]
        .iter()
        .any(|field| {
            let text = event[*field].as_str().unwrap_or_default().to_lowercase();
            text.split_whitespace()
                .any(|word| word.starts_with(&beginning))
        })
}

#[tokio::test]
async fn a_visitor_sees_what_they_looked_at_and_nobody_else_does() {
    let shop = Shop::start();
    let (mut ada, mut bea) = (shop.visitor(), shop.visitor());
    ada.page("/").await;
    let mut looked_at = Vec::new();
    for event in 11..=17 {
        let page = ada.json(&format!("/events/{event}")).await;
        let title = page["title"].as_str().unwrap_or_default();
        looked_at.insert(0, format!("{event} {title}"));
    }
    looked_at.truncate(5);
    let seen = viewed(&ada.page("/").await);
    assert!(
        seen == looked_at,
        "the home page has the last five events that a visitor looked at, the latest first: {looked_at:?} and not {seen:?}"
    );
    let seen = viewed(&bea.page("/").await);
    assert!(
        seen.is_empty(),
        "the home page has nothing that another visitor looked at: {seen:?}"
    );
}

/// Events in the list `viewed` of the home page, each with its number and title.
fn viewed(page: &str) -> Vec<String> {
    let Some((_, list)) = page.split_once("<ul id=\"viewed\">") else {
        return Vec::new();
    };
    let mut viewed = Vec::new();
    for entry in list.split("href=\"/events/").skip(1) {
        let entry = entry.split("</a>").next().unwrap_or_default();
        viewed.push(entry.replace("\">", " "));
    }
    viewed
}

#[tokio::test]
async fn a_ticket_can_be_scanned_and_is_its_buyers() {
    let shop = Shop::start();
    let mut user = shop.logged_in("user1").await;
    let seats = user.free_seats(18).await;
    let order = user.order(18, &[seats[0].0, seats[1].0]).await;
    let mut other = shop.logged_in("user2").await;
    for code in codes(&user.buy(order).await) {
        let path = format!("/tickets/{code}");
        let ticket = user.get(&path).await;
        ticket.is(StatusCode::OK, "a ticket is shown to its buyer");
        let text = golden::scanned(&ticket);
        assert!(
            text.starts_with(&code) && text.contains("row") && text.contains("seat"),
            "a ticket says its code, row and seat when it is scanned: it says {text:?}"
        );
        let answer = other.get(&path).await;
        answer.is(
            StatusCode::FORBIDDEN,
            "a ticket is shown to its buyer alone",
        );
    }
    let answer = user.get("/tickets/none").await;
    answer.is(
        StatusCode::NOT_FOUND,
        "a ticket that there is not is not found",
    );
}
