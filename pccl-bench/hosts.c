/* SPDX-License-Identifier: MIT */
#include "pccl-bench/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cc_err.h"

#define IP_TIMEOUT_MS 20000
#define MIDDLE_HOST   254u

/* ---- ip(8) ---- */

/* Starts ip. Returns its pid, or -1 with errno set. */
static pid_t spawn_ip(int input)
{
	char *argv[] = {(char *)"ip", (char *)"-batch", (char *)"-", NULL};
	posix_spawn_file_actions_t fa;
	pid_t pid = -1;

	errno = posix_spawn_file_actions_init(&fa);
	if (errno)
		return -1;
	errno = posix_spawn_file_actions_adddup2(&fa, input, STDIN_FILENO);
	if (!errno)
		errno = posix_spawn_file_actions_adddup2(&fa, STDERR_FILENO, STDOUT_FILENO);
	if (!errno)
		errno = posix_spawnp(&pid, "ip", &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	return errno ? -1 : pid;
}

static int await_ip(pid_t pid)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	int status = 0;

	if (p.fd < 0 || poll(&p, 1, IP_TIMEOUT_MS) != 1)
		kill(pid, SIGKILL);
	if (p.fd >= 0)
		close(p.fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	errno = EPROTO;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : CC_ERR_IO;
}

/* Runs commands of ip, one in each line, in the namespace of this process. */
static int run_ip(const char *lines)
{
	size_t len = strlen(lines);
	int fd = memfd_create("ip-batch", MFD_CLOEXEC), err = CC_ERR_IO;
	pid_t pid;

	if (fd < 0)
		return CC_ERR_IO;
	if (write(fd, lines, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0) {
		pid = spawn_ip(fd);
		err = pid < 0 ? CC_ERR_IO : await_ip(pid);
	}
	close(fd);
	return err;
}

/* ---- namespaces ---- */

static int open_namespace(void)
{
	return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

static int make_middle(void)
{
	char lines[256];

	snprintf(lines, sizeof lines,
		"link set lo up\n"
		"link add bridge type bridge\n"
		"addr add 10.85.0.%u/24 dev bridge\n"
		"link set bridge up\n",
		MIDDLE_HOST);
	return run_ip(lines);
}

/* Creates the link of a host. To be called in the namespace of the bridge. */
static int make_link(const struct bch_hosts *h, uint32_t host)
{
	char lines[256];

	snprintf(lines, sizeof lines,
		"link add to-%" PRIu32 " type veth peer name eth0 netns /proc/%d/fd/%d\n"
		"link set to-%" PRIu32 " master bridge up\n",
		host, (int)getpid(), h->net[host], host);
	return run_ip(lines);
}

static int make_host(const struct bch_hosts *h, uint32_t host)
{
	char lines[256];

	if (bch_hosts_enter(h, host) < 0)
		return CC_ERR_IO;
	snprintf(lines, sizeof lines,
		"link set lo up\n"
		"addr add 10.85.0.%" PRIu32 "/24 dev eth0\n"
		"link set eth0 up\n",
		host + 1);
	return run_ip(lines);
}

static int make_namespaces(struct bch_hosts *h)
{
	int err = 0;

	h->home = open_namespace();
	if (h->home < 0)
		return CC_ERR_IO;
	for (uint32_t i = 0; i <= h->n; i++) {
		if (unshare(CLONE_NEWNET) < 0)
			return CC_ERR_IO;
		h->net[i] = open_namespace();
		if (h->net[i] < 0)
			return CC_ERR_IO;
	}
	err = make_middle();
	for (uint32_t i = 0; !err && i < h->n; i++)
		err = make_link(h, i);
	for (uint32_t i = 0; !err && i < h->n; i++)
		err = make_host(h, i);
	return err;
}

void bch_hosts_make(struct bch_hosts *ret, uint32_t n)
{
	int e;

	*ret = (struct bch_hosts){.n = n, .home = -1};
	for (uint32_t i = 0; i <= BCH_HOSTS_MAX; i++)
		ret->net[i] = -1;
	if (n == 1 || geteuid() != 0)
		return;
	ret->separate = make_namespaces(ret) == 0;
	e = errno;
	if (ret->home >= 0)
		bch_hosts_enter(ret, BCH_HOME);
	if (!ret->separate) {
		fprintf(stderr, "pccl-bench: no network namespaces (%s), loopback instead\n",
			e == EPROTO ? "ip failed" : strerror(e));
		bch_hosts_close(ret);
	}
}

void bch_hosts_close(struct bch_hosts *h)
{
	for (uint32_t i = 0; i <= h->n; i++) {
		if (h->net[i] >= 0)
			close(h->net[i]);
		h->net[i] = -1;
	}
	if (h->home >= 0)
		close(h->home);
	h->home = -1;
}

int bch_hosts_enter(const struct bch_hosts *h, uint32_t host)
{
	int fd = host == BCH_HOME ? h->home : h->net[host];

	return fd < 0 || setns(fd, CLONE_NEWNET) == 0 ? 0 : CC_ERR_IO;
}

void bch_hosts_confine(const struct bch_hosts *h, uint32_t host)
{
	cpu_set_t all, own;
	uint32_t k = 0;

	if (!h->separate || host >= h->n || sched_getaffinity(0, sizeof all, &all) < 0 ||
		(uint32_t)CPU_COUNT(&all) < h->n)
		return;
	CPU_ZERO(&own);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && k++ % h->n == host)
			CPU_SET(cpu, &own);
	sched_setaffinity(0, sizeof own, &own);
}

struct cc_addr bch_hosts_address(const struct bch_hosts *h, uint32_t host)
{
	struct cc_addr a = {.family = CC_INET4, .ip = {127, 0, 0, 1}};

	if (h->separate) {
		a.ip[0] = 10;
		a.ip[1] = 85;
		a.ip[3] = (uint8_t)(host == h->n ? MIDDLE_HOST : host + 1);
	}
	return a;
}

const char *bch_hosts_title(const struct bch_hosts *h, char buf[BCH_TITLE_SIZE])
{
	if (h->n == 1)
		return "1 host";
	snprintf(buf, BCH_TITLE_SIZE,
		h->separate ? "%" PRIu32 " hosts in network namespaces"
			    : "%" PRIu32 " hosts on loopback",
		h->n);
	return buf;
}
