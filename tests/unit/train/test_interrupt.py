"""The first Ctrl-C is a request, the second one interrupts."""

import os
import signal
import threading

import pytest

from surefoot.train.interrupt import GentleStop


def test_the_first_signal_is_a_request_and_the_second_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    with GentleStop() as stop:
        assert not stop.requested
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_first_signal_is_answered_where_an_update_may_take_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    with GentleStop(announce="wait, or press again"):
        os.kill(os.getpid(), signal.SIGINT)
    assert capsys.readouterr().err == "wait, or press again\n"


def test_outside_of_the_main_thread_no_handler_is_set() -> None:
    handlers = []

    def run() -> None:
        with GentleStop():
            handlers.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert handlers == [before]
