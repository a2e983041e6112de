/* SPDX-License-Identifier: MIT */
#include "tests/agent/fixture.h"
Suite *random_suite(void) { return suite_create("random"); }
