//! A body is parsed again for each thing that is asked of it.
//!
//! Report: shunt#252. A gateway in front of language models normalises, routes, inspects and translates each request.

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

fn parse(body: &[u8]) -> Result<Value, StatusCode> {
    serde_json::from_slice(body).map_err(|_| StatusCode::BAD_REQUEST)
}

fn normalise(body: &[u8]) -> Result<Vec<u8>, StatusCode> {
    let mut request = parse(body)?;
    request["stream"] = json!(true);
    Ok(request.to_string().into_bytes())
}

fn route(body: &[u8]) -> Result<String, StatusCode> {
    Ok(parse(body)?["model"]
        .as_str()
        .unwrap_or("default")
        .to_owned())
}

fn is_tool_call(body: &[u8]) -> Result<bool, StatusCode> {
    Ok(parse(body)?.get("tools").is_some())
}

fn translate(request: &Value) -> Value {
    let roles = request["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|message| message["role"].clone());
    json!({ "roles": roles.collect::<Vec<_>>().len() })
}

async fn messages(State(fixed): State<bool>, body: Bytes) -> Result<Json<Value>, StatusCode> {
    if fixed {
        let mut request = parse(&body)?;
        request["stream"] = json!(true);
        let model = request["model"].as_str().unwrap_or("default").to_owned();
        let tools = request.get("tools").is_some();
        return Ok(Json(
            json!({ "model": model, "tools": tools, "input": translate(&request) }),
        ));
    }
    let body = normalise(&body)?;
    let model = route(&body)?;
    let tools = is_tool_call(&body)?;
    let input = translate(&parse(&body)?);
    Ok(Json(
        json!({ "model": model, "tools": tools, "input": input }),
    ))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = field::Arguments::of_process();
    let app = Router::new()
        .route("/v1/messages", post(messages))
        .with_state(arguments.fixed)
        .layer(DefaultBodyLimit::max(10_000_000));
    field::serve(&arguments, app).await
}
