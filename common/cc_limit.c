/* SPDX-License-Identifier: MIT */
#include "common/cc_limit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_log.h"

#define CGROUPS   "/sys/fs/cgroup"
#define HOST_SIZE 65
#define FILE_SIZE 8192
/* A limit counts as reached if this much or less is free. The failed call has already released what
 * it had taken, and other processes may have ended meanwhile. */
#define COUNT_NEAR 4u
#define BYTES_NEAR ((uint64_t)16 << 20)
/* The kernel gives out the first 300 process numbers only once. It skips these numbers when it
 * starts to count from the beginning again. */
#define PIDS_RESERVED 300u
/* The limit of ports. Nothing shows how many ports the connections to one address use. */
#define PORTS "net.ipv4.ip_local_port_range"

/* A search for the limit that is reached. If several limits are reached, finds the one with the
 * least room. */
struct search {
	const char *root; /* is put before every path that is opened */
	const char *call; /* the call that has failed, or NULL */
	uint64_t asked;   /* bytes of memory that the call asked for, used or not */
	double room;      /* free part of the limit that was found: 0: nothing is free; up to 1: the
			     limit counts as reached */
	uint64_t is;
	char what[PATH_MAX + 64];
};

bool cc_limit_is(int error)
{
	return error == EAGAIN || error == EMFILE || error == ENFILE || error == ENOMEM ||
	       error == ENOSPC || error == EFBIG || error == ENOBUFS || error == ETOOMANYREFS;
}

static bool is_call(const char *call, const char *name)
{
	return call && strcmp(call, name) == 0;
}

bool cc_limit_is_of(const char *call, int error)
{
	return cc_limit_is(error) || (error == EADDRNOTAVAIL && is_call(call, "connect"));
}

/* ---- files of the system, read into local buffers because there may be no memory ---- */

static int open_below(const struct search *s, const char *path)
{
	char name[2 * PATH_MAX];
	int n = snprintf(name, sizeof name, "%s%s", s->root, path);

	return n > 0 && (size_t)n < sizeof name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
}

static bool read_text(const struct search *s, const char *path, char *buf, size_t size)
{
	int fd = open_below(s, path);
	size_t have = 0;
	ssize_t n = 1;

	if (fd < 0)
		return false;
	while (have < size - 1 && n > 0) {
		n = read(fd, buf + have, size - 1 - have);
		have += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	buf[have] = '\0';
	return have > 0;
}

/* A text that is not a number, such as "max", means that there is no limit. */
static bool read_number(const struct search *s, const char *folder, const char *file, uint64_t *ret)
{
	char path[PATH_MAX], text[32], *end;
	int n = snprintf(path, sizeof path, "%s/%s", folder, file);

	if (n < 0 || (size_t)n >= sizeof path || !read_text(s, path, text, sizeof text))
		return false;
	*ret = strtoull(text, &end, 10);
	return end != text;
}

/* Returns the number after the key at the beginning of a line, or 0. */
static uint64_t number_after(const char *text, const char *key, int base)
{
	size_t len = strlen(key);

	while (text && strncmp(text, key, len) != 0) {
		text = strchr(text, '\n');
		text += text != NULL;
	}
	return text ? strtoull(text + len, NULL, base) : 0;
}

/* ---- candidates ---- */

static bool is_nearest(struct search *s, uint64_t used, uint64_t max, uint64_t near)
{
	double room = used < max ? (double)(max - used) / (double)near : 0;

	if (room > 1 || room >= s->room)
		return false;
	s->room = room;
	s->is = max;
	return true;
}

static void consider(struct search *s, const char *what, uint64_t used, uint64_t max, uint64_t near)
{
	if (is_nearest(s, used, max, near))
		snprintf(s->what, sizeof s->what, "%s", what);
}

static bool rlimit_of(int resource, uint64_t *ret)
{
	struct rlimit rl;

	if (getrlimit((__rlimit_resource_t)resource, &rl) < 0 || rl.rlim_cur == RLIM_INFINITY)
		return false;
	*ret = rl.rlim_cur;
	return true;
}

/* A limit of cgroups: its controller in version 1, and its files in both versions. */
struct kind {
	const char *controller;
	const char *max[2], *used[2]; /* version 1, version 2 */
	/* Lines of memory.stat that count the cache. The kernel frees this memory before a call
	 * fails.
	 */
	const char *cache[2][2];
	uint64_t near;
};

static const struct kind kind_pids = {.controller = "pids",
	.max = {"pids.max", "pids.max"},
	.used = {"pids.current", "pids.current"},
	.near = COUNT_NEAR};
static const struct kind kind_memory = {.controller = "memory",
	.max = {"memory.limit_in_bytes", "memory.max"},
	.used = {"memory.usage_in_bytes", "memory.current"},
	.cache = {{"total_inactive_file ", "total_active_file "},
		{"inactive_file ", "active_file "}},
	.near = BYTES_NEAR};

static uint64_t cache_of(const struct search *s, const char *folder, const struct kind *k, bool v2)
{
	char path[PATH_MAX], text[FILE_SIZE];
	int n = snprintf(path, sizeof path, "%s/memory.stat", folder);

	if (!k->cache[v2][0] || n < 0 || (size_t)n >= sizeof path ||
		!read_text(s, path, text, sizeof text))
		return 0;
	return number_after(text, k->cache[v2][0], 10) + number_after(text, k->cache[v2][1], 10);
}

/* Considers the limits of this cgroup and of the cgroups above it. */
static void climb(struct search *s, char *folder, size_t top, const struct kind *k, bool v2)
{
	uint64_t max, used, cache;

	for (;;) {
		if (read_number(s, folder, k->max[v2], &max) &&
			read_number(s, folder, k->used[v2], &used)) {
			cache = cache_of(s, folder, k, v2);
			if (is_nearest(s, used > cache ? used - cache : 0, max, k->near))
				snprintf(s->what, sizeof s->what, "%s of cgroup %.120s", k->max[v2],
					folder);
		}
		if (strlen(folder) <= top)
			return;
		*strrchr(folder, '/') = '\0';
	}
}

/* Considers the cgroup that a line of /proc/self/cgroup names. */
static void look_at_line(struct search *s, const char *line, const struct kind *k)
{
	const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
	static const char *const unified[] = {CGROUPS, CGROUPS "/unified"};
	char list[128], name[24], folder[PATH_MAX];
	int n;

	if (!path)
		return;
	snprintf(list, sizeof list, ",%.*s,", (int)(path - names - 1), names + 1);
	path = path[1] == '/' && path[2] == '\0' ? "" : path + 1;
	for (int i = 0; i < 2 && strcmp(list, ",,") == 0; i++) {
		n = snprintf(folder, sizeof folder, "%s%s", unified[i], path);
		if (n > 0 && n < PATH_MAX)
			climb(s, folder, strlen(unified[i]), k, true);
	}
	snprintf(name, sizeof name, ",%s,", k->controller);
	if (!strstr(list, name))
		return;
	n = snprintf(folder, sizeof folder, CGROUPS "/%s%s", k->controller, path);
	if (n > 0 && n < PATH_MAX)
		climb(s, folder, strlen(CGROUPS) + 1 + strlen(k->controller), k, false);
}

static void look_at_cgroups(struct search *s, const struct kind *k)
{
	char text[4096], *line, *save;

	if (!read_text(s, "/proc/self/cgroup", text, sizeof text))
		return;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		look_at_line(s, line, k);
}

/* May this process exceed RLIMIT_NPROC? Outside of user namespaces, root may, and so may a process
 * with CAP_SYS_ADMIN or CAP_SYS_RESOURCE. */
static bool may_exceed_nproc(const struct search *s)
{
	char text[FILE_SIZE];
	unsigned long inside, outside, n;

	if (!read_text(s, "/proc/self/uid_map", text, sizeof text) ||
		sscanf(text, "%lu %lu %lu", &inside, &outside, &n) != 3 || n < UINT32_MAX)
		return false;
	return getuid() == 0 ||
	       (read_text(s, "/proc/self/status", text, sizeof text) &&
		       (number_after(text, "CapEff:", 16) & (1u << 21 | 1u << 24)));
}

/* Returns the number of threads of all visible processes of this user. */
static uint64_t count_threads(const struct search *s)
{
	int folder = open_below(s, "/proc");
	DIR *d = folder >= 0 ? fdopendir(folder) : NULL;
	char path[64], text[FILE_SIZE];
	const struct dirent *e;
	uint64_t n = 0;

	if (!d) {
		if (folder >= 0)
			close(folder);
		return 0;
	}
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof path, "/proc/%.20s/status", e->d_name);
		if (read_text(s, path, text, sizeof text) &&
			number_after(text, "Uid:", 10) == getuid())
			n += number_after(text, "Threads:", 10);
	}
	closedir(d);
	return n;
}

static void look_at_threads(struct search *s)
{
	char text[FILE_SIZE];
	uint64_t max;
	unsigned long all;

	look_at_cgroups(s, &kind_pids);
	if (rlimit_of(RLIMIT_NPROC, &max) && !may_exceed_nproc(s))
		consider(s, "the limit of processes (RLIMIT_NPROC)", count_threads(s), max,
			COUNT_NEAR);
	if (!read_text(s, "/proc/loadavg", text, sizeof text) ||
		sscanf(text, "%*s %*s %*s %*u/%lu", &all) != 1)
		return;
	if (read_number(s, "/proc/sys/kernel", "threads-max", &max))
		consider(s, "/proc/sys/kernel/threads-max", all, max, COUNT_NEAR);
	if (read_number(s, "/proc/sys/kernel", "pid_max", &max))
		consider(s, "/proc/sys/kernel/pid_max", all + PIDS_RESERVED, max, COUNT_NEAR);
}

static uint64_t count_mappings(const struct search *s)
{
	int fd = open_below(s, "/proc/self/maps");
	char text[FILE_SIZE];
	uint64_t lines = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, text, sizeof text)) > 0)
		for (ssize_t i = 0; i < n; i++)
			lines += text[i] == '\n';
	if (fd >= 0)
		close(fd);
	return lines;
}

static void look_at_process_memory(struct search *s)
{
	uint64_t near = BYTES_NEAR + s->asked, max;
	char text[FILE_SIZE];

	if (read_number(s, "/proc/sys/vm", "max_map_count", &max))
		consider(s, "/proc/sys/vm/max_map_count", count_mappings(s), max, COUNT_NEAR);
	if (!read_text(s, "/proc/self/status", text, sizeof text))
		return;
	if (rlimit_of(RLIMIT_AS, &max))
		consider(s, "the limit of address space (RLIMIT_AS)",
			number_after(text, "VmSize:", 10) << 10, max, near);
	if (rlimit_of(RLIMIT_DATA, &max))
		consider(s, "the limit of data (RLIMIT_DATA)",
			number_after(text, "VmData:", 10) << 10, max, near);
}

static void look_at_host_memory(struct search *s)
{
	uint64_t mode, total, left;
	char text[FILE_SIZE];

	if (!read_text(s, "/proc/meminfo", text, sizeof text))
		return;
	if (read_number(s, "/proc/sys/vm", "overcommit_memory", &mode) && mode == 2)
		consider(s, "CommitLimit of /proc/meminfo (vm.overcommit_memory is 2)",
			number_after(text, "Committed_AS:", 10) << 10,
			number_after(text, "CommitLimit:", 10) << 10, BYTES_NEAR + s->asked);
	total = (number_after(text, "MemTotal:", 10) + number_after(text, "SwapTotal:", 10)) << 10;
	left = (number_after(text, "MemAvailable:", 10) + number_after(text, "SwapFree:", 10))
	       << 10;
	if (total > 0)
		consider(s, "the memory of the whole system", total > left ? total - left : 0,
			total, BYTES_NEAR);
}

static void look_at_memory(struct search *s)
{
	look_at_cgroups(s, &kind_memory);
	look_at_process_memory(s);
	look_at_host_memory(s);
}

static void look_at_open_files(struct search *s)
{
	char text[128];
	unsigned long used, max;

	if (read_text(s, "/proc/sys/fs/file-nr", text, sizeof text) &&
		sscanf(text, "%lu %*u %lu", &used, &max) == 2)
		consider(s, "/proc/sys/fs/file-max", used, max, COUNT_NEAR);
}

/* Treats a limit as reached without comparing it with the use, because the use cannot be read, and
 * nothing else causes the error. */
static void take(struct search *s, const char *what, uint64_t is)
{
	consider(s, what, is, is, COUNT_NEAR);
}

/* Returns the names of the limits that were compared. The text lists them if none is reached. */
static const char *search(struct search *s, int error)
{
	uint64_t max;

	switch (error) {
	case EAGAIN:
		if (is_call(s->call, "connect"))
			return PORTS;
		look_at_threads(s);
		/* pthread_create fails with EAGAIN, too, if there is no memory for a stack. */
		if (s->room > 1)
			look_at_memory(s);
		return "pids.max, RLIMIT_NPROC, threads-max, pid_max, memory";
	case EFBIG:
		if (rlimit_of(RLIMIT_FSIZE, &max) && (s->asked == 0 || s->asked > max))
			take(s, "the limit of file sizes (RLIMIT_FSIZE)", max);
		return "RLIMIT_FSIZE";
	case EMFILE:
		if (rlimit_of(RLIMIT_NOFILE, &max))
			take(s, "the limit of open files (RLIMIT_NOFILE)", max);
		return "RLIMIT_NOFILE";
	case ENFILE:
		look_at_open_files(s);
		/* socket fails with ENFILE, too, if there is no memory for an inode. */
		if (s->room > 1)
			look_at_memory(s);
		return "fs.file-max, memory";
	case EADDRNOTAVAIL:
		return PORTS;
	case ENOBUFS:
		look_at_memory(s);
		return "memory, net.ipv4.tcp_mem";
	case ETOOMANYREFS:
		if (rlimit_of(RLIMIT_NOFILE, &max))
			take(s, "the limit of descriptors in flight (RLIMIT_NOFILE)", max);
		return "RLIMIT_NOFILE";
	case ENOSPC:
		if ((s->call ? is_call(s->call, "epoll_ctl") : s->asked == 0) &&
			read_number(s, "/proc/sys/fs/epoll", "max_user_watches", &max)) {
			take(s, "/proc/sys/fs/epoll/max_user_watches", max);
			return "";
		}
		break;
	default:
		break;
	}
	look_at_memory(s);
	return "memory of cgroups and system, RLIMIT_AS, RLIMIT_DATA, max_map_count";
}

static const char *host_name(char host[HOST_SIZE])
{
	memset(host, 0, HOST_SIZE);
	(void)gethostname(host, HOST_SIZE - 1);
	return host;
}

const char *cc_limit_text_below(
	const char *root, const char *call, int error, uint64_t asked, char *buf, size_t size)
{
	struct search s = {.root = root, .call = call, .asked = asked, .room = 2};
	const char *looked_at = cc_limit_is_of(call, error) ? search(&s, error) : NULL;
	char host[HOST_SIZE];

	if (!looked_at)
		snprintf(buf, size, "%s", strerror(error));
	else if (s.room > 1)
		snprintf(buf, size, "%s: no limit of %s (pid %d) on host %s is reached (%s)",
			strerror(error), program_invocation_short_name, (int)getpid(),
			host_name(host), looked_at);
	else
		snprintf(buf, size, "%s: %s of %s (pid %d) on host %s is %llu", strerror(error),
			s.what, program_invocation_short_name, (int)getpid(), host_name(host),
			(unsigned long long)s.is);
	return buf;
}

const char *cc_limit_text_of(const char *call, int error, char *buf, size_t size)
{
	int saved = errno;

	cc_limit_text_below("", call, error, 0, buf, size);
	errno = saved;
	return buf;
}

const char *cc_limit_text(int error, char *buf, size_t size)
{
	return cc_limit_text_of(NULL, error, buf, size);
}

const char *cc_limit_brief(int error, char *buf, size_t size)
{
	struct search s = {.root = "", .room = 2};
	int saved = errno;

	if (cc_limit_is(error))
		(void)search(&s, error);
	if (!cc_limit_is(error))
		snprintf(buf, size, "%s", strerror(error));
	else if (s.room <= 1 && !strchr(s.what, '/'))
		snprintf(buf, size, "%s: %s of %s is %llu", strerror(error), s.what,
			program_invocation_short_name, (unsigned long long)s.is);
	else
		snprintf(buf, size, "%s: the log of %s names the limit", strerror(error),
			program_invocation_short_name);
	errno = saved;
	return buf;
}

const char *cc_limit_inherited(char *buf, size_t size)
{
	/* Each value is more than a daemon needs to start. */
	static const struct {
		int resource;
		const char *what;
		uint64_t enough;
	} limits[] = {{RLIMIT_AS, "address space (RLIMIT_AS)", 64 << 20},
		{RLIMIT_DATA, "data (RLIMIT_DATA)", 32 << 20},
		{RLIMIT_STACK, "stacks (RLIMIT_STACK)", 1 << 20},
		{RLIMIT_NOFILE, "open files (RLIMIT_NOFILE)", 32},
		{RLIMIT_FSIZE, "file sizes (RLIMIT_FSIZE)", 64 << 10},
		{RLIMIT_CPU, "processor time (RLIMIT_CPU)", 10}};
	char host[HOST_SIZE];
	size_t len = 0;
	uint64_t is;

	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		int n;

		if (!rlimit_of(limits[i].resource, &is) || is >= limits[i].enough)
			continue;
		n = snprintf(buf + len, size - len,
			"%sthe limit of %s of %s (pid %d) on host %s is %llu", len ? ", " : "",
			limits[i].what, program_invocation_short_name, (int)getpid(),
			host_name(host), (unsigned long long)is);
		if (n > 0)
			len += (size_t)n < size - len ? (size_t)n : size - len - 1;
	}
	return len > 0 ? buf : NULL;
}

bool cc_limit_is_refusal(int error)
{
	return error == EPERM || error == EACCES || error == ENOSYS;
}

const char *cc_limit_call_text(const char *call, int error, uint64_t asked, char *buf, size_t size)
{
	int saved = errno;
	char host[HOST_SIZE], limit[CC_LIMIT_TEXT];

	if (cc_limit_is_refusal(error))
		snprintf(buf, size,
			"%s: %s: a seccomp filter, or a kernel that lacks the call, refuses it to "
			"%s (pid %d) on host %s",
			call, strerror(error), program_invocation_short_name, (int)getpid(),
			host_name(host));
	else
		snprintf(buf, size, "%s: %s", call,
			cc_limit_text_below("", call, error, asked, limit, sizeof limit));
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

int cc_limit_status(void)
{
	return cc_limit_is(errno) ? EX_OSERR : EX_UNAVAILABLE;
}

void cc_limit_end(const char *what)
{
	char limit[CC_LIMIT_TEXT];

	cc_log(CC_LOG_ERR, "out of memory: %s: %s", what,
		cc_limit_text(ENOMEM, limit, sizeof limit));
	_exit(EX_OSERR);
}
