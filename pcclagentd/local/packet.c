/* SPDX-License-Identifier: MIT */
#include "pcclagentd/local/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_err.h"

#define CLOSERS_MAX 16u

static _Atomic unsigned closers;

int loc_packet_send(int sock, const struct wl_reply *r, const int *fds, size_t n_fds)
{
	uint8_t buf[WL_PACKET_MAX];
	int len = wire_local_put_reply(r, buf);
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * WL_FDS_MAX)];
	} ctl;
	struct iovec iov;
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (len < 0)
		return len;
	iov = (struct iovec){buf, (size_t)len};
	if (n_fds > 0) {
		struct cmsghdr *c = &ctl.align;

		memset(&ctl, 0, sizeof ctl);
		m.msg_control = &ctl;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	if (sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return errno == EAGAIN ? CC_ERR_LIMIT : errno == EPIPE ? CC_ERR_EOF : CC_ERR_IO;
}

static void take_descriptor(struct msghdr *m, struct packet *p)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (p->fd < 0) {
				p->fd = fd;
			} else {
				p->surplus = true;
				loc_packet_close_foreign(fd);
			}
		}
	}
	p->surplus = p->surplus || (m->msg_flags & MSG_CTRUNC);
}

int loc_packet_receive(int sock, struct packet *ret)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} ctl;
	struct iovec iov = {ret->buf, sizeof ret->buf};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (atomic_load(&closers) < CLOSERS_MAX) {
		m.msg_control = &ctl;
		/* Not CMSG_SPACE: the padding would have room for a second descriptor. */
		m.msg_controllen = CMSG_LEN(sizeof(int));
	}
	n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? CC_ERR_AGAIN : CC_ERR_IO;
	ret->len = (size_t)n;
	ret->fd = -1;
	ret->surplus = false;
	ret->truncated = (m.msg_flags & MSG_TRUNC) || n > (ssize_t)WL_PACKET_MAX;
	take_descriptor(&m, ret);
	/* A packet without bytes looks like the end of the connection. No request is such a packet.
	 */
	if (n == 0 && ret->fd < 0 && !ret->surplus)
		return CC_ERR_EOF;
	return 0;
}

static void *close_one(void *arg)
{
	close((int)(intptr_t)arg);
	atomic_fetch_sub(&closers, 1);
	return NULL;
}

void loc_packet_close_foreign(int fd)
{
	pthread_t t;

	/* A memfd: closing it needs no file system that could block. */
	if (fcntl(fd, F_GET_SEALS) >= 0) {
		close(fd);
		return;
	}
	atomic_fetch_add(&closers, 1);
	if (pthread_create(&t, NULL, close_one, (void *)(intptr_t)fd) == 0)
		pthread_detach(t);
	/* Without a thread, the descriptor stays open, and closers stays raised by one. This is
	 * better than a close that may block. */
}
