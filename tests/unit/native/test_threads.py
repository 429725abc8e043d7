"""The pool of threads: every item of every job is taken once, and ThreadSanitizer finds no race."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src" / "surefoot" / "native" / "src"
PROGRAM = """
#include "threads.h"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void count(void *job, int i) { ((int *)job)[i]++; }

int main(void) {
    puts("started");
    fflush(stdout);
    int taken[37] = {0};
    sf_pool *pool = sf_pool_new(3);
    if (!pool) return 2;
    for (int round = 0; round < 500; round++) sf_pool_run(pool, count, taken, 37);
    const pid_t child = FORKS ? fork() : 0; /* a child has no threads and takes all items itself */
    if (FORKS && child == 0) {
        sf_pool_run(pool, count, taken, 37);
        sf_pool_free(pool);
        _exit(taken[36] == 501 ? 0 : 3);
    }
    int status = 0;
    if (FORKS) waitpid(child, &status, 0);
    sf_pool_free(pool);
    sf_pool_free(NULL);
    for (int i = 0; i < 37; i++)
        if (taken[i] != 500) return 1;
    return status;
}
"""


def run(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("there is no C compiler")
    main, program = folder / "main.c", folder / "main"
    main.write_text(PROGRAM)
    command = [
        compiler,
        "-g",
        "-O1",
        *flags,
        "-I",
        str(SOURCE),
        str(main),
        str(SOURCE / "threads.c"),
        "-o",
        str(program),
    ]
    built = subprocess.run([*command, "-lpthread"], capture_output=True, text=True, check=False)
    if built.returncode and "-fsanitize=thread" in flags:
        pytest.skip("the compiler has no ThreadSanitizer")
    assert built.returncode == 0, built.stderr
    return subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=60)


def test_every_item_is_taken_once_and_a_forked_child_works_alone(tmp_path):
    result = run(tmp_path, "-DFORKS=1")
    assert (result.returncode, result.stderr) == (0, "")


def test_threads_do_not_race(tmp_path):
    result = run(tmp_path, "-DFORKS=0", "-fsanitize=thread")
    # Where Linux places a program at random over more bits than ThreadSanitizer knows, some starts end before main().
    for _ in range(20):
        if result.stdout:
            break
        result = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=False, timeout=60)
    if not result.stdout:
        pytest.skip("ThreadSanitizer does not run on this kernel's memory layout")
    assert (result.returncode, result.stderr) == (0, "")
