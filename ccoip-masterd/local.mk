# SPDX-License-Identifier: MIT

include ccoip-masterd/core/local.mk
