# SPDX-License-Identifier: Apache-2.0
"""The names of other packages: what was written for them runs with another import."""
