# SPDX-License-Identifier: MIT
"""From runs to the sentence and the exit code."""
import json

import pytest
from lab import analysis, report, store, tables
from lab.arms import Problem

SLOW = [100, 101, 99, 100, 102, 98, 101, 100]
TWIN = [101, 100, 100, 99, 101, 99, 100, 101]


def scaled(factor, by=(1.0, 1.002, 0.998)):
    return [v * factor * by[i % len(by)] for i, v in enumerate(SLOW)]


@pytest.mark.parametrize("factor, word, code", [(1.5, "faster", 0), (0.8, "slower", 3), (1.001, "equivalent", 0)])
def test_verdict_and_exit_code(measurement, factor, word, code):
    a = analysis.Analysis(measurement({"a": SLOW, "again": TWIN, "b": scaled(factor)}))
    assert (a.main[0].word, a.exit_code) == (word, code)
    assert "b is %s" % word in a.sentence and a.sentence.count(".") and "\n" not in a.sentence
    assert analysis.ratio(a.main[0]) == pytest.approx(factor, rel=0.01)


def test_noise_is_inconclusive_and_says_how_much_is_missing(measurement):
    noisy = [v * f for v, f in zip(SLOW, (0.7, 1.4, 0.9, 1.2, 0.8, 1.3, 1.1, 1.0))]
    a = analysis.Analysis(measurement({"a": SLOW, "again": TWIN, "b": noisy}))
    assert (a.main[0].word, a.exit_code) == ("inconclusive", 4)
    assert "more round" in a.sentence


def test_no_claim_below_the_noise_floor(measurement):
    rough = [v * f for v, f in zip(SLOW, (1.2, 1.1, 1.15, 1.2, 1.1, 1.1, 1.2, 1.15))]
    a = analysis.Analysis(measurement({"a": SLOW, "again": rough, "b": scaled(1.1)}))
    assert a.main[0].p < 0.05 and a.main[0].word == "inconclusive"
    assert analysis.Analysis(measurement({"a": SLOW, "again": TWIN, "b": scaled(1.1)})).main[0].word == "faster"


def test_a_run_with_failures_is_no_win(measurement):
    s = measurement({"a": SLOW, "again": TWIN, "b": scaled(3)})
    s.rows[-1].update(failures=1, f_status=1)
    a = analysis.Analysis(s)
    assert (a.main[0].word, a.exit_code) == ("refused", 1)
    assert "b is refused (b failed 1 request (status 1))" in a.sentence


def test_failures_of_the_baseline_refuse_all(measurement):
    s = measurement({"a": SLOW, "again": TWIN, "b": scaled(0.5), "c": scaled(2)})
    next(r for r in s.rows if r["twin"]).update(failures=2, f_read=2)  # its second instance counts too
    assert [c.word for c in analysis.Analysis(s).main] == ["refused", "refused"]


def test_several_comparisons_are_adjusted_together(measurement):
    six = slice(0, 6)
    two = analysis.Analysis(measurement({"a": SLOW[six], "again": TWIN[six], "b": scaled(1.5)[six]}))
    three = analysis.Analysis(
        measurement({"a": SLOW[six], "again": TWIN[six], "b": scaled(1.5)[six], "c": scaled(0.7)[six]})
    )
    assert two.main[0].word == "faster"
    assert {c.word for c in three.main} == {"inconclusive"} and {c.more for c in three.main} == {1}


def test_only_those_that_are_asked_about_are_judged(measurement):
    m = measurement({"a": SLOW, "again": TWIN, "b": scaled(1.5), "c": scaled(0.7)}, judge=["b"])
    a = analysis.Analysis(m)
    assert [c.arm for c in a.main] == ["b"] and a.exit_code == 0 and "c is" not in a.sentence
    assert [r.arm for r in a.rows] == ["a", "b", "c"]


def test_a_slower_arm_among_faster_ones_decides_the_exit_code(measurement):
    assert (
        analysis.Analysis(measurement({"a": SLOW, "again": TWIN, "b": scaled(1.5), "c": scaled(0.7)})).exit_code == 3
    )


def test_one_arm_alone(measurement):
    a = analysis.Analysis(measurement({"a": SLOW, "again": TWIN}))
    assert (a.exit_code, "nothing to compare" in a.sentence) == (0, True)


def test_tables_line_up(measurement):
    a = analysis.Analysis(measurement({"a": SLOW, "again": TWIN, "b": scaled(1.5)}))
    a.meta["arms"].append({"name": "c", "title": "c", "skip": "caddy is not installed", "processes": []})
    text = tables.text(*tables.results(a)).split("\n")
    assert text[1].index("100.0") + 5 == text[0].index("requests/s") + len("requests/s")
    assert text[-1].endswith("cannot run here: caddy is not installed")
    md = tables.markdown(*tables.comparisons(a)).split("\n")
    assert len({line.count("|") for line in md}) == 1


@pytest.mark.parametrize(
    "value, text",
    [(0, "0"), (float("nan"), "-"), (1234.5, "1,234"), (12.345, "12.3"), (0.01234, "0.0123"), (999.9, "1,000")],
)
def test_figures_have_three_digits(value, text):
    assert tables.figure(value) == text


def test_what_is_stored_is_read_back_the_same(measurement, tmp_path):
    made = measurement({"a": SLOW, "again": TWIN, "b": scaled(1.5)})
    kept = store.Store.create(str(tmp_path / "kept"), dict(made.meta))
    from lab import loads

    for row in made.rows:
        load = loads.Load()
        load.take_latencies([1, 2, 3])
        kept.add(row, load)
    kept.save_meta()
    again = store.Store.open(kept.path)
    assert [(r["run"], r["rps"], r["twin"]) for r in again.rows] == [
        (r["run"], r["rps"], r["twin"]) for r in made.rows
    ]
    assert again.grids[1] == kept.grids[1] and json.dumps(again.meta) == json.dumps(kept.meta)
    assert analysis.Analysis(again).sentence == analysis.Analysis(made).sentence
    report.write(analysis.Analysis(again))
    with pytest.raises(Problem, match="holds a measurement already"):
        store.Store.create(kept.path, {})


def test_a_folder_of_something_else_is_no_measurement(tmp_path):
    with pytest.raises(Problem, match="not the folder of a measurement"):
        store.Store.open(str(tmp_path))
