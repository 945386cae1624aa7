//! Users and their passwords.

use crate::database::{DatabasePool, FromRow, query_as, query_scalar};
use argon2::{Argon2, PasswordHasher, PasswordVerifier, password_hash};

#[derive(Debug, Clone, FromRow)]
pub struct User {
    pub id: i64,
    pub email: String,
    pub name: String,
    pub password_hash: String,
    pub is_organiser: bool,
}

impl User {
    pub async fn by_email(db: &DatabasePool, email: &str) -> sqlx::Result<Option<Self>> {
        query_as("SELECT * FROM users WHERE email = $1")
            .bind(email)
            .fetch_optional(db)
            .await
    }

    pub async fn name_of(db: &DatabasePool, id: i64) -> sqlx::Result<String> {
        query_scalar("SELECT name FROM users WHERE id = $1")
            .bind(id)
            .fetch_one(db)
            .await
    }

    /// `None` if there is somebody of that address.
    pub async fn create(
        db: &DatabasePool,
        email: &str,
        name: &str,
        password_hash: &str,
    ) -> sqlx::Result<Option<Self>> {
        let insert = "INSERT INTO users (email, name, password_hash) VALUES ($1, $2, $3)
            ON CONFLICT DO NOTHING RETURNING *";
        query_as(insert)
            .bind(email)
            .bind(name)
            .bind(password_hash)
            .fetch_optional(db)
            .await
    }

    pub fn has_password(&self, password: &str) -> bool {
        hasher()
            .verify_password(password.as_bytes(), self.password_hash.as_str())
            .is_ok()
    }
}

pub fn hash(password: &str) -> password_hash::Result<String> {
    let hash = hasher().hash_password(password.as_bytes())?;
    Ok(hash.to_string())
}

/// Argon2id with 19 MiB and two passes, as OWASP recommends.
fn hasher() -> Argon2<'static> {
    Argon2::default()
}
