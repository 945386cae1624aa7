//! Chapter 4: a client per request.
//! `cargo run -p chapter4 [-- VARIANT]`; the book says what each variant is for.

mod answers;
mod exercise;
mod hyper_client;
mod problem;
mod solution;
mod taken_apart;

use lab::Lab;

#[rustfmt::skip]
const VARIANTS: &[&str] = &["problem", "exercise", "solution", "no-roots", "one-tls-config",
    "no-pool", "hyper-per-request", "hyper-shared"];

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // reqwest leaves the cryptography to the program. ring is quick to compile.
    let _ = rustls::crypto::ring::default_provider().install_default();

    let lab = Lab::start("chapter4", VARIANTS)?;
    let upstream = lab.upstream()?;
    let own = upstream.certificate().map(<[u8]>::to_vec);
    let routes = match (lab.variant(), own) {
        ("problem", Some(own)) => taken_apart::tls_problem(upstream, &own)?,
        ("solution", Some(own)) => taken_apart::tls_solution(upstream, &own)?,
        ("problem", None) => problem::routes(upstream),
        ("solution", None) => solution::routes(upstream),
        ("no-roots", _) => taken_apart::no_roots(upstream),
        ("one-tls-config", _) => taken_apart::one_tls_config(upstream),
        ("no-pool", _) => taken_apart::no_pool(upstream)?,
        ("hyper-per-request", _) => hyper_client::per_request(upstream),
        ("hyper-shared", _) => hyper_client::shared(upstream),
        _ => exercise::routes(upstream),
    };
    Ok(lab.serve(routes).await?)
}
