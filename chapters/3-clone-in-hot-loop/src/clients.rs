//! Clients that the service knows; they do not change while it runs.

use std::sync::Arc;

/// A subscriber of the service.
#[derive(Debug, Clone)]
pub struct Client {
    /// Stable number of the client.
    pub id: u64,
    /// First key by which a list is sorted.
    pub last_name: String,
    /// Second key, for equal last names.
    pub first_name: String,
}

impl Client {
    /// Returns the name as it is printed.
    pub fn name(&self) -> String {
        format!("{} {}", self.first_name, self.last_name)
    }
}

/// All clients, in the order in which they came.
///
/// Nobody writes, so there is no lock: locks are the subject of other chapters.
pub type Clients = Arc<Vec<Client>>;

/// The clients that the service starts with. With another `seed` they have other names.
pub fn known(seed: u64) -> Clients {
    Arc::new((1..=20_000).map(|id| client(id, seed)).collect())
}

/// A client such as `mika dobeki`: another one for each of a million numbers.
fn client(id: u64, seed: u64) -> Client {
    const SYLLABLES: [&str; 16] = [
        "ba", "be", "bi", "bo", "da", "de", "di", "do", "ka", "ke", "ki", "ko", "ma", "me", "mi",
        "mo",
    ];
    // An odd factor leaves no number out.
    let mixed = id
        .wrapping_mul(648_055)
        .wrapping_add(seed.wrapping_mul(12_345));
    let syllable = |place: u32| SYLLABLES[((mixed >> (4 * place)) % 16) as usize];
    Client {
        id,
        last_name: [syllable(4), syllable(3), syllable(2)].concat(),
        first_name: [syllable(1), syllable(0)].concat(),
    }
}
