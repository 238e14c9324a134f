"""Where the kernels of a test run: on the host, and on a device if there is one."""

import pytest

from softmap.cuda import HostDevice, find_device
from softmap.errors import MissingExtra, OptionError


def usable() -> bool:
    """Whether there is a device."""
    try:
        return not isinstance(find_device(), HostDevice)
    except (MissingExtra, OptionError):
        return False


@pytest.fixture(params=["host", pytest.param("cuda", marks=pytest.mark.gpu)])
def place(request, monkeypatch):
    """Where the kernels run."""
    if request.param == "host":
        monkeypatch.setenv("SOFTMAP_CUDA", "host")
    elif not usable():
        pytest.skip("needs a CUDA device")
    return request.param
