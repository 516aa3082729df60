# SPDX-License-Identifier: Apache-2.0
"""What `wattmeter.torch` has; its modules need PyTorch."""
