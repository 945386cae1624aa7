//! Everything that this program does.

use std::ffi::CStr;
use std::fs;
use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::mount::{MountFlags, mount};
use rustix::net::{AddressFamily, SendFlags, SocketType, send, socket};
use rustix::system::{RebootCommand, reboot, uname};

/// Addresses of the service and of its admin listener.
const SERVICE: &str = "127.0.0.1:8080";
const ADMIN: &str = "127.0.0.1:6060";

pub(crate) fn run() {
    let report = match report() {
        Ok(report) => report,
        Err(error) => error.to_string(),
    };
    println!("\n@{report}");
    let _ = std::io::stdout().flush();
    // QEMU ends at a restart, because of its option `-no-reboot`.
    let _ = reboot(RebootCommand::Restart);
}

/// Arguments: variant, texts, connections a CPU, requests a connection.
fn report() -> Result<String> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, variant, texts, connections, requests] = &arguments[..] else {
        return Err(Error::other(format!("called with {arguments:?}")));
    };
    prepare()?;
    let cpus = thread::available_parallelism()?.get();
    let mut service = start(variant, texts)?;
    let answers = ask(cpus * number(connections)?, number(requests)?)?;
    let placement = exchange(
        &mut TcpStream::connect(ADMIN)?,
        "GET",
        "/debug/placement",
        "",
    )?;
    let resident = resident(&service)?;
    service.kill()?;
    // `6.1.0` of `6.1.0-40-cloud-amd64`
    let uname = uname();
    let release = uname.release().to_string_lossy();
    let kernel = release.split('-').next().unwrap_or_default();
    Ok(format!(
        r#"{{"kernel":"{kernel}","answers":{answers},"resident_kib":{resident},"placement":{placement}}}"#
    ))
}

/// Prepares the machine as a distribution does when it boots, as far as the service needs it.
fn prepare() -> Result<()> {
    for (kind, folder) in [
        (c"proc", "/proc"),
        (c"sysfs", "/sys"),
        (c"devtmpfs", "/dev"),
    ] {
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
    let stdout = service.stdout.take().expect("it is piped");
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        println!("{line}");
        if line.contains(" listens on ") {
            return Ok(service);
        }
    }
    Err(Error::other("the service ended before it listened"))
}

/// Runs the clients, all at the same time, each on a connection of its own. Returns the number of right answers.
fn ask(connections: usize, requests: usize) -> Result<usize> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(thread::spawn(move || client(requests)));
    }
    for client in clients {
        match client.join() {
            Ok(ended) => ended?,
            Err(_) => return Err(Error::other("a client panicked")),
        }
    }
    Ok(connections * requests)
}

fn client(requests: usize) -> Result<()> {
    let body = "The body of a request that begins with no forbidden text. ".repeat(64);
    let mut stream = TcpStream::connect(SERVICE)?;
    for _ in 0..requests {
        let answer = exchange(&mut stream, "POST", "/check", &body)?;
        if answer != "false" {
            return Err(Error::other(format!("answered {answer}")));
        }
    }
    Ok(())
}

/// One request, and the body of its answer.
fn exchange(stream: &mut TcpStream, method: &str, path: &str, body: &str) -> Result<String> {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if answer.read_line(&mut head)? == 0 {
            return Err(Error::other(format!("answered nothing after {head:?}")));
        }
    }
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut text = vec![0; number(length.unwrap_or("0"))?];
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
    for line in status.lines() {
        if let Some(kib) = line.strip_prefix("VmRSS:") {
            let kib = kib.split_whitespace().next();
            return Ok(kib.unwrap_or("0").to_owned());
        }
    }
    Ok("0".to_owned())
}
