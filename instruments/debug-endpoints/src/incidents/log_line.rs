//! The line of an incident in the service's log.

/// Writes a warning to the service's log: through `tracing` if it has a subscriber, else through `log` if it has a
/// logger, else to standard error.
pub(crate) fn warn(line: &str) {
    #[cfg(feature = "tracing")]
    if tracing::dispatcher::has_been_set() {
        tracing::warn!(target: "debug_endpoints::incidents", "{line}");
        return;
    }
    #[cfg(feature = "log")]
    if log::max_level() >= log::LevelFilter::Warn {
        log::warn!(target: "debug_endpoints::incidents", "{line}");
        return;
    }
    // Standard error may be closed.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
}

#[cfg(all(test, feature = "tracing"))]
mod tests {
    use std::fmt;
    use std::sync::Mutex;

    use tracing::field::{Field, Visit};
    use tracing::span;
    use tracing::{Event, Level, Metadata, Subscriber};

    use super::*;

    static EVENTS: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());

    /// A subscriber that keeps the messages of events.
    struct Keeps;

    struct Message(String);

    impl Visit for Message {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            if field.name() == "message" {
                self.0 = format!("{value:?}");
            }
        }
    }

    impl Subscriber for Keeps {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut message = Message(String::new());
            event.record(&mut message);
            let mut events = EVENTS.lock().expect("nobody panics");
            events.push((*event.metadata().level(), message.0));
        }

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    #[test]
    fn a_service_with_a_subscriber_gets_the_line_as_a_warning() {
        tracing::subscriber::with_default(Keeps, || warn("incident (late): at shop::read {}"));
        let events = EVENTS.lock().expect("nobody panics");
        let line = "incident (late): at shop::read {}".to_owned();
        assert_eq!(*events, [(Level::WARN, line)]);
    }
}
