//! Chapter 4: a client per request.
//! `cargo run -p chapter4 [-- VARIANT]`; the book says what each variant is for.

mod ablation;
mod answers;
mod exercise;
mod hyper_client;
mod problem;
mod solution;

use std::time::Duration;

use clap::ValueEnum;
use lab::{Lab, Uses};

#[derive(Clone, Copy, ValueEnum)]
enum Variant {
    Problem,
    Exercise,
    Solution,
    NoRoots,
    OneTlsConfig,
    NoPool,
    FewClients,
    HyperPerRequest,
    HyperShared,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // reqwest leaves the cryptography to the program. ring is quick to compile.
    let _ = rustls::crypto::ring::default_provider().install_default();

    let (variant, lab) = Lab::start("chapter4", &[Uses::Upstream, Uses::UpstreamTls])?;
    let upstream = lab.upstream(Duration::ZERO)?;
    let own = upstream.certificate();

    let routes = match (variant, own) {
        (Variant::Problem, None) => problem::routes(upstream),
        (Variant::Problem, Some(own)) => ablation::tls_problem(upstream, own)?,
        (Variant::Solution, None) => solution::routes(upstream),
        (Variant::Solution, Some(own)) => ablation::tls_solution(upstream, own)?,
        (Variant::Exercise, _) => exercise::routes(upstream),
        (Variant::NoRoots, _) => ablation::no_roots(upstream),
        (Variant::OneTlsConfig, _) => ablation::one_tls_config(upstream),
        (Variant::NoPool, _) => ablation::no_pool(upstream)?,
        (Variant::FewClients, _) => ablation::few_clients(upstream)?,
        (Variant::HyperPerRequest, _) => hyper_client::per_request(upstream),
        (Variant::HyperShared, _) => hyper_client::shared(upstream),
    };
    Ok(lab.serve(routes).await?)
}
