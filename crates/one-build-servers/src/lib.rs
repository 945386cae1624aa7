//! Holds no code: its `Cargo.toml` asks for features, so that shared dependencies are compiled once.
