//! What is answered.

pub mod account;
pub mod events;
pub mod home;
pub mod orders;
pub mod organiser;
pub mod posters;
pub mod tickets;

use std::path::Path;

use axum::response::Html;
use minijinja::Environment;
use serde::Serialize;

use crate::error::AppError;

/// A page by its template.
fn render(name: &str, context: impl Serialize) -> Result<Html<String>, AppError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let layout = std::fs::read_to_string(folder.join("layout.html"))?;
    let page = std::fs::read_to_string(folder.join(name))?;
    let mut templates = Environment::new();
    templates
        .add_template("layout.html", &layout)
        .map_err(AppError::other)?;
    templates
        .add_template(name, &page)
        .map_err(AppError::other)?;
    let template = templates.get_template(name).map_err(AppError::other)?;
    template.render(context).map(Html).map_err(AppError::other)
}
