/* SPDX-License-Identifier: MIT */
#include "tests/common/fakeroot.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/common/testlib.h"

char fake_root[] = "/tmp/pccl-root-XXXXXX";

void fake_root_setup(void)
{
	memset(fake_root + strlen(fake_root) - 6, 'X', 6);
	ck_assert_ptr_nonnull(mkdtemp(fake_root));
}

void fake_root_teardown(void)
{
	char command[PATH_MAX];

	snprintf(command, sizeof command, "rm -r %s", fake_root);
	ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): the test has made the path */
}

void fake_root_put(const char *path, const char *text)
{
	char name[PATH_MAX], *slash;
	FILE *f;

	snprintf(name, sizeof name, "%s%s", fake_root, path);
	slash = name + strlen(fake_root);
	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		(void)mkdir(name, 0700);
		*slash = '/';
	}
	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}
