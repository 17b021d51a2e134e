//! A log that cannot be written any more: the job does not notice, and nothing false is
//! claimed.

use weir_common::sys::process::End;
use weir_common::{Capture, Errno, JobEnd};
use weir_tests::{Place, needs, noise, on_small_disk};

/// Runs a job with the log `small/l` and the receipt `small/r.json` on a small tmpfs of
/// its own.
fn run_on_small_disk(test: &str, size: &str, quota: &str, job: &str) -> Option<(Place, String)> {
    let job = job.replace('\'', "'\\''");
    let options = format!("--log small/l --quota {quota} --min-free 0 --receipt small/r.json");
    let script = format!("\"$weir\" run {options} -- sh -c '{job}'; echo rc=$?");
    on_small_disk(test, size, &script)
}

#[test]
fn a_disk_that_fills_up_costs_the_fact_and_nothing_else() {
    // Somebody else takes 100,000 of the 300 KiB that were free at the start.
    let job = "head -c 100000 /dev/zero >small/other; cat content; echo rc=$? >job.rc; exit 4";
    let test = "a_disk_that_fills_up";
    let Some((place, said)) = run_on_small_disk(test, "300k", "256K", job) else { return };
    assert!(said.starts_with("rc=4\n"), "{said}");
    assert!(said.contains("small/l may be incomplete: a write failed after "), "{said}");
    assert!(said.ends_with(": No space left on device\n"), "{said}");
    assert_eq!(place.read("job.rc"), b"rc=0\n");
    let log = place.read("out/l");
    assert!(log.len() > 150_000 && log == noise(1_000_000)[..log.len()], "{} bytes", log.len());
    let receipt = place.receipt("out/r.json");
    assert_eq!(receipt.job, JobEnd::Ended(End::Code(4)));
    assert_eq!(receipt.capture, Capture::Failed(Some(Errno::ENOSPC)));
    assert_eq!(receipt.counts.kept_bytes, log.len() as u64);
    assert_eq!(receipt.counts.kept_bytes + receipt.counts.dropped_bytes, 1_000_000);
    // Neither a fact nor the FIFO, nor a draft.
    let left: Vec<String> =
        place.names().into_iter().filter(|name| name.starts_with("out/")).collect();
    assert_eq!(left, ["out/", "out/l", "out/other", "out/r.json"]);
}

#[test]
fn nothing_is_kept_behind_a_hole_when_the_disk_recovers() {
    // The job fills the rest of the disk, writes, frees it, and writes again.
    let test = "nothing_is_kept_behind_a_hole";
    if !needs(test, "python3") {
        return;
    }
    // An empty pipe says that the drainer has read what was written; twice, that the
    // first write of the log has been tried.
    let job = "cat /dev/zero >small/filler 2>/dev/null; python3 -c \"\n\
        import array, fcntl, os, termios\n\
        def write_and_wait(content):\n\
        \x20   os.write(1, content)\n\
        \x20   waiting = array.array('i', [1])\n\
        \x20   while waiting[0]: fcntl.ioctl(1, termios.FIONREAD, waiting)\n\
        write_and_wait(open('content', 'rb').read(8192))\n\
        write_and_wait(b'more')\n\
        os.remove('small/filler')\n\
        write_and_wait(b'behind')\n\
        \"";
    let Some((place, said)) = run_on_small_disk(test, "300k", "64K", job) else { return };
    assert!(said.starts_with("rc=0\n"), "{said}");
    let log = place.read("out/l");
    assert!(log == noise(1_000_000)[..log.len()], "{} bytes", log.len());
    assert_eq!(place.receipt("out/r.json").capture, Capture::Failed(Some(Errno::ENOSPC)));
    assert!(!place.at("out/.l.truncated.json").exists());
}

#[test]
fn a_full_disk_still_takes_the_records_that_were_reserved() {
    // The disk is filled when the log has its bytes, not while they are on their way.
    let job = "head -c 70000 content; until [ $(wc -c <small/l) -eq 65536 ]; do sleep 0.01; done
        cat /dev/zero >small/filler 2>/dev/null; exit 0";
    let test = "a_full_disk_still_takes_the_records";
    let Some((place, said)) = run_on_small_disk(test, "300k", "64K", job) else { return };
    assert!(said.starts_with("rc=0\n"), "{said}");
    let log = place.read("out/l");
    assert!(log == noise(65_536), "{} bytes", log.len());
    assert_eq!(place.receipt("out/r.json").capture, Capture::Truncated);
    let fact = weir_common::Fact::read(&place.at("out/.l.truncated.json")).unwrap().unwrap();
    assert!(fact.quota_reached);
}

#[test]
fn a_file_size_limit_is_like_a_full_disk_to_weir_and_a_limit_to_the_job() {
    let place = Place::new();
    // 40 KiB: more than a record, less than the quota.
    let under = ["sh", "-c", "ulimit -f 80; exec \"$@\"", "sh"];
    let script = "head -c 60000 /dev/zero; ulimit -f >limit; grep -E '^Sig(Ign|Blk)' /proc/self/status >signals; exit 6";
    let done = place.weir().option("receipt", "r.json").under(&under).sh(script).run();
    done.exits(6);
    assert_eq!(place.read("l"), vec![0; 40 << 10]);
    assert_eq!(place.receipt("r.json").capture, Capture::Failed(Some(Errno::EFBIG)));
    assert_eq!(place.read("limit"), b"80\n");
    // SIGXFSZ (25) is neither blocked nor ignored for the job.
    let signals = String::from_utf8(place.read("signals")).unwrap();
    assert_eq!(signals.lines().count(), 2);
    for line in signals.lines() {
        let set = u64::from_str_radix(line.rsplit('\t').next().unwrap(), 16).unwrap();
        assert_eq!(set & (1 << 24), 0, "{line}");
    }
    let names = [".l.fifo", ".l.truncated.json"].map(|name| place.at(name).exists());
    assert_eq!(names, [false, false]);
}

#[test]
fn a_write_that_is_cut_short_keeps_exactly_what_fits() {
    let place = Place::new();
    let content = noise(100_000);
    std::fs::write(place.at("content"), &content).unwrap();
    // In the middle of a page, at its ends, and in the middle of what is read at once.
    let limits = [2_049, 4_095, 4_096, 4_097, 8_191, 30_001, 61_441, 65_535];
    for limit in limits {
        let log = format!("l{limit}");
        let receipt = format!("r{limit}");
        let limit_words = format!("--fsize={limit}");
        let weir = place.bare().option("log", &log).option("receipt", &receipt);
        let weir = weir.option("quota", "64K").option("min-free", "0").flag("quiet");
        let weir = weir.under(&["prlimit", &limit_words]);
        weir.sh("cat content; exit 6").run().exits(6);
        assert!(place.read(&log) == content[..limit], "{limit}");
        assert_eq!(place.fact_of(&log), None, "{limit}");
        let receipt = place.receipt(&receipt);
        assert_eq!(receipt.capture, Capture::Failed(Some(Errno::EFBIG)), "{limit}");
        assert_eq!(receipt.counts.kept_bytes, limit as u64, "{limit}");
        assert_eq!(receipt.counts.dropped_bytes, (content.len() - limit) as u64, "{limit}");
    }
}
