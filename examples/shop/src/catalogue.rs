//! The shop's goods, searched by counting the letters that two names share.

pub struct Catalogue {
    names: Vec<String>,
}

const KINDS: [&str; 8] = [
    "tea", "coffee", "cocoa", "mate", "honey", "sugar", "biscuits", "jam",
];
const COUNTRIES: [&str; 8] = [
    "Assam",
    "Brazil",
    "Ceylon",
    "Darjeeling",
    "Ethiopia",
    "Fujian",
    "Ghana",
    "Honduras",
];

impl Catalogue {
    pub fn new(names: usize) -> Self {
        let name = |number: usize| {
            let kind = KINDS[number % KINDS.len()];
            let country = COUNTRIES[number / KINDS.len() % COUNTRIES.len()];
            format!("{kind} from {country}, harvest {number}")
        };
        Self {
            names: (0..names).map(name).collect(),
        }
    }

    /// The name that is most like `words`; the first of several.
    pub fn nearest(&self, words: &str) -> String {
        let like = |name: &&String| {
            let common = words
                .chars()
                .filter(|letter| name.contains(*letter))
                .count();
            (common * 1000) / name.len()
        };
        let names = self.names.iter().rev();
        names.max_by_key(like).cloned().unwrap_or_default()
    }
}
