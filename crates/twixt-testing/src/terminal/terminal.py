"""A terminal for a test: runs a command on a pseudo-terminal, and knows what its screen shows.

Arguments: columns, rows, and the command. Reads a step on each line of standard input, as JSON, and
answers each with a line:

{"wait": TEXT}      until the screen has TEXT        -> {"screen": …}
{"gone": TEXT}      until it has not                 -> {"screen": …}
{"keys": TEXT}      types it                         -> {}
{"size": [C, R]}    another size                     -> {}
{"signal": NUMBER}  sends a signal to the command    -> {}
{"show": true}      what the screen shows            -> {"screen", "lines", "process"}
{"end": true}       waits for its end                -> {"code", "before", "after", "shown", "rest"}

`lines` has the runs of letters of one style in each line, [TEXT, FOREGROUND, BACKGROUND, MARKS], with colours of
the 256 or null, and marks of b(old), d(im), u(nderlined) and r(eversed). `before` and `after` are what `stty -g`
says, `shown` whether the cursor is and the main screen is back, `rest` what was written after that.
"""

import fcntl
import itertools
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
import unicodedata

PATIENCE_S = 60
SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[()].|\x1b[=>78]")
MARKS = {1: "b", 2: "d", 4: "u", 7: "r"}
PLAIN = (None, None, "")


class Screen:
    """As much of a terminal as is needed to read what is on it."""

    def __init__(self, columns, rows):
        self.is_alternate = False
        self.has_cursor = True
        self.rest = ""
        self.resize(columns, rows)

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.clear()

    def clear(self):
        self.row = self.column = 0
        self.style = PLAIN
        self.cells = [[(" ", PLAIN)] * self.columns for _ in range(self.rows)]

    def write(self, text):
        at = 0
        while at < len(text):
            found = SEQUENCE.match(text, at)
            if found:
                self.obey(found.group(1) or "", found.group(2) or "")
                at = found.end()
                continue
            self.put(text[at])
            at += 1

    def obey(self, arguments, command):
        numbers = [int(number) for number in re.findall(r"\d+", arguments)]
        if command == "H":
            self.row, self.column = (numbers + [1, 1])[0] - 1, (numbers + [1, 1])[1] - 1
        elif command == "J":
            self.clear()
        elif command == "m":
            self.dress(numbers or [0])
        elif command in "hl" and arguments == "?1049":
            self.is_alternate = command == "h"
            self.rest = ""
            self.clear()
        elif command in "hl" and arguments == "?25":
            self.has_cursor = command == "h"

    def dress(self, numbers):
        """Colours and marks of what follows."""
        foreground, background, marks = self.style
        while numbers:
            number = numbers.pop(0)
            if number in (38, 48):
                # 38;5;N, of the 256.
                colour, numbers = numbers[1], numbers[2:]
                foreground, background = (colour, background) if number == 38 else (foreground, colour)
            elif number == 0:
                foreground, background, marks = PLAIN
            elif number in MARKS:
                marks += MARKS[number]
            elif number in (22, 24, 27):
                marks = "".join(mark for mark in marks if mark not in {22: "bd", 24: "u", 27: "r"}[number])
            elif number == 39:
                foreground = None
            elif number == 49:
                background = None
            elif 30 <= number <= 37:
                foreground = number - 30
            elif 40 <= number <= 47:
                background = number - 40
        self.style = (foreground, background, "".join(sorted(set(marks))))

    def put(self, letter):
        if not self.is_alternate:
            self.rest += letter
        if letter == "\n":
            self.row += 1
        elif letter == "\r":
            self.column = 0
        else:
            if 0 <= self.row < self.rows and 0 <= self.column < self.columns:
                self.cells[self.row][self.column] = (letter, self.style)
            self.column += 1
            if letter and unicodedata.east_asian_width(letter) in "WF":
                # It takes two columns.
                self.put("")

    def text(self):
        return "\n".join("".join(letter for letter, _ in line).rstrip() for line in self.cells)

    def lines(self):
        """Runs of letters of one style."""
        groups = lambda line: itertools.groupby(line, key=lambda cell: cell[1])
        return [[["".join(letter for letter, _ in run), *style] for style, run in groups(line)] for line in self.cells]


def whole(data):
    """What is complete of it as text, and the bytes of a letter or a sequence that is not."""
    for cut in range(len(data), max(len(data) - 4, -1), -1):
        try:
            text = data[:cut].decode()
        except UnicodeDecodeError:
            continue
        last = text.rfind("\x1b")
        if last >= 0 and not SEQUENCE.match(text, last):
            return text[:last], text[last:].encode() + data[cut:]
        return text, data[cut:]
    raise SystemExit(f"not text: {data!r}")


class Session:
    def __init__(self, columns, rows, command):
        self.master, self.slave = pty.openpty()
        self.screen = Screen(columns, rows)
        self.size(columns, rows)
        self.before = self.settings()
        self.pending = b""

        def take_terminal():
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

        ends = dict(stdin=self.slave, stdout=self.slave, stderr=self.slave)
        self.child = subprocess.Popen(command, preexec_fn=take_terminal, **ends)

    def settings(self):
        return subprocess.check_output(["stty", "-g"], stdin=self.slave, text=True).strip()

    def size(self, columns, rows):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, patience_s):
        ready, _, _ = select.select([self.master], [], [], patience_s)
        if not ready:
            return False
        self.pending += os.read(self.master, 1 << 16)
        text, self.pending = whole(self.pending)
        self.screen.write(text)
        return True

    def until(self, is_so, what):
        end = time.monotonic() + PATIENCE_S
        while not is_so(self.screen.text()):
            is_over = self.child.poll() is not None and not self.read(0)
            if is_over or time.monotonic() > end:
                raise SystemExit(f"{what}:\n{self.screen.text()}\n{self.screen.rest}")
            self.read(0.1)
        return {"screen": self.screen.text()}

    def step(self, step):
        (name, value), = step.items()
        if name == "wait":
            return self.until(lambda text: value in text, f"{value!r} never came")
        if name == "gone":
            return self.until(lambda text: value not in text, f"{value!r} stays")
        if name == "keys":
            os.write(self.master, value.encode())
        elif name == "size":
            self.screen.resize(*value)
            self.size(*value)
        elif name == "signal":
            self.child.send_signal(value)
        elif name == "show":
            while self.read(0):
                pass
            return {"screen": self.screen.text(), "lines": self.screen.lines(), "process": self.child.pid}
        elif name == "end":
            return self.end()
        return {}

    def end(self):
        end = time.monotonic() + PATIENCE_S
        while self.child.poll() is None:
            self.read(0.1)
            if time.monotonic() > end:
                raise SystemExit(f"it does not end:\n{self.screen.text()}")
        while self.read(0):
            pass
        shown = self.screen.has_cursor and not self.screen.is_alternate
        answer = {"code": self.child.returncode, "before": self.before, "after": self.settings()}
        return {**answer, "shown": shown, "rest": self.screen.rest}


def main():
    session = Session(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    try:
        for line in sys.stdin:
            print(json.dumps(session.step(json.loads(line))), flush=True)
    finally:
        session.child.kill()


main()
