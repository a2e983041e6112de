/* SPDX-License-Identifier: MIT */
#include "pcclagentd/net/port.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "pcclagentd/net/net_internal.h"

#define STANDARD_END 48152u /* the first port above the standard ports */
#define BIND_MS      2000u  /* the longest wait for a port that is in use */
#define RETRY_MS     10u

static const char *const services[] = {
	[WLK_P2P] = "p2p",
	[WLK_SHARED_STATE] = "shared state",
	[WLK_BENCHMARK] = "benchmark",
};

/* ---- asking for a port ---- */

/* Returns the name of the socket on which an agent can be asked for the port. The name is in the
 * abstract namespace. Like the port, the name belongs to a network namespace, so two agents can
 * find each other even if they do not see the same files or processes. */
static socklen_t name_socket(struct sockaddr_un *sun, uint16_t port)
{
	int n;

	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(sun->sun_path + 1, sizeof sun->sun_path - 1, "pccl-port-%u", port);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int ask_socket(void)
{
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Asks the private agent that has the port to give it back. Returns false if there is no such
 * agent. */
static bool ask_for(uint16_t port)
{
	struct sockaddr_un sun;
	socklen_t len = name_socket(&sun, port);
	int fd = ask_socket();
	bool asked = fd >= 0 && sendto(fd, "", 1, 0, (struct sockaddr *)&sun, len) == 1;

	if (fd >= 0)
		close(fd);
	return asked;
}

/* ---- listening ---- */

static int listen_when_given(struct cc_addr *addr)
{
	const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
	int fd;

	for (uint32_t waited = 0;; waited += RETRY_MS) {
		fd = cc_listen_tcp(addr, 0);
		if (fd != CC_ERR_EXIST || waited >= BIND_MS)
			return fd;
		nanosleep(&pause, NULL);
	}
}

/* Listens on exactly this port. A private agent does not wait for a port that is in use. */
static int listen_on(const struct net *n, struct cc_addr *addr)
{
	int fd = cc_listen_tcp(addr, 0);

	if (fd >= 0 || n->base->cfg.gives_ports)
		return fd;
	return fd == CC_ERR_EXIST && ask_for(addr->port)
		       ? listen_when_given(addr)
		       : cc_listen_tcp_patiently(addr, BIND_MS, CC_BIND_MS);
}

/* Listens on the port in *addr or on a higher one, and sets *addr to it. */
static int listen_from(const struct net *n, enum wlk_service service, struct cc_addr *addr)
{
	uint16_t wanted = addr->port;
	int fd = listen_on(n, addr);

	if (fd != CC_ERR_EXIST || wanted == UINT16_MAX)
		return fd;
	addr->port++;
	fd = cc_listen_tcp(addr, AGENTD_PORT_BUMP - 1);
	if (fd >= 0)
		cc_log(n->base->cfg.gives_ports ? CC_LOG_INFO : CC_LOG_WARNING,
			"port %u is in use: %s gets port %u, which firewalls must allow", wanted,
			services[service], addr->port);
	return fd;
}

static int listen_anywhere(const struct net *n, enum wlk_service service, uint16_t *port)
{
	struct cc_addr addr = n->base->cfg.bind;
	char str[CC_ADDR_STR_SIZE];
	int fd;

	addr.port = *port;
	fd = listen_from(n, service, &addr);
	if (fd == CC_ERR_IO && errno == EAFNOSUPPORT && addr.family == CC_INET6 &&
		cc_addr_is_any(&addr)) {
		addr = (struct cc_addr){.family = CC_INET4, .port = *port};
		fd = listen_from(n, service, &addr);
	}
	if (fd == CC_ERR_IO && errno == EADDRNOTAVAIL)
		cc_log(CC_LOG_ERR, "cannot listen on %s: this host has no such address",
			cc_addr_str(&addr, str));
	else if (fd < 0)
		cc_log(CC_LOG_ERR, "cannot listen on %s or on any of the next %u ports: %s",
			cc_addr_str(&addr, str), AGENTD_PORT_BUMP,
			fd == CC_ERR_IO ? strerror(errno) : cc_err_str(fd));
	else
		*port = addr.port;
	return fd;
}

static int start(struct port *p, uint16_t wanted)
{
	uint16_t number = wanted;
	int fd = listen_anywhere(p->net, p->service, &number);
	struct cc_listener *listener;

	if (fd < 0)
		return fd;
	listener = cc_listener_new(p->net->base->loop, fd, p->on_accept, p);
	if (!listener)
		return CC_ERR_NOMEM;
	if (cc_listener_on_shortage(listener, p->on_shortage) < 0) {
		cc_listener_free(listener);
		return CC_ERR_IO;
	}
	cc_listener_free(p->listener);
	p->listener = listener;
	p->number = number;
	return 0;
}

/* ---- giving a port back ---- */

static void stop_being_asked(struct port *p)
{
	cc_watch_free(p->asked);
	p->asked = NULL;
	if (p->asked_fd >= 0)
		close(p->asked_fd);
	p->asked_fd = -1;
}

/* Gives the port to another agent. Any process on this host can ask, but this agent does not give
 * back the port that it uses next. */
static void on_asked(void *arg)
{
	struct port *p = arg;
	uint16_t old = p->number, next = (uint16_t)(old + 1);

	stop_being_asked(p);
	if (start(p, next < STANDARD_END ? STANDARD_END : next) < 0)
		return;
	cc_log(CC_LOG_NOTICE,
		"port %u is given up to another agent of this host: this agent's %s port is %u now",
		old, services[p->service], p->number);
	net_addresses_refresh(p->net);
}

/* Opens the socket on which another agent can ask for the port. Without it this agent keeps the
 * port. */
static void let_be_asked(struct port *p)
{
	struct sockaddr_un sun;
	socklen_t len = name_socket(&sun, p->number);

	p->asked_fd = ask_socket();
	if (p->asked_fd >= 0 && bind(p->asked_fd, (struct sockaddr *)&sun, len) == 0)
		p->asked = cc_watch_new(p->net->base->loop, p->asked_fd, false, on_asked, p);
	if (!p->asked)
		stop_being_asked(p);
}

/* ---- for the agent ---- */

int net_port_open(struct port *p, struct net *n, enum wlk_service service, uint16_t wanted,
	void (*on_accept)(void *arg, int fd),
	void (*on_shortage)(void *arg, int fd, int error, const char *limit))
{
	int err;

	*p = (struct port){.net = n,
		.service = service,
		.on_accept = on_accept,
		.on_shortage = on_shortage,
		.asked_fd = -1};
	err = start(p, wanted);
	if (err == 0 && n->base->cfg.gives_ports)
		let_be_asked(p);
	return err;
}

void net_port_close(struct port *p)
{
	if (!p->net)
		return;
	stop_being_asked(p);
	cc_listener_free(p->listener);
	p->listener = NULL;
}
