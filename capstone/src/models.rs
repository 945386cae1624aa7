//! The tables, as types.

pub mod event;
pub mod order;
pub mod place;
pub mod seat;
pub mod ticket;
pub mod user;
pub mod venue;
