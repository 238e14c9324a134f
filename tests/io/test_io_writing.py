"""Writers: links and devices stay what they are, killed writers leave nothing that stays."""

import os
import pickle
import signal
import stat
import subprocess
import sys
import threading

import pytest

import softmap
from softmap.io.atomic import replacing, write_text


def test_links_are_written_through(tmp_path):
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "a.txt", tmp_path / "b.txt"
    real.write_text("old")
    link.symlink_to(real)
    write_text(link, ["new"])
    assert link.is_symlink()
    assert real.read_text() == "new"
    dangling = tmp_path / "c.txt"
    dangling.symlink_to(tmp_path / "real" / "d.txt")
    write_text(dangling, ["more"])
    assert dangling.is_symlink()
    assert (tmp_path / "real" / "d.txt").read_text() == "more"
    assert sorted(p.name for p in (tmp_path / "real").iterdir()) == ["a.txt", "d.txt"]


def test_pipes_are_written_to(tmp_path):
    pipe = tmp_path / "pipe.uai"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    softmap.write(softmap.generators.random_tree(4, 2), pipe)
    reader.join(timeout=60)
    assert found[0].startswith(b"MARKOV\n4\n")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_devices_are_written_to(tmp_path):
    """A copy of the null device where we may make one; the one of the system else."""
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        with open(device, "wb") as file:
            file.write(b"x")
    except OSError:
        pytest.skip("devices can not be made or used here")
    write_text(device, ["text"])
    softmap.write(softmap.generators.random_tree(4, 2), device, format="npz")
    assert stat.S_ISCHR(device.stat().st_mode)


def test_a_link_to_a_device(tmp_path):
    link = tmp_path / "out"
    link.symlink_to(os.devnull)
    write_text(link, ["text"])
    assert link.is_symlink()
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


KILLED = """
import os, signal, sys
from softmap.io.atomic import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_killed_writers_leave_is_removed(tmp_path):
    path = tmp_path / "result.npz"
    path.write_text("old")
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
        assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2  # the old file, and the last one's
    (tmp_path / ".result.npz.mine").write_text("not ours")
    write_text(path, ["new"])
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == [".result.npz.mine", "result.npz"]
    assert path.read_text() == "new"


def test_a_living_writer_is_left_alone(tmp_path):
    path = tmp_path / "a.txt"
    with replacing(path) as file:
        file.write(b"slow")
        write_text(path, ["fast"])
        assert path.read_text() == "fast"
    assert path.read_text() == "slow"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_long_names(tmp_path):
    path = tmp_path / ("x" * 250)
    write_text(path, ["text"])
    assert path.read_text() == "text"


@pytest.mark.parametrize("place", ["missing/a.uai", ".", "a.uai/b.uai"])
def test_places_that_cannot_be_written(tmp_path, place):
    (tmp_path / "a.uai").write_text("a file")
    model = softmap.generators.random_tree(4, 2)
    with pytest.raises(softmap.WriteError, match="cannot be written") as caught:
        softmap.write(model, tmp_path / place, format="uai")
    assert isinstance(caught.value, OSError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.filename == str(tmp_path / place)


def test_a_full_disk_leaves_the_old_file():
    if not os.path.exists("/dev/full"):
        pytest.skip("no full disk here")
    with pytest.raises(softmap.WriteError, match="No space left"):
        write_text("/dev/full", ["text" * 10000])


@pytest.mark.parametrize("target", [None, 3, b"a.uai", 1.5, ["a.uai"], "", "a\0b.uai", object()])
def test_targets_of_wrong_types(target):
    model = softmap.generators.random_tree(4, 2)
    with pytest.raises(softmap.OptionError, match="expected"):
        softmap.write(model, target, format="uai")


def test_text_files_and_closed_files(tmp_path):
    model = softmap.generators.random_tree(4, 2)
    with open(tmp_path / "a", "w") as text, pytest.raises(softmap.OptionError, match="binary"):
        softmap.write(model, text, format="uai")
    with open(tmp_path / "a", "wb") as binary:
        pass
    with pytest.raises(softmap.WriteError, match="closed"):
        softmap.write(model, binary, format="uai")
