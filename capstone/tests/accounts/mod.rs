//! Rules about accounts and their passwords.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::json;

use crate::harness::{PASSWORD, Shop};

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
