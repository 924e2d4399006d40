"""How much the data speak against a hypothesis, at whatever look: e-values of a mixture sequential test.

A look at the data at any time, and a stop because of what it showed, spoils a test that was made for one look. An
e-process doesn't mind: it is 1 at first, and where the hypothesis holds the chance that it *ever* reaches ``1/a`` is at
most ``a`` (Ville 1939). So looks need neither be planned nor counted, and a step that is held may go on for hours.

Used is the mixture sequential probability ratio test (Robbins, Ann. Math. Stat. 41, 1970; Johari, Koomen, Pekelis and
Walsh, Operations Research 70, 2022, who brought it to A/B tests), one-sided: the likelihood ratio of differences in
the harmful direction, weighted by a half normal, against the hypothesis. Its normal form is

    E = 2 / sqrt(1 + m) * exp(a z^2 / 2) * Phi(z sqrt(a)),   m = (scale / spread)^2,   a = m / (1 + m)

for a statistic z that is standard normal where the hypothesis is just true; it holds in the limit of many observations
(Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, Ann. Stat. 52, 2024). z is the signed root of the likelihood ratio
(``binomial.py``), which is close to normal for counts of ten already, where (difference / standard error) is not.
``scale`` is the size of differences that it is best at; two are mixed, so that breakdowns are found as well as subtle
harm (a mean of e-processes is one).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

Floats = NDArray[np.float64]

# In scales: harm of the size that matters, and harm far beyond it.
_SCALES = (1.0, 4.0)


def log_bar(chance: float) -> float:
    """What the logarithm of an e-value has to reach for a chance of error of at most ``chance``."""
    return -math.log(chance)


def log_evidence(root: Floats, spread: Floats, scale: Floats | float) -> Floats:
    """The logarithm of the e-value; ``root`` is positive towards what is to be shown, ``spread`` is in ``scale``'s."""
    mixed = [_log_one(root, (size * scale / spread) ** 2) for size in _SCALES]
    return np.asarray(np.logaddexp(mixed[0], mixed[1]) - math.log(len(mixed)), dtype=np.float64)


def _log_one(root: Floats, information: Floats) -> Floats:
    """``information`` is that of the data by that of the prior."""
    share = information / (1 + information)
    tilt = root * np.sqrt(share)
    return np.asarray(math.log(2) - np.log1p(information) / 2 + tilt**2 / 2 + log_ndtr(tilt), dtype=np.float64)
