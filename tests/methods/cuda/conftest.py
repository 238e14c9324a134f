"""Where the kernels of a test run: on the host, and on a device if there is one."""

from importlib.util import find_spec

import pytest

from softmap.errors import MissingExtra, OptionError
from softmap.methods.cuda import HostDevice, find_device


def usable() -> bool:
    """Whether there is a device."""
    try:
        return not isinstance(find_device(), HostDevice)
    except (MissingExtra, OptionError):
        return False


def host_built() -> bool:
    """Whether the kernels were compiled for the host, too."""
    return find_spec("softmap.core._device") is not None


@pytest.fixture
def host():
    """The host as a device."""
    if not host_built():
        pytest.skip("the device kernels are not compiled for the host here")
    return HostDevice()


@pytest.fixture(params=["host", pytest.param("cuda", marks=pytest.mark.gpu)])
def place(request, monkeypatch):
    """Where the kernels run."""
    if request.param == "host":
        request.getfixturevalue("host")
        monkeypatch.setenv("SOFTMAP_CUDA", "host")
    elif not usable():
        pytest.skip("needs a CUDA device")
    return request.param
