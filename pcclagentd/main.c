/* SPDX-License-Identifier: MIT
 *
 * The program pcclagentd: finds its sockets, detaches if it is a private agent, and runs.
 */
#include <errno.h>
#include <malloc.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>
#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_log.h"
#include "common/cc_seal.h"
#include "common/cc_service.h"
#include "common/cc_sys.h"
#include "pcclagentd/inherited.h"
#include "pcclagentd/options.h"

#define KEPT_MAX  (32 << 20) /* bytes of free heap that are kept */
#define PATH_SIZE 128
#define SIGNALLED 128 /* the exit status is this plus the signal's number */

/* A socket file that this program has made. It is removed at the end, if it is still the same file.
 */
struct socket_file {
	char path[PATH_SIZE];
	dev_t dev;
	ino_t ino;
};

struct program {
	struct agentd_options opt;
	struct agentd *agent;
	struct socket_file files[2];
	int ready_fd; /* --private: the first process waits at the other end; else -1 */
};

/* ---- systemd ---- */

#ifdef HAVE_SYSTEMD
static int take_systemd_sockets(struct program *p)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names);

	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (strcmp(names[i], "session") == 0 &&
			sd_is_socket(fd, AF_UNIX, SOCK_SEQPACKET, 1) > 0 &&
			p->opt.cfg.session_fd < 0)
			p->opt.cfg.session_fd = fd;
		else if (strcmp(names[i], "admin") == 0 &&
			 sd_is_socket(fd, AF_UNIX, SOCK_STREAM, 1) > 0 && p->opt.cfg.admin_fd < 0)
			p->opt.cfg.admin_fd = fd;
		else
			close(fd);
		free(names[i]);
	}
	free(names);
	return n < 0 ? CC_ERR_IO : 0;
}
#else
static int take_systemd_sockets(struct program *p)
{
	(void)p;
	return 0;
}
#endif

/* ---- sockets ---- */

static void remember(struct socket_file *f, const char *path)
{
	struct stat st;

	if (strlen(path) >= sizeof f->path || lstat(path, &st) < 0)
		return;
	memcpy(f->path, path, strlen(path) + 1);
	f->dev = st.st_dev;
	f->ino = st.st_ino;
}

/* Removes the socket file, unless another agent has replaced it meanwhile. */
static void remove_file(const struct socket_file *f)
{
	struct stat st;

	if (f->path[0] && lstat(f->path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino)
		unlink(f->path);
}

static int open_socket(const char *path, int type, unsigned mode)
{
	int fd = cc_listen_unix(path, type, mode);
	char limit[CC_LIMIT_TEXT];

	if (fd == CC_ERR_EXIST)
		cc_log(CC_LOG_ERR, "%s is in use: another agent is running", path);
	else if (fd < 0)
		cc_log(CC_LOG_ERR, "cannot make the socket %s: %s%s", path,
			cc_limit_text(errno, limit, sizeof limit),
			errno == ENOENT || errno == EACCES
				? "; name another path with --socket, or make the folder (root "
				  "makes the system's folder with systemd-tmpfiles --create)"
				: "");
	return fd;
}

/* agent.sock -> agent-admin.sock */
static void admin_path(const char *socket, char path[PATH_SIZE])
{
	size_t len = strlen(socket);

	if (len > 5 && strcmp(socket + len - 5, ".sock") == 0)
		len -= 5;
	snprintf(path, PATH_SIZE, "%.*s-admin.sock", (int)len, socket);
}

static int open_session_socket(struct program *p)
{
	struct agentd_config *c = &p->opt.cfg;
	const char *path = p->opt.socket ? p->opt.socket : PCCL_RUNDIR "/agent.sock";
	int type = 0;
	socklen_t len = sizeof type;

	if (p->opt.listen_fd >= 0) {
		c->session_fd = p->opt.listen_fd;
		if (getsockopt(c->session_fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
			type != SOCK_SEQPACKET) {
			cc_log(CC_LOG_ERR, "descriptor %d is not a SOCK_SEQPACKET socket",
				c->session_fd);
			return CC_ERR_INVAL;
		}
		fcntl(c->session_fd, F_SETFD, FD_CLOEXEC);
		if (p->opt.socket)
			remember(&p->files[0], path);
	} else if (c->session_fd < 0) {
		/* Any user may connect. The kernel says which user it is. */
		c->session_fd = open_socket(path, SOCK_SEQPACKET, 0666);
		if (c->session_fd < 0)
			return c->session_fd;
		remember(&p->files[0], path);
	}
	return 0;
}

static int open_admin_socket(struct program *p, bool by_systemd)
{
	struct agentd_config *c = &p->opt.cfg;
	const char *path = p->opt.admin_socket;
	char beside[PATH_SIZE];

	if (c->admin_fd >= 0)
		return 0;
	if (!path) {
		if (by_systemd || (p->opt.listen_fd >= 0 && !p->opt.socket))
			return 0;
		admin_path(p->opt.socket ? p->opt.socket : PCCL_RUNDIR "/agent.sock", beside);
		path = beside;
	}
	c->admin_fd = open_socket(path, SOCK_STREAM, p->opt.is_private ? 0600 : 0660);
	if (c->admin_fd < 0)
		return c->admin_fd;
	remember(&p->files[1], path);
	return 0;
}

static int open_sockets(struct program *p)
{
	bool by_systemd;

	if (take_systemd_sockets(p) < 0)
		return CC_ERR_IO;
	by_systemd = p->opt.cfg.session_fd >= 0;
	if (open_session_socket(p) < 0)
		return CC_ERR_IO;
	return open_admin_socket(p, by_systemd);
}

/* ---- detaching ---- */

/* The daemon has died without a report: returns its exit status, or, like a shell, 128 plus the
 * number of the signal that ended it. The process between this one and the daemon exits with 0. */
static int status_of_daemon(void)
{
	int code = EX_SOFTWARE, status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, 0)) > 0 || errno == EINTR) {
		if (pid <= 0)
			continue;
		if (WIFSIGNALED(status)) {
			code = SIGNALLED + WTERMSIG(status);
			cc_log(CC_LOG_ERR, "the agent was ended by signal %d (%s)",
				WTERMSIG(status), strsignal(WTERMSIG(status)));
		} else if (WEXITSTATUS(status) != EX_OK) {
			code = WEXITSTATUS(status);
		}
	}
	return code;
}

/* Waits, in the first process, until the daemon reports that it is ready, or dies. */
static _Noreturn void await_daemon(int fd)
{
	char code = EX_SOFTWARE;
	ssize_t n;

	do
		n = read(fd, &code, 1);
	while (n < 0 && errno == EINTR);
	_exit(n == 1 ? code : status_of_daemon());
}

static int detach(struct program *p)
{
	int fds[2];
	pid_t pid;

	/* Makes this process the parent of the daemon when the process between them ends, so that
	 * it can wait for the daemon. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1ul, 0ul, 0ul, 0ul);
	if (pipe2(fds, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		return CC_ERR_IO;
	if (pid > 0) {
		close(fds[1]);
		await_daemon(fds[0]);
	}
	close(fds[0]);
	if (setsid() < 0 || (pid = fork()) < 0)
		return CC_ERR_IO;
	if (pid > 0)
		_exit(EX_OK);
	p->ready_fd = fds[1];
	return 0;
}

static void tell_starter(struct program *p, char code)
{
	if (p->ready_fd < 0)
		return;
	if (write(p->ready_fd, &code, 1) < 0)
		cc_log(CC_LOG_WARNING, "the program that started this agent has ended");
	close(p->ready_fd);
	p->ready_fd = -1;
}

/* ---- running ---- */

static void notify(const struct program *p, enum cc_service_state state)
{
	struct agentd_stats s;
	char text[128];

	agentd_get_stats(p->agent, &s);
	snprintf(text, sizeof text, "%u processes, %u peers, %u runs, %u operations", s.sessions,
		s.comms, s.runs, s.ops);
	cc_service_notify(state, text);
}

static void on_interval(void *arg)
{
	notify(arg, CC_SERVICE_ALIVE);
}

static int start_notifying(struct program *p)
{
	uint32_t ms = cc_service_interval_ms();

	return ms ? agentd_every(p->agent, ms, on_interval, p) : 0;
}

static void on_signal(void *arg, int signo)
{
	const struct program *p = arg;

	cc_service_notify(CC_SERVICE_STOPPING, NULL);
	agentd_stop(p->agent,
		signo == SIGINT ? "the agent was interrupted" : "the agent was told to end");
}

static void on_hangup(void *arg, int signo)
{
	const struct program *p = arg;
	struct agentd_masters m;

	(void)signo;
	if (!p->opt.config_file) {
		cc_log(CC_LOG_WARNING, "there is no configuration file to read again");
		return;
	}
	if (agentd_options_read_masters(p->opt.config_file, &m) < 0) {
		cc_log(CC_LOG_ERR,
			"the masters stay unchanged: correct the file, or the next start fails");
		return;
	}
	agentd_set_masters(p->agent, &m);
	cc_log(CC_LOG_NOTICE, "section [masters] of %s has been read again", p->opt.config_file);
}

static int run(struct program *p)
{
	int err;

	cc_service_mask_signals(SIG_BLOCK);
	cc_service_raise_limits();
	signal(SIGPIPE, SIG_IGN);
	/* A write beyond the limit of file sizes fails with EFBIG instead of a signal. */
	signal(SIGXFSZ, SIG_IGN);
	errno = 0;
	if (open_sockets(p) < 0)
		return cc_limit_status();
	p->agent = agentd_new(&p->opt.cfg);
	if (!p->agent)
		return cc_limit_status();
	if (agentd_on_signal(p->agent, SIGTERM, on_signal, p) < 0 ||
		agentd_on_signal(p->agent, SIGINT, on_signal, p) < 0 ||
		agentd_on_signal(p->agent, SIGHUP, on_hangup, p) < 0 || start_notifying(p) < 0) {
		cc_limit_log("the agent cannot start");
		return EX_OSERR;
	}
	cc_service_mask_signals(SIG_UNBLOCK);
	notify(p, CC_SERVICE_READY);
	tell_starter(p, EX_OK);
	err = agentd_run(p->agent);
	return err < 0 ? EX_SOFTWARE : EX_OK;
}

/* Keeps free memory in the heap. Eager operations take and give back memory all the time. If freed
 * memory went back to the system at once, the agent would get it back page by page, with a page
 * fault for each page. */
static void keep_memory(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, 8 << 20);
	(void)mallopt(M_TRIM_THRESHOLD, KEPT_MAX);
}

int main(int argc, char **argv)
{
	struct program p = {.ready_fd = -1};
	char limit[CC_LIMIT_TEXT];
	int code;

	cc_open_standard_fds();
	keep_memory();
	cc_seal_prepare();
	if (agentd_options_parse(&p.opt, argc, argv, &code) < 0)
		return code;
	cc_log_set_level(p.opt.log_level);
	/* first, because a low limit of processes would prevent the fork */
	if (p.opt.is_private)
		inherited_shed();
	if (p.opt.is_private && detach(&p) < 0) {
		cc_log(CC_LOG_ERR, "the agent cannot detach: %s",
			cc_limit_text(errno, limit, sizeof limit));
		code = cc_limit_status();
		agentd_options_clear(&p.opt);
		return code;
	}
	code = run(&p);
	for (int i = 0; i < 2; i++)
		remove_file(&p.files[i]);
	if (p.agent)
		agentd_free(p.agent);
	tell_starter(&p, (char)code);
	agentd_options_clear(&p.opt);
	return code;
}
