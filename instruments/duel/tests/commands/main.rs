//! Tests of the commands as users type them, in a folder of their own.

mod https;
mod own_service;
