/* SPDX-License-Identifier: MIT
 *
 * This library is preloaded into a process whose calls are to fail. INJECT_CONTROL names a file
 * that the test has also mapped (struct control). The test can write into it at any time which call
 * fails and how, and reads from it whether the call has failed. INJECT_PROGRAM: the name of the
 * affected process, because processes that it starts inherit the environment. INJECT_SPARE, if set:
 * calls of the program itself and of the C library do not fail, only calls of its other libraries.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* Same order as CALLS in test_inject.py. */
enum call {
	NOTHING,
	MEMFD_CREATE,
	FTRUNCATE,
	FALLOCATE,
	MMAP,
	SOCKET,
	SOCKETPAIR,
	ACCEPT4,
	CONNECT,
	BIND,
	LISTEN,
	EVENTFD,
	EPOLL_CREATE1,
	EPOLL_CTL,
	TIMERFD_CREATE,
	PTHREAD_CREATE,
	PIPE2,
	OPEN,
	WRITE,
	FSYNC,
	RENAME,
	ALLOC,
	SENDMSG,
	RECVMSG,
	POSIX_SPAWN,
	FORK,
	FCNTL,
	MKDIR,
	FLOCK,
	PIDFD_OPEN,
	WRITEV,
	SEND,
	RECV,
	READV,
	GETIFADDRS,
	PROC,
	CALLS,
};

struct control {
	_Atomic uint32_t call; /* the call that fails; the test writes this field last */
	_Atomic int32_t left;  /* calls until the first failure; 0 after that failure */
	int32_t error;
	int32_t times; /* number of failures in a row */
	_Atomic uint32_t fired;
	_Atomic uint32_t counting;
	_Atomic uint32_t made[CALLS]; /* while counting */
};

static struct control *control;
/* Load addresses. Calls by the program and by the C library do not fail. */
static void *program, *c_library;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t alignment, size_t n);

/* real: a pointer to a pointer to a function. */
static void find(const char *name, void *real)
{
	void *p = dlsym(RTLD_NEXT, name);

	if (!p)
		abort();
	memcpy(real, &p, sizeof p);
}

static void *beginning(const void *address)
{
	Dl_info info;

	return dladdr(address, &info) ? info.dli_fbase : NULL;
}

__attribute__((constructor)) static void prepare(void)
{
	const char *path = getenv("INJECT_CONTROL"), *name = getenv("INJECT_PROGRAM");
	int (*real_open)(const char *, int, ...);
	void *(*real_mmap)(void *, size_t, int, int, int, off_t);
	void *p;
	int fd;

	if (!path || !name || strcmp(name, program_invocation_short_name) != 0)
		return;
	find("open", &real_open);
	find("mmap", &real_mmap);
	fd = real_open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		abort();
	p = real_mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		abort();
	if (getenv("INJECT_SPARE")) {
		program = beginning((const void *)(uintptr_t)getauxval(AT_ENTRY));
		c_library = beginning((const void *)(uintptr_t)&__libc_malloc);
	}
	control = p;
}

static bool is_spared(const void *caller)
{
	const void *from = program ? beginning(caller) : NULL;

	return from && (from == program || from == c_library);
}

static bool is_armed(enum call call)
{
	return atomic_load(&control->call) == (uint32_t)call;
}

/* Returns the error if this call is to fail, otherwise 0. */
static int fails(enum call call, const void *caller)
{
	int32_t left;

	if (call == NOTHING || !control || (!is_armed(call) && !atomic_load(&control->counting)) ||
		is_spared(caller))
		return 0;
	atomic_fetch_add(&control->made[call], 1);
	if (!is_armed(call))
		return 0;
	left = atomic_fetch_sub(&control->left, 1);
	if (left > 1 || left <= 1 - control->times)
		return 0;
	atomic_store(&control->fired, 1);
	return control->error;
}

static enum call path_call(const char *path)
{
	return path && strncmp(path, "/proc/", 6) == 0 ? PROC : OPEN;
}

/* Returns the kind of a write. Only writes to files can fail, not writes to the log. */
static enum call file_call(int fd)
{
	struct stat st;

	if (!control || (!is_armed(WRITE) && !atomic_load(&control->counting)))
		return NOTHING;
	return fd > STDERR_FILENO && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? WRITE : NOTHING;
}

#define CALLER __builtin_return_address(0)

/* Wraps a function that returns -1 and sets errno. */
#define WRAP(call, type, name, parameters, arguments)                                              \
	type name parameters                                                                       \
	{                                                                                          \
		static type(*real) parameters;                                                     \
		int error = fails(call, CALLER);                                                   \
                                                                                                   \
		if (error) {                                                                       \
			errno = error;                                                             \
			return (type)-1;                                                           \
		}                                                                                  \
		if (!real)                                                                         \
			find(#name, &real);                                                        \
		return real arguments;                                                             \
	}

/* Wraps a function that returns the error. */
#define WRAP_POSIX(call, name, parameters, arguments)                                              \
	int name parameters                                                                        \
	{                                                                                          \
		static int(*real) parameters;                                                      \
		int error = fails(call, CALLER);                                                   \
                                                                                                   \
		if (error)                                                                         \
			return error;                                                              \
		if (!real)                                                                         \
			find(#name, &real);                                                        \
		return real arguments;                                                             \
	}

WRAP(MEMFD_CREATE, int, memfd_create, (const char *name, unsigned int flags), (name, flags))
WRAP(FTRUNCATE, int, ftruncate, (int fd, off_t size), (fd, size))
WRAP(FALLOCATE, int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n))
WRAP_POSIX(FALLOCATE, posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n))
WRAP(MMAP, void *, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t at),
	(p, n, prot, flags, fd, at))
WRAP(SOCKET, int, socket, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(SOCKETPAIR, int, socketpair, (int domain, int type, int protocol, int fds[2]),
	(domain, type, protocol, fds))
WRAP(ACCEPT4, int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags),
	(fd, a, n, flags))
WRAP(CONNECT, int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(BIND, int, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(LISTEN, int, listen, (int fd, int backlog), (fd, backlog))
WRAP(EVENTFD, int, eventfd, (unsigned int value, int flags), (value, flags))
WRAP(EPOLL_CREATE1, int, epoll_create1, (int flags), (flags))
WRAP(EPOLL_CTL, int, epoll_ctl, (int ep, int op, int fd, struct epoll_event *e), (ep, op, fd, e))
WRAP(TIMERFD_CREATE, int, timerfd_create, (int clock, int flags), (clock, flags))
WRAP_POSIX(PTHREAD_CREATE, pthread_create,
	(pthread_t * t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg),
	(t, attr, fn, arg))
WRAP(PIPE2, int, pipe2, (int fds[2], int flags), (fds, flags))
WRAP(file_call(fd), ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
WRAP(file_call(fd), ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))
WRAP(FORK, pid_t, fork, (void), ())
WRAP(MKDIR, int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(FLOCK, int, flock, (int fd, int operation), (fd, operation))
WRAP(WRITEV, ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
WRAP(SEND, ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags))
WRAP(RECV, ssize_t, recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags))
WRAP(READV, ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n))
WRAP(GETIFADDRS, int, getifaddrs, (struct ifaddrs * *ret), (ret))
WRAP(path_call(path) == PROC ? PROC : NOTHING, int, access, (const char *path, int mode),
	(path, mode))
WRAP(FSYNC, int, fsync, (int fd), (fd))
WRAP(FSYNC, int, fdatasync, (int fd), (fd))
WRAP(RENAME, int, rename, (const char *from, const char *to), (from, to))
WRAP(RENAME, int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
WRAP(SENDMSG, ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags))
WRAP(RECVMSG, ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags))
WRAP_POSIX(POSIX_SPAWN, posix_spawn,
	(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *restrict attr, char *const argv[restrict],
		char *const envp[restrict]),
	(pid, path, actions, attr, argv, envp))

/* Wraps functions whose last argument, a mode, may be missing. The wrapper always reads a mode,
 * which does no harm here. */
#define WRAP_OPEN(name, parameters, last, arguments)                                               \
	int name parameters                                                                        \
	{                                                                                          \
		static __typeof__(name) *real;                                                     \
		int error = fails(path_call(path), CALLER);                                        \
		mode_t mode;                                                                       \
		va_list args;                                                                      \
                                                                                                   \
		if (error) {                                                                       \
			errno = error;                                                             \
			return -1;                                                                 \
		}                                                                                  \
		va_start(args, last);                                                              \
		mode = va_arg(args, mode_t);                                                       \
		va_end(args);                                                                      \
		if (!real)                                                                         \
			find(#name, &real);                                                        \
		return real arguments;                                                             \
	}
WRAP_OPEN(open, (const char *path, int flags, ...), flags, (path, flags, mode))
WRAP_OPEN(openat, (int at, const char *path, int flags, ...), flags, (at, path, flags, mode))

FILE *fopen(const char *path, const char *mode)
{
	static FILE *(*real)(const char *, const char *);
	int error = fails(path_call(path), CALLER);

	if (error) {
		errno = error;
		return NULL;
	}
	if (!real)
		find("fopen", &real);
	return real(path, mode);
}

/* Only commands that create a descriptor can fail. No argument of a command exceeds a long. */
int fcntl(int fd, int command, ...)
{
	static int (*real)(int, int, long);
	int error = command == F_DUPFD_CLOEXEC ? fails(FCNTL, CALLER) : 0;
	va_list args;
	long arg;

	if (error) {
		errno = error;
		return -1;
	}
	va_start(args, command);
	arg = va_arg(args, long);
	va_end(args);
	if (!real)
		find("fcntl", &real);
	return real(fd, command, arg);
}

long syscall(long number, ...)
{
	static long (*real)(long, long, long, long, long, long, long);
	int error = number == SYS_pidfd_open ? fails(PIDFD_OPEN, CALLER) : 0;
	va_list args;
	long v[6];

	if (error) {
		errno = error;
		return -1;
	}
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		v[i] = va_arg(args, long);
	va_end(args);
	if (!real)
		find("syscall", &real);
	return real(number, v[0], v[1], v[2], v[3], v[4], v[5]);
}

/* dlsym may allocate, so these wrappers call the C library's functions by their other names. */
void *malloc(size_t n)
{
	int error = fails(ALLOC, CALLER);

	if (!error)
		return __libc_malloc(n);
	errno = error;
	return NULL;
}

void *calloc(size_t n, size_t size)
{
	int error = fails(ALLOC, CALLER);

	if (!error)
		return __libc_calloc(n, size);
	errno = error;
	return NULL;
}

void *realloc(void *p, size_t n)
{
	int error = fails(ALLOC, CALLER);

	if (!error)
		return __libc_realloc(p, n);
	errno = error;
	return NULL;
}

void *aligned_alloc(size_t alignment, size_t n)
{
	int error = fails(ALLOC, CALLER);

	if (!error)
		return __libc_memalign(alignment, n);
	errno = error;
	return NULL;
}
