//! The client of the payment service.

use reqwest::{Client, Result};
use serde::Deserialize;
use serde_json::json;

#[derive(Clone)]
pub struct Payments {
    url: String,
}

#[derive(Deserialize)]
struct Fee {
    basis_points: i64,
}

#[derive(Deserialize)]
struct Risk {
    is_accepted: bool,
}

impl Payments {
    pub fn new(url: String) -> Self {
        Self { url }
    }

    /// What we pay for each ticket of an event, in hundredths of a percent.
    pub async fn fee(&self, event: i64) -> Result<i64> {
        let url = format!("{}/fees/{event}", self.url);
        let answer = Client::new().get(url).send().await?.error_for_status()?;
        Ok(answer.json::<Fee>().await?.basis_points)
    }

    /// Whether somebody may pay so much.
    pub async fn accepts(&self, user: i64, cents: i64) -> Result<bool> {
        let url = format!("{}/risk", self.url);
        let body = json!({ "user": user, "cents": cents });
        let answer = Client::new().post(url).json(&body).send().await?;
        let risk: Risk = answer.error_for_status()?.json().await?;
        Ok(risk.is_accepted)
    }

    /// Charges an order; a second time it does nothing.
    pub async fn charge(&self, order: i64, cents: i64) -> Result<()> {
        let url = format!("{}/charges", self.url);
        let body = json!({ "order": order, "cents": cents });
        let answer = Client::new().post(url).json(&body).send().await?;
        answer.error_for_status()?;
        Ok(())
    }

    /// Sends a ticket by mail.
    pub async fn mail(&self, to: &str, ticket: &str) -> Result<()> {
        let url = format!("{}/mails", self.url);
        let body = json!({ "to": to, "ticket": ticket });
        let answer = Client::new().post(url).json(&body).send().await?;
        answer.error_for_status()?;
        Ok(())
    }
}
