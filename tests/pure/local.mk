# SPDX-License-Identifier: MIT
# Not in sanitized builds, because sanitizers add calls.
if !SANITIZED
TESTS += tests/pure/check-pure.sh tests/pure/check-folders.sh \
	tests/pure/check-shim.sh
PLAIN_TESTS += tests/pure/check-pure.sh tests/pure/check-folders.sh \
	tests/pure/check-shim.sh
endif
EXTRA_DIST += tests/pure/README.md tests/pure/check-pure.sh tests/pure/check-folders.sh \
	tests/pure/check-shim.sh
