//! What a chapter writes down and what a proof records: both are read, and neither is judged.

mod chapter_file;
mod claims;
mod reference;
mod shipped;
