"""Proofs that travel: written by searches, checked by code that shares nothing with them."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

import softmap
from adversary import proof_families
from adversary.proofs import campaign
from softmap.errors import FormatError
from softmap.labels.exact import ExactSearch
from softmap.run.evidence import Stated
from softmap.verification import Verdict
from softmap.verification.integers import Flat, Scale
from softmap.verification.proof import check_proof
from softmap.verification.records import Rejected
from softmap.verification.reduction import Reduction
from softmap.verification.tree import Tree
from softmap.views.page import render
from softmap.views.words import certificate_sentences, headline
from support.proof_files import packed, put_together, taken_apart, write_proof


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A model whose relaxation is loose, its result, and the proof of it."""
    path = tmp_path_factory.mktemp("proof") / "run.proof"
    model = softmap.generators.erdos_renyi(40, seed=1)
    return model, softmap.solve(model, proof=path), path


def test_random_proofs_are_accepted_and_changed_ones_prove_nothing_false():
    counts, problems = campaign(range(50))
    assert not problems
    assert counts["proofs"] > 30
    assert counts["accepted"] < counts["changed"]


def test_proofs_of_all_families_are_accepted_and_altered_ones_prove_nothing_false():
    counts, problems = proof_families.share(range(2 * len(proof_families.FAMILIES)))
    assert not problems
    assert all(count["honest"] and count["altered"] for count in counts.values())
    assert sum(count["accepted"] for count in counts.values()) > 0


def test_ranks_of_a_model_with_a_large_constant_are_accepted(tmp_path):
    """The constant is large beside all costs: their sums with it are rounded more than they are."""
    assert proof_families.trial(9389, tmp_path)[2] == []


def test_a_bound_beside_a_large_constant_is_no_more_than_is_proved():
    """The energy and the least costs cancel to 1e-6: what their sums lose counts there."""
    counts, problems = campaign(range(530, 531))
    assert not problems
    assert counts["proofs"] == 1


def test_a_checked_proof_makes_a_search_checked(searched):
    model, result, path = searched
    assert result.proof.kind == "search"
    assert softmap.verify(result).verdict is Verdict.STATED
    report = softmap.verify(result, model, proof=path)
    assert report.checked
    assert "leaves" in report["proof"].numbers


def test_a_forged_bound_stays_stated_beside_an_honest_proof(searched):
    from dataclasses import replace

    model, result, path = searched
    x = result.labels.copy()
    x[0] = 1 - x[0]
    worse = float(model.energy(x))
    forged = replace(result, labels=x, energy=worse, bound=worse, proof=Stated(nodes=9))
    report = softmap.verify(forged, proof=path)
    assert report["proof"].verdict is Verdict.CHECKED
    assert "less than was stated" in report["proof"].numbers
    assert report["bound"].verdict is Verdict.STATED
    assert report["status"].verdict is not Verdict.CHECKED


def test_a_truncated_file_is_refused_everywhere(searched, tmp_path):
    model, result, path = searched
    whole = path.read_bytes()
    cut = tmp_path / "cut.proof"
    for size in [0, 1, 20, *np.linspace(100, len(whole) - 1, 20).astype(int)]:
        cut.write_bytes(whole[:size])
        with pytest.raises(FormatError):
            check_proof(cut, model)
        assert softmap.verify(result, proof=cut)["proof"].verdict is Verdict.FALSE


def test_a_damaged_file_is_refused(searched, tmp_path):
    model, _, path = searched
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "x").write_bytes(damaged)
    with pytest.raises(
        FormatError,
        match=r"altered|decompressed|truncated",
    ):
        check_proof(tmp_path / "x", model)


def test_records_cut_within_name_the_place(searched, tmp_path):
    model, _, path = searched
    header, records = taken_apart(path)
    put_together(tmp_path / "x", header, packed(records[:-2]) + b"\x08\x07")
    with pytest.raises(FormatError, match=r"record \d+, at byte \d+.*the file ends"):
        check_proof(tmp_path / "x", model)


def test_a_false_record_names_its_place(searched, tmp_path):
    model, _, path = searched
    header, records = taken_apart(path)
    k = next(k for k, (name, _) in enumerate(records) if name == "ELIMINATE")
    records[k][1][0][0] = 1000
    put_together(tmp_path / "x", header, packed(records))
    with pytest.raises(FormatError, match=f"record {k + 1}, at byte"):
        check_proof(tmp_path / "x", model)


def test_sizes_in_a_file_are_not_believed(searched, tmp_path):
    model, _, path = searched
    header, _ = taken_apart(path)
    body = bytes([1, 63 << 2 | 3]) + (1 << 60).to_bytes(8, "little")
    put_together(tmp_path / "x", header, body)
    with pytest.raises(FormatError, match="longer than the file"):
        check_proof(tmp_path / "x", model)


def test_a_proof_of_another_model_is_refused(searched):
    other = softmap.generators.erdos_renyi(40, seed=2)
    with pytest.raises(FormatError, match="another model"):
        check_proof(searched[2], other.network)


@pytest.mark.parametrize("content", [b"", b"{}\n", b"[" * 5000, b"\xff\n", b"null\n"])
def test_what_is_no_proof_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(FormatError, match="not a proof"):
        check_proof(tmp_path / "x", softmap.generators.random_tree(5, seed=1).network)


def test_a_missing_file_is_an_error_of_the_system(tmp_path, searched):
    with pytest.raises(FileNotFoundError):
        softmap.verify(searched[1], proof=tmp_path / "none")


@pytest.mark.parametrize(
    ("model", "options", "kind"),
    [
        (softmap.generators.random_tree(20, seed=1), {}, "relaxation"),
        (softmap.generators.potts_grid(30, 30, 3, seed=1), {}, "search"),
        (softmap.generators.erdos_renyi(14, seed=3), {"goal": "lp"}, "relaxation"),
    ],
    ids=["tree", "search", "lp"],
)
def test_every_bound_of_a_run_is_checked(tmp_path, model, options, kind):
    path = tmp_path / "run.proof"
    result = softmap.solve(model, proof=path, **options)
    assert result.proof.kind == kind
    assert softmap.verify(result, proof=path).checked


def test_costs_that_are_scaled_are_proved_in_the_users_units(tmp_path):
    rng, n = np.random.default_rng(1), 14
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.5]
    factors = [(pair, 2.0**-70 * rng.normal(size=(2, 2))) for pair in pairs]
    small = softmap.Model.from_factors([2] * n, factors)
    path = tmp_path / "run.proof"
    result = softmap.solve(small, proof=path)
    assert softmap.verify(result, proof=path).checked


def test_clusters_prove_their_bound(tmp_path):
    from softmap.subsolvers.search import search

    model = softmap.generators.erdos_renyi(60, seed=5)
    path = tmp_path / "run.proof"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search.Search, "suited", classmethod(lambda cls, problem, options: None))
        result = softmap.solve(model, proof=path)
    assert result.proof.kind == "tightened"
    assert softmap.verify(result, proof=path)["bound"].verdict is Verdict.CHECKED


def test_a_search_that_goes_on_proves_more(tmp_path):
    model = softmap.generators.erdos_renyi(60, seed=3)
    search = ExactSearch(model.network, log=tmp_path / "log", dp_limit=0.0)
    before = None
    for limit in (5, 5, -1):
        found = search.run(backtrack_limit=limit)
        write_proof(tmp_path / "x", model, found.log.path.read_bytes()[: found.log.size])
        checked = check_proof(tmp_path / "x", model.network)
        assert checked.proves(found.lower_bound)
        assert before is None or checked.bound >= before
        before = checked.bound
    assert found.complete


def test_a_log_that_cannot_be_opened_leaves_the_search_as_it_is(tmp_path):
    model = softmap.generators.erdos_renyi(20, seed=1)
    found = ExactSearch(model.network, log=tmp_path / "no folder" / "log").run()
    assert found.complete
    assert found.log is None


def test_a_log_does_not_change_the_search(tmp_path):
    model = softmap.generators.erdos_renyi(50, seed=2)
    runs = [
        ExactSearch(model.network, dp_limit=0.0, log=log).run() for log in (None, tmp_path / "log")
    ]
    assert runs[0].nodes == runs[1].nodes > 0
    assert runs[0].lower_bound == runs[1].lower_bound


def test_the_command_line_writes_and_checks(tmp_path, capsys):
    from softmap.app.cli.app import main

    model, result, proof = tmp_path / "m.npz", tmp_path / "r.npz", tmp_path / "r.proof"
    softmap.write(softmap.generators.erdos_renyi(30, seed=1), model)
    solve = ["solve", str(model), "--no-progress", "--save", str(result), "--proof", str(proof)]
    check = ["verify", str(result), str(model), "--json"]
    assert [main(words) for words in (solve, check, [*check, "--proof", str(proof)])] == [0, 6, 0]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line[:1] == "{"]
    assert [line["verdict"] for line in lines] == ["stated", "checked"]


def test_no_file_is_left_beside_a_proof(tmp_path, searched):
    softmap.solve(searched[0], proof=tmp_path / "run.proof")
    assert [path.name for path in tmp_path.iterdir()] == ["run.proof"]


@pytest.mark.parametrize("seed", range(3))
def test_words_of_a_code_are_proved(tmp_path, seed):
    rng = np.random.default_rng(seed)
    checks = [rng.permutation(30)[: rng.integers(2, 7)] for _ in range(15)]
    code = softmap.codes.ParityCode(checks, 30)
    ratios, odd = rng.normal(1.0, 1.0, 30), np.zeros(len(checks), int)
    found = code.decode(ratios, odd)
    code.write_proof(tmp_path / "word", ratios, found.lam, odd)
    model = code.model(ratios, odd)
    checked = check_proof(tmp_path / "word", model.network)
    assert checked.proves(float(found.bounds))
    assert not checked.proves(float(found.bounds) + 1.0)


@pytest.mark.parametrize("checks", [[[0, 1], [1, 2], [1, 0]], [[0, 1, 2], [2, 1, 0], [1, 3], []]])
def test_words_of_a_code_with_equal_checks_are_proved(tmp_path, checks):
    code = softmap.codes.ParityCode(checks, 5)
    ratios = np.array([-2.1, 0.7, 1.3, 0.2, 0.4])
    found = code.decode(ratios)
    code.write_proof(tmp_path / "word", ratios, found.lam)
    bound = float(found.bounds)
    assert check_proof(tmp_path / "word", code.model(ratios).network).proves(bound)
    given = np.linspace(-0.3, 0.4, len(found.lam))  # λ ≠ 0 at both of two equal checks
    code.write_proof(tmp_path / "any", ratios, given)
    low = code.bound(ratios, given) - 1e-12
    assert check_proof(tmp_path / "any", code.model(ratios).network).proves(low)


def test_a_search_is_stated_in_all_words_until_its_proof_is_checked(searched, tmp_path, capsys):
    from softmap.app.cli.app import main

    model, result, path = searched
    shown = [headline(result), " ".join(certificate_sentences(result)), str(softmap.verify(result))]
    for text in (*shown, render(result)):
        assert "stated" in text
        assert "proved by an exact search" not in text
        assert "exact search (checked)" not in text
    report = softmap.verify(result, proof=path)
    assert {report[name].verdict for name in ("proof", "bound", "status")} == {Verdict.CHECKED}
    softmap.write(model, tmp_path / "m.npz")
    main(["solve", str(tmp_path / "m.npz"), "--no-progress", "--json"])
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (answer["proof"], answer["stated"]) == ("search", True)


def test_a_search_that_elimination_replaces_leaves_no_records(tmp_path):
    rng, at = np.random.default_rng(1), np.arange(7 * 16).reshape(7, 16)
    pairs = [*zip(at[:-1].flat, at[1:].flat), *zip(at[:, :-1].flat, at[:, 1:].flat)]  # noqa: B905
    factors = [((int(i), int(j)), rng.integers(0, 9, (4, 4)).astype(float)) for i, j in pairs]
    model = softmap.Model.from_factors([4] * at.size, factors)
    search = ExactSearch(
        model.network, presolve=False, ascent=False, dp_limit=1e9, log=tmp_path / "log"
    )
    found = search.run()
    assert found.nodes > 0
    write_proof(tmp_path / "x", model, found.log.path.read_bytes()[: found.log.size])
    assert check_proof(tmp_path / "x", model.network).proves(found.lower_bound)
    assert {name for name, _ in taken_apart(tmp_path / "x")[1]} == {"LOAD", "ELIMINATE"}


def test_amounts_that_overflow_int64_fix_no_label():
    """64 amounts of 2^57 are 2^63, which int64 takes for a negative number."""
    leaves = 64
    factors = [((0, k + 1), np.zeros((2, 2))) for k in range(leaves)]
    flat = Flat([np.array([0.0, 5.0]), *[np.zeros(2)] * leaves], factors, Fraction(0))
    with pytest.raises(Rejected):
        Reduction(flat, Scale(1, 0, 100)).persistent((0, 1), (0, 1 << 57, 0, 0) * leaves)


def small_tree() -> Tree:
    """Two variables of two labels and a factor that costs 4 where they differ."""
    tree = Tree([[0, 3], [5, 0]], [([0, 1], np.array([[0, 4], [4, 0]]))])
    tree.cut((3,))
    return tree


def test_labels_are_removed_in_order():
    """Without label 1 of the first variable, label 1 of the second one costs 4."""
    factors = [([0, 1], np.array([[0, 4], [4, 0]])), ([0, 2], np.array([[0, 0], [9, 9]]))]
    for order, holds in (((5, 3), True), ((3, 5), False)):
        tree = Tree([[0, 0], [0, 0], [0, 0]], factors)
        tree.cut((3,))
        if holds:
            tree.step((), (), (), (), order)
        else:
            with pytest.raises(Rejected, match="do not reach the cut"):
                tree.step((), (), (), (), order)


@pytest.mark.parametrize(
    "record",
    [
        ((0,), (1,), (), (), ()),  # the factor has an entry of 0 for label 0
        ((2,), (-6,), (), (), ()),  # label 0 of the second variable costs 5
        ((), (), (0,), (1,), ()),  # label 0 of the first variable costs 0
        ((), (), (0,), (-1,), ()),
        ((-1,), (0,), (), (), ()),
        ((), (), (), (), (-1,)),
    ],
)
def test_steps_that_do_not_hold_are_rejected(record):
    with pytest.raises(Rejected):
        small_tree().step(*record)


def test_combined_factors_and_costs_are_not_used_again():
    def combined() -> Tree:
        differ = np.array([[0, 4], [4, 0]])
        tree = Tree([[0, 2], [0, 0], [0, 0]], [([0, 1], differ), ([0, 2], differ)])
        tree.combine((0,), (0, 1), (1, 2))
        return tree

    with pytest.raises(Rejected, match="was removed"):
        combined().step((0,), (-1,), (), (), ())
    with pytest.raises(Rejected, match="was removed"):
        combined().combine((), (0, 2), (1, 2))
    with pytest.raises(Rejected, match="to the bound"):
        combined().step((), (), (0,), (1,), ())
    tree = combined()  # the words of the new factor are 8 to 11; its entries are 0, 4, 4, 2
    tree.step((9,), (2,), (), (), ())
    with pytest.raises(Rejected, match="from a factor"):
        tree.step((9,), (1,), (), (), ())


def test_hard_constraints_alone_prove_no_bound(tmp_path):
    """The model of the hard constraints costs 0 where the model itself costs less."""
    model = softmap.Model.from_factors([2, 2], [((0, 1), [[-5.0, 1.0], [2.0, 3.0]])])
    body = packed([("HARD", []), ("LOAD", [[1, 0, 0]])])
    write_proof(tmp_path / "proof", model, body)
    with pytest.raises(FormatError, match="conclusion"):
        check_proof(tmp_path / "proof", model.network)
