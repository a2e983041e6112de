# SPDX-License-Identifier: MIT
EXTRA_DIST += tests/install/README.md tests/install/install.sh tests/install/readme.py
