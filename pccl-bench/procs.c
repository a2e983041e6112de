/* SPDX-License-Identifier: MIT */
#include "pccl-bench/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_sys.h"
#include "libpccl-shim/program.h"
#include "pccl-bench/peer.h"

#define GIVEN_FD  3 /* the listening socket of a daemon */
#define PATH_SIZE (BCH_FOLDER_SIZE + 32)
#define TAIL_SIZE 1500

static const char *const roles[] = {
	[BCH_MASTER] = "master", [BCH_AGENT] = "agent", [BCH_PEER] = "peer"};

static int complain(const char *what)
{
	fprintf(stderr, "pccl-bench: %s: %s\n", what, strerror(errno));
	return CC_ERR_IO;
}

/* ---- the folder ---- */

static int make_folder(struct bch_procs *c)
{
	const char *base = getenv("TMPDIR");
	int n = snprintf(c->folder, sizeof c->folder, "%s/pccl-bench-XXXXXX",
		base && base[0] == '/' ? base : "/tmp");

	if ((size_t)n >= sizeof c->folder)
		snprintf(c->folder, sizeof c->folder, "/tmp/pccl-bench-XXXXXX");
	if (mkdtemp(c->folder))
		return 0;
	complain(c->folder);
	c->folder[0] = '\0';
	return CC_ERR_IO;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	(void)!remove(path);
	return 0;
}

static void log_path(const struct bch_procs *c, const struct bch_child *child, char buf[PATH_SIZE])
{
	snprintf(buf, PATH_SIZE, "%s/%s-%" PRIu32 ".log", c->folder, roles[child->role],
		child->number);
}

int bch_procs_init(struct bch_procs *c, const struct bch_options *o)
{
	*c = (struct bch_procs){.options = o, .master = o->master};
	bch_hosts_make(&c->hosts, o->hosts);
	c->board = bch_board_new(o->peers, o->iterations);
	if (!c->board)
		complain("no shared memory");
	if (c->board && make_folder(c) == 0)
		return 0;
	bch_procs_clear(c);
	return CC_ERR_IO;
}

void bch_procs_clear(struct bch_procs *c)
{
	if (c->folder[0])
		nftw(c->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	if (c->board)
		bch_board_free(c->board);
	bch_hosts_close(&c->hosts);
}

/* ---- processes ---- */

/* Runs in the child. */
static void become_child(
	const struct bch_procs *c, const struct bch_child *child, uint32_t host, pid_t parent)
{
	char path[PATH_SIZE];
	sigset_t none;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EX_TEMPFAIL);
	setpgid(0, 0); /* only the coordinator handles an interrupt from the terminal */
	log_path(c, child, path);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(EX_OSERR);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || dup2(fd, STDIN_FILENO) < 0 || bch_hosts_enter(&c->hosts, host) < 0) {
		perror("cannot start a process");
		_exit(EX_OSERR);
	}
	bch_hosts_confine(&c->hosts, host);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setenv("XDG_RUNTIME_DIR", c->folder, 1);
}

/* Forks like fork(): returns twice, with 0 in the child. */
static pid_t start(struct bch_procs *c, enum bch_role role, uint32_t number, uint32_t host)
{
	struct bch_child *child = &c->children[c->n_children];
	pid_t parent = getpid();

	fflush(NULL);
	*child = (struct bch_child){.role = role, .number = number};
	child->pid = fork();
	if (child->pid < 0)
		complain("fork");
	else if (child->pid == 0)
		become_child(c, child, host, parent);
	else
		c->n_children++;
	return child->pid;
}

/* Runs in the child. fd: the socket on which the program listens. */
__attribute__((noreturn)) static void become_program(const char *path, char *const argv[], int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, GIVEN_FD + 1);

	if (moved >= 0 && dup2(moved, GIVEN_FD) == GIVEN_FD)
		execv(path, argv);
	fprintf(stderr, "%s cannot be started: %s\n", path, strerror(errno));
	_exit(EX_UNAVAILABLE);
}

/* Opens a listening socket for the master, and stores the socket's port in the master's address. */
static int listen_for_master(struct bch_procs *c)
{
	int fd = -1, err = bch_hosts_enter(&c->hosts, c->hosts.n);

	c->master = bch_hosts_address(&c->hosts, c->hosts.n);
	if (!err)
		fd = cc_listen_tcp(&c->master, 0);
	if (bch_hosts_enter(&c->hosts, BCH_HOME) < 0 || err < 0 || fd < 0)
		return complain("no socket for the master");
	return fd;
}

static int start_masterd(struct bch_procs *c, int fd)
{
	char path[PATH_MAX], admin[PATH_SIZE];
	char *argv[] = {(char *)"ccoip-masterd", (char *)"--listen-fd", (char *)"3",
		(char *)"--admin-socket", admin, (char *)"--log-level", (char *)"notice", NULL};
	pid_t pid;

	pccl_program_find("PCCL_MASTERD", "ccoip-masterd", path, sizeof path);
	snprintf(admin, sizeof admin, "%s/master.admin", c->folder);
	pid = start(c, BCH_MASTER, 0, c->hosts.n);
	if (pid == 0)
		become_program(path, argv, fd);
	return pid < 0 ? CC_ERR_IO : 0;
}

int bch_procs_start_master(struct bch_procs *c)
{
	int fd, err = 0;
	pid_t pid;

	if (c->options->master.family)
		return 0;
	fd = listen_for_master(c);
	if (fd < 0)
		return CC_ERR_IO;
	if (!c->options->library) {
		err = start_masterd(c, fd);
		close(fd);
		return err;
	}
	close(fd); /* the library opens its own socket */
	pid = start(c, BCH_MASTER, 0, c->hosts.n);
	if (pid == 0)
		exit(bch_master_run(c->options, c->board, &c->master));
	return pid < 0 ? CC_ERR_IO : 0;
}

static void socket_path(const struct bch_procs *c, uint32_t host, char buf[PATH_SIZE])
{
	snprintf(buf, PATH_SIZE, "%s/agent-%" PRIu32 ".sock", c->folder, host);
}

static int start_agent(struct bch_procs *c, uint32_t host)
{
	char path[PATH_MAX], at[PATH_SIZE], name[32];
	char *argv[] = {(char *)"pcclagentd", (char *)"--listen-fd", (char *)"3",
		(char *)"--socket", at, (char *)"--name", name, (char *)"--log-level",
		(char *)"notice", (char *)"--p2p-port", (char *)"0", (char *)"--shared-state-port",
		(char *)"0", (char *)"--benchmark-port", (char *)"0", (char *)"--bind",
		(char *)"127.0.0.1", (char *)"--advertise", (char *)"127.0.0.1", NULL};
	const int options_of_loopback = 9;
	pid_t pid;
	int fd;

	pccl_program_find("PCCL_AGENTD", "pcclagentd", path, sizeof path);
	socket_path(c, host, at);
	snprintf(name, sizeof name, "host-%" PRIu32, host);
	if (c->hosts.separate)
		argv[options_of_loopback] = NULL;
	fd = cc_listen_unix(at, SOCK_SEQPACKET, 0600);
	if (fd < 0)
		return complain(at);
	pid = start(c, BCH_AGENT, host, host);
	if (pid == 0)
		become_program(path, argv, fd);
	close(fd);
	return pid < 0 ? CC_ERR_IO : 0;
}

static bool has_agents(const struct bch_options *o)
{
	return !o->library && !o->master.family;
}

static int start_peer(struct bch_procs *c, uint32_t number)
{
	uint32_t host = number * c->hosts.n / c->options->peers;
	char path[PATH_SIZE];
	pid_t pid = start(c, BCH_PEER, number, host);

	if (pid == 0) {
		if (has_agents(c->options)) {
			socket_path(c, host, path);
			setenv("PCCL_AGENT_SOCKET", path, 1);
		}
		exit(bch_peer_run(c->options, c->board, number, &c->master));
	}
	return pid < 0 ? CC_ERR_IO : 0;
}

int bch_procs_start_peers(struct bch_procs *c)
{
	int err = 0;

	if (has_agents(c->options))
		for (uint32_t i = 0; !err && i < c->hosts.n; i++)
			err = start_agent(c, i);
	for (uint32_t i = 0; !err && i < c->options->peers; i++)
		err = start_peer(c, i);
	return err;
}

void bch_procs_reap(struct bch_procs *c)
{
	for (uint32_t i = 0; i < c->n_children; i++) {
		struct bch_child *child = &c->children[i];

		if (child->pid && waitpid(child->pid, &child->status, WNOHANG) == child->pid)
			child->pid = 0;
	}
}

uint32_t bch_procs_left(const struct bch_procs *c, enum bch_role role)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_children; i++)
		n += c->children[i].role == role && c->children[i].pid;
	return n;
}

void bch_procs_kill(const struct bch_procs *c, enum bch_role role, int signal)
{
	for (uint32_t i = 0; i < c->n_children; i++)
		if (c->children[i].role == role && c->children[i].pid)
			kill(c->children[i].pid, signal);
}

/* ---- what went wrong ---- */

uint32_t bch_procs_complain(const struct bch_procs *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_children; i++) {
		const struct bch_child *child = &c->children[i];
		const char *why = child->role == BCH_PEER ? c->board->slots[child->number].why : "";
		bool killed = WIFSIGNALED(child->status);

		if (child->pid || child->status == 0)
			continue;
		fprintf(stderr, "pccl-bench: %s %" PRIu32 " ended with %s %d%s%s\n",
			roles[child->role], child->number, killed ? "signal" : "status",
			killed ? WTERMSIG(child->status) : WEXITSTATUS(child->status),
			*why ? ": " : "", why);
		n++;
	}
	return n;
}

static void print_tail(const char *path, const char *name, uint32_t number)
{
	char text[TAIL_SIZE + 1], *line, *save;
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		return;
	if (fseek(f, -TAIL_SIZE, SEEK_END) < 0)
		rewind(f);
	n = fread(text, 1, TAIL_SIZE, f);
	fclose(f);
	text[n] = '\0';
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		fprintf(stderr, "  %s %" PRIu32 ": %s\n", name, number, line);
}

void bch_procs_print_logs(const struct bch_procs *c)
{
	char path[PATH_SIZE];

	for (uint32_t i = 0; i < c->n_children; i++) {
		log_path(c, &c->children[i], path);
		print_tail(path, roles[c->children[i].role], c->children[i].number);
	}
}
