/* SPDX-License-Identifier: MIT
 *
 * ccoip-masterd: opens its sockets and runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "ccoip-masterd/sockets.h"
#include "common/cc_log.h"
#include "common/cc_sys.h"

#ifdef HAVE_SYSTEMD
static void notify(const char *state)
{
	(void)sd_notify(0, state);
}

static void notify_status(const struct masterd *m, const char *state)
{
	struct ccm_status s;

	ccm_get_status(masterd_core(m), cc_now_ns(), &s);
	(void)sd_notifyf(0, "%s\nSTATUS=%u agents, %u peers accepted, %u registered", state,
		s.agents, s.accepted, s.registered);
}

static void on_watchdog(void *arg)
{
	notify_status(arg, "WATCHDOG=1");
}

static int start_watchdog(struct masterd *m)
{
	uint64_t usec = 0;
	uint32_t ms = 5000;

	if (!getenv("NOTIFY_SOCKET"))
		return 0;
	if (sd_watchdog_enabled(0, &usec) > 0 && usec / 2000 < ms)
		ms = (uint32_t)(usec / 2000);
	return masterd_every(m, ms, on_watchdog, m);
}
#else
static void notify(const char *state)
{
	(void)state;
}

static void notify_status(const struct masterd *m, const char *state)
{
	(void)m;
	(void)state;
}

static int start_watchdog(struct masterd *m)
{
	(void)m;
	return 0;
}
#endif

static void raise_limits(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &rl) < 0)
			cc_log(CC_LOG_WARNING, "cannot raise the limit of open files: %s",
				strerror(errno));
	}
}

static void on_signal(void *arg, int signo)
{
	notify("STOPPING=1");
	masterd_stop(arg, signo == SIGINT ? "interrupted" : "told to");
}

/* Blocked until there is somebody to take them, so that the end is a clean one from the start. */
static void mask_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(how, &set, NULL);
}

static int run(const struct masterd_config *cfg)
{
	struct masterd *m = masterd_new(cfg);
	int code = EX_OSERR;

	if (!m)
		return EX_OSERR;
	if (masterd_on_signal(m, SIGTERM, on_signal, m) == 0 &&
		masterd_on_signal(m, SIGINT, on_signal, m) == 0 && start_watchdog(m) == 0) {
		mask_signals(SIG_UNBLOCK);
		notify_status(m, "READY=1");
		code = masterd_run(m) < 0 ? EX_SOFTWARE : EX_OK;
	}
	masterd_free(m);
	return code;
}

int main(int argc, char **argv)
{
	struct masterd_config cfg;
	struct socket_file admin = {0};
	struct options o;
	int code;

	if (options_parse(&o, argc, argv, &code) < 0)
		return code;
	cc_log_set_level(o.log_level);
	signal(SIGPIPE, SIG_IGN);
	mask_signals(SIG_BLOCK);
	raise_limits();
	masterd_config_init(&cfg);
	cfg.log_level = (uint32_t)o.log_level;
	cfg.parent_fd = o.parent_fd;
	if (cfg.parent_fd >= 0)
		fcntl(cfg.parent_fd, F_SETFD, FD_CLOEXEC);
	code = sockets_open(&o, &cfg, &admin);
	if (code == 0)
		code = run(&cfg);
	sockets_remove(&admin);
	options_clear(&o);
	return code;
}
