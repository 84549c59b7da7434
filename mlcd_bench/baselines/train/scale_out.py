"""Ernest's curve of one instance type over its node count, and which sizes to measure for it.

Venkataraman et al., 'Ernest', NSDI 2016: equation (1) and section 3.2.

Symbols   n      nodes                          tau    seconds for one sample
          f(n)   (1, 1/n, log n, n): constant, divided work, a tree of messages, one message a node
          theta  their weights, none negative: tau = f(n) theta
          F      the rows f(n) of what was measured
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from mlcd.core.configuration import Floats

TERMS = 4
RIDGE = 1e-6
"""Regularisation, so that fewer sizes than terms can be compared."""


def terms(nodes: Floats) -> Floats:
    """f(n), one row for each node count."""
    return np.column_stack([np.ones_like(nodes), 1 / nodes, np.log(nodes), nodes])


def fit(nodes: Floats, s_per_sample: Floats) -> Floats:
    """Theta by non-negative least squares of relative errors: a probe's noise is relative."""
    theta: Floats = nnls(terms(nodes) / s_per_sample[:, None], np.ones(len(nodes)))[0]
    return theta


def most_informative(measured: Floats, candidates: Floats) -> int:
    """The index of the size that adds most to log det F'F: a D-optimal design, grown by one."""
    rows = terms(np.concatenate([measured, candidates]))
    rows = rows / np.maximum(np.abs(rows).max(axis=0), 1e-12)
    known = rows[: len(measured)]
    information = known.T @ known + RIDGE * np.eye(TERMS)
    added = rows[len(measured) :]
    # det(A + ff') = det(A) (1 + f' A^-1 f)
    gain = np.einsum("ij,jk,ik->i", added, np.linalg.inv(information), added)
    return int(np.argmax(gain))
