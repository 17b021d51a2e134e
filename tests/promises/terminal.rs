//! weir in a terminal, below an interactive shell.

use std::process::Command;
use weir_tests::{Place, needs, weir_binary};

/// Drives an interactive bash in a pseudo-terminal. `say` types, `prompt` waits for
/// the shell, `until` for a file to have a content, `stopped` for weir to be stopped.
const DRIVER: &str = r#"
import fcntl, os, pty, signal, struct, sys, termios, time
def until(name, holds):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            if holds(open(name).read()): return
        except FileNotFoundError: pass
        drain()
        time.sleep(0.002)
    content = open(name).read() if os.path.exists(name) else None
    sys.exit('never: ' + name + ': ' + repr(content) + ', terminal: ' + repr(seen[-2000:]))
seen = b''
def drain():
    global seen
    try: seen += os.read(terminal, 65536)
    except (BlockingIOError, OSError): pass
def say(text): os.write(terminal, text)
def log_is(text): until('l', lambda content: content == text)
def resize(rows): fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', rows, 80, 0, 0))
def stopped(pid_file):
    until(pid_file, lambda pid: ') T ' in open('/proc/%s/stat' % pid.strip()).read())
shell, terminal = pty.fork()
if shell == 0:
    os.environ['PS1'] = 'READY> '
    os.execvp('bash', ['bash', '--norc', '--noprofile', '-i'])
os.set_blocking(terminal, False)
def prompt():
    # The shell throws away what is typed before it reads again.
    global seen
    deadline = time.monotonic() + 20
    while b'READY> ' not in seen:
        if time.monotonic() > deadline: sys.exit('no prompt: ' + repr(seen[-2000:]))
        drain()
        time.sleep(0.002)
    seen = seen.split(b'READY> ', 1)[1]
def repeat(text, done, seconds=0.3):
    # Typed again until it has its effect: the shell throws away what comes too early.
    deadline, typed = time.monotonic() + 20, 0
    while not done():
        if time.monotonic() > deadline: sys.exit(repr(text) + ' in vain: ' + repr(seen[-2000:]))
        if time.monotonic() > typed + seconds:
            say(text)
            typed = time.monotonic()
        time.sleep(0.002)
        drain()
def exists(name): return lambda: os.path.exists(name)
settled = [0]
def told_stopped():
    # Only then does the shell know that `fg` has something to continue.
    global seen
    repeat(b'', lambda: b'Stopped' in seen)
    # A word of its own each time, so that a late answer is not taken for another.
    settled[0] += 1
    word = b'settled%d' % (100 + settled[0])
    repeat(b'echo settled$((100+%d))\n' % settled[0], lambda: word in seen, 5)
    seen = b''
prompt()
say(b"set -b; stty -echo; bind 'set enable-bracketed-paste off' 2>/dev/null\n")
prompt()
"#;

/// A job that notes signals, and one line that it reads from the terminal.
const JOB: &str = r#"
import os, signal
def note(number, frame): print(signal.Signals(number).name, flush=True)
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH, signal.SIGHUP): signal.signal(number, note)
open('weir.pid', 'w').write(str(os.getppid()))
print('ready', flush=True)
terminal = open('/dev/tty')
while True:
    try: line = terminal.readline()
    except InterruptedError: continue
    except OSError: line = ''
    if not line: raise SystemExit(6)
    print('line ' + line.strip(), flush=True)
    if line.strip() == 'end': raise SystemExit(5)
"#;

/// Runs a driver to its end, and shows what it says if it fails.
#[track_caller]
fn drive(place: &Place, driver: &str) {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "90", "python3", "-c", driver]).current_dir(place.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Plays a dialogue with weir in the foreground of a shell.
fn play(test: &str, options: &str, dialogue: &str) -> Option<Place> {
    if !needs(test, "python3") || !needs(test, "bash") {
        return None;
    }
    let place = Place::new();
    std::fs::write(place.at("job.py"), JOB).unwrap();
    let run = format!(
        "say(b'{} run --log l --min-free 0 {options} -- python3 job.py; echo $? >rc\\n')\nlog_is('ready\\n')\n",
        weir_binary().display()
    );
    let driver = format!("{DRIVER}{run}{dialogue}");
    drive(&place, &driver);
    Some(place)
}

const SCOPES: [&str; 2] = ["", "--signal-scope group"];

#[test]
fn ctrl_c_ctrl_backslash_and_a_new_size_reach_the_job_once() {
    for options in SCOPES {
        let dialogue = "expected = 'ready\\n'\n\
            for name, act in (('SIGINT', lambda: say(b'\\x03')), ('SIGQUIT', lambda: say(b'\\x1c')),\n\
            \x20                ('SIGWINCH', lambda: resize(50)), ('line x', lambda: say(b'x\\n')),\n\
            \x20                ('SIGINT', lambda: say(b'\\x03')), ('line end', lambda: say(b'end\\n'))):\n\
            \x20   act()\n\
            \x20   expected += name + '\\n'\n\
            \x20   log_is(expected)\n\
            until('rc', lambda content: content == '5\\n')\n";
        let Some(place) = play("ctrl_c", options, dialogue) else { return };
        let expected = "ready\nSIGINT\nSIGQUIT\nSIGWINCH\nline x\nSIGINT\nline end\n";
        assert_eq!(place.log(), expected, "{options}");
        assert!(!place.fact().quota_reached);
    }
}

#[test]
fn suspend_and_resume_work_as_without_weir() {
    for options in SCOPES {
        let dialogue = "say(b'\\x1a')\n\
            stopped('weir.pid')\n\
            told_stopped()\n\
            say(b'bg\\n')\n\
            told_stopped()\n\
            assert os.tcgetpgrp(terminal) == shell, 'the shell has lost its terminal'\n\
            say(b'fg\\n')\n\
            until('weir.pid', lambda pid: ') T ' not in open('/proc/%s/stat' % pid.strip()).read())\n\
            say(b'x\\n')\n\
            log_is('ready\\nline x\\n')\n\
            say(b'\\x03')\n\
            log_is('ready\\nline x\\nSIGINT\\n')\n\
            say(b'end\\n')\n\
            log_is('ready\\nline x\\nSIGINT\\nline end\\n')\n\
            repeat(b'touch again\\n', exists('again'))\n";
        let Some(place) = play("suspend_and_resume", options, dialogue) else { return };
        assert!(!place.fact().quota_reached, "{options}");
    }
}

#[test]
fn a_job_in_a_group_of_its_own_leaves_the_terminal_to_the_shell_when_it_ends() {
    let dialogue = "say(b'end\\n')\n\
        until('rc', lambda content: content == '5\\n')\n\
        repeat(b'touch typed\\n', exists('typed'))\n";
    play("a_job_in_a_group_of_its_own", "--signal-scope group", dialogue);
}

#[test]
fn a_terminal_that_hangs_up_ends_the_job() {
    // weir leads the session here: the hang-up reaches it alone.
    if !needs("a_terminal_that_hangs_up", "python3") {
        return;
    }
    let place = Place::new();
    let driver = format!(
        "import os, pty, signal, time\n\
         weir, terminal = pty.fork()\n\
         if weir == 0:\n\
         \x20   signal.signal(signal.SIGHUP, signal.SIG_DFL)\n\
         \x20   os.execv('{0}', ['weir', 'run', '--log', 'l', '--min-free', '0', '--', 'sh', '-c', 'echo ready; exec sleep 1000'])\n\
         while not os.path.exists('l') or open('l').read() != 'ready\\n': time.sleep(0.002)\n\
         os.close(terminal)\n\
         _, status = os.waitpid(weir, 0)\n\
         assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == 1, status\n",
        weir_binary().display()
    );
    drive(&place, &driver);
    assert!(!place.fact().quota_reached);
}

#[test]
fn a_job_that_was_started_in_the_background_works_when_it_is_brought_to_the_front() {
    let test = "a_job_that_was_started_in_the_background";
    if !needs(test, "python3") || !needs(test, "bash") {
        return;
    }
    for options in SCOPES {
        let place = Place::new();
        std::fs::write(place.at("job.py"), JOB).unwrap();
        let driver = format!(
            "{DRIVER}say(b'{} run --log l --min-free 0 {options} -- python3 job.py &\\n')\n\
             told_stopped()\n\
             say(b'fg; echo $? >rc\\n')\n\
             until('weir.pid', lambda pid: ') T ' not in open('/proc/%s/stat' % pid.strip()).read())\n\
             say(b'x\\n')\n\
             log_is('ready\\nline x\\n')\n\
             say(b'\\x03')\n\
             log_is('ready\\nline x\\nSIGINT\\n')\n\
             say(b'end\\n')\n\
             until('rc', lambda content: content == '5\\n')\n",
            weir_binary().display()
        );
        drive(&place, &driver);
        assert!(!place.fact().quota_reached);
    }
}

#[test]
fn a_terminal_that_nobody_reads_does_not_hold_weir_beyond_a_signal() {
    if !needs("a_terminal_that_nobody_reads", "python3") {
        return;
    }
    let place = Place::new();
    let driver = format!(
        "import os, pty, signal, subprocess, time\n\
         unread, terminal = pty.openpty()\n\
         weir = subprocess.Popen(['{}', 'run', '--log', 'l', '--min-free', '0', '--tee', '--grace', '0', '--', \
         'sh', '-c', 'head -c 65536 /dev/zero; touch ended; exit 4'], stdout=terminal)\n\
         while not os.path.exists('ended'): time.sleep(0.002)\n\
         while weir.poll() is None:\n\
         \x20   weir.send_signal(signal.SIGTERM)\n\
         \x20   time.sleep(0.01)\n",
        weir_binary().display()
    );
    drive(&place, &driver);
    assert_eq!(place.read("l"), vec![0; 65_536]);
    assert!(!place.fact().quota_reached);
}

#[test]
fn a_background_drainer_lets_go_of_the_terminal_that_had_the_copy() {
    if !needs("a_background_drainer_lets_go_of_the_terminal", "python3") {
        return;
    }
    let place = Place::new();
    std::fs::write(place.at("go"), "").unwrap();
    let driver = format!(
        "import os, pty, subprocess\n\
         reader, terminal = pty.openpty()\n\
         weir = subprocess.Popen(['{}', 'run', '--log', 'l', '--min-free', '0', '--tee', '--grace', '0', '--', \
         'sh', '-c', '(while [ -e go ]; do sleep 0.01; done) & echo hi'], stdout=terminal, stdin=subprocess.DEVNULL)\n\
         os.close(terminal)\n\
         copied = b''\n\
         while True:\n\
         \x20   try: copied += os.read(reader, 4096)\n\
         \x20   except OSError: break\n\
         assert copied == b'hi\\r\\n', copied\n\
         assert weir.wait() == 0\n",
        weir_binary().display()
    );
    drive(&place, &driver);
    // The reader saw the end while the holder still lived.
    assert!(place.at(".l.fifo").exists());
    std::fs::remove_file(place.at("go")).unwrap();
    weir_tests::eventually("the fact is there", || place.fact_of("l").is_some());
}

#[test]
fn a_background_drainer_lets_go_of_the_terminal_that_its_job_had() {
    if !needs("a_background_drainer_lets_go_of_the_terminal", "python3") {
        return;
    }
    let place = Place::new();
    std::fs::write(place.at("go"), "").unwrap();
    // A leader of the session that lets weir run in the foreground, and then has nothing
    // of the terminal open any more.
    let driver = format!(
        "import os, pty, signal, time\n\
         leader, reader = pty.fork()\n\
         if leader == 0:\n\
         \x20   signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n\
         \x20   weir = os.fork()\n\
         \x20   if weir == 0:\n\
         \x20       os.setpgid(0, 0)\n\
         \x20       os.tcsetpgrp(0, os.getpgrp())\n\
         \x20       os.execv('{}', ['weir', 'run', '--log', 'l', '--min-free', '0', '--grace', '0', '--signal-scope', 'group', \
         '--', 'sh', '-c', '(while [ -e go ]; do sleep 0.01; done) & echo hi'])\n\
         \x20   os.waitpid(weir, 0)\n\
         \x20   for number in (0, 1, 2): os.close(number)\n\
         \x20   while os.path.exists('go'): time.sleep(0.01)\n\
         \x20   os._exit(0)\n\
         while True:\n\
         \x20   try: os.read(reader, 4096)\n\
         \x20   except OSError: break\n\
         assert os.path.exists('.l.fifo') and os.path.exists('go')\n\
         os.remove('go')\n\
         os.waitpid(leader, 0)\n",
        weir_binary().display()
    );
    drive(&place, &driver);
    let _ = std::fs::remove_file(place.at("go"));
    weir_tests::eventually("the fact is there", || place.fact_of("l").is_some());
}
