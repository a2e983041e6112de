/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/program.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_log.h"

#define FIRST_FD 3 /* the first descriptor of the child after the standard ones */

static const char here; /* an address inside this library */

static bool beside_library(const char *name, char *buf, size_t size)
{
	const char *slash;
	Dl_info info;
	int n;

	if (!dladdr(&here, &info) || !info.dli_fname)
		return false;
	slash = strrchr(info.dli_fname, '/');
	if (!slash)
		return false;
	n = snprintf(
		buf, size, "%.*s/../sbin/%s", (int)(slash - info.dli_fname), info.dli_fname, name);
	return n > 0 && (size_t)n < size && access(buf, X_OK) == 0;
}

static bool on_path(const char *name, char *buf, size_t size)
{
	const char *p = getenv("PATH");

	while (p && *p) {
		size_t len = strcspn(p, ":");
		int n = snprintf(buf, size, "%.*s/%s", (int)len, p, name);

		if (len > 0 && n > 0 && (size_t)n < size && access(buf, X_OK) == 0)
			return true;
		p += len + (p[len] == ':');
	}
	return false;
}

void pccl_program_find(const char *env, const char *name, char *buf, size_t size)
{
	const char *named = secure_getenv(env);

	if (named && *named) {
		snprintf(buf, size, "%s", named);
		return;
	}
	if (beside_library(name, buf, size))
		return;
	snprintf(buf, size, "%s/%s", PCCL_SBINDIR, name);
	if (access(buf, X_OK) == 0 || on_path(name, buf, size))
		return;
	snprintf(buf, size, "%s/%s", PCCL_SBINDIR, name);
}

/* Does the child get this variable? An entry that ends in `_` is a prefix. */
static bool is_kept(const char *variable)
{
	static const char *const kept[] = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TZ", "LANG",
		"LC_", "TMPDIR", "XDG_", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS",
		"TSAN_OPTIONS", "UBSAN_OPTIONS", "PCCL_ADVERTISE", "PCCL_INTERFACES"};
	size_t len = strcspn(variable, "=");

	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
		size_t n = strlen(kept[i]);

		if (strncmp(variable, kept[i], n) == 0 && (n == len || kept[i][n - 1] == '_'))
			return true;
	}
	return false;
}

/* Returns the environment of the child, or NULL if there is no memory. The strings belong to the
 * environment of this process. */
static char **make_environment(void)
{
	size_t n = 0, kept = 0;
	char **v;

	while (environ && environ[n])
		n++;
	v = calloc(n + 1, sizeof *v);
	if (!v)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (is_kept(environ[i]))
			v[kept++] = environ[i];
	return v;
}

const char *pccl_program_log_level(void)
{
	static const struct {
		const char *name, *level;
	} levels[] = {{"TRACE", "debug"}, {"DEBUG", "debug"}, {"INFO", "info"}, {"WARN", "warning"},
		{"WARNING", "warning"}, {"ERROR", "err"}, {"FATAL", "err"}, {"OFF", "err"}};
	const char *name = secure_getenv("PCCL_LOG_LEVEL");
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (!name || !*name)
		return NULL;
	for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
		if (strcasecmp(name, levels[i].name) == 0)
			return levels[i].level;
	if (!atomic_flag_test_and_set(&told))
		cc_log(CC_LOG_WARNING,
			"the environment variable PCCL_LOG_LEVEL is \"%.64s\" and is ignored: it "
			"must be TRACE, DEBUG, INFO, WARN, ERROR, FATAL or OFF",
			name);
	return NULL;
}

static int describe_child(posix_spawn_file_actions_t *fa, posix_spawnattr_t *attr, int err_fd,
	const int *moved, unsigned n_fds)
{
	sigset_t none, all;
	int e;

	sigemptyset(&none);
	sigfillset(&all);
	e = posix_spawn_file_actions_addopen(fa, 0, "/dev/null", O_RDONLY, 0);
	if (!e)
		e = posix_spawn_file_actions_addopen(fa, 1, "/dev/null", O_WRONLY, 0);
	if (!e && err_fd >= 0)
		e = posix_spawn_file_actions_adddup2(fa, err_fd, 2);
	for (unsigned i = 0; !e && i < n_fds; i++)
		e = posix_spawn_file_actions_adddup2(fa, moved[i], FIRST_FD + (int)i);
	if (!e)
		e = posix_spawn_file_actions_addclosefrom_np(fa, FIRST_FD + (int)n_fds);
	if (!e)
		e = posix_spawnattr_setsigmask(attr, &none);
	if (!e)
		e = posix_spawnattr_setsigdefault(attr, &all);
	if (!e)
		e = posix_spawnattr_setpgroup(attr, 0);
	if (!e)
		e = posix_spawnattr_setflags(attr,
			POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	return e;
}

static int spawn(const char *path, char *const argv[], int err_fd, const int *moved, unsigned n_fds,
	pid_t *ret_pid)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	char **env;
	int e;

	e = posix_spawn_file_actions_init(&fa);
	if (e)
		return e;
	e = posix_spawnattr_init(&attr);
	if (e)
		goto err_actions;
	e = describe_child(&fa, &attr, err_fd, moved, n_fds);
	env = make_environment();
	if (!e)
		e = env ? posix_spawn(ret_pid, path, &fa, &attr, argv, env) : ENOMEM;
	free(env);
	posix_spawnattr_destroy(&attr);
err_actions:
	posix_spawn_file_actions_destroy(&fa);
	return e;
}

int pccl_program_start(const char *path, char *const argv[], int err_fd, const int *fds,
	unsigned n_fds, pid_t *ret_pid)
{
	int moved[1 + PCCL_PROGRAM_FDS] = {-1, -1, -1};
	int e = 0;

	if (n_fds > PCCL_PROGRAM_FDS)
		return CC_ERR_INVAL;
	for (unsigned i = 0; !e && i <= n_fds; i++) {
		int from = i < n_fds ? fds[i] : err_fd;

		if (from < 0)
			continue;
		/* The copies get numbers above those of the child's descriptors, so that no later
		 * move closes a copy. */
		moved[i] = fcntl(from, F_DUPFD_CLOEXEC, FIRST_FD + (int)n_fds);
		if (moved[i] < 0)
			e = errno == EINVAL ? EMFILE : errno; /* EINVAL: too low a limit */
	}
	if (!e)
		e = spawn(path, argv, moved[n_fds], moved, n_fds, ret_pid);
	for (unsigned i = 0; i <= n_fds; i++)
		if (moved[i] >= 0)
			close(moved[i]);
	errno = e;
	return e ? CC_ERR_IO : 0;
}
