//! Chapter files and records: both are read here, and neither is judged.

mod chapter_file;
mod claims;
mod reference;
mod shipped;
