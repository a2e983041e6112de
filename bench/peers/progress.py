# SPDX-License-Identifier: MIT
"""Shows the progress of the comparison."""

import time

WIDTH = 40


def duration_text(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


class Progress:
    """A bar below the last printed line. It is drawn only on a terminal."""

    def __init__(self, n_steps, out):
        self.n_steps, self.done = n_steps, 0
        self.out, self.on = out, out.isatty()
        self.began = time.monotonic()

    def seconds(self):
        return time.monotonic() - self.began

    def say(self, text):
        self.end()
        print(text, file=self.out, flush=True)
        self._draw()

    def step(self, n=1):
        self.done += n
        self._draw()

    def end(self):
        """Removes the bar."""
        if self.on:
            print("\r\033[K", end="", file=self.out, flush=True)

    def _draw(self):
        if self.on:
            share = self.done / self.n_steps
            bar = "#" * int(share * WIDTH)
            print(f"\r\033[K[{bar:{WIDTH}}] {share:4.0%} after {duration_text(self.seconds())}",
                  end="", file=self.out, flush=True)
