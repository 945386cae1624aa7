//! The commands as they are typed, in a folder of somebody's own.

mod https;
mod own_service;
mod said;
