"""A disk in a file system of its own, which writes down what happens to the disk.

usage: blocklog.py MOUNT_POINT BYTES LOG

/disk is the disk; whatever is written to /mark is a mark. The log has an entry for each
write, flush and mark, in their order: kind (w, f or m), offset, length, the bytes.
"""
import errno
import stat
import struct
import sys

from fusepy import FUSE, FuseOSError, Operations


class Disk(Operations):
    def __init__(self, size, log):
        self.content = bytearray(size)
        self.log = log

    def note(self, kind, offset=0, data=b""):
        self.log.write(struct.pack("<cQI", kind, offset, len(data)) + data)

    def getattr(self, path, fh=None):
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o700, "st_nlink": 2}
        if path not in ("/disk", "/mark"):
            raise FuseOSError(errno.ENOENT)
        size = len(self.content) if path == "/disk" else 0
        return {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": size}

    def readdir(self, path, fh):
        return [".", "..", "disk", "mark"]

    def open(self, path, flags):
        return 0

    def read(self, path, size, offset, fh):
        return bytes(self.content[offset : offset + size])

    def write(self, path, data, offset, fh):
        if path == "/mark":
            self.note(b"m", 0, data)
        else:
            self.content[offset : offset + len(data)] = data
            self.note(b"w", offset, data)
        return len(data)

    def fsync(self, path, datasync, fh):
        self.note(b"f")
        return 0

    def flush(self, path, fh):
        self.log.flush()
        return 0


with open(sys.argv[3], "wb") as log:
    disk = Disk(int(sys.argv[2]), log)
    FUSE(disk, sys.argv[1], foreground=True, nothreads=True, big_writes=True, max_write=131072)
