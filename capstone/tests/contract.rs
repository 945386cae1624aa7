//! The shop's contract, however fast it is: `cargo test`.
//!
//! Each test is a rule. It starts the shop and the payment service on ports of their own, with a small database in a folder
//! of its own, and fails with a sentence that says which rule was broken. `POSTGRES=postgres://… cargo test --features
//! postgres -- --test-threads 1` asks a shop on PostgreSQL, whose database the tests use one after the other.

mod golden;
mod harness;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use harness::{
    Answer, EVENTS, ORGANISERS, Order, PASSWORD, STALE, Settings, Shop, Visitor, codes, list,
    number,
};

#[tokio::test]
async fn it_is_healthy() {
    let shop = Shop::start();
    let said = shop.visitor().page("/health").await;
    assert!(said == "ok", "GET /health answers `ok`, but: {said:?}");
}

#[tokio::test]
async fn each_seat_is_sold_once() {
    let shop = Shop::start();
    let mut visitor = shop.visitor();
    let seats = visitor.free_seats(1).await;
    let available = visitor.available(1).await;
    assert!(
        available == seats.len() as i64,
        "`available` counts the free seats: event 1 has {} on its map, and {available} available",
        seats.len()
    );

    // Twelve users want the same ten pairs of seats at the same time.
    let mut asking = JoinSet::new();
    for user in shop.users(12).await {
        for pair in seats[..20].chunks(2) {
            let (mut user, pair) = (user.clone(), [pair[0].0, pair[1].0]);
            asking.spawn(async move { (pair, user.reserve(1, &pair).await) });
        }
    }
    let mut sold = BTreeMap::<_, u32>::new();
    for (pair, answer) in asking.join_all().await {
        if answer.status == StatusCode::CREATED {
            *sold.entry(pair).or_default() += 1;
        } else {
            answer.is(
                StatusCode::CONFLICT,
                "a seat that somebody else has is refused",
            );
        }
    }
    for (pair, times) in &sold {
        assert!(
            *times == 1,
            "a seat is sold once: the seats {pair:?} were sold to {times} users"
        );
    }
    assert!(
        sold.len() == 10,
        "one of those who ask for a free seat gets it: of 10 pairs of seats that twelve users wanted, {} were sold",
        sold.len()
    );

    tokio::time::sleep(STALE).await;
    let left = visitor.available(1).await;
    assert!(
        left == available - 20,
        "an event page is at most 2 s old: {left} seats of event 1 are available after 20 of {available} were sold"
    );
    let left = visitor.free_seats(1).await;
    assert!(
        left == seats[20..],
        "the map of seats is at most 2 s old: of {} seats 20 were sold, and {} are free",
        seats.len(),
        left.len()
    );
}

#[tokio::test]
async fn an_order_has_all_its_seats_or_none() {
    let shop = Shop::start();
    let mut user = shop.logged_in("user1").await;
    let seats = user.free_seats(2).await;
    let of_another_event = user.free_seats(3).await[0].0;
    user.order(2, &[seats[0].0]).await;

    let nine: Vec<i64> = seats[1..10].iter().map(|seat| seat.0).collect();
    let refused = [
        (
            vec![seats[1].0, seats[0].0],
            StatusCode::CONFLICT,
            "an order with a taken seat is refused",
        ),
        (
            vec![seats[1].0, seats[1].0],
            StatusCode::CONFLICT,
            "an order with the same seat twice is refused",
        ),
        (
            vec![seats[1].0, of_another_event],
            StatusCode::NOT_FOUND,
            "an order with a seat of another event is refused",
        ),
        (
            vec![],
            StatusCode::UNPROCESSABLE_ENTITY,
            "an order without seats is refused",
        ),
        (
            nine,
            StatusCode::UNPROCESSABLE_ENTITY,
            "an order of more than eight seats is refused",
        ),
    ];
    for (wanted, status, rule) in refused {
        user.reserve(2, &wanted).await.is(status, rule);
    }
    let answer = shop.visitor().reserve(2, &[seats[1].0]).await;
    answer.is(StatusCode::UNAUTHORIZED, "a visitor logs in to reserve");

    tokio::time::sleep(STALE).await;
    let left = user.free_seats(2).await;
    assert!(
        left == seats[1..],
        "an order has all its seats or none: after orders that were refused, {} seats are free and not {}",
        left.len(),
        seats.len() - 1
    );
    let orders = user.orders().await;
    let reserved = orders.values().filter(|order| order.status == "reserved");
    let reserved = reserved.count();
    assert!(
        reserved == 1,
        "an order that was refused is no order: the user has 1 reservation, and GET /orders has {reserved}"
    );
}

#[tokio::test]
async fn the_stock_ends_at_zero_and_never_below() {
    let shop = Shop::start();
    let mut visitor = shop.visitor();
    let seats = visitor.free_seats(4).await;
    let users = shop.users(6).await;

    // All users want every seat.
    let mut asking = JoinSet::new();
    for mut user in users {
        let seats = seats.clone();
        asking.spawn(async move {
            let mut got = 0;
            for (seat, _) in seats {
                let answer = user.reserve(4, &[seat]).await;
                got += usize::from(answer.status == StatusCode::CREATED);
            }
            got
        });
    }
    let mut got = 0;
    while !asking.is_empty() {
        let available = visitor.available(4).await;
        assert!(
            available >= 0,
            "`available` is never below zero: it is {available}"
        );
        while let Some(user) = asking.try_join_next() {
            got += user.expect("a user");
        }
    }
    assert!(
        got == seats.len(),
        "each free seat is sold once: {} were free, and {got} were sold",
        seats.len()
    );
    tokio::time::sleep(STALE).await;
    let available = visitor.available(4).await;
    assert!(
        available == 0,
        "an event page is at most 2 s old: all seats are sold, and `available` is {available}"
    );
    let free = visitor.free_seats(4).await.len();
    assert!(
        free == 0,
        "the map of seats is at most 2 s old: all seats are sold, and {free} are free on it"
    );
}

#[tokio::test]
async fn seats_that_are_not_paid_in_time_are_free_again() {
    let shop = Shop::with(Settings {
        hold_seconds: 1,
        ..Settings::default()
    });
    let mut user = shop.logged_in("user1").await;
    let seats = user.free_seats(5).await;
    let expires = user.order(5, &[seats[0].0, seats[1].0]).await;
    let paid = user.order(5, &[seats[2].0]).await;
    user.buy(paid).await;

    tokio::time::sleep(Duration::from_secs(2) + STALE).await;
    let answer = user.pay(expires).await;
    answer.is(
        StatusCode::CONFLICT,
        "a reservation that has expired cannot be paid",
    );
    let charges = shop.charges().await;
    assert!(
        !charges.contains_key(&expires),
        "a reservation that has expired is not charged: order {expires} was"
    );
    let mut left = seats.clone();
    left.remove(2);
    let free = user.free_seats(5).await;
    assert!(
        free == left,
        "seats that are not paid in time are free again, and paid ones are not: {} are free and not {}",
        free.len(),
        left.len()
    );
    let available = user.available(5).await;
    assert!(
        available == left.len() as i64,
        "`available` counts the seats that are free again: it is {available} and not {}",
        left.len()
    );
    let orders = user.orders().await;
    assert!(
        !orders.contains_key(&expires),
        "an order that has expired leaves GET /orders: order {expires} is there"
    );
}

#[tokio::test]
async fn reservations_expire_also_after_a_restart() {
    let mut shop = Shop::with(Settings {
        hold_seconds: 2,
        ..Settings::default()
    });
    let mut user = shop.logged_in("user1").await;
    let seats = user.free_seats(5).await;
    user.order(5, &[seats[0].0]).await;
    shop.restart();
    tokio::time::sleep(Duration::from_secs(3) + STALE).await;
    let free = shop.visitor().free_seats(5).await;
    assert!(
        free == seats,
        "a reservation expires also after a restart: {} seats are free and not {}",
        free.len(),
        seats.len()
    );
}

/// The payment service takes its time, and the reservation's time is over meanwhile.
#[tokio::test]
async fn nobody_is_charged_for_seats_that_they_do_not_have() {
    let shop = Shop::with(Settings {
        hold_seconds: 1,
        call_ms: 900,
    });
    let mut user = shop.logged_in("user1").await;
    let mut other = shop.logged_in("user2").await;
    let seats = user.free_seats(9).await;
    let wanted = [seats[0].0, seats[1].0];
    let order = user.order(9, &wanted).await;
    let paying = {
        let mut user = user.clone();
        tokio::spawn(async move { user.pay(order).await })
    };
    // Somebody else takes the seats as soon as they are free.
    let mut taken_by_other = false;
    while !paying.is_finished() {
        let answer = other.reserve(9, &wanted).await;
        taken_by_other |= answer.status == StatusCode::CREATED;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let answer = paying.await.expect("an answer");

    // What the shop does by itself has time to end.
    tokio::time::sleep(Duration::from_secs(2) + STALE).await;
    let charged = shop.charges().await.get(&order).copied();
    let again = user.pay(order).await;
    let orders = user.orders().await;
    let rule = "a reservation that expires while it is paid is either paid, with its seats, or not charged";
    if let Some(cents) = charged {
        assert!(
            !taken_by_other,
            "{rule}: order {order} was charged {cents} cents, and somebody else has its seats"
        );
        again.is(StatusCode::OK, rule);
        let tickets = codes(&again.json());
        assert!(
            tickets.len() == 2,
            "{rule}: order {order} was charged {cents} cents, and has {} tickets and not 2",
            tickets.len()
        );
        let status = orders.get(&order).map(|order| order.status.as_str());
        assert!(
            status == Some("paid"),
            "{rule}: order {order} was charged {cents} cents, and GET /orders has it as {status:?}"
        );
        let free = user.free_seats(9).await;
        assert!(
            free == seats[2..],
            "{rule}: order {order} was charged {cents} cents, and its seats can be sold again"
        );
    } else {
        assert!(
            answer.status != StatusCode::OK,
            "{rule}: order {order} was answered as paid, and nobody was charged"
        );
        assert!(
            !orders.contains_key(&order) || taken_by_other,
            "{rule}: order {order} was not charged in time, and keeps its seats"
        );
    }
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
    let answers: Vec<Answer> = paying.join_all().await;
    let rule = "whoever pays an order several times at once gets the same answer each time";
    answers[0].is(StatusCode::OK, rule);
    let paid = answers[0].json();
    for answer in &answers {
        answer.is(StatusCode::OK, rule);
        assert!(
            answer.json() == paid,
            "{rule}: {paid} and {}",
            answer.json()
        );
    }
    let tickets = codes(&paid).len();
    assert!(
        tickets == 2,
        "a paid order has a ticket for each seat: order {order} has {tickets} and not 2"
    );
    // An event's fee is 1.5 % and its number modulo 100 in hundredths of a percent.
    let cents = seats[0].1 + seats[1].1;
    let total = cents + cents * (150 + 6) / 10_000;
    assert!(
        paid["cents"] == total,
        "an order costs its seats and the fee of its event: {total} cents and not {}",
        paid["cents"]
    );
    let charges = shop.charges().await;
    assert!(
        charges.get(&order) == Some(&total),
        "a paid order was charged when its payment is answered: {total} cents and not {:?}",
        charges.get(&order)
    );

    let mut other = shop.logged_in("user2").await;
    let answer = other.pay(order).await;
    answer.is(
        StatusCode::NOT_FOUND,
        "an order can be paid by its user alone",
    );
}

#[tokio::test]
async fn each_payment_is_accepted_by_the_payment_service_first() {
    let shop = Shop::start();
    let mut user = shop.logged_in("user1").await;
    let account = user.log_in("user1", PASSWORD).await.json();
    let seats = user.free_seats(10).await;
    let mut amounts = Vec::new();
    for (seat, cents) in &seats[..3] {
        let order = user.order(10, &[*seat]).await;
        user.buy(order).await;
        amounts.push(*cents);
    }
    let risks = shop.risks().await;
    let mut asked = risks
        .get(&number(&account, "id").to_string())
        .cloned()
        .unwrap_or_default();
    asked.sort_unstable();
    amounts.sort_unstable();
    assert!(
        asked == amounts,
        "the payment service is asked about each payment (POST /risk, with user and amount): the user paid {amounts:?} \
         cents, and it was asked about {asked:?}"
    );

    // It declines users whose number is a multiple of 100, and amounts of more than 400 EUR.
    let declined = format!("user{}", 100 - ORGANISERS);
    let mut declined = shop.logged_in(&declined).await;
    let (event, wanted) = expensive(&mut user).await;
    let few = [seats[3].0];
    for (buyer, event, seats) in [(&mut declined, 10, &few[..]), (&mut user, event, &wanted)] {
        let order = buyer.order(event, seats).await;
        let answer = buyer.pay(order).await;
        answer.is(
            StatusCode::CONFLICT,
            "a payment that the payment service declines is refused",
        );
        let charges = shop.charges().await;
        assert!(
            !charges.contains_key(&order),
            "a payment that the payment service declines is not charged: order {order} was"
        );
        let orders = buyer.orders().await;
        let reserved = Order {
            status: "reserved".to_owned(),
            tickets: Vec::new(),
        };
        assert!(
            orders.get(&order) == Some(&reserved),
            "an order that was declined stays reserved until it expires: {:?}",
            orders.get(&order)
        );
    }
}

/// Eight seats of one event that cost more than 400 EUR.
async fn expensive(visitor: &mut Visitor) -> (i64, Vec<i64>) {
    for event in 1..=EVENTS {
        let mut seats = visitor.free_seats(event).await;
        seats.sort_unstable_by_key(|seat| -seat.1);
        seats.truncate(8);
        let cents: i64 = seats.iter().map(|seat| seat.1).sum();
        if cents > 40_000 {
            return (event, seats.iter().map(|seat| seat.0).collect());
        }
    }
    panic!(
        "the data that `init-db` makes up stays: no event has eight seats for more than 400 EUR"
    );
}

#[tokio::test]
async fn each_ticket_is_mailed_once() {
    let shop = Shop::start();
    let mut user = shop.logged_in("user1").await;
    let mut tickets = BTreeSet::new();
    for pair in user.free_seats(7).await[..12].chunks(2) {
        let order = user.order(7, &[pair[0].0, pair[1].0]).await;
        tickets.extend(codes(&user.buy(order).await));
    }
    let began = Instant::now();
    let mut mails = HashMap::new();
    while mails.len() < tickets.len() && began.elapsed() < Duration::from_secs(5) {
        mails = shop.mails().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(
        tickets.len() == 12,
        "each ticket has a code of its own: 12 tickets have {} codes",
        tickets.len()
    );
    for ticket in &tickets {
        let times = mails.get(ticket).copied().unwrap_or(0);
        assert!(
            times == 1,
            "each ticket is mailed once, within 5 s: ticket {ticket} was mailed {times} times"
        );
    }
}

#[tokio::test]
async fn what_was_paid_is_there_exactly_once_after_a_kill() {
    let mut shop = Shop::start();
    let mut visitor = shop.visitor();
    let mut reserved = Vec::new();
    for (mut user, event) in shop.users(6).await.into_iter().zip(8..) {
        for (seat, _) in &visitor.free_seats(event).await[..5] {
            let order = user.order(event, &[*seat]).await;
            reserved.push((user.clone(), order));
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
    let began = Instant::now();
    while ANSWERED.load(Relaxed) < reserved.len() / 3 {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "orders can be paid at the same time: of {} payments, {} were answered in 60 s",
            reserved.len(),
            ANSWERED.load(Relaxed)
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    shop.restart();
    let mut tickets = BTreeMap::new();
    for (order, answer) in paying.join_all().await.into_iter().flatten() {
        answer.is(StatusCode::OK, "a reservation can be paid in time");
        tickets.insert(order, codes(&answer.json()));
    }
    assert!(!tickets.is_empty(), "some payments were answered");

    // Sessions may be gone. Whoever got no answer pays again.
    for (index, orders) in reserved.chunks(5).enumerate() {
        let mut user = shop.logged_in(&format!("user{}", index + 1)).await;
        for (_, order) in orders {
            let before = user.orders().await;
            if let Some(codes) = tickets.get(order) {
                let paid = Order {
                    status: "paid".to_owned(),
                    tickets: codes.clone(),
                };
                assert!(
                    before.get(order) == Some(&paid),
                    "a payment that was answered is there after a kill: order {order} is {:?}",
                    before.get(order)
                );
            }
            let paid = user.buy(*order).await;
            let after = user.orders().await;
            let once = Order {
                status: "paid".to_owned(),
                tickets: codes(&paid),
            };
            assert!(
                after.get(order) == Some(&once) && once.tickets.len() == 1,
                "after a kill an order can be paid again, and has its tickets once: order {order} is {:?}",
                after.get(order)
            );
            let charged = shop.charges().await.get(order).copied();
            assert!(
                charged == paid["cents"].as_i64(),
                "a paid order is charged once: order {order} costs {} cents, and {charged:?} were charged",
                paid["cents"]
            );
        }
    }
}

#[tokio::test]
async fn passwords_are_hashed_at_the_given_cost() {
    let shop = Shop::start();
    let mut visitor = shop.visitor();
    for email in ["first@example.org", "second@example.org"] {
        let form = json!({ "email": email, "name": "Ada", "password": "the same one" });
        let answer = visitor.post("/signup", &form).await;
        answer.is(StatusCode::CREATED, "a visitor can sign up");
    }
    let hashes = shop.password_hashes("@example.org").await;
    assert!(
        hashes.len() == 2,
        "the table `users` has a row for each account: of 2 that signed up it has {}",
        hashes.len()
    );
    let mut salts = BTreeSet::new();
    for hash in &hashes {
        let parts: Vec<&str> = hash.split('$').collect();
        let cost = parts.get(1..4).unwrap_or_default().join("$");
        assert!(
            cost == "argon2id$v=19$m=19456,t=2,p=1" && parts.len() == 6,
            "passwords are hashed by argon2id with 19 MiB and two passes: one is stored as {hash}"
        );
        assert!(
            parts[4].len() >= 22 && parts[5].len() >= 43,
            "a hash has a salt of 16 bytes and 32 bytes of its own: one is stored as {hash}"
        );
        salts.insert(parts[4]);
    }
    assert!(
        salts.len() == 2,
        "each password has a salt of its own: both have {salts:?}"
    );

    for (password, status, rule) in [
        (
            "another one",
            StatusCode::UNAUTHORIZED,
            "a wrong password logs nobody in",
        ),
        (
            "the same one",
            StatusCode::OK,
            "a right password logs a user in",
        ),
    ] {
        let form = json!({ "email": "first@example.org", "password": password });
        visitor.post("/login", &form).await.is(status, rule);
    }
}

/// CPU time is what a hash costs, on a busy machine as well.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn each_login_pays_for_its_hash() {
    use argon2::{Argon2, PasswordHasher, PasswordVerifier};

    const LOGINS: u32 = 16;

    /// CPU time of this thread.
    fn own() -> Duration {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat");
        let stat = stat.expect("the system says how long a thread ran");
        let nanos = stat.split(' ').next().expect("three numbers");
        Duration::from_nanos(nanos.parse().expect("a number"))
    }

    let shop = Shop::start();
    let mut visitor = shop.visitor();
    let began = shop.cpu_time();
    for login in 0..LOGINS {
        // Four users come four times each, and each password is tried for the first time and again.
        let name = format!("user{}", login % 4 + 1);
        let answer = visitor.log_in(&name, PASSWORD).await;
        answer.is(StatusCode::OK, "a right password logs a user in");
    }
    let paid = shop.cpu_time() - began;

    let hash = Argon2::default().hash_password(PASSWORD.as_bytes());
    let hash = hash.expect("a hash").to_string();
    let began = own();
    for _ in 0..LOGINS {
        let is_right = Argon2::default().verify_password(PASSWORD.as_bytes(), hash.as_str());
        assert!(is_right.is_ok());
    }
    let costs = own() - began;
    assert!(
        paid >= costs / 2,
        "each login pays for a hash of its password, also when the same one comes again: {LOGINS} logins took {} ms of the \
         shop's CPU, and {LOGINS} hashes take {} ms",
        paid.as_millis(),
        costs.as_millis()
    );
}

#[tokio::test]
async fn not_everybody_can_sign_up() {
    let shop = Shop::start();
    let mut visitor = shop.visitor();
    for (email, password, status, rule) in [
        (
            "ada@example.org",
            "long enough",
            StatusCode::CREATED,
            "a visitor can sign up",
        ),
        (
            "ada@example.org",
            "long enough",
            StatusCode::CONFLICT,
            "an address has one account",
        ),
        (
            "ada.example.org",
            "long enough",
            StatusCode::UNPROCESSABLE_ENTITY,
            "an address has an @",
        ),
        (
            "ada@example",
            "long enough",
            StatusCode::UNPROCESSABLE_ENTITY,
            "an address ends in a domain",
        ),
        (
            "bea@example.org",
            "short",
            StatusCode::UNPROCESSABLE_ENTITY,
            "a password has eight characters",
        ),
    ] {
        let form = json!({ "email": email, "name": "Ada", "password": password });
        visitor.post("/signup", &form).await.is(status, rule);
    }
}

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

/// The answers of the shipped shop are in `golden.json`.
#[tokio::test]
async fn every_route_answers_all_that_it_always_did() {
    let shop = Shop::start();
    golden::compare(&golden::answers(&shop).await);
}
