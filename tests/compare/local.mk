# SPDX-License-Identifier: MIT

TESTS += tests/compare/test_compare.py
PLAIN_TESTS += tests/compare/test_compare.py
EXTRA_DIST += tests/compare/README.md tests/compare/test_compare.py
