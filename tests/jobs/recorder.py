"""A job that notes, before and after every write, how much of its output is out.

recorder.py NUMBER NOTES: writes LENGTHS[NUMBER] bytes, byte i being (i + NUMBER) % 251, in
pieces that a pipe takes whole, and notes in NOTES/<its artifact> two numbers of eight bytes:
what is certainly out, and what may be out at the most. They survive whatever kills it.
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
while done < length:
    piece = content[done:min(length, done + chance.randint(1, 4096))]
    noted[8:16] = struct.pack("=Q", done + len(piece))
    os.write(1, piece)
    done += len(piece)
    noted[0:8] = struct.pack("=Q", done)
    if chance.random() < 0.2:
        time.sleep(chance.random() / 500)
if number % 8 == 7 and os.fork() == 0:
    # Holds the output for longer than the grace, and writes nothing.
    time.sleep(0.06)
os._exit(number % 5)
