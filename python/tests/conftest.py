# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
