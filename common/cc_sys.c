/* SPDX-License-Identifier: MIT */
#include "common/cc_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_log.h"

#define LISTEN_BACKLOG 1024
#define RETRY_MS       100u
#define SERVED_MS      500

uint64_t cc_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool cc_has_cpus(void)
{
	static _Atomic int known; /* 0: not known yet; 1: one CPU; 2: more */
	int n = atomic_load_explicit(&known, memory_order_relaxed);
	cpu_set_t set;

	if (n == 0) {
		n = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1 ? 1 : 2;
		atomic_store_explicit(&known, n, memory_order_relaxed);
	}
	return n == 2;
}

void cc_random_id(struct cc_id *ret)
{
	/* A read of 16 bytes is never short when the pool is initialised. Without random bytes
	 * there is no safe way to continue. */
	if (getrandom(ret->b, sizeof ret->b, 0) != (ssize_t)sizeof ret->b)
		abort();
}

static int close_keep_errno(int fd, int err)
{
	int saved = errno;

	close(fd);
	errno = saved;
	return err;
}

bool cc_tcp_has_bbr(int fd)
{
	char name[16] = "";
	socklen_t len = sizeof name - 1;

	return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0 &&
	       strncmp(name, "bbr", 3) == 0;
}

int cc_tcp_socket(int family)
{
	int fd =
		cc_fd_above_standard(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

	/* This must be done before the socket is connected, because pacing cannot be switched off
	 * again. Some users may not use cubic, so reno is the second choice. */
	if (fd >= 0 && cc_tcp_has_bbr(fd) &&
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) < 0)
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
	return fd;
}

static int try_listen_tcp(struct cc_addr *addr)
{
	struct sockaddr_storage ss;
	socklen_t len = cc_addr_to_sockaddr(addr, &ss);
	int one = 1, zero = 0;
	int fd = cc_tcp_socket(ss.ss_family);

	if (fd < 0)
		return CC_ERR_IO;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (ss.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, cc_addr_is_any(addr) ? &zero : &one,
			sizeof one);
	if (bind(fd, (struct sockaddr *)&ss, len) < 0 || listen(fd, LISTEN_BACKLOG) < 0)
		return close_keep_errno(fd, errno == EADDRINUSE ? CC_ERR_EXIST : CC_ERR_IO);
	len = sizeof ss;
	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return close_keep_errno(fd, CC_ERR_IO);
	if (ss.ss_family == AF_INET6)
		addr->port = ntohs(((struct sockaddr_in6 *)&ss)->sin6_port);
	else
		addr->port = ntohs(((struct sockaddr_in *)&ss)->sin_port);
	return fd;
}

int cc_listen_tcp(struct cc_addr *addr, unsigned bump)
{
	for (;;) {
		int fd = try_listen_tcp(addr);

		if (fd != CC_ERR_EXIST || bump == 0 || addr->port == 0 || addr->port == UINT16_MAX)
			return fd;
		addr->port++;
		bump--;
	}
}

static bool wait_connected(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int err = 0;
	socklen_t len = sizeof err;

	return poll(&p, 1, SERVED_MS) == 1 &&
	       getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) == 0 && err == 0;
}

/* Does a program listen on the address? */
static bool is_served(const struct cc_addr *addr)
{
	struct cc_addr to = *addr;
	struct sockaddr_storage ss;
	socklen_t len;
	int fd;
	bool served;

	if (cc_addr_is_any(&to))
		to = to.family == CC_INET4
			     ? (struct cc_addr){.family = CC_INET4,
				       .ip = {127, 0, 0, 1},
				       .port = to.port}
			     : (struct cc_addr){
				       .family = CC_INET6, .ip = {[15] = 1}, .port = to.port};
	len = cc_addr_to_sockaddr(&to, &ss);
	fd = cc_tcp_socket(ss.ss_family);
	/* Within a host the connection succeeds or fails at once. */
	served = fd >= 0 &&
		 (connect(fd, (struct sockaddr *)&ss, len) == 0 || errno == EINPROGRESS) &&
		 wait_connected(fd);
	if (fd >= 0)
		close(fd);
	return served;
}

/* Did try_listen_tcp fail because this host does not have the address? */
static bool is_missing(int fd, const struct cc_addr *addr)
{
	return fd == CC_ERR_IO && errno == EADDRNOTAVAIL && !cc_addr_is_any(addr);
}

static void log_patience(bool missing, const struct cc_addr *addr, uint32_t ms)
{
	char text[CC_ADDR_STR_SIZE];

	(void)cc_addr_str(addr, text);
	if (missing)
		cc_log(CC_LOG_WARNING,
			"cannot listen on %s yet: this host has no such address; trying again for "
			"up to %u ms",
			text, ms);
	else
		cc_log(CC_LOG_WARNING,
			"%s is in use by an outgoing connection of this host: trying again for "
			"%u ms. To prevent this, add the port to "
			"net.ipv4.ip_local_reserved_ports",
			text, ms);
}

int cc_listen_tcp_patiently(struct cc_addr *addr, uint32_t in_use_ms, uint32_t missing_ms)
{
	const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
	uint32_t waited, ms;
	bool missing;
	int fd;

	for (waited = 0;; waited += RETRY_MS) {
		fd = try_listen_tcp(addr);
		missing = is_missing(fd, addr);
		ms = missing ? missing_ms : fd == CC_ERR_EXIST ? in_use_ms : 0;
		if (waited >= ms || (!missing && is_served(addr)))
			break;
		if (waited == 0)
			log_patience(missing, addr, ms);
		nanosleep(&pause, NULL);
	}
	if (fd == CC_ERR_EXIST)
		errno = EADDRINUSE;
	return fd;
}

uint32_t cc_tcp_round_trip_us(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof info;

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ? 0 : info.tcpi_rtt;
}

#define LOSSY_MIN  4u  /* a path is lossy if at least this number of segments was repeated, */
#define LOSSY_PART 16u /* and at least one in this number of all segments */

uint32_t cc_tcp_info_path_ms(uint32_t rtt_us, uint32_t deviation_us)
{
	uint64_t ms = (rtt_us + UINT64_C(4) * deviation_us) / 1000;

	if (rtt_us == 0 || ms <= CC_PATH_MS)
		return 0; /* nothing is measured yet, or the path is not slow */
	return ms - CC_PATH_MS < CC_PATH_MAX_MS ? (uint32_t)(ms - CC_PATH_MS) : CC_PATH_MAX_MS;
}

uint32_t cc_tcp_lossy_ms(uint32_t sent, uint32_t repeated)
{
	return sent > 0 && repeated >= LOSSY_MIN && repeated >= sent / LOSSY_PART ? CC_LOSSY_MS : 0;
}

uint32_t cc_tcp_path_ms(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof info;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return 0;
	return cc_tcp_info_path_ms(info.tcpi_rtt, info.tcpi_rttvar) +
	       cc_tcp_lossy_ms(info.tcpi_segs_out, info.tcpi_total_retrans);
}

/* Uses the congestion control that the host's administrator has chosen, but only on a high
 * round-trip path, where it should be better than the default.
 */
static void choose_congestion_control(int fd)
{
	char name[16];
	socklen_t len = sizeof name;
	int new;

	if (cc_tcp_round_trip_us(fd) < CC_HIGH_RTT_US)
		return;
	new = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (new >= 0 && getsockopt(new, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0)
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, len);
	if (new >= 0)
		close(new);
}

const uint16_t cc_tcp_sizes[CC_TCP_SIZES] = {0, 1200, CC_TCP_NARROW};

int cc_tcp_tune(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, CC_TCP_TIMEOUT_MS},
		{IPPROTO_TCP, TCP_KEEPIDLE, 1},  /* s */
		{IPPROTO_TCP, TCP_KEEPINTVL, 1}, /* s */
		{IPPROTO_TCP, TCP_KEEPCNT, 2},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
	};

	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
		if (setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			    sizeof options[i].value) < 0)
			return CC_ERR_IO;
	choose_congestion_control(fd);
	return 0;
}

void cc_tcp_allow_silence(int fd, uint32_t ms)
{
	unsigned limit = ms + CC_PATH_MAX_MS;

	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
}

static int unix_sockaddr(const char *path, struct sockaddr_un *sun)
{
	memset(sun, 0, sizeof *sun);
	sun->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof sun->sun_path) {
		errno = ENAMETOOLONG;
		return CC_ERR_INVAL;
	}
	memcpy(sun->sun_path, path, strlen(path));
	return 0;
}

int cc_fd_above_standard(int fd)
{
	int moved;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (moved < 0)
		return fd;
	close(fd);
	return moved;
}

void cc_discard_input(int sock)
{
	char byte;

	shutdown(sock, SHUT_RD);
	while (recv(sock, &byte, 1, MSG_DONTWAIT | MSG_TRUNC) > 0)
		;
}

void cc_reject(int sock, const void *buf, size_t len)
{
	cc_discard_input(sock);
	(void)!send(sock, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(sock);
}

void cc_open_standard_fds(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	while (fd >= 0 && fd <= STDERR_FILENO)
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd > STDERR_FILENO)
		close(fd);
}

int cc_connect_unix(const char *path, int type)
{
	struct sockaddr_un sun;
	int fd, err = unix_sockaddr(path, &sun);

	if (err < 0)
		return err;
	fd = cc_fd_above_standard(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return CC_ERR_IO;
	if (connect(fd, (struct sockaddr *)&sun, sizeof sun) < 0)
		return close_keep_errno(fd, errno == ENOENT ? CC_ERR_NOENT : CC_ERR_IO);
	return fd;
}

/* Removes a socket file on which nobody listens. */
static int remove_stale(const char *path, int type)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return CC_ERR_EXIST;
	/* The connect does not block, because a listener with a full backlog is alive and would let
	 * it wait. */
	fd = cc_connect_unix(path, type | SOCK_NONBLOCK);
	if (fd >= 0) {
		close(fd);
		return CC_ERR_EXIST;
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
		return CC_ERR_IO; /* the connect was not tried */
	if (errno != ECONNREFUSED)
		return CC_ERR_EXIST;
	return unlink(path) < 0 ? CC_ERR_IO : 0;
}

int cc_listen_unix(const char *path, int type, unsigned mode)
{
	struct sockaddr_un sun;
	int fd, err = unix_sockaddr(path, &sun);

	if (err < 0)
		return err;
	fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return CC_ERR_IO;
	if (bind(fd, (struct sockaddr *)&sun, sizeof sun) < 0) {
		if (errno != EADDRINUSE)
			return close_keep_errno(fd, CC_ERR_IO);
		err = remove_stale(path, type);
		if (err < 0)
			return close_keep_errno(fd, err);
		if (bind(fd, (struct sockaddr *)&sun, sizeof sun) < 0)
			return close_keep_errno(fd, CC_ERR_IO);
	}
	if (chmod(path, (mode_t)mode) < 0 || listen(fd, LISTEN_BACKLOG) < 0)
		return close_keep_errno(fd, CC_ERR_IO);
	return fd;
}

static uint8_t count_bits(const struct sockaddr *mask)
{
	struct cc_addr a;
	uint8_t n = 0;

	if (!mask || cc_addr_from_sockaddr(mask, &a) < 0)
		return 0;
	for (unsigned i = 0; i < sizeof a.ip; i++)
		n = (uint8_t)(n + __builtin_popcount(a.ip[i]));
	return n;
}

/* Takes an address if its interface is up and other hosts might reach it. */
static bool take_interface(const struct ifaddrs *i, struct cc_interface *ret)
{
	const struct sockaddr *sa = i->ifa_addr;

	if (!sa || !(i->ifa_flags & IFF_UP) ||
		(sa->sa_family != AF_INET && sa->sa_family != AF_INET6) ||
		cc_addr_from_sockaddr(sa, &ret->addr) < 0 || cc_addr_is_loopback(&ret->addr))
		return false;
	if (sa->sa_family == AF_INET6 &&
		IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr))
		return false;
	ret->addr.port = 0;
	ret->bits = count_bits(i->ifa_netmask);
	ret->loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
	snprintf(ret->name, sizeof ret->name, "%s", i->ifa_name);
	return true;
}

/* Returns the rank of an address; low ranks come first. IPv4 comes before IPv6, because between
 * sites it is reachable more often. Addresses on the loopback interface come last in their family,
 * because other hosts can reach them only over routes. */
static unsigned rank_of(const struct cc_interface *i)
{
	return (i->addr.family == CC_INET6 ? 2u : 0u) + i->loopback;
}

int cc_interfaces(struct cc_interface *ret, unsigned max)
{
	struct cc_interface x;
	struct ifaddrs *all;
	unsigned n = 0, total = 0;

	if (getifaddrs(&all) < 0)
		return CC_ERR_IO;
	for (unsigned rank = 0; rank < 4; rank++) {
		for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
			if (!take_interface(i, &x) || rank_of(&x) != rank)
				continue;
			if (n < max)
				ret[n++] = x;
			total++;
		}
	}
	freeifaddrs(all);
	return (int)total;
}

int cc_local_addr(int fd, struct cc_addr *ret)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;

	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return CC_ERR_IO;
	return cc_addr_from_sockaddr((struct sockaddr *)&ss, ret);
}

bool cc_addr_is_here(const struct cc_addr *a)
{
	struct cc_addr any_port = *a;
	struct sockaddr_storage ss;
	socklen_t len;
	bool here;
	int fd;

	any_port.port = 0;
	len = cc_addr_to_sockaddr(&any_port, &ss);
	fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return true;
	here = bind(fd, (struct sockaddr *)&ss, len) == 0 || errno != EADDRNOTAVAIL;
	close(fd);
	return here;
}

static bool has_address(void)
{
	struct cc_interface x = {.loopback = true};
	struct ifaddrs *all;
	bool found = false;

	if (getifaddrs(&all) < 0)
		return false;
	for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next)
		found = take_interface(i, &x) && !x.loopback;
	freeifaddrs(all);
	return found;
}

bool cc_addr_has_left(const struct cc_addr *a)
{
	return a->family != 0 && !cc_addr_is_here(a) && has_address();
}

bool cc_is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool cc_addr_in_net(const struct cc_addr *a, const struct cc_addr *net, uint8_t bits)
{
	unsigned whole = bits / 8u, rest = bits % 8u;

	if (a->family != net->family || memcmp(a->ip, net->ip, whole) != 0)
		return false;
	return rest == 0 || (a->ip[whole] ^ net->ip[whole]) >> (8u - rest) == 0;
}
