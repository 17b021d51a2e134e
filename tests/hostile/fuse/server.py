"""usage: server.py BACKING MOUNT_POINT CONTROL [OPTION]...

A FUSE file system that hands every call on to the directory BACKING, but for those that
CONTROL, a JSON file that is read anew at every call, has an answer for:

    {"link": {"errno": 1}, "write": {"delay": 0.3}, "open": {"errno": 5, "name": "l"}}

"delay" seconds pass first (CONTROL.waits is there from then on), then the call fails with "errno", or goes on where there is
none; with "name", only calls for that last component. An OPTION is one of the mount's.
"""

import errno
import json
import os
import sys
import threading

import fusepy as fuse

# Whoever waits for an answer waits in the kernel, where no signal ends it: when the
# server is gone, so is the wait.
LIFETIME_SECONDS = 50


class PassThrough(fuse.Operations):
    def __init__(self, backing, control):
        self.backing, self.control = backing, control

    def __call__(self, operation, *arguments):
        if not hasattr(self, operation):
            raise fuse.FuseOSError(errno.ENOSYS)
        with open(self.control) as control:
            fault = json.load(control).get(operation, {})
        paths = [one for one in arguments if isinstance(one, str)]
        if fault.get("name") in [None] + [os.path.basename(path) for path in paths]:
            if "delay" in fault:
                open(self.control + ".waits", "w").close()
                threading.Event().wait(fault["delay"])
            if "errno" in fault:
                raise fuse.FuseOSError(fault["errno"])
        return getattr(self, operation)(*arguments)

    def at(self, path):
        return self.backing + path

    def getattr(self, path, fh=None):
        status = os.lstat(self.at(path)) if fh is None else os.fstat(fh)
        names = ("ino", "mode", "nlink", "uid", "gid", "rdev", "size", "atime", "mtime", "ctime")
        return {"st_" + name: getattr(status, "st_" + name) for name in names}

    def readdir(self, path, fh):
        return [".", ".."] + os.listdir(self.at(path))

    def mknod(self, path, mode, dev):
        os.mknod(self.at(path), mode, dev)

    def create(self, path, mode, fi=None):
        return os.open(self.at(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def open(self, path, flags):
        # Offsets come with every call, and appending would go against them.
        return os.open(self.at(path), flags & ~os.O_APPEND)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        return os.pwrite(fh, data, offset)

    def fsync(self, path, datasync, fh):
        os.fsync(fh)

    def fsyncdir(self, path, datasync, fh):
        directory = os.open(self.at(path), os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def flush(self, path, fh):
        pass

    def release(self, path, fh):
        os.close(fh)

    def truncate(self, path, length, fh=None):
        os.truncate(self.at(path) if fh is None else fh, length)

    def unlink(self, path):
        os.unlink(self.at(path))

    def mkdir(self, path, mode):
        os.mkdir(self.at(path), mode)

    def rmdir(self, path):
        os.rmdir(self.at(path))

    def rename(self, old, new):
        os.rename(self.at(old), self.at(new))

    def link(self, new, old):
        os.link(self.at(old), self.at(new))

    def chmod(self, path, mode):
        os.chmod(self.at(path), mode)

    def chown(self, path, user, group):
        os.chown(self.at(path), user, group)

    def statfs(self, path):
        told = os.statvfs(self.at(path))
        names = ("bsize", "frsize", "blocks", "bfree", "bavail", "files", "ffree", "favail")
        return {"f_" + name: getattr(told, "f_" + name) for name in names}


def main():
    backing, mount_point, control, *options = sys.argv[1:]
    watchdog = threading.Timer(LIFETIME_SECONDS, lambda: os._exit(1))
    watchdog.daemon = True
    watchdog.start()
    options = {name: True for name in ["foreground", "allow_other", "hard_remove"] + options}
    fuse.FUSE(
        PassThrough(backing, control), mount_point, attr_timeout=0, entry_timeout=0, **options
    )


main()
