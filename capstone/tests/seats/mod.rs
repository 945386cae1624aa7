//! Rules about seats: who gets them, and for how long.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::StatusCode;
use tokio::task::JoinSet;

use crate::harness::{STALE, Settings, Shop};

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
