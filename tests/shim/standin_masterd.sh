#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The library starts this program instead of ccoip-masterd. It records its arguments. It ends with
# status ${XDG_STANDIN_STATUS:-0} when the other end of descriptor 4 is closed, or at once if
# XDG_STANDIN_SHORT is set.
echo "$@" >"$XDG_STANDIN_NOTE"
[ -n "${XDG_STANDIN_SHORT:-}" ] || cat <&4 >/dev/null
exit "${XDG_STANDIN_STATUS:-0}"
