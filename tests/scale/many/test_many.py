"""Many models on a real Dask scheduler with two worker processes, some of which die."""

import csv
import json
import os
import re
import shutil
import subprocess
import threading
import time

import numpy as np
import pytest

import softmap
from softmap import Model, OptionError, generators, solve, solve_many
from softmap.app.cli.app import main

pytest.importorskip("distributed")
if not hasattr(os, "fork"):
    pytest.skip("no fork on this system", allow_module_level=True)

import distributed

from scale.many.cluster import MEMORY, Cluster
from softmap.run.memory import memory_needed
from softmap.scale.many.cluster import Connection
from softmap.scale.many.items import Folder, batches, listed, names_of
from softmap.scale.many.solve import outcomes
from softmap.scale.many.work import Settings, checkpoint_of, work
from softmap.tasks.workers import attached

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask has many, at its own ends


@pytest.fixture(scope="module")
def cluster():
    started = Cluster()
    yield started
    started.close()


def infeasible() -> Model:
    return Model([[0.0, np.inf], [np.inf, 0.0]], [[0, 1]], np.array([[[0.0, np.inf]] * 2]))


def same(found, expected) -> bool:
    numbers = ("energy", "bound", "primal", "status", "work")
    return all(getattr(found, n) == getattr(expected, n) for n in numbers) and all(
        np.array_equal(getattr(found, n), getattr(expected, n))
        for n in ("labels", "lam", "messages")
    )


def test_killed_workers_and_a_new_scheduler_lose_nothing(cluster):
    """One worker dies by SIGKILL in the middle, later the scheduler and all the others."""
    small = [generators.random_tree(30, seed=seed) for seed in range(12)]
    large = [generators.random_grid(16, 16, 6, seed=seed) for seed in range(5)]
    models = {f"m{k}": model for k, model in enumerate([*small, *large])}
    models["bad"] = infeasible()
    options = {"max_work": 2 * large[0].m * 40, "goal": "lp", "lp_gap": 0.0}
    found: dict[str, object] = {}
    names: list[str] = []
    events = {2: cluster.kill_worker, 4: cluster.restart}
    threads = []
    for name, answer in solve_many(models, cluster.address, **options):
        found[name] = answer
        names.append(name)
        for count in [c for c in events if len(names) >= c]:  # beside the stream, as in life
            threads.append(threading.Thread(target=events.pop(count)))
            threads[-1].start()
    for thread in threads:
        thread.join()
    assert not events
    assert sorted(names) == sorted(models)  # each exactly once
    assert isinstance(found.pop("bad"), softmap.InfeasibleModel)
    for name, answer in found.items():
        assert same(answer, solve(models[name], **options)), name
        assert answer.model is models[name]
        assert np.allclose(answer.node_marginals.sum(), models[name].n)


def test_a_second_run_solves_only_what_has_changed(cluster, tmp_path, capsys):
    paths = [tmp_path / f"{name}.npz" for name in "abc"]
    for seed, path in enumerate(paths):
        softmap.write(generators.random_tree(30, seed=seed), path)
    (tmp_path / "broken.uai").write_text("MARKOV\n2\n2 x\n")
    files = [str(p) for p in [*paths, tmp_path / "broken.uai", tmp_path / "missing.uai"]]
    out = tmp_path / "out"
    command = ["solve-many", *files, "--out", str(out), "--cluster", cluster.address]
    assert main(command) == 1
    assert "3 solved, 0 unchanged, 2 failed" in capsys.readouterr().err
    rows = {row["name"]: row for row in csv.DictReader((out / "summary.csv").open())}
    assert rows["broken"]["state"] == rows["missing"]["state"] == "failed"
    assert "line 3" in rows["broken"]["error"]
    assert sorted(p.name for p in out.iterdir()) == sorted(
        [f"{n}{s}" for n in "abc" for s in (".json", ".MPE")] + ["summary.csv"]
    )
    for path in paths:
        expected = solve(softmap.read(path))
        facts = json.loads((out / f"{path.stem}.json").read_text())
        assert (facts["energy"], facts["bound"]) == (expected.energy, expected.bound)
        assert np.array_equal(softmap.io.read_labels(out / f"{path.stem}.MPE"), expected.labels)
    softmap.write(generators.random_tree(30, seed=9), paths[1])
    (out / "c.MPE").unlink()
    before = os.stat(out / "a.json")
    assert main(command[:1] + files[:3] + command[-4:]) == 0
    assert "2 solved, 1 unchanged, 0 failed" in capsys.readouterr().err
    assert os.stat(out / "a.json").st_ino == before.st_ino
    assert main([*command[:1], files[0], *command[-4:], "--seed", "1"]) == 0
    assert "1 solved, 0 unchanged" in capsys.readouterr().err  # other options, another result


def test_a_lost_run_goes_on_from_its_checkpoint(tmp_path):
    """What a worker left in the shared folder leads the next one to the same result."""
    model = generators.random_grid(12, 12, 4, seed=3)
    item = listed({"grid": model})[0]
    part = checkpoint_of(str(tmp_path), "grid")
    solve(model, max_work=2 * model.m * 10, lp_gap=0.0, gap=0.0, goal="lp", checkpoint=part)
    options = {"max_work": 2 * model.m * 60, "goal": "lp"}
    found = work([item], Settings(options, checkpoints=str(tmp_path)))[0].value
    assert found.trace[0].seconds <= found.seconds
    assert found.work <= 2 * model.m * 60
    assert found.bound <= solve(model, goal="lp").primal
    part.write_bytes(b"damaged")
    again = work([item], Settings(options, checkpoints=str(tmp_path)))[0].value
    assert same(attached(again, model), solve(model, **options))


def test_a_killed_workers_model_goes_on_elsewhere_from_its_checkpoint(cluster, tmp_path):
    """SIGKILL in the middle of a run; another worker begins where the checkpoint stands."""
    model = generators.random_grid(14, 14, 5, seed=3)
    options = {"max_work": 2 * model.m * 3000, "goal": "lp", "lp_gap": 0.0, "gap": 0.0}
    path = checkpoint_of(str(tmp_path), "grid")
    before = []

    def kill(client) -> None:
        pids = client.run(os.getpid)
        end = time.monotonic() + 60
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.01)
        busy = [address for address, keys in client.processing().items() if keys]
        before.append(path.exists())
        cluster.kill_worker(pids[busy[0]])

    with distributed.Client(cluster.address) as client:
        client.wait_for_workers(2)
        thread = threading.Thread(target=kill, args=[client])
        thread.start()
        settings = Settings(options, checkpoints=str(tmp_path))
        found = list(outcomes(listed({"grid": model}), settings, Connection(client)))
        thread.join()
    cluster.add_worker()
    assert before == [True]
    assert [outcome.name for outcome in found] == ["grid"]
    assert found[0].error is None
    assert found[0].resumed
    assert same(attached(found[0].value, model), solve(model, **options))
    assert not path.exists()  # nobody will go on with it


def test_models_too_large_for_a_worker_are_reported_and_cost_the_others_nothing(cluster, tmp_path):
    small = [generators.random_tree(10, seed=seed) for seed in range(3)]
    large = generators.potts_grid(900, 900, 8)
    assert memory_needed(large.network) > MEMORY > 10 * memory_needed(small[0].network)
    softmap.write(large, tmp_path / "large.npz", compress=False)
    models = {"file": tmp_path / "large.npz"} | {str(k): m for k, m in enumerate(small)}
    found = dict(solve_many(models, cluster.address, goal="lp"))
    error = found.pop("file")
    assert isinstance(error, MemoryError)
    assert re.fullmatch(r"file: a run needs about \S+ .B, a worker has \S+ .B", str(error))
    for name, answer in found.items():
        assert same(answer, solve(models[name], goal="lp"))


def test_models_travel_by_tls(cluster, tmp_path):
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("no openssl to make a certificate with")
    key, cert = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    names = ["-subj", "/CN=softmap-test", "-keyout", key, "-out", cert]
    subprocess.run([program, *words.split(), *names], check=True, capture_output=True)
    address = cluster.secure(str(tmp_path))
    security = distributed.Security(
        tls_ca_file=cert, tls_client_cert=cert, tls_client_key=key, require_encryption=True
    )
    model = generators.random_tree(20, seed=1)
    with distributed.Client(address, security=security) as client:
        assert client.scheduler.address.startswith("tls://")
        found = dict(solve_many({"tree": model}, client))
    assert same(found["tree"], solve(model))
    with pytest.raises(OptionError, match="tls://"):
        list(solve_many({"tree": model}, address))  # without a certificate


def test_names_tell_files_apart(tmp_path):
    assert names_of(["a/x.uai", "y.npz.gz", "z.1.LG"]) == ["x", "y", "z.1"]
    assert names_of(["a/x.uai", "a/x.npz"]) == ["x.uai", "x.npz"]
    assert names_of(["a/x.uai", "b/X.uai"]) == ["a-x.uai", "b-X.uai"]
    with pytest.raises(OptionError, match="the name 'a-x"):
        names_of(["a/x.uai", "a/x.uai"])
    with pytest.raises(OptionError, match="cannot be the name"):
        Folder(tmp_path, {}).with_known(listed({"../x": "x.uai"}))


def test_small_models_travel_together_and_large_ones_first():
    small = [generators.random_tree(5, seed=seed) for seed in range(100)]
    large = generators.random_grid(80, 80, 4)
    found = batches(listed([*small, large]), threads=2)
    assert [item.name for item in found[0]] == ["100"]
    assert {len(batch) for batch in found[1:]} == {12, 4}
    assert sorted(int(item.name) for batch in found for item in batch) == list(range(101))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"models_or_paths": "a.uai"}, "a list of models or paths"),
        ({"models_or_paths": [3]}, "entry 0"),
        ({"models_or_paths": [], "checkpoint": "x"}, "takes no checkpoint"),
        ({"models_or_paths": [], "nonsense": 1}, "no option 'nonsense'"),
        ({"models_or_paths": [], "checkpoints": "nowhere"}, "a folder that exists"),
        ({"models_or_paths": [], "client": 3}, "a dask Client or an address"),
        ({"models_or_paths": [], "workers": 0}, "workers=0"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_starts(options, words):
    with pytest.raises(OptionError, match=words):
        solve_many(**options)
