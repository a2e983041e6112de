/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_sys.h"
#include "libpccl-shim/program.h"

#define SYSTEM_SOCKET    PCCL_RUNDIR "/agent.sock"
#define START_TIMEOUT_MS 10000
#define LOCK_POLL_MS     20
#define NAMES_MAX        10 /* names that are tried in a folder for temporary files */
#define LOG_MAX          ((off_t)1 << 20)
#define WORDS_MAX        (CC_LIMIT_TEXT + 64) /* room for the last line of an agent's log */

#define SHELL_NOT_STARTED 126 /* exit statuses from here on come from a shell or loader */

#define DIR_MAX (PCCL_SOCKET_PATH_MAX - sizeof "/agent.sock" + 1)

/* The settings of the environment for a private agent. */
struct private
{
	char dir[DIR_MAX]; /* "" if the name of the folder is too long */
	bool autospawn;
	char program[PATH_MAX];
};

/* The settings that a thread of the application has read last. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct private remembered;

/* Does the error mean that no agent listens on this socket? If so, an agent may listen on another
 * socket, or can be started. */
static bool nobody_there(int error)
{
	return error == ENOENT || error == ECONNREFUSED || error == ENOTDIR;
}

/* Sets the sentence for errno. If this process has reached a limit, the sentence names it. */
static pcclResult_t fail_of_errno(const char *what, const char *path, const char *file)
{
	pcclResult_t r = cc_limit_is(errno) ? pcclOutOfMemory : pcclAgentUnavailable;
	char limit[CC_LIMIT_TEXT];

	return pccl_fail(r, "cannot %s %s%s: %s", what, path, file,
		cc_limit_text(errno, limit, sizeof limit));
}

/* Can /dev/null be opened? The new process must open it before it becomes the program. */
static bool has_null(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

pcclResult_t pccl_spawn_fail(const char *path, const char *name, const char *env, int error)
{
	char limit[CC_LIMIT_TEXT];
	struct stat st;

	if (access(path, X_OK) < 0 || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
		return pccl_fail(pcclAgentUnavailable,
			"%s cannot be started: %s; install %s, or set %s to its path", path,
			access(path, X_OK) < 0 ? strerror(errno) : strerror(EISDIR), name, env);
	if (cc_limit_is(error))
		return pccl_fail(pcclOutOfMemory, "%s cannot be started: %s", path,
			cc_limit_text(error, limit, sizeof limit));
	if (!has_null())
		return pccl_fail(pcclAgentUnavailable,
			"%s cannot be started: cannot open /dev/null: %s", path, strerror(errno));
	if (error == ENOENT)
		return pccl_fail(pcclAgentUnavailable,
			"%s cannot be started: the interpreter or loader that it names is missing",
			path);
	/* The program is there, so the system failed to make the process or to execute the
	 * program. */
	return pccl_fail(pcclAgentUnavailable,
		"%s cannot be started: posix_spawn (clone and execve): %s%s", path, strerror(error),
		error == EPERM || error == ENOSYS || error == EACCES
			? "; a seccomp filter or another rule of this system may forbid it"
			: "");
}

/* Tries to connect to an agent. *ret_fd is -1 if there is no agent at this path. */
static pcclResult_t try_connect(const char *path, int *ret_fd)
{
	*ret_fd = cc_connect_unix(path, SOCK_SEQPACKET);
	if (*ret_fd >= 0)
		return pcclSuccess;
	*ret_fd = -1;
	if (nobody_there(errno))
		return pcclSuccess;
	if (errno == EACCES || errno == EPERM)
		return pccl_fail(pcclPermissionDenied,
			"this user may not use the agent at %s: add the user to the socket's "
			"group, or set PCCL_AGENT_SOCKET to the socket of another agent",
			path);
	/* EAGAIN means that the agent accepts no connections now. */
	if (errno == EAGAIN)
		return pccl_fail(pcclAgentUnavailable,
			"cannot connect to the agent at %s: too many other processes wait for it",
			path);
	return fail_of_errno("connect to the agent at", path, "");
}

static bool is_own_directory(const char *path)
{
	struct stat st;

	return path && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid();
}

static pcclResult_t refuse_directory(const char *dir, const char *why)
{
	return pccl_fail(pcclAgentUnavailable,
		"the folder of this user's agent, %s, cannot be used: %s", dir, why);
}

/*
 * Chooses the folder of this user's agent among temporary files. If another user has taken a name
 * (a hostile user, or a user with the same number in another user namespace), the next name is
 * tried. All processes of a user find the same name.
 */
static bool name_temporary(char dir[DIR_MAX], const char *base)
{
	for (int k = 0; k < NAMES_MAX; k++) {
		char suffix[16] = "";
		struct stat st;
		int n;

		if (k > 0)
			snprintf(suffix, sizeof suffix, "-%d", k);
		n = snprintf(dir, DIR_MAX, "%s/pccl-%u%s", base, (unsigned)geteuid(), suffix);
		if (n < 0 || (size_t)n >= DIR_MAX)
			return false;
		if (lstat(dir, &st) < 0 || (S_ISDIR(st.st_mode) && st.st_uid == geteuid()))
			return true;
	}
	return true; /* the caller refuses the last name and reports the reason */
}

static pcclResult_t read_environment(struct private *ret)
{
	const char *base = secure_getenv("XDG_RUNTIME_DIR");
	const char *autospawn = secure_getenv("PCCL_AGENT_AUTOSPAWN");
	int n;

	ret->autospawn = !autospawn || !*autospawn || strcmp(autospawn, "1") == 0;
	if (!ret->autospawn && strcmp(autospawn, "0") != 0)
		return pccl_fail(pcclInvalidUsage,
			"the environment variable PCCL_AGENT_AUTOSPAWN is \"%.64s\", it must be 0 "
			"or 1",
			autospawn);
	/* After su(1) the variable may still name another user's folder. */
	if (is_own_directory(base)) {
		n = snprintf(ret->dir, sizeof ret->dir, "%s/pccl", base);
	} else {
		base = secure_getenv("TMPDIR");
		n = name_temporary(ret->dir, base && base[0] == '/' ? base : "/tmp") ? 0 : -1;
	}
	if (n < 0 || (size_t)n >= sizeof ret->dir)
		ret->dir[0] = '\0';
	pccl_program_find("PCCL_AGENTD", "pcclagentd", ret->program, sizeof ret->program);
	return pcclSuccess;
}

/*
 * Opens the folder for this user's agent, and makes it if it is missing. Other users may write in
 * the folder above, so one of them may have made this folder first. Its contents can be trusted
 * only if this user owns the folder and no one else has access.
 */
static pcclResult_t open_private_dir(const char *dir, int *ret_fd)
{
	struct stat st;
	int fd;

	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Branch): pccl_fail never succeeds */
	if (!dir[0])
		return pccl_fail(pcclAgentUnavailable,
			"the folder of this user's agent cannot be used: its name is too long for "
			"a "
			"socket in it; set TMPDIR or XDG_RUNTIME_DIR to a shorter one");
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return pccl_fail(pcclAgentUnavailable,
			"the folder of this user's agent, %s, cannot be made: %s; set "
			"XDG_RUNTIME_DIR to a folder of this user, or TMPDIR to a folder that this "
			"user may write in",
			dir, strerror(errno));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && cc_limit_is(errno))
		return fail_of_errno("open the folder of this user's agent,", dir, "");
	if (fd < 0)
		return refuse_directory(dir, errno == ELOOP || errno == ENOTDIR
						     ? "it is a symbolic link or a file; remove it"
						     : strerror(errno));
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid()) {
		close(fd);
		return refuse_directory(dir, "it belongs to another user");
	}
	if (st.st_mode & 077) {
		close(fd);
		return refuse_directory(dir, "others have access to it; its mode must be 0700");
	}
	*ret_fd = fd;
	return pcclSuccess;
}

/* Empties the log if it is too long. No program rotates it, and each agent appends its lines. */
static void bound_log(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && st.st_size > LOG_MAX)
		(void)!ftruncate(fd, 0);
}

/* Waits until the agent is ready: then its first process ends, and the agent continues detached.
 * Returns the wait status of the first process, -1 if another part of the program has taken it (a
 * SIGCHLD handler), or -2 if the start took too long. */
static int await_start(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	bool late = false;
	int status;
	pid_t got;

	if (pidfd >= 0) {
		struct pollfd p = {.fd = pidfd, .events = POLLIN};
		uint64_t end = cc_now_ns() + START_TIMEOUT_MS * 1000000ull, now;
		int n = 0;

		for (now = cc_now_ns(); n <= 0 && now < end; now = cc_now_ns())
			n = poll(&p, 1, (int)((end - now) / 1000000u) + 1);
		close(pidfd);
		if (n <= 0) {
			late = true;
			kill(pid, SIGKILL);
		}
	}
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	if (late)
		return -2;
	return got == pid ? status : -1;
}

/* Copies the last line of the log, without its time and process id. from: the offset at which the
 * agent's lines begin. */
static void read_last_words(int log_fd, off_t from, char *buf, size_t size)
{
	char text[2048], *line, *said;
	struct stat st;
	ssize_t n = 0;

	if (fstat(log_fd, &st) == 0 && st.st_size > from) {
		if (st.st_size - from >= (off_t)sizeof text)
			from = st.st_size - (off_t)sizeof text + 1;
		n = pread(log_fd, text, sizeof text - 1, from);
	}
	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n > 0 ? n : 0] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	said = strstr(line, "]: err: ");
	snprintf(buf, size, "%.*s", (int)size - 1, said ? said + strlen("]: err: ") : line);
}

/* Can the agent have ended without writing the reason to its log? This happens after a signal, a
 * failure of the loader, or an internal error of its first process. */
static bool ended_silently(int status)
{
	return WIFSIGNALED(status) || WEXITSTATUS(status) == EX_SOFTWARE ||
	       WEXITSTATUS(status) >= SHELL_NOT_STARTED;
}

static pcclResult_t fail_ended(const struct private *env, int status, const char *words)
{
	bool killed = WIFSIGNALED(status), lacks = !killed && WEXITSTATUS(status) == EX_OSERR;
	const char *of = killed ? "signal" : "status", *open = words[0] ? " (" : "";
	int number = killed ? WTERMSIG(status) : WEXITSTATUS(status);
	char limits[CC_LIMIT_TEXT];

	if (lacks && words[0])
		return pccl_fail(pcclOutOfMemory, "the private agent has ended: %s", words);
	if ((lacks || ended_silently(status)) && cc_limit_inherited(limits, sizeof limits))
		return pccl_fail(pcclOutOfMemory,
			"the private agent ended with %s %d before it was ready%s%s%s; the limits "
			"that it inherits are low: %s",
			of, number, open, words, words[0] ? ")" : "", limits);
	return pccl_fail(lacks ? pcclOutOfMemory : pcclAgentUnavailable,
		"%s ended with %s %d before it was ready%s%s%s: see %s/agent.log, or set "
		"PCCL_AGENTD to the path of pcclagentd",
		env->program, of, number, open, words, words[0] ? ")" : "", env->dir);
}

static pcclResult_t start_agent(
	const struct private *env, int dir_fd, const char *path, int listener)
{
	char words[WORDS_MAX] = "";
	struct stat log = {0};
	const char *program = env->program, *dir = env->dir;
	char socket_arg[PCCL_SOCKET_PATH_MAX];
	char *argv[] = {(char *)"pcclagentd", (char *)"--private", (char *)"--listen-fd",
		(char *)"3", (char *)"--socket", socket_arg, NULL, NULL, NULL};
	const char *level = pccl_program_log_level();
	int log_fd, err, error, status;
	pid_t pid;

	if (level) {
		argv[6] = (char *)"--log-level";
		argv[7] = (char *)(uintptr_t)level;
	}
	snprintf(socket_arg, sizeof socket_arg, "%s", path);
	log_fd = openat(
		dir_fd, "agent.log", O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (log_fd < 0)
		return fail_of_errno("write", dir, "/agent.log");
	bound_log(log_fd);
	(void)fstat(log_fd, &log);
	err = pccl_program_start(program, argv, log_fd, &listener, 1, &pid);
	error = errno;
	status = err < 0 ? -1 : await_start(pid);
	if (status > 0)
		read_last_words(log_fd, log.st_size, words, sizeof words);
	close(log_fd);
	if (err < 0)
		return pccl_spawn_fail(program, "pcclagentd", "PCCL_AGENTD", error);
	if (status == -2)
		return pccl_fail(pcclAgentUnavailable,
			"%s was not ready within %d s; see %s/agent.log", program,
			START_TIMEOUT_MS / 1000, dir);
	return status > 0 ? fail_ended(env, status, words) : pcclSuccess;
}

/* Is this connection served by an agent? To be called when this process has closed its listener: if
 * no agent has the listener, the other end of the connection is closed without a packet. */
static bool is_served(int fd)
{
	ssize_t n;
	char c;

	do
		n = recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	return n != 0;
}

/* With the lock file held: starts the agent and connects. If another process has just started it,
 * only connects. */
static pcclResult_t start_and_connect(
	const struct private *env, int dir_fd, const char *path, int *ret_fd)
{
	pcclResult_t r = try_connect(path, ret_fd);
	int listener;

	if (r != pcclSuccess || *ret_fd >= 0)
		return r;
	listener = cc_listen_unix(path, SOCK_SEQPACKET, 0600);
	if (listener < 0)
		return listener == CC_ERR_EXIST ? pccl_fail(pcclAgentUnavailable,
							  "cannot make the socket %s: something "
							  "else is in its place",
							  path)
						: fail_of_errno("make the socket", path, "");
	r = start_agent(env, dir_fd, path, listener);
	/* The listener stays open until this process is connected or has given up. Otherwise a
	 * connection that waits in the listener's queue would be refused before the agent can
	 * accept it. */
	if (r == pcclSuccess)
		r = try_connect(path, ret_fd);
	else
		unlink(path);
	close(listener);
	if (r == pcclSuccess && *ret_fd < 0)
		return pccl_fail(pcclAgentUnavailable,
			"the agent that was started does not listen at %s; see %s/agent.log", path,
			env->dir);
	if (r == pcclSuccess && !is_served(*ret_fd)) {
		close(*ret_fd);
		*ret_fd = -1;
		unlink(path);
		return fail_ended(env, 0, "");
	}
	return r;
}

/* Takes the lock, but waits only for a limited time, because the process that holds the lock may be
 * starting an agent that never gets ready. */
static bool take_lock(int fd)
{
	for (int waited = 0; waited < 2 * START_TIMEOUT_MS; waited += LOCK_POLL_MS) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return true;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return false;
		poll(NULL, 0, LOCK_POLL_MS);
	}
	return false;
}

static pcclResult_t connect_private(const struct private *env, int *ret_fd, char *path)
{
	int dir_fd = -1, lock_fd;
	pcclResult_t r;

	r = open_private_dir(env->dir, &dir_fd);
	if (r != pcclSuccess)
		return r;
	snprintf(path, PCCL_SOCKET_PATH_MAX, "%s/agent.sock", env->dir);
	r = try_connect(path, ret_fd);
	if (r != pcclSuccess || *ret_fd >= 0)
		goto out;
	if (!env->autospawn) {
		r = pccl_fail(pcclAgentUnavailable,
			"no agent listens at %s or %s, and PCCL_AGENT_AUTOSPAWN=0 forbids the "
			"library to start a private agent: start pcclagentd",
			SYSTEM_SOCKET, path);
		goto out;
	}
	lock_fd = openat(dir_fd, "agent.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock_fd < 0 || !take_lock(lock_fd))
		r = fail_of_errno("lock", env->dir, "/agent.lock");
	else
		r = start_and_connect(env, dir_fd, path, ret_fd);
	if (lock_fd >= 0)
		close(lock_fd);
out:
	close(dir_fd);
	return r;
}

pcclResult_t pccl_spawn_connect(int *ret_fd, char *path, bool *ret_private)
{
	const char *named = secure_getenv("PCCL_AGENT_SOCKET");
	struct private env;
	pcclResult_t r;

	*ret_private = false;
	if (named && *named) {
		snprintf(path, PCCL_SOCKET_PATH_MAX, "%s", named);
		if (strlen(named) >= PCCL_SOCKET_PATH_MAX)
			return pccl_fail(pcclAgentUnavailable,
				"PCCL_AGENT_SOCKET is longer than the %zu bytes of a socket's name",
				PCCL_SOCKET_PATH_MAX - 1);
		r = try_connect(path, ret_fd);
		if (r == pcclSuccess && *ret_fd < 0)
			return pccl_fail(pcclAgentUnavailable,
				"no agent listens at %s, which PCCL_AGENT_SOCKET names: start the "
				"agent, or correct the variable",
				path);
		return r;
	}
	snprintf(path, PCCL_SOCKET_PATH_MAX, "%s", SYSTEM_SOCKET);
	r = try_connect(path, ret_fd);
	if (r != pcclSuccess || *ret_fd >= 0)
		return r;
	*ret_private = true;
	r = read_environment(&env);
	if (r != pcclSuccess)
		return r;
	pthread_mutex_lock(&lock);
	remembered = env;
	pthread_mutex_unlock(&lock);
	return connect_private(&env, ret_fd, path);
}

pcclResult_t pccl_spawn_reconnect(int *ret_fd, char *path, bool private)
{
	struct private env;
	pcclResult_t r;

	if (private) {
		pthread_mutex_lock(&lock);
		env = remembered;
		pthread_mutex_unlock(&lock);
		return connect_private(&env, ret_fd, path);
	}
	r = try_connect(path, ret_fd);
	if (r == pcclSuccess && *ret_fd < 0)
		return pccl_fail(pcclAgentUnavailable, "no agent listens at %s", path);
	return r;
}

void pccl_spawn_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
}
