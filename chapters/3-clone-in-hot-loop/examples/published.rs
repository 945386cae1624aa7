//! The published service of chapters 1 to 3, with profiles: `/read`, `/fast`, `/cpualloc` and `/cpu`.
//! `cargo run -p chapter3 --example published`, and then `locust -f locust/published.py --route /cpualloc`.

use lab::Lab;

#[tokio::main]
async fn main() -> Result<(), lab::Error> {
    #[derive(Clone, Copy, clap::ValueEnum)]
    enum Variant {
        Exercise,
    }
    let (Variant::Exercise, lab) = Lab::start("published", &[])?;
    lab.serve(warp::service(chapter3::published::routes()))
        .await
}
