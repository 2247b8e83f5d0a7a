"""The digits classifier on images held out from its training, against the reference and against labels."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tilewright as tw
from examples import digits
from tilewright.runtime.reference import compare, run_reference


@pytest.fixture(scope="module")
def images_and_labels() -> tuple[np.ndarray, np.ndarray]:
    pytest.importorskip("sklearn")
    return digits.split()[1]


def test_images_are_classified_as_the_reference_does_and_well(images_and_labels: tuple[np.ndarray, np.ndarray]):
    images, labels = images_and_labels
    with np.load(digits.WEIGHTS) as stored:
        weights = [stored[name] for name in ("w1", "b1", "w2", "b2")]
    module = tw.build_module(digits.build())
    kernel = tw.compile(module, target="sim")
    scores = kernel(images, *weights)
    expected = run_reference(module, "main", [images, *weights], {"B": len(images)})[0]
    assert (mismatch := compare(scores, expected)) is None, str(mismatch)
    predicted = scores.argmax(axis=1)
    np.testing.assert_array_equal(predicted, expected.rounded.argmax(axis=1))
    assert (predicted == labels).mean() >= 0.96

    # A second opinion that shares no code with us.
    hidden = np.maximum(images.astype(np.float64) @ weights[0] + weights[1], 0)
    np.testing.assert_array_equal(predicted, (hidden @ weights[2] + weights[3]).argmax(axis=1))


def test_predictions_do_not_depend_on_how_images_are_batched(images_and_labels: tuple[np.ndarray, np.ndarray]):
    images, _ = images_and_labels
    with np.load(digits.WEIGHTS) as stored:
        weights = [stored[name] for name in ("w1", "b1", "w2", "b2")]
    kernel = tw.compile(digits.build(), target="sim")
    whole = kernel(images, *weights)
    cuts = [0, 1, 1, 38, 38 + 32, len(images)]
    pieces = [kernel(images[a:b], *weights) for a, b in pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    # Images that lie backwards in memory, and with the pixels as the slow dim.
    backwards = kernel(images[::-1], *weights)
    np.testing.assert_array_equal(backwards[::-1].argmax(axis=1), whole.argmax(axis=1))
    turned = kernel(np.asfortranarray(images), *weights)
    np.testing.assert_array_equal(turned.argmax(axis=1), whole.argmax(axis=1))
    assert kernel.stats()["pipeline_runs"] == 1


def test_the_example_says_pass(capsys: pytest.CaptureFixture[str], images_and_labels: object):
    assert digits.run("sim")
    assert "PASS" in capsys.readouterr().out
