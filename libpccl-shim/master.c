/* SPDX-License-Identifier: MIT
 *
 * A master that this process starts: ccoip-masterd as a child process. This process opens the
 * listening socket, so that it learns of errors at once. The child holds one end of a pair of
 * sockets, the leash. The child ends when it reads the end of file from the leash: this process has
 * asked the child to end, or is gone. The leash is not a pipe, because a signal handler may call
 * shutdown() on a socket, while the descriptor stays open.
 *
 * These functions work without pcclInit, as in PCCL 1.0.
 */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_log.h"
#include "common/cc_sys.h"
#include "libpccl-shim/address.h"
#include "libpccl-shim/fork.h"
#include "libpccl-shim/program.h"
#include "libpccl-shim/spawn.h"

#define MASTER_MAGIC 0x5453414du /* "MAST" */

enum master_state { MASTER_CREATED = 0, MASTER_STARTING, MASTER_RUNNING, MASTER_ENDED };

struct pcclMasterInstanceState_t {
	uint32_t magic;
	uint32_t fork_count;
	struct pccl_fork_fd listener, leash;
	pid_t pid;
	_Atomic int state; /* enum master_state */
	_Atomic bool interrupted;
};

static pcclResult_t check(const pcclMasterInstance_t *m)
{
	if (!m || m->magic != MASTER_MAGIC)
		return pccl_fail(pcclInvalidArgument,
			"the pointer is NULL or not a master, or the master was destroyed");
	if (m->fork_count != pccl_fork_generation())
		return pccl_fail(pcclInvalidUsage,
			"the master belongs to the process that this one was forked from");
	return pcclSuccess;
}

static pcclResult_t fail_of_errno(const char *what, const char *of)
{
	char limit[CC_LIMIT_TEXT];
	pcclResult_t r = pcclInternalError;

	if (cc_limit_is(errno))
		r = pcclOutOfMemory;
	else if (errno == EADDRNOTAVAIL || errno == EACCES)
		r = pcclInvalidUsage;
	return pccl_fail(
		r, "cannot %s %s: %s", what, of, cc_limit_text(errno, limit, sizeof limit));
}

/* Listens like ccoip-masterd, and logs the same line if it must wait for the port. */
static int listen_on(struct cc_addr *addr)
{
	const char *level = pccl_program_log_level();

	if (level)
		cc_log_set_level(cc_log_parse_level(level));
	return cc_listen_tcp_patiently(addr, CC_BIND_MS, 0);
}

pcclResult_t pcclCreateMaster(
	ccoip_socket_address_t listen_address, pcclMasterInstance_t **p_master_handle_out)
{
	pcclResult_t r = pccl_fork_prepare();
	char text[CC_ADDR_STR_SIZE];
	pcclMasterInstance_t *m;
	struct cc_addr addr;
	int fd;

	if (r != pcclSuccess)
		return r;
	if (!p_master_handle_out)
		return pccl_fail(pcclInvalidArgument, "p_master_handle_out must not be NULL");
	r = pccl_address_read(&listen_address, &addr);
	if (r != pcclSuccess)
		return r;
	fd = listen_on(&addr);
	if (fd == CC_ERR_EXIST)
		return pccl_fail(
			pcclInvalidUsage, "%s: the address is in use", cc_addr_str(&addr, text));
	if (fd < 0)
		return fail_of_errno("listen on", cc_addr_str(&addr, text));
	m = calloc(1, sizeof *m);
	if (!m) {
		close(fd);
		return pccl_fail_memory("no memory for a master");
	}
	m->magic = MASTER_MAGIC;
	m->fork_count = pccl_fork_generation();
	m->leash.fd = -1;
	pccl_fork_add(&m->listener, fd);
	*p_master_handle_out = m;
	return pccl_ok();
}

static pcclResult_t start(pcclMasterInstance_t *m)
{
	char *argv[] = {(char *)"ccoip-masterd", (char *)"--listen-fd", (char *)"3",
		(char *)"--parent-fd", (char *)"4", NULL, NULL, NULL};
	const char *level = pccl_program_log_level();
	char program[PATH_MAX];
	int pair[2], fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return fail_of_errno("make", "a pair of sockets");
	pair[0] = cc_fd_above_standard(pair[0]);
	if (level) {
		argv[5] = (char *)"--log-level";
		argv[6] = (char *)(uintptr_t)level;
	}
	pccl_program_find("PCCL_MASTERD", "ccoip-masterd", program, sizeof program);
	fds[0] = m->listener.fd;
	fds[1] = pair[1];
	if (pccl_program_start(program, argv, -1, fds, 2, &m->pid) < 0) {
		int saved = errno;
		pcclResult_t r;

		close(pair[0]);
		close(pair[1]);
		r = pccl_spawn_fail(program, "ccoip-masterd", "PCCL_MASTERD", saved);
		return r == pcclAgentUnavailable ? pcclInternalError : r;
	}
	close(pair[1]);
	pccl_fork_add(&m->leash, pair[0]);
	/* The child has its own descriptor. If this one stayed open, the port would accept
	 * connections after the end of the child. */
	pccl_fork_close(&m->listener);
	return pcclSuccess;
}

/* Ends the master. The byte reports that the run is over. Without this byte, the hosts of the run
 * wait for another master. */
static void end(const pcclMasterInstance_t *m)
{
	if (!pccl_fork_holds(&m->leash))
		return;
	(void)!send(m->leash.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(m->leash.fd, SHUT_WR);
}

pcclResult_t pcclRunMaster(pcclMasterInstance_t *m)
{
	int expected = MASTER_CREATED;
	pcclResult_t r = check(m);

	if (r != pcclSuccess)
		return r;
	if (!atomic_compare_exchange_strong(&m->state, &expected, MASTER_STARTING))
		return pccl_fail(pcclInvalidArgument, "the master is running or has already ended");
	if (atomic_load(&m->interrupted)) {
		pccl_fork_close(&m->listener);
		atomic_store(&m->state, MASTER_ENDED);
		return pccl_ok();
	}
	r = start(m);
	atomic_store(&m->state, r == pcclSuccess ? MASTER_RUNNING : MASTER_CREATED);
	if (r != pcclSuccess)
		return r;
	if (atomic_load(&m->interrupted)) /* pcclInterruptMaster came before the leash existed */
		end(m);
	return pccl_ok();
}

/* Signal handlers may call this, so it takes no lock, allocates nothing and sets no sentence. */
pcclResult_t pcclInterruptMaster(pcclMasterInstance_t *m)
{
	int saved = errno;

	if (!m || m->magic != MASTER_MAGIC)
		return pcclInvalidArgument;
	if (m->fork_count != pccl_fork_generation())
		return pcclInvalidUsage;
	if (atomic_load(&m->state) == MASTER_ENDED)
		return pcclInvalidArgument;
	atomic_store(&m->interrupted, true);
	if (atomic_load(&m->state) == MASTER_RUNNING)
		end(m);
	errno = saved;
	return pcclSuccess;
}

pcclResult_t pcclMasterAwaitTermination(pcclMasterInstance_t *m)
{
	pcclResult_t r = check(m);
	int status = 0;
	pid_t got;

	if (r != pcclSuccess)
		return r;
	if (atomic_load(&m->state) == MASTER_ENDED)
		return pccl_ok();
	if (atomic_load(&m->state) != MASTER_RUNNING)
		return pccl_fail(pcclInvalidArgument, "the master was never started");
	do
		got = waitpid(m->pid, &status, 0);
	while (got < 0 && errno == EINTR);
	atomic_store(&m->state, MASTER_ENDED);
	if (got == m->pid && WIFEXITED(status) && WEXITSTATUS(status) == EX_OSERR)
		return pccl_fail(pcclOutOfMemory,
			"the master ended with status %d: it has reached a limit of its system; "
			"see its message on standard error",
			EX_OSERR);
	/* The status is unknown if another part of the program has waited for the child (a SIGCHLD
	 * handler). */
	if (got == m->pid && status != 0)
		return pccl_fail(pcclInternalError, "the master ended with %s %d",
			WIFSIGNALED(status) ? "signal" : "status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return pccl_ok();
}

pcclResult_t pcclDestroyMaster(pcclMasterInstance_t *m)
{
	pcclResult_t r = check(m);
	int state;

	if (r != pcclSuccess)
		return r;
	state = atomic_load(&m->state);
	if (state == MASTER_STARTING || state == MASTER_RUNNING)
		return pccl_fail(pcclInvalidUsage,
			"the master has been started: interrupt it, then call "
			"pcclMasterAwaitTermination");
	m->magic = 0;
	pccl_fork_close(&m->listener);
	pccl_fork_close(&m->leash);
	free(m);
	return pccl_ok();
}
