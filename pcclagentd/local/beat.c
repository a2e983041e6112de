/* SPDX-License-Identifier: MIT */
#include "pcclagentd/local/beat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_err.h"

#define ANSWERS_PER_LOOK 16u

int loc_beat_open(struct beat *b, int *ret_other)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return CC_ERR_IO;
	*b = (struct beat){.fd = pair[0]};
	*ret_other = pair[1];
	return 0;
}

void loc_beat_close(struct beat *b)
{
	if (b->fd >= 0)
		close(b->fd);
	*b = (struct beat){.fd = -1};
}

void loc_beat_forget(struct beat *b)
{
	b->missed = 0;
	b->asked = false;
}

static void read_answers(struct beat *b)
{
	char answer;

	for (unsigned i = 0; i < ANSWERS_PER_LOOK; i++) {
		ssize_t n = recv(b->fd, &answer, sizeof answer, MSG_DONTWAIT);

		if (n > 0) {
			loc_beat_forget(b);
			continue;
		}
		/* The process has closed its end of the connection, or is ending. */
		if (n == 0 || errno != EAGAIN)
			loc_beat_close(b);
		return;
	}
}

uint32_t loc_beat_parts(const char *loadavg, long cpus)
{
	unsigned long running, parts;

	if (cpus < 1 || sscanf(loadavg, "%*s %*s %*s %lu/", &running) != 1 ||
		running <= (unsigned long)cpus)
		return BEAT_PARTS;
	parts = BEAT_PARTS * (unsigned long)cpus / running;
	return parts > 0 ? (uint32_t)parts : 1;
}

static uint32_t parts_now(void)
{
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	char buf[64];
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return loc_beat_parts(buf, sysconf(_SC_NPROCESSORS_ONLN));
}

/* Counts an interval that has passed without an answer. */
static void count_interval(struct beat *b, const struct process *p)
{
	if (loc_process_runs(p))
		b->missed = 0;
	else if (b->missed < BEAT_ASKS * BEAT_PARTS)
		b->missed += parts_now();
}

bool loc_beat_is_silent(
	struct beat *b, const struct process *p, uint64_t every_ns, bool due, uint64_t now)
{
	char ask = 0;

	if (b->fd >= 0 && b->asked)
		read_answers(b);
	if (b->fd < 0)
		return false;
	if (due && now - b->look_ns >= every_ns) {
		b->look_ns = now;
		if (b->asked)
			count_interval(b, p);
		/* If there is no room, the process has unread asks. */
		if (b->missed < BEAT_ASKS * BEAT_PARTS)
			(void)send(b->fd, &ask, sizeof ask, MSG_DONTWAIT | MSG_NOSIGNAL);
		b->asked = true;
	}
	return b->missed >= BEAT_ASKS * BEAT_PARTS;
}
