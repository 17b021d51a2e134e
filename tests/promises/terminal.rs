//! weir in a terminal, below an interactive shell.

use std::process::Command;
use weir_tests::{Place, needs, weir_binary};

/// Drives an interactive bash in a pseudo-terminal. `say` types, `prompt` waits for
/// the shell, `until` for a file to have a content, `stopped` for weir to be stopped.
const DRIVER: &str = r#"
import fcntl, os, pty, signal, struct, sys, termios, time
def until(name, holds):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if holds(open(name).read()): return
        except FileNotFoundError: pass
        drain()
        time.sleep(0.002)
    sys.exit('never: ' + name + ': ' + repr(seen[-2000:]))
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
    deadline = time.monotonic() + 60
    while b'READY> ' not in seen:
        if time.monotonic() > deadline: sys.exit('no prompt: ' + repr(seen[-2000:]))
        drain()
        time.sleep(0.002)
    seen = seen.split(b'READY> ', 1)[1]
prompt()
say(b"stty -echo; bind 'set enable-bracketed-paste off' 2>/dev/null\n")
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
    let output =
        Command::new("python3").args(["-c", &driver]).current_dir(place.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
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
            prompt()\n\
            say(b'echo shell >shell\\n')\n\
            until('shell', lambda content: content == 'shell\\n')\n\
            prompt()\n\
            say(b'bg\\n')\n\
            prompt()\n\
            stopped('weir.pid')\n\
            assert os.tcgetpgrp(terminal) == shell, 'the shell has lost its terminal'\n\
            say(b'fg\\n')\n\
            until('weir.pid', lambda pid: ') T ' not in open('/proc/%s/stat' % pid.strip()).read())\n\
            say(b'x\\n')\n\
            log_is('ready\\nline x\\n')\n\
            say(b'\\x03')\n\
            log_is('ready\\nline x\\nSIGINT\\n')\n\
            say(b'end\\n')\n\
            log_is('ready\\nline x\\nSIGINT\\nline end\\n')\n\
            prompt()\n\
            say(b'echo again >again\\n')\n\
            until('again', lambda content: content == 'again\\n')\n";
        let Some(place) = play("suspend_and_resume", options, dialogue) else { return };
        assert!(!place.fact().quota_reached, "{options}");
    }
}

#[test]
fn a_job_in_a_group_of_its_own_leaves_the_terminal_to_the_shell_when_it_ends() {
    let dialogue = "say(b'end\\n')\n\
        until('rc', lambda content: content == '5\\n')\n\
        prompt()\n\
        say(b'echo typed >typed\\n')\n\
        until('typed', lambda content: content == 'typed\\n')\n";
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
    let output =
        Command::new("python3").args(["-c", &driver]).current_dir(place.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!place.fact().quota_reached);
}
