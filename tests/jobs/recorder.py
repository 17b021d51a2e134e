"""A job that notes, before and after every write, how much of its output is out.

recorder.py NUMBER NOTES: writes LENGTHS[NUMBER] bytes, byte i being (i + NUMBER) % 251, in
pieces that a pipe takes whole, and notes in NOTES/<its artifact> two numbers of eight bytes:
what is certainly out, and what may be out at the most. They survive whatever kills it.
Every fourth leaves the last thousand bytes to a child, which writes them after the grace.
"""
import mmap
import os
import random
import signal
import struct
import sys
import time

LENGTHS = [0, 1, 5000, 65535, 65536, 65537, 200000, 131072]

signal.signal(signal.SIGPIPE, signal.SIG_DFL)
number, notes = int(sys.argv[1]), sys.argv[2]
artifact = os.path.basename(os.readlink("/proc/self/fd/1"))[1:].split(".log.fifo")[0]
note = os.open(os.path.join(notes, artifact), os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(note, 16)
noted = mmap.mmap(note, 16)

length = LENGTHS[number % len(LENGTHS)]
content = bytes((at + number) % 251 for at in range(251)) * (length // 251 + 1)
chance = random.Random(number)
done = 0


def write_until(end):
    global done
    while done < end:
        piece = content[done:min(end, done + chance.randint(1, 4096))]
        noted[8:16] = struct.pack("=Q", done + len(piece))
        os.write(1, piece)
        done += len(piece)
        noted[0:8] = struct.pack("=Q", done)
        if chance.random() < 0.2:
            time.sleep(chance.random() / 500)


write_until(max(0, length - 1000) if number % 4 == 2 else length)
if number % 4 == 2 and os.fork() == 0:
    time.sleep(0.06)
    write_until(length)
os._exit(number % 5)
