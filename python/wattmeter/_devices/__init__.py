# SPDX-License-Identifier: Apache-2.0
"""GPUs: their values and their power caps."""
