"""What must hold of a manifest that a schema cannot see."""
import re
import subprocess

from manifests import pod_spec_of, schema_findings


def findings(documents, weir):
    """Everything that is wrong with a manifest."""
    if found := schema_findings(documents):
        # The rest reads fields of the right types.
        return found
    pod = pod_spec_of(documents)
    (container,) = pod["containers"]
    found = variable_findings(container, options_of(weir))
    found += privilege_findings(pod)
    found += image_findings(pod)
    found += volume_findings(pod, container)
    found += attempt_findings(pod, container)
    return found


def options_of(weir):
    """The variables that stand for the options of `weir run`."""
    text = subprocess.run([weir, "run", "--help"], capture_output=True, text=True).stdout
    names = re.findall(r"^  --([a-z-]+)", text, re.MULTILINE)
    return {"WEIR_" + name.upper().replace("-", "_") for name in names}


def values_of(container):
    return {entry["name"]: entry.get("value") for entry in container["env"]}


def variable_findings(container, options):
    names = [entry["name"] for entry in container["env"]]
    ours = [name for name in names if name.startswith("WEIR_")]
    found = [f"no option of weir: {name}" for name in ours if name not in options]
    found += [f"twice: {it}" for it in sorted(set(names)) if names.count(it) > 1]
    if values_of(container).get("WEIR_TEE") != "true":
        found.append("kubectl logs shows nothing without WEIR_TEE")
    return found


def privilege_findings(pod):
    """The Pod Security Standard `restricted`, and a root file system that is read only."""
    context, found = pod.get("securityContext", {}), []
    if not (context.get("runAsNonRoot") is True and context.get("runAsUser", 0) > 0):
        found.append("privileges: runs as root")
    if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
        found.append("privileges: no seccomp profile")
    expected = {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    for container in pod["initContainers"] + pod["containers"]:
        if container.get("securityContext") != expected:
            found.append(f"privileges: container {container['name']}")
        if not {"requests", "limits"} <= container.get("resources", {}).keys():
            found.append(f"resources: container {container['name']}")
    # Then weir would not be process 1.
    if pod.get("shareProcessNamespace") or pod.get("hostPID"):
        found.append("privileges: shares its processes")
    return found


def image_findings(pod):
    images = [it["image"] for it in pod["initContainers"] + pod["containers"]]
    # A tag that stays, and no registry's host.
    pinned = re.compile(r"[a-z]+:(alpine|[0-9]+\.[0-9]+\.[0-9]+)")
    return [f"image: {image}" for image in images if not pinned.fullmatch(image)]


def volume_findings(pod, container):
    found, values = [], values_of(container)
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for name in ("WEIR_ROOT", "WEIR_RECEIPT_ROOT"):
        parent = (values.get(name) or "").rpartition("/")[0]
        if parent not in {mount["mountPath"] for mount in mounts.values()}:
            found.append(f"volume: {name} is not a folder right below a mount")
    if mounts.keys() - volumes.keys() or not mounts["weir"].get("readOnly"):
        found.append("volume: weir is not mounted read only")
    (installer,) = pod["initContainers"]
    target = installer["volumeMounts"][0]["mountPath"] + "/weir"
    if installer["command"] != ["cp", "/usr/local/bin/weir", target]:
        found.append("volume: weir is not copied")
    if container["command"][0] != mounts["weir"]["mountPath"] + "/weir":
        found.append("volume: weir is not what runs")
    context = pod["securityContext"]
    is_kept = "persistentVolumeClaim" in volumes["logs"]
    if is_kept and not context.get("fsGroup"):
        found.append("volume: nobody but root can write to a new claim without fsGroup")
    if is_kept and context.get("fsGroupChangePolicy") != "OnRootMismatch":
        found.append("volume: the next mount opens all records to the group")
    return found


def attempt_findings(pod, container):
    """A start must have an attempt id of its own, and the time to leave its records."""
    found = []
    names = {entry["name"] for entry in container["env"]}
    if "WEIR_RUN_ID" not in names:
        found.append("attempt: no run id")
    # The attempt id follows from the Pod, or is made up at each start.
    if ("WEIR_ATTEMPT_ID" in names) != (pod["restartPolicy"] == "Never"):
        found.append("attempt: a restarted container would have the id of a sealed log")
    grace = re.fullmatch(r"(\d+)s", values_of(container).get("WEIR_GRACE") or "")
    if not grace or int(grace[1]) >= pod.get("terminationGracePeriodSeconds", 30):
        found.append("attempt: KILL comes before weir's grace is over")
    return found
