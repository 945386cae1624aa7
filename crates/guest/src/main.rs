//! The first program of the small machine that `cargo workshop prove 7 --numa-nodes 4` boots.
//!
//! The machine has a kernel and two programs: this one, as `/init`, and a chapter's own, as
//! `/service`. This one prepares the machine, starts the service in the variant that the kernel's
//! command line names, asks it as clients would, prints what the service says of itself, and
//! switches the machine off. What it prints after `@` is for the workshop, which reads the machine's
//! serial line.

#[cfg(target_os = "linux")]
fn main() {
    if let Err(error) = linux::run() {
        println!("\n@failed {error}");
    }
    linux::switch_off();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the machine runs Linux, whatever runs the machine");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CStr;
    use std::fs;
    use std::io::{BufRead, BufReader, Error, Read, Result, Write};
    use std::net::TcpStream;
    use std::process::{Child, Command, Stdio};
    use std::thread;

    use rustix::mount::{MountFlags, mount};
    use rustix::net::{AddressFamily, SendFlags, SocketType, send, socket};
    use rustix::system::{RebootCommand, reboot};

    /// Where the service listens, and its admin listener.
    const SERVICE: &str = "127.0.0.1:8080";
    const ADMIN: &str = "127.0.0.1:6060";

    /// Arguments: variant, texts, connections a CPU, requests a connection.
    pub(super) fn run() -> Result<()> {
        let arguments: Vec<String> = std::env::args().collect();
        let [_, variant, texts, connections, requests] = &arguments[..] else {
            return Err(Error::other(format!("called with {arguments:?}")));
        };
        prepare()?;
        let processors = thread::available_parallelism()?.get();
        let mut service = start(variant, texts)?;
        ask(processors * number(connections)?, number(requests)?)?;
        println!("\n@placement {}", get("/debug/placement")?);
        println!("@resident {}", resident(&service)?);
        service.kill()?;
        println!("@done");
        Ok(())
    }

    /// What a distribution does when it boots, as far as it is needed here.
    fn prepare() -> Result<()> {
        let file_systems = [
            (c"proc", "/proc"),
            (c"sysfs", "/sys"),
            (c"devtmpfs", "/dev"),
        ];
        for (kind, folder) in file_systems {
            fs::create_dir_all(folder)?;
            mount(kind, folder, kind, MountFlags::empty(), None::<&CStr>)?;
        }
        // The kernel would move pages to their readers by and by, and hide what the program does.
        fs::write("/proc/sys/kernel/numa_balancing", "0")?;
        raise_loopback()
    }

    /// `ip link set lo up`, in the words that `ip` says to the kernel: a header, and a request to
    /// change one flag of the interface with the number 1.
    fn raise_loopback() -> Result<()> {
        const UP: u32 = 1;
        let mut message = Vec::new();
        message.extend(32_u32.to_ne_bytes()); // its length
        message.extend(16_u16.to_ne_bytes()); // RTM_NEWLINK
        message.extend(1_u16.to_ne_bytes()); // NLM_F_REQUEST
        message.extend([0; 8]); // sequence and sender
        message.extend([0; 4]); // any family, any type
        message.extend(1_i32.to_ne_bytes()); // loopback
        message.extend(UP.to_ne_bytes());
        message.extend(UP.to_ne_bytes()); // of all flags, this one
        // The first of netlink's protocols is the one about routes and interfaces.
        let kernel = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
        send(&kernel, &message, SendFlags::empty())?;
        Ok(())
    }

    /// The service, when it listens.
    fn start(variant: &str, texts: &str) -> Result<Child> {
        let mut service = Command::new("/service")
            .args([variant, "--texts", texts])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = service.stdout.take().map(BufReader::new);
        for line in said.into_iter().flat_map(BufRead::lines) {
            let line = line?;
            println!("{line}");
            if line.contains(" listens on ") {
                return Ok(service);
            }
        }
        Err(Error::other("the service ended before it listened"))
    }

    /// Clients, all at the same time, each on a connection that it keeps.
    fn ask(connections: usize, requests: usize) -> Result<()> {
        let clients: Vec<_> = (0..connections)
            .map(|_| thread::spawn(move || client(requests)))
            .collect();
        let mut answers = 0;
        for client in clients {
            answers += client
                .join()
                .unwrap_or_else(|_| Err(Error::other("a client panicked")))?;
        }
        println!("\n@answers {answers}");
        Ok(())
    }

    fn client(requests: usize) -> Result<usize> {
        let body = "The body of a request that begins with no forbidden text. ".repeat(64);
        let mut stream = TcpStream::connect(SERVICE)?;
        for _ in 0..requests {
            let answer = exchange(&mut stream, "POST", "/check", &body)?;
            if answer != "false" {
                return Err(Error::other(format!("answered {answer}")));
            }
        }
        Ok(requests)
    }

    fn get(path: &str) -> Result<String> {
        exchange(&mut TcpStream::connect(ADMIN)?, "GET", path, "")
    }

    /// One request, and the body of its answer.
    fn exchange(stream: &mut TcpStream, method: &str, path: &str, body: &str) -> Result<String> {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            answer.read_line(&mut line)?;
            let line = line.trim_end().to_lowercase();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = number(value)?;
            } else if line.is_empty() {
                break;
            }
        }
        let mut text = vec![0; length];
        answer.read_exact(&mut text)?;
        String::from_utf8(text).map_err(Error::other)
    }

    fn number(text: &str) -> Result<usize> {
        text.parse()
            .map_err(|_| Error::other(format!("`{text}` is no number")))
    }

    /// The memory of the service that is really there, in KiB.
    fn resident(service: &Child) -> Result<String> {
        let status = fs::read_to_string(format!("/proc/{}/status", service.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        Ok(kib.unwrap_or_default().to_owned())
    }

    pub(super) fn switch_off() {
        let _ = std::io::stdout().flush();
        // QEMU is told to end where a machine would start again.
        let _ = reboot(RebootCommand::Restart);
    }
}
