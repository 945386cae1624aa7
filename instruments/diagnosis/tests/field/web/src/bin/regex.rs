//! A CPU that is busy with little: a regular expression is compiled for each request.
//!
//! Reports: onfranciis/linkly-rs#6, IABTechLab/trusted-server#425.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use regex::Regex;

const MAIL: &str = r"^(?i)(\w+)@(\w+\.)+(com|org|net|\p{L}{2,6})$";

static COMPILED: LazyLock<Result<Regex, regex::Error>> = LazyLock::new(|| Regex::new(MAIL));

async fn check(
    State(is_fixed): State<bool>,
    Path(mail): Path<String>,
) -> Result<String, StatusCode> {
    let is_mail = if is_fixed {
        COMPILED.as_ref().map(|mails| mails.is_match(&mail)).ok()
    } else {
        // The fault: this takes a thousand times as long as the match.
        Regex::new(MAIL).map(|mails| mails.is_match(&mail)).ok()
    };
    let is_mail = is_mail.ok_or(StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(format!("{mail} {is_mail}"))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let routes = Router::new().route("/check/{mail}", get(check));
    field::serve(&arguments, routes.with_state(arguments.fixed)).await
}
