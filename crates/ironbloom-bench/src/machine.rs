//! Where and when the measurement ran: enough for a reader to judge the numbers, and nothing that identifies a person
//! or a host.

use std::fs;
use std::process::Command;

/// The head of a report.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) date: String,
    pub(crate) commit: String,
    /// Processor, cores, caches, memory, huge pages, and the load from other programs.
    pub(crate) hardware: String,
}

impl Machine {
    /// Describes this machine, now.
    pub(crate) fn here() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let hardware = [
            processor(),
            format!("{cores} cores"),
            caches(),
            memory(),
            format!("huge pages: {}", huge_pages()),
            format!("load at the start {}", load()),
        ];
        Self {
            date: output_of("date", &["-u", "+%Y-%m-%d"]),
            commit: output_of("git", &["describe", "--always", "--dirty"]),
            hardware: hardware.join(", "),
        }
    }
}

/// Returns the first line a command prints, or "unknown".
fn output_of(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output().ok();
    let text = output.filter(|output| output.status.success()).map(|output| output.stdout);
    let text = text.map(|text| String::from_utf8_lossy(&text).trim().to_owned());
    text.filter(|text| !text.is_empty()).unwrap_or_else(unknown)
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// Returns a field of `/proc/cpuinfo` or `/proc/meminfo`.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line =
        text.lines().find(|line| line.split(':').next().is_some_and(|n| n.trim() == name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Average number of programs that wanted to run in the last minute. Above a few hundredths, threads cannot scale.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").ok();
    let first = text.as_deref().and_then(|text| text.split_whitespace().next());
    first.map_or_else(unknown, str::to_owned)
}

fn processor() -> String {
    let of = |name| field("/proc/cpuinfo", name).unwrap_or_else(unknown);
    format!("{} (family {}, model {})", of("model name"), of("cpu family"), of("model"))
}

fn memory() -> String {
    let kib = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.trim_end_matches(" kB").parse::<f64>().ok());
    kib.map_or_else(unknown, |kib| format!("{:.0} GiB", kib / (1 << 20) as f64))
}

/// The caches of one core, starting with the first-level data cache.
fn caches() -> String {
    let read = |index: u32, what: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}");
        fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
    };
    let caches: Vec<String> = (0..8)
        .filter(|&index| read(index, "type").is_some_and(|kind| kind != "Instruction"))
        .filter_map(|index| Some(format!("L{} {}", read(index, "level")?, read(index, "size")?)))
        .collect();
    if caches.is_empty() { "caches unknown".to_owned() } else { caches.join(" ") }
}

/// When programs get 2 MiB pages (always, on request or never): the word in brackets.
fn huge_pages() -> String {
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok();
    let chosen = setting.as_deref().and_then(|text| text.split_once('[')?.1.split_once(']'));
    chosen.map_or_else(unknown, |(chosen, _)| chosen.to_owned())
}
