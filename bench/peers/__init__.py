# SPDX-License-Identifier: MIT
"""Who takes part in bench/compare: this library, others of its kind, what the machine can do."""
