//! Rules about payments: who pays, how often, and what is left of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::harness::{
    Answer, EVENTS, ORGANISERS, Order, PASSWORD, STALE, Settings, Shop, Visitor, codes, number,
};

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
