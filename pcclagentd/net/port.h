/* SPDX-License-Identifier: MIT
 *
 * A TCP port of the agent. Other agents learn its number from the master, so any port can be used.
 * But firewalls may allow only the standard ports. A private agent uses the standard ports if they
 * are free. It gives them back when another agent of the host asks for them. The other agent is
 * usually the system agent, which stays and is known to administrators. Used by the loop thread.
 */
#ifndef PORT_H
#define PORT_H

#include <stdint.h>

#include "proto/wire_link.h"

struct net;

struct port {
	struct net *net;
	enum wlk_service service;
	uint16_t number;
	struct cc_listener *listener;
	void (*on_accept)(void *arg, int fd); /* arg: the port */
	/* See cc_listener_on_shortage. */
	void (*on_shortage)(void *arg, int fd, int error, const char *limit);
	/* Private agent: the socket on which another agent asks for the port; -1: none. */
	int asked_fd;
	struct cc_watch *asked;
};

/* Opens a port. `wanted`: its number, or 0 for any. If the number is in use, a higher one is taken.
 * Errors are logged. `p` must stay at its address. 0 or CC_ERR_*. */
int net_port_open(struct port *p, struct net *n, enum wlk_service service, uint16_t wanted,
	void (*on_accept)(void *arg, int fd),
	void (*on_shortage)(void *arg, int fd, int error, const char *limit));
/* Closes the port. Does nothing if it was never opened. */
void net_port_close(struct port *p);

#endif
