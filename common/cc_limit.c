/* SPDX-License-Identifier: MIT */
#include "common/cc_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/cc_log.h"

#define CGROUPS   "/sys/fs/cgroup"
#define HOST_SIZE 65
/* What has failed has given back what it had taken, and others may have gone meanwhile. */
#define PIDS_NEAR 4u
#define MEM_NEAR  ((uint64_t)16 << 20)

bool cc_limit_is(int error)
{
	return error == EAGAIN || error == EMFILE || error == ENFILE || error == ENOMEM ||
	       error == ENOSPC || error == EFBIG;
}

/* The text of a small file without the newline; read with a buffer of our own, as there may be no
 * memory. */
static bool read_text(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

static bool read_number(const char *folder, const char *file, uint64_t *ret)
{
	char path[PATH_MAX], text[32], *end;
	int n = snprintf(path, sizeof path, "%s/%s", folder, file);

	if (n < 0 || (size_t)n >= sizeof path || !read_text(path, text, sizeof text))
		return false;
	*ret = strtoull(text, &end, 10);
	return end != text;
}

/* A limit that cgroups have: where version 1 keeps it, and its files in both versions. */
struct kind {
	const char *controller;
	const char *max[2], *used[2]; /* version 1, version 2 */
	uint64_t near;
};

static const struct kind kind_pids = {
	"pids", {"pids.max", "pids.max"}, {"pids.current", "pids.current"}, PIDS_NEAR};
static const struct kind kind_memory = {"memory", {"memory.limit_in_bytes", "memory.max"},
	{"memory.usage_in_bytes", "memory.current"}, MEM_NEAR};

/* The cgroup from this one upwards that is full. */
static bool find_full(char *folder, size_t root, const struct kind *k, bool v2, uint64_t *ret)
{
	uint64_t max, used;

	for (;;) {
		if (read_number(folder, k->max[v2], &max) &&
			read_number(folder, k->used[v2], &used) &&
			(used >= max || max - used <= k->near)) {
			*ret = max;
			return true;
		}
		if (strlen(folder) <= root)
			return false;
		*strrchr(folder, '/') = '\0';
	}
}

/* A line of /proc/self/cgroup. */
static bool look_at_line(
	const char *line, const struct kind *k, char folder[PATH_MAX], uint64_t *ret)
{
	const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
	static const char *const unified[] = {CGROUPS, CGROUPS "/unified"};
	char list[128], name[24];
	int n;

	if (!path)
		return false;
	snprintf(list, sizeof list, ",%.*s,", (int)(path - names - 1), names + 1);
	path = path[1] == '/' && path[2] == '\0' ? "" : path + 1;
	if (strcmp(list, ",,") == 0) {
		for (int i = 0; i < 2; i++) {
			n = snprintf(folder, PATH_MAX, "%s%s", unified[i], path);
			if (n > 0 && n < PATH_MAX &&
				find_full(folder, strlen(unified[i]), k, true, ret))
				return true;
		}
		return false;
	}
	snprintf(name, sizeof name, ",%s,", k->controller);
	if (!strstr(list, name))
		return false;
	n = snprintf(folder, PATH_MAX, CGROUPS "/%s%s", k->controller, path);
	return n > 0 && n < PATH_MAX &&
	       find_full(folder, strlen(CGROUPS) + 1 + strlen(k->controller), k, false, ret);
}

static bool in_cgroup(const struct kind *k, char folder[PATH_MAX], uint64_t *ret)
{
	char text[4096], *line, *save;
	int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (look_at_line(line, k, folder, ret))
			return true;
	return false;
}

struct found {
	char what[PATH_MAX + 64];
	uint64_t is;
};

static bool from_cgroup(const struct kind *k, struct found *ret)
{
	char folder[PATH_MAX];

	if (!in_cgroup(k, folder, &ret->is))
		return false;
	snprintf(ret->what, sizeof ret->what, "%s of cgroup %.120s", k->max[1], folder);
	return true;
}

static bool from_rlimit(int resource, const char *name, struct found *ret)
{
	struct rlimit rl;

	if (getrlimit((__rlimit_resource_t)resource, &rl) < 0 || rl.rlim_cur == RLIM_INFINITY)
		return false;
	snprintf(ret->what, sizeof ret->what, "%s", name);
	ret->is = rl.rlim_cur;
	return true;
}

static bool from_sysctl(const char *folder, const char *file, struct found *ret)
{
	if (!read_number(folder, file, &ret->is))
		return false;
	snprintf(ret->what, sizeof ret->what, "%s/%s", folder, file);
	return true;
}

static bool find(int error, struct found *ret)
{
	switch (error) {
	case EAGAIN:
		return from_cgroup(&kind_pids, ret) ||
		       from_rlimit(RLIMIT_NPROC, "the limit of processes (RLIMIT_NPROC)", ret) ||
		       from_sysctl("/proc/sys/kernel", "threads-max", ret);
	case EFBIG:
		return from_rlimit(RLIMIT_FSIZE, "the limit of file sizes (RLIMIT_FSIZE)", ret);
	case EMFILE:
		return from_rlimit(RLIMIT_NOFILE, "the limit of open files (RLIMIT_NOFILE)", ret);
	case ENFILE:
		return from_sysctl("/proc/sys/fs", "file-max", ret);
	case ENOMEM:
		return from_cgroup(&kind_memory, ret) ||
		       from_rlimit(RLIMIT_AS, "the limit of address space (RLIMIT_AS)", ret) ||
		       from_sysctl("/proc/sys/vm", "max_map_count", ret);
	case ENOSPC:
		return from_sysctl("/proc/sys/fs/epoll", "max_user_watches", ret);
	default:
		return false;
	}
}

static const char *host_name(char host[HOST_SIZE])
{
	memset(host, 0, HOST_SIZE);
	(void)gethostname(host, HOST_SIZE - 1);
	return host;
}

const char *cc_limit_text(int error, char *buf, size_t size)
{
	int saved = errno;
	char host[HOST_SIZE];
	struct found f;

	if (find(error, &f))
		snprintf(buf, size, "%s: %s of %s (pid %d) on host %s is %llu", strerror(error),
			f.what, program_invocation_short_name, (int)getpid(), host_name(host),
			(unsigned long long)f.is);
	else
		snprintf(buf, size, "%s", strerror(error));
	errno = saved;
	return buf;
}

bool cc_limit_is_refusal(int error)
{
	return error == EPERM || error == EACCES || error == ENOSYS;
}

const char *cc_limit_call_text(const char *call, int error, char *buf, size_t size)
{
	int saved = errno;
	char host[HOST_SIZE], limit[CC_LIMIT_TEXT];

	if (cc_limit_is_refusal(error))
		snprintf(buf, size,
			"%s: %s: a seccomp filter or a kernel without it refuses it to %s (pid %d) "
			"on host %s",
			call, strerror(error), program_invocation_short_name, (int)getpid(),
			host_name(host));
	else
		snprintf(buf, size, "%s: %s", call, cc_limit_text(error, limit, sizeof limit));
	errno = saved;
	return buf;
}

void cc_limit_log(const char *what)
{
	char limit[CC_LIMIT_TEXT];

	if (cc_limit_is(errno))
		cc_log(CC_LOG_ERR, "%s: %s", what, cc_limit_text(errno, limit, sizeof limit));
	else
		cc_log(CC_LOG_ERR, "%s", what);
}
