import os
import signal
from types import SimpleNamespace

import pytest

from surefoot.compat.sb3.interrupts import Interrupts


def test_the_first_ctrl_c_is_noted_and_the_second_interrupts():
    model, before = SimpleNamespace(interrupted=False), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Interrupts(model):
        os.kill(os.getpid(), signal.SIGINT)
        assert model.interrupted
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == before
