/* SPDX-License-Identifier: MIT */
#include "common/cc_service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "common/cc_log.h"

#define STATUS_INTERVAL_MS 5000u

#ifdef HAVE_SYSTEMD
uint32_t cc_service_interval_ms(void)
{
	uint64_t usec = 0;

	if (!getenv("NOTIFY_SOCKET"))
		return 0;
	if (sd_watchdog_enabled(0, &usec) > 0 && usec / 2000 < STATUS_INTERVAL_MS)
		return usec < 2000 ? 1 : (uint32_t)(usec / 2000);
	return STATUS_INTERVAL_MS;
}

void cc_service_notify(enum cc_service_state state, const char *status)
{
	static const char *const text[] = {
		[CC_SERVICE_READY] = "READY=1",
		[CC_SERVICE_ALIVE] = "WATCHDOG=1",
		[CC_SERVICE_STOPPING] = "STOPPING=1",
	};

	if (status)
		(void)sd_notifyf(0, "%s\nSTATUS=%s", text[state], status);
	else
		(void)sd_notify(0, text[state]);
}
#else
uint32_t cc_service_interval_ms(void)
{
	return 0;
}

void cc_service_notify(enum cc_service_state state, const char *status)
{
	(void)state;
	(void)status;
}
#endif

void cc_service_mask_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(how, &set, NULL);
}

void cc_service_raise_limits(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &rl) < 0)
			cc_log(CC_LOG_WARNING, "cannot raise the limit of open files: %s",
				strerror(errno));
	}
}
