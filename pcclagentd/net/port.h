/* SPDX-License-Identifier: MIT
 *
 * A TCP port of the agent. Peers learn its number from the master, so any port will do, but
 * firewalls may know the standard ones. A private agent takes those where they are free, and gives
 * them back when another agent of the host asks for them: that one stays, and is what
 * administrators know of. Loop thread.
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
	/* Of a private agent: where another one asks for the port; -1: nobody can. */
	int asked_fd;
	struct cc_watch *asked;
};

/* Opens a port of the net: `wanted`, or a higher one where that is taken; 0: any. 0 or CC_ERR_*,
 * logged. The port must stay where it is. */
int net_port_open(struct port *p, struct net *n, enum wlk_service service, uint16_t wanted,
	void (*on_accept)(void *arg, int fd),
	void (*on_shortage)(void *arg, int fd, int error, const char *limit));
/* Also of a port that was never opened. */
void net_port_close(struct port *p);

#endif
