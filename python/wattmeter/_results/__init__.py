# SPDX-License-Identifier: Apache-2.0
"""What a measurement gives: reports, recordings, comparisons, and how they are shown."""
