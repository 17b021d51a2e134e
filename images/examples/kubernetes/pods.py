"""A Pod's container, run here: as its user, as process 1, without privileges, its command and
variables as they are but for the mounts' places."""
import os
import shutil
import subprocess
import time
from pathlib import Path

from manifests import environment_of, pod_spec_of, words_of
from records import Attempt

PATIENCE_S = 20


class LocalPod:
    """One Pod: its volumes are folders, and stay between its container's starts."""

    def __init__(self, folder, documents, weir, fields, index=None):
        self.pod, self.fields, self.index = pod_spec_of(documents), fields, index
        (self.container,) = self.pod["containers"]
        self.folder = Path(folder)
        self.folder.chmod(0o755)
        group = self.pod["securityContext"].get("fsGroup")
        for name, mode in (("weir", 0o777), ("logs", 0o777 if group is None else 0o2775)):
            (self.folder / name).mkdir(exist_ok=True)
            os.chown(self.folder / name, 0, group or 0)
            (self.folder / name).chmod(mode)
        # What the init container does.
        shutil.copy(weir, self.folder / "weir" / "weir")

    def placed(self, word):
        """The word, with the mounts' paths where they are here."""
        for mount in self.container["volumeMounts"]:
            if word == mount["mountPath"] or word.startswith(mount["mountPath"] + "/"):
                return str(self.folder / mount["name"]) + word[len(mount["mountPath"]) :]
        return word

    def variables(self):
        own = environment_of(self.container, self.fields)
        if self.index is not None:
            # The Job controller adds it.
            own["JOB_COMPLETION_INDEX"] = str(self.index)
        return {name: self.placed(value) for name, value in own.items()}

    def script(self):
        """The shell script that the container runs under weir."""
        return words_of(self.container, self.variables())[-1]

    def start(self):
        context = self.pod["securityContext"]
        groups = context.get("fsGroup", context["runAsGroup"])
        confined = [
            "unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
            "setpriv", f"--reuid={context['runAsUser']}", f"--regid={context['runAsGroup']}",
            f"--groups={groups}", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all",
        ]
        variables = self.variables()
        words = [self.placed(word) for word in words_of(self.container, variables)]
        return subprocess.Popen(
            confined + words, cwd="/", env={"PATH": os.environ["PATH"], **variables},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    def run(self):
        """A start to its end: status, what kubectl logs shows of the job, what weir says."""
        return finish(self.start())

    def attempt(self, attempt_id):
        variables = self.variables()
        roots = (Path(variables[name]) for name in ("WEIR_ROOT", "WEIR_RECEIPT_ROOT"))
        return Attempt(*roots, variables["WEIR_RUN_ID"], attempt_id)

    def attempt_ids(self):
        """Of every receipt, in the order in which the made-up ones were made."""
        receipts = Path(self.variables()["WEIR_RECEIPT_ROOT"]).glob("*/*.json")
        return sorted(path.stem for path in receipts)


def finish(started):
    try:
        output, error = started.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        started.kill()
        output, error = started.communicate()
        return "it did not end", output, error.decode()
    return started.returncode, output, error.decode()


def terminate(started):
    """TERM to the container's process 1, as the kubelet sends it, when its script sleeps: a
    shell's child that is told between its fork and its exec loses the signal."""
    deadline = time.monotonic() + PATIENCE_S
    while not (sleeping := descent(started.pid)).get("sleep"):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the script does not sleep: {sleeping}")
        time.sleep(0.01)
    os.kill(sleeping["weir"], 15)


def descent(pid):
    """The process's first child, that one's first child and so on: their pids by name."""
    found = {}
    try:
        while words := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            pid = int(words[0])
            found[Path(f"/proc/{pid}/comm").read_text().strip()] = pid
    except FileNotFoundError:
        # It has ended meanwhile.
        pass
    return found
