//! Services that tests start.

use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::time::{Duration, Instant};

/// Longest time to wait for a service. Anything that takes longer is broken.
pub(crate) const WITHIN: Duration = Duration::from_secs(60);

/// A process that ends with the value.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a port that is free at this moment.
pub(crate) fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

/// Waits until a service listens on this port.
pub(crate) fn wait_for(port: &str) {
    let began = Instant::now();
    while TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
        assert!(began.elapsed() < WITHIN, "nobody listens on port {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
