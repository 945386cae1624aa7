//! Counts of answers by their status.

/// Numbers of answers by the class of their HTTP status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Answers {
    /// Status 101: the connection goes on as another protocol, such as a WebSocket.
    pub upgraded: u64,
    /// Statuses 2xx.
    pub successful: u64,
    /// Statuses 3xx.
    pub redirected: u64,
    /// Statuses 4xx.
    pub client_errors: u64,
    /// Statuses 5xx.
    pub server_errors: u64,
    /// Statuses 408 and 504: a time limit was over. These count as errors too.
    pub timed_out: u64,
    /// Statuses 429 and 503: there was no room. These count as errors too.
    pub refused: u64,
}

impl Answers {
    /// Counts an answer with this status.
    pub(crate) fn add(&mut self, status: u16) {
        match status {
            101 => self.upgraded += 1,
            200..=299 => self.successful += 1,
            300..=399 => self.redirected += 1,
            400..=499 => self.client_errors += 1,
            500..=599 => self.server_errors += 1,
            _ => {}
        }
        match status {
            408 | 504 => self.timed_out += 1,
            429 | 503 => self.refused += 1,
            _ => {}
        }
    }

    /// Adds other answers to these.
    pub(crate) fn add_all(&mut self, other: Answers) {
        self.upgraded += other.upgraded;
        self.successful += other.successful;
        self.redirected += other.redirected;
        self.client_errors += other.client_errors;
        self.server_errors += other.server_errors;
        self.timed_out += other.timed_out;
        self.refused += other.refused;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_counts_for_its_class() {
        let mut answers = Answers::default();
        for status in [101, 200, 204, 302, 404, 408, 429, 500, 503, 504, 999] {
            answers.add(status);
        }
        let expected = Answers {
            upgraded: 1,
            successful: 2,
            redirected: 1,
            client_errors: 3,
            server_errors: 3,
            timed_out: 2,
            refused: 2,
        };
        assert_eq!(answers, expected);
    }
}
