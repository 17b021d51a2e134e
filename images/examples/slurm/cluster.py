"""A Slurm of one node in a folder of its own, with its own munge, keys and ports."""
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

KILL_WAIT_S = 3
TOOLS = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo", "munged")
# Whoever submits: an ordinary user, as a real one is.
USER_ID = 65534

# With the default scheduler settings an array of 200 takes minutes. A requeued task waits
# until the old credential has expired: two minutes, where five seconds is the least.
CONFIGURATION = """\
ClusterName=check
SlurmctldHost=localhost
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,\
default_queue_depth=1000,partition_job_depth=1000,max_rpc_cnt=0
SlurmdParameters=config_overrides
ReturnToService=2
KillWait={kill_wait_s}
NodeName=localhost NodeAddr=127.0.0.1 CPUs=64 Boards=1 SocketsPerBoard=1 CoresPerSocket=64 \
ThreadsPerCore=1 RealMemory=8000 State=UNKNOWN
PartitionName=p Nodes=localhost Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:64
"""


def until(what, holds, patience_s=30.0):
    """Waits for what `holds` returns, if it is true; an error when it never is."""
    deadline = time.monotonic() + patience_s
    while not (value := holds()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"it never happened: {what}")
        time.sleep(0.05)
    return value


class Cluster:
    """Starts with `with`, and has ended with everything that it has started after it."""

    def __init__(self, folder, weir):
        missing = [tool for tool in TOOLS if not shutil.which(tool)]
        if missing or os.geteuid() != 0:
            raise SystemExit(
                f"check: not here: {', '.join(missing) or 'root'} (as root, with the packages "
                "slurmctld, slurmd, slurm-client and munge)"
            )
        self.folder = Path(folder)
        self.home = self.folder / "home"
        tools = self.folder / "bin"
        for made in (self.home, tools, self.folder / "state", self.folder / "spool"):
            made.mkdir()
        # Copies, since the user may not be able to look into the checkout.
        shutil.copy(weir, tools / "weir")
        for file in ("array.sbatch", "task"):
            shutil.copy(Path(__file__).parent / file, self.home)
        os.chmod(self.folder, 0o755)
        os.chown(self.home, USER_ID, USER_ID)
        self.environment = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "SLURM_CONF": str(self.folder / "slurm.conf"),
        }

    def __enter__(self):
        # Whatever loses its parent (Slurm's step daemons) becomes this process's child.
        PR_SET_CHILD_SUBREAPER = 36
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self.start_munge()
        ports = free_ports(2)
        text = CONFIGURATION.format(
            folder=self.folder,
            kill_wait_s=KILL_WAIT_S,
            controller_port=ports[0],
            node_port=ports[1],
        )
        (self.folder / "slurm.conf").write_text(text)
        self.start_daemon("slurmctld", "-D", "-i")
        self.start_daemon("slurmd", "-D", "-N", "localhost")
        until("the node is idle", lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"))

    def start_munge(self):
        place, owner = self.folder / "munge", pwd.getpwnam("munge")
        place.mkdir()
        key = place / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        for path in (key, place):
            os.chown(path, owner.pw_uid, owner.pw_gid)
        self.start_daemon(
            "munged", "--foreground", "--force", f"--key-file={key}",
            f"--socket={place}/socket", f"--pid-file={place}/pid",
            f"--log-file={place}/log", f"--seed-file={place}/seed",
            user=owner.pw_uid, group=owner.pw_gid, extra_groups=[],
        )
        until("munge listens", (place / "socket").exists)

    def start_daemon(self, *words, **options):
        with open(self.folder / f"{words[0]}.out", "wb") as output:
            subprocess.Popen(
                words, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, **options,
            )

    def ask(self, *words):
        """Runs a command as root; what it has printed, nothing if it has failed."""
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else ""

    def as_user(self, *words, **variables):
        """Runs a command as the user who submits."""
        done = subprocess.run(
            words, env=self.environment | variables, cwd=self.home, text=True,
            capture_output=True, user=USER_ID, group=USER_ID, extra_groups=[],
        )
        if done.returncode != 0:
            raise SystemExit(f"check: {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def stop(self):
        """Ends every descendant, first those that start others."""
        deadline = time.monotonic() + 10
        while family := descendants():
            for pid in family:
                late = time.monotonic() > deadline - 8
                kill(pid, signal.SIGKILL if late else signal.SIGTERM)
            reap()
            if time.monotonic() > deadline:
                raise TimeoutError(f"these do not end: {family}")
            time.sleep(0.05)


def descendants():
    """All descendants of this process that have not been reaped."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                # Behind the name, which may hold anything.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
            except OSError:
                continue
    family, found = {os.getpid()}, True
    while found:
        found = {pid for pid, parent in parents.items() if parent in family} - family
        family |= found
    return sorted(family - {os.getpid()})


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports
