//! What a chapter's server stands on.
