#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Started by the library in the place of ccoip-masterd: notes its arguments, then ends with status
# ${STANDIN_STATUS:-0} when the other end of descriptor 4 is closed, or at once if STANDIN_SHORT is set.
echo "$@" >"$STANDIN_NOTE"
[ -n "${STANDIN_SHORT:-}" ] || cat <&4 >/dev/null
exit "${STANDIN_STATUS:-0}"
