/* SPDX-License-Identifier: MIT
 *
 * ccoip-masterd: opens its sockets and runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>

#include "ccoip-masterd/sockets.h"
#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_log.h"
#include "common/cc_must.h"
#include "common/cc_seal.h"
#include "common/cc_service.h"
#include "common/cc_sys.h"

static struct socket_file admin; /* removed at the end */
static bool started;             /* the master exists */

/* The core has no memory: ends the process. */
static void on_exhausted(void)
{
	if (started) {
		cc_log(CC_LOG_ERR, "the master cannot go on: %s", cc_err_str(CC_ERR_NOMEM));
	} else {
		errno = ENOMEM;
		cc_limit_log("the master cannot start");
	}
	sockets_remove(&admin);
	_exit(started ? EX_SOFTWARE : EX_OSERR);
}

static void notify(const struct masterd *m, enum cc_service_state state)
{
	struct ccm_status s;
	char text[128];

	ccm_get_status(masterd_core(m), &s);
	snprintf(text, sizeof text, "%u agents, %u peers accepted, %u registered", s.agents,
		s.accepted, s.registered);
	cc_service_notify(state, text);
}

static void on_interval(void *arg)
{
	notify(arg, CC_SERVICE_ALIVE);
}

static int start_notifying(struct masterd *m)
{
	uint32_t ms = cc_service_interval_ms();

	return ms ? masterd_every(m, ms, on_interval, m) : 0;
}

static void on_signal(void *arg, int signo)
{
	cc_service_notify(CC_SERVICE_STOPPING, NULL);
	masterd_stop(arg, signo == SIGINT ? "interrupted" : "terminated by a signal");
}

/* Ends the run with the master. If the master belongs to a program, nobody starts it again. */
static void on_end_signal(void *arg, int signo)
{
	(void)signo;
	masterd_end(arg, "the master was told to end");
}

static int run(const struct masterd_config *cfg)
{
	void (*fn)(void *arg, int signo) = cfg->parent_fd < 0 ? on_signal : on_end_signal;
	int code = EX_OSERR;
	struct masterd *m = masterd_new(cfg, &code);

	if (!m)
		return code;
	started = true;
	if (masterd_on_signal(m, SIGTERM, fn, m) == 0 && masterd_on_signal(m, SIGINT, fn, m) == 0 &&
		start_notifying(m) == 0) {
		cc_service_mask_signals(SIG_UNBLOCK);
		notify(m, CC_SERVICE_READY);
		code = masterd_run(m) < 0 ? EX_SOFTWARE : EX_OK;
	} else {
		cc_limit_log("the master cannot start");
	}
	masterd_free(m);
	return code;
}

int main(int argc, char **argv)
{
	struct masterd_config cfg;
	struct masterd_options o;
	int code;

	cc_must_on_exhausted(on_exhausted);
	cc_open_standard_fds();
	cc_seal_prepare();
	if (masterd_options_parse(&o, argc, argv, &code) < 0)
		return code;
	cc_log_set_level(o.log_level);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of file sizes then fails: EFBIG */
	cc_service_mask_signals(SIG_BLOCK);
	cc_service_raise_limits();
	masterd_config_init(&cfg);
	cfg.log_level = (uint32_t)o.log_level;
	cfg.parent_fd = o.parent_fd;
	cfg.state_dir = o.state_dir;
	cfg.host_timeout_ms = o.host_timeout_ms;
	cfg.agent_lease_ms = o.agent_lease_ms;
	cfg.recovery_ms = o.recovery_ms;
	cfg.bounds = o.bounds;
	cfg.algorithm = o.algorithm;
	cfg.benchmark_ms = o.benchmark_ms;
	if (cfg.parent_fd >= 0)
		fcntl(cfg.parent_fd, F_SETFD, FD_CLOEXEC);
	code = sockets_open(&o, &cfg, &admin);
	if (code == 0)
		code = run(&cfg);
	sockets_remove(&admin);
	masterd_options_clear(&o);
	return code;
}
