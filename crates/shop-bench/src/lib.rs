//! The bench of the capstone's ticket shop.
//!
//! [`journeys`] has the users and the score that they give. [`shop`] builds and starts the shop, [`commands`] are those of
//! `cargo workshop capstone`, and [`history`] keeps scores.

#[macro_use]
extern crate terminal;

pub mod cli;
pub mod commands;
pub mod hints;
pub mod history;
pub mod journeys;
pub mod others;
mod reading;
pub mod shipped;
pub mod shop;
