/* SPDX-License-Identifier: MIT */
#include "common/cc_memory.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In version 1 a number of bytes near the largest possible one means that there is no limit. */
#define NONE_FROM ((uint64_t)1 << 62)

struct hierarchy {
	const char *root; /* is put before every path that is opened */
	const char *file; /* the file that contains the limit */
	bool v2;
	char mounted[PATH_MAX]; /* the cgroup that is mounted at point */
	char point[PATH_MAX];
	char path[PATH_MAX]; /* the cgroup of this process */
};

static FILE *open_below(const char *root, const char *path)
{
	char *name;
	FILE *f;

	if (asprintf(&name, "%s%s", root, path) < 0)
		return NULL;
	f = fopen(name, "re");
	free(name);
	return f;
}

/* Is `word` in this list, which is separated by commas? */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);
	const char *at;

	for (at = list; (at = strstr(at, word)) != NULL; at += len)
		if ((at == list || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
			return true;
	return false;
}

/* Takes the mount point from a line such as "36 25 0:31 / /sys/fs/cgroup/memory rw,relatime -
 * cgroup cgroup rw,memory". */
static bool take_mount(struct hierarchy *h, const char *line)
{
	const char *rest = strstr(line, " - ");
	char type[32], options[512];

	if (!rest || sscanf(rest + 3, "%31s %*s %511s", type, options) != 2)
		return false;
	if (h->v2 ? strcmp(type, "cgroup2") != 0
		  : strcmp(type, "cgroup") != 0 || !has_word(options, "memory"))
		return false;
	return sscanf(line, "%*s %*s %*s %4095s %4095s", h->mounted, h->point) == 2;
}

/* Takes the path from a line such as "4:memory:/job", or "0::/job" in version 2. */
static bool take_path(struct hierarchy *h, char *line)
{
	char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

	if (!path)
		return false;
	*path++ = '\0';
	if (h->v2 ? strcmp(line, "0:") != 0 : !has_word(list + 1, "memory"))
		return false;
	path[strcspn(path, "\n")] = '\0';
	(void)snprintf(h->path, sizeof h->path, "%s", path);
	return true;
}

static bool find(struct hierarchy *h, const char *file, bool mounts)
{
	FILE *f = open_below(h->root, file);
	char *line = NULL;
	size_t cap = 0;
	bool found = false;

	if (!f)
		return false;
	while (!found && getline(&line, &cap, f) > 0)
		found = mounts ? take_mount(h, line) : take_path(h, line);
	free(line);
	(void)fclose(f);
	return found;
}

/* Returns the limit of the cgroup at h->path. */
static uint64_t limit_here(const struct hierarchy *h, char name[3 * PATH_MAX])
{
	unsigned long long v;
	FILE *f;
	int n;

	(void)snprintf(name, 3 * (size_t)PATH_MAX, "%s%s/%s", h->point, h->path, h->file);
	f = open_below(h->root, name);
	if (!f)
		return UINT64_MAX;
	n = fscanf(f, "%llu", &v); /* "max" is not a number */
	(void)fclose(f);
	return n == 1 && v < NONE_FROM ? v : UINT64_MAX;
}

static uint64_t least(struct hierarchy *h, char where[CC_MEMORY_WHERE])
{
	size_t len = strlen(h->mounted);
	uint64_t min = UINT64_MAX, v;
	char name[3 * PATH_MAX], *end;

	if (len > 1 && strncmp(h->path, h->mounted, len) == 0)
		memmove(h->path, h->path + len, strlen(h->path + len) + 1);
	for (;;) {
		if (strcmp(h->path, "/") == 0)
			h->path[0] = '\0';
		v = limit_here(h, name);
		if (v < min) {
			min = v;
			(void)snprintf(where, CC_MEMORY_WHERE, "%.255s", name);
		}
		end = strrchr(h->path, '/');
		if (!end)
			return min;
		*end = '\0';
	}
}

uint64_t cc_memory_cgroup(const char *root, char where[CC_MEMORY_WHERE])
{
	struct hierarchy h[2] = {{.root = root, .file = "memory.max", .v2 = true},
		{.root = root, .file = "memory.limit_in_bytes"}};
	char there[CC_MEMORY_WHERE];
	uint64_t min = UINT64_MAX, v;

	where[0] = '\0';
	for (int i = 0; i < 2; i++) {
		if (!find(&h[i], "/proc/self/mountinfo", true) ||
			!find(&h[i], "/proc/self/cgroup", false))
			continue;
		v = least(&h[i], there);
		if (v >= min)
			continue;
		min = v;
		memcpy(where, there, sizeof there);
	}
	return min;
}
