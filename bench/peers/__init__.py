# SPDX-License-Identifier: MIT
"""The contenders of bench/compare: this library, other libraries, and the limits of the machine."""
