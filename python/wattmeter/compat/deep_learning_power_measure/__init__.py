# SPDX-License-Identifier: Apache-2.0
"""AIPowerMeter's package, over wattmeter: see its module `power_measure`."""
